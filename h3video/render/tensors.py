"""Arrays in a safetensors file, written and read without the library.

The format is a JSON header after its length in 8 bytes, then the values. Writing it here lets a
file go through our own disk layer (hashed, flushed, renamed) without a second copy in memory, and
lets frames be read row by row. Other programs read the files with the safetensors library.
Standard library only; numpy and torch are imported where their arrays come in.
"""

from __future__ import annotations

import hashlib
import json
import math
import struct
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from .files import BLOCK, REAL, Files

TYPES = {
    "uint8": "U8", "int8": "I8", "int16": "I16", "uint16": "U16", "int32": "I32",
    "uint32": "U32", "int64": "I64", "uint64": "U64", "float16": "F16", "bfloat16": "BF16",
    "float32": "F32", "float64": "F64", "bool": "BOOL",
}  # fmt: skip
NAMES = {code: name for name, code in TYPES.items()}
BYTES = {"U8": 1, "I8": 1, "BOOL": 1, "I16": 2, "U16": 2, "F16": 2, "BF16": 2, "I32": 4, "U32": 4,
         "F32": 4, "I64": 8, "U64": 8, "F64": 8}  # fmt: skip

MAX_HEADER = 100 << 20


class Damaged(Exception):
    """A file that is not what was written: cut, changed, or of another kind."""


def write_tensors(
    path: Path, tensors: Mapping[str, Any], metadata: Mapping[str, str] | None = None,
    files: Files = REAL,
) -> tuple[int, str]:  # fmt: skip
    """Write arrays (numpy or torch, any device) as a whole file or none; returns size and sha256.

    Equal arrays give equal bytes. Raises OSError, TypeError for a type that the format lacks.
    """
    return files.write_atomic(path, encode(tensors, metadata or {}))


def encode(tensors: Mapping[str, Any], metadata: Mapping[str, str]) -> Iterator[Any]:
    """The file's bytes in pieces: the header, then each array's own memory."""
    arrays = [(name, *_plain(tensors[name])) for name in sorted(tensors)]
    header: dict[str, Any] = {}
    if metadata:
        header["__metadata__"] = {k: str(metadata[k]) for k in sorted(metadata)}
    at = 0
    for name, code, shape, raw in arrays:
        header[name] = {"dtype": code, "shape": shape, "data_offsets": [at, at + raw.nbytes]}
        at += raw.nbytes
    text = json.dumps(header, ensure_ascii=False, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)  # values start on a multiple of 8
    yield struct.pack("<Q", len(text)) + text
    for *_, raw in arrays:
        if raw.nbytes:
            yield raw


def _plain(array: Any) -> tuple[str, list[int], memoryview]:
    """Type code, shape and little-endian memory of an array."""
    if hasattr(array, "detach"):
        import torch

        array = array.detach().cpu().contiguous()
        name, shape = str(array.dtype).removeprefix("torch."), list(array.shape)
        array = array.reshape(-1).view(torch.uint8).numpy()
    else:
        import numpy as np

        name, shape = array.dtype.name, list(array.shape)  # the next line makes 0-d arrays 1-d
        array = np.ascontiguousarray(array)
        array = array.astype(array.dtype.newbyteorder("<"), copy=False).reshape(-1).view(np.uint8)
    if name not in TYPES:
        raise TypeError(f"arrays of {name} cannot be kept; convert to float32 first")
    return TYPES[name], shape, memoryview(array)


def read_tensors(
    path: Path, framework: str = "numpy", sha256: str | None = None
) -> tuple[dict[str, Any], dict[str, str]]:
    """The arrays and the metadata of a file.

    framework   "numpy" (bfloat16 comes as uint16) or "torch"
    sha256      of the whole file, if known: what differs is Damaged

    Raises Damaged, OSError.
    """
    with open(path, "rb") as f:
        data = bytearray(f.seek(0, 2))
        f.seek(0)
        if f.readinto(data) != len(data):
            raise Damaged(f"{path} shrank while it was read")
    if sha256 is not None and hashlib.sha256(data).hexdigest() != sha256:
        raise Damaged(f"{path} is not what was written: its sha256 differs")
    header, start = _header(path, memoryview(data), len(data))
    metadata = header.pop("__metadata__", {})
    return {name: _array(data, entry, start, framework) for name, entry in header.items()}, metadata


def _array(data: bytearray, entry: dict[str, Any], start: int, framework: str) -> Any:
    import numpy as np

    code, shape = entry["dtype"], entry["shape"]
    kind = "uint16" if code == "BF16" else NAMES[code]
    count = math.prod(shape)
    array = np.frombuffer(data, np.dtype(kind).newbyteorder("<"), count, start + _low(entry))
    array = array.reshape(shape)
    if framework == "numpy":
        return array
    import torch

    tensor = torch.from_numpy(array)
    return tensor.view(torch.bfloat16) if code == "BF16" else tensor


class Rows:
    """One array of a file, read along its first axis when it is asked for: `rows[i:j]`, numpy.

    shape   of the whole array
    """

    def __init__(self, path: Path, name: str) -> None:
        """Raises Damaged if the file is cut or has no such array, OSError."""
        self.path = path
        with open(path, "rb") as f:
            size = f.seek(0, 2)
            f.seek(0)
            head = f.read(8)
            length = struct.unpack("<Q", head)[0] if len(head) == 8 else 0
            header, start = _header(path, memoryview(head + f.read(min(length, MAX_HEADER))), size)
        if name not in header:
            raise Damaged(f"{path} holds no {name}")
        entry = header[name]
        self.shape = tuple(entry["shape"])
        self._kind = NAMES[entry["dtype"]]
        self._at = start + _low(entry)

    def __len__(self) -> int:
        return int(self.shape[0])

    def __getitem__(self, rows: slice) -> Any:
        """A copy of these rows; other rows stay on the disk. Raises Damaged, OSError."""
        import numpy as np

        start, stop, step = rows.indices(len(self))
        if step != 1:
            raise ValueError("rows are read one after the other")
        count = max(0, stop - start)
        out = np.empty((count, *self.shape[1:]), np.dtype(self._kind).newbyteorder("<"))
        with open(self.path, "rb", buffering=0) as f:
            f.seek(self._at + start * (out.nbytes // count if count else 0))
            view, done = memoryview(out.reshape(-1).view(np.uint8)), 0
            while done < len(view):
                got = f.readinto(view[done : done + BLOCK])
                if not got:
                    raise Damaged(f"{self.path} ends early")
                done += got
        return out


def _low(entry: dict[str, Any]) -> int:
    return int(entry["data_offsets"][0])


def _header(path: Path, data: memoryview, size: int) -> tuple[dict[str, Any], int]:
    """The header, checked against the file's size, and where the values start."""
    length = struct.unpack("<Q", data[:8])[0] if len(data) >= 8 else MAX_HEADER + 1
    if length > MAX_HEADER or 8 + length > len(data):
        raise Damaged(f"{path} is cut or no safetensors file")
    try:
        header = json.loads(bytes(data[8 : 8 + length]))
        end = 0
        for name, entry in header.items():
            if name == "__metadata__":
                continue
            low, high = entry["data_offsets"]
            if high - low != math.prod(entry["shape"]) * BYTES[entry["dtype"]] or low < 0:
                raise Damaged(f"{path}: the sizes of {name} do not belong together")
            end = max(end, high)
    except (ValueError, KeyError, TypeError, AttributeError) as e:
        raise Damaged(f"{path} has a broken header ({e})") from None
    if 8 + length + end != size:
        raise Damaged(f"{path} has {size} bytes, its header tells of {8 + length + end}")
    return header, 8 + length
