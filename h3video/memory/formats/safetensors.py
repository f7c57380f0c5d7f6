"""safetensors headers: one file, or the index of a sharded model.

    length u64, little-endian | JSON {"name": {"dtype", "shape", "data_offsets"}, ...} | data

The data is whole: tensors follow each other without holes to the file's end, as the official
reader demands.
"""

from __future__ import annotations

import json
import os
from typing import Any

from ...errors import UsageError
from ..quants import SAFETENSORS_TYPES
from .header import (
    MAX_NAME,
    MAX_TENSORS,
    FileHeader,
    StoredTensor,
    brief,
    check_layout,
    check_shape,
    folder_of,
    open_regular,
)

MAX_JSON = 4 << 20
"""Bytes of a header. 4000 tensors take half a MB; Python needs ten times the text."""

MAX_MARKS = 400_000
"""Commas, colons and brackets in a header: what bounds the objects that it turns into."""

MAX_SHARDS = 1024
METADATA = "__metadata__"


def read_safetensors(path: str | os.PathLike[str]) -> FileHeader:
    """The header of one safetensors file. Raises UsageError when it is damaged or absurd."""
    with open_regular(path) as (file, size):
        if size < 8:
            raise UsageError(f"{path} is cut off: it has {size} bytes; download it again")
        length = int.from_bytes(file.read(8), "little")
        if length > MAX_JSON:
            raise _damaged(path, f"its header claims {length} bytes, more than {MAX_JSON}")
        if 8 + length > size:
            raise UsageError(
                f"{path} is cut off: its header ends at byte {8 + length}, the file at {size}; "
                "download it again"
            )
        entries = parse_object(path, file.read(length))
    metadata = _metadata(path, entries.pop(METADATA, {}))
    start = 8 + length
    if len(entries) > MAX_TENSORS:
        raise _damaged(path, f"it claims {len(entries)} tensors, more than {MAX_TENSORS}")
    tensors = tuple(_tensor(path, name, entry, start) for name, entry in entries.items())
    check_layout(path, tensors, start, size)
    data = sum(t.bytes for t in tensors)
    if start + data != size:
        raise _damaged(path, f"its tensors take {data} bytes, and {size - start} follow the header")
    return FileHeader("safetensors", str(path), metadata, tensors, data, size)


def read_index(path: str | os.PathLike[str]) -> FileHeader:
    """All files of a sharded model from its `.index.json`, as one header.

    Offsets are those in each tensor's own file. Raises UsageError when a file is missing or does
    not hold what the index says.
    """
    with open_regular(path) as (file, size):
        if size > MAX_JSON:
            raise _damaged(path, f"it has {size} bytes, more than {MAX_JSON}")
        index = parse_object(path, file.read(size))
    where = index.get("weight_map")
    if not isinstance(where, dict) or not where:
        raise UsageError(f"{path} is no index of a sharded model: it has no weight_map")
    names = dict.fromkeys(where.values())  # in order, once each
    if len(names) > MAX_SHARDS:
        raise _damaged(path, f"it names {len(names)} files, more than {MAX_SHARDS}")
    shards: list[FileHeader] = []
    tensors = headers = 0
    for name in names:
        shard = read_safetensors(_shard(path, name))
        tensors += len(shard.tensors)
        headers += shard.file_bytes - shard.data_bytes
        if tensors > MAX_TENSORS or headers > 2 * MAX_JSON:
            raise _damaged(path, f"its files hold {tensors} tensors in {headers} bytes of headers")
        shards.append(shard)
    return _joined(path, where, list(names), shards)


def _joined(
    path: str | os.PathLike[str], where: dict[str, Any], names: list[str], shards: list[FileHeader]
) -> FileHeader:
    found = {t.name: name for name, s in zip(names, shards) for t in s.tensors}
    for tensor, name in where.items():
        if found.get(tensor) != name:
            raise UsageError(
                f"{path} says that {brief(name)} holds tensor {brief(tensor)}, and it does not; "
                "download the model again"
            )
    tensors = tuple(t for s in shards for t in s.tensors)
    if len(found) != len(tensors):
        raise _damaged(path, "two of its files hold the same tensor")
    metadata = {k: v for s in shards for k, v in s.metadata.items()}
    return FileHeader(
        "safetensors", str(path), metadata, tensors, sum(s.data_bytes for s in shards),
        sum(s.file_bytes for s in shards), shards=tuple(names),
    )  # fmt: skip


def _shard(path: str | os.PathLike[str], name: Any) -> str:
    """A file beside the index: an index must not lead elsewhere."""
    if not isinstance(name, str) or name != os.path.basename(name) or name in ("", ".", ".."):
        raise _damaged(path, f"it names the file {brief(name)}, which is no plain name")
    if "\\" in name or "\0" in name:
        raise _damaged(path, f"it names the file {brief(name)}, which is no plain name")
    return str(folder_of(path) / name)


def parse_object(path: str | os.PathLike[str], raw: bytes) -> dict[str, Any]:
    """A JSON object from `raw`, in bounded memory; no key twice at any depth.

    Raises UsageError for anything else.
    """
    if sum(raw.count(mark) for mark in (b",", b":", b"[", b"{")) > MAX_MARKS:
        raise _damaged(path, f"its JSON has more than {MAX_MARKS} marks")
    try:
        value = json.loads(raw, object_pairs_hook=_once)
    except RecursionError:
        raise _damaged(path, "its JSON is nested too deeply") from None
    except ValueError as e:  # also UnicodeDecodeError, and numbers of thousands of digits
        raise _damaged(path, f"its JSON cannot be read ({brief(str(e))})") from None
    if not isinstance(value, dict):
        raise _damaged(path, "its JSON is no object")
    return value


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    out = dict(pairs)
    if len(out) != len(pairs):
        raise ValueError("a name is there twice")
    return out


def _metadata(path: str | os.PathLike[str], value: Any) -> dict[str, str]:
    if not isinstance(value, dict) or any(not isinstance(v, str) for v in value.values()):
        raise _damaged(path, f"its {METADATA} is not texts by name")
    return value


def _tensor(path: str | os.PathLike[str], name: str, entry: Any, start: int) -> StoredTensor:
    if len(name) > MAX_NAME:
        raise _damaged(path, f"a tensor's name is {len(name)} characters long")
    if not isinstance(entry, dict):
        raise _damaged(path, f"tensor {brief(name)} is no object")
    dtype: Any = entry.get("dtype")
    shape: Any = entry.get("shape")
    offsets: Any = entry.get("data_offsets")
    kind = SAFETENSORS_TYPES.get(dtype) if isinstance(dtype, str) else None
    if kind is None:
        raise UsageError(f"{path}: tensor {brief(name)} has the type {brief(dtype)}, unknown")
    if not _naturals(shape) or not _naturals(offsets) or len(offsets) != 2:
        raise _damaged(path, f"tensor {brief(name)} has no shape and offsets in whole numbers")
    check_shape(path, name, tuple(shape))
    if not kind.fits(shape) and _product(shape) % kind.block:
        raise _damaged(path, f"tensor {brief(name)} of {kind.name} is no whole number of bytes")
    size = _product(shape) // kind.block * kind.bytes
    if offsets[1] - offsets[0] != size:
        raise _damaged(path, f"tensor {brief(name)} of {size} bytes lies at {brief(offsets)}")
    return StoredTensor(name, tuple(shape), kind.name, start + offsets[0], size)


def _naturals(value: Any) -> bool:
    return isinstance(value, list) and all(type(n) is int and 0 <= n < 1 << 63 for n in value)


def _product(shape: list[int]) -> int:
    out = 1
    for n in shape:
        out *= n
    return out


def _damaged(path: str | os.PathLike[str], why: str) -> UsageError:
    return UsageError(f"{path} is damaged: {why}; get it again")
