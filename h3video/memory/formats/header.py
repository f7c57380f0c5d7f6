"""A model file's header in one form for all formats, and opening files that may be hostile."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from math import prod
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

from ...errors import UsageError

MAX_TENSORS = 32_768
"""Tensors that a model may have; the largest known has some 4000, three times that with scales."""

MAX_NAME = 1024
"""Bytes of a tensor's name; ggml allows 64 or 128."""

MAX_ELEMENTS = 2**62


class StoredTensor(NamedTuple):
    """A tensor as it lies in a file.

    shape    as PyTorch has it, the row's length last
    type     "BF16", "Q4_K", "F8_E4M3", ... (see memory/quants.py)
    offset   of its first byte in its file
    bytes    that it takes there
    """

    name: str
    shape: tuple[int, ...]
    type: str
    offset: int
    bytes: int

    @property
    def elements(self) -> int:
        """Number of its values."""
        return prod(self.shape)


@dataclass(frozen=True)
class FileHeader:
    """What a file says about itself.

    kind        "gguf" or "safetensors"
    metadata    what it holds beside tensors; long arrays are `ArrayOf` (what and how many)
    data_bytes  of all tensors; file_bytes of the file (of all files of a sharded model)
    version     of the format, 0 where it has none; big_endian: byte order of its numbers
    shards      files that it is split into
    notes       what a reader should know ("part 2 of 3")
    """

    kind: str
    path: str
    metadata: Mapping[str, Any]
    tensors: tuple[StoredTensor, ...]
    data_bytes: int
    file_bytes: int
    version: int = 0
    big_endian: bool = False
    shards: tuple[str, ...] = ()
    notes: tuple[str, ...] = field(default=())

    def types(self) -> dict[str, tuple[int, int]]:
        """(tensors, bytes) of every type, largest share first."""
        out: dict[str, tuple[int, int]] = {}
        for t in self.tensors:
            count, size = out.get(t.type, (0, 0))
            out[t.type] = count + 1, size + t.bytes
        return dict(sorted(out.items(), key=lambda item: -item[1][1]))

    @property
    def elements(self) -> int:
        """Values of all tensors (packed types of safetensors count their containers)."""
        return sum(t.elements for t in self.tensors)


@dataclass(frozen=True)
class ArrayOf:
    """An array of metadata that is too long to keep: a tokenizer's words, for example."""

    type: str
    count: int


def read_header(path: str | os.PathLike[str]) -> FileHeader:
    """The header of a GGUF or safetensors file, or of a sharded model's `.index.json`.

    The format is told by the content, not by the name. Raises UsageError for everything that is
    no such file, is cut off or contradicts itself.
    """
    from .gguf import read_gguf
    from .safetensors import read_index, read_safetensors

    if str(path).endswith(".json"):
        return read_index(path)
    with open_regular(path) as (file, _):
        start = file.read(9)
    if start[:4] == b"GGUF":
        return read_gguf(path)
    if len(start) == 9 and start[8:9] == b"{":
        return read_safetensors(path)
    if start[:2] == b"PK" or start[:1] == b"\x80":
        raise UsageError(
            f"{path} is a pickled PyTorch file, which can run code when it is loaded; use a "
            "safetensors or GGUF file"
        )
    what = "is empty" if not start else "is neither a GGUF nor a safetensors file"
    raise UsageError(f"{path} {what}; give a model's .gguf, .safetensors or .index.json")


@contextmanager
def open_regular(path: str | os.PathLike[str]) -> Iterator[tuple[BinaryIO, int]]:
    """Open a regular file; yields (file, size in bytes).

    A link to a regular file is followed (download caches are made of them). A directory, device,
    pipe or a loop of links raises UsageError at once: nothing that could block is opened to read.
    """
    try:
        _refuse_irregular(path, os.stat(path))
        # Between the two calls the path may have changed: O_NONBLOCK, and a second look.
        fd = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0))
    except (OSError, ValueError) as e:
        if isinstance(e, UsageError):
            raise
        reason = getattr(e, "strerror", None) or str(e)
        raise UsageError(f"{path} cannot be opened ({reason}); give a readable file") from None
    info = os.fstat(fd)
    if not stat.S_ISREG(info.st_mode):
        os.close(fd)
        _refuse_irregular(path, info)
    with os.fdopen(fd, "rb") as file:
        try:
            yield file, info.st_size
        except OSError as e:
            raise UsageError(f"{path} cannot be read ({e.strerror or e}); check the disk") from None


def _refuse_irregular(path: str | os.PathLike[str], info: os.stat_result) -> None:
    if not stat.S_ISREG(info.st_mode):
        kind = "a folder" if stat.S_ISDIR(info.st_mode) else "a device or pipe"
        raise UsageError(f"{path} is {kind}, not a file; give a model file")


def check_layout(
    path: str | os.PathLike[str], tensors: tuple[StoredTensor, ...], start: int, end: int
) -> None:
    """Raise UsageError unless all tensors lie in [start, end) of their file, apart from others."""
    position, before = start, ""
    for t in sorted((t for t in tensors if t.bytes), key=lambda t: t.offset):
        if t.offset < position:
            what = f"overlaps {before}" if before else "lies in the header"
            raise UsageError(f"{path} is damaged: tensor {brief(t.name)} {what}; get it again")
        position, before = t.offset + t.bytes, brief(t.name)
        if position > end:
            raise UsageError(
                f"{path} is cut off: tensor {before} ends at byte {position}, the file at "
                f"{end}; download it again"
            )


def check_shape(path: str | os.PathLike[str], name: str, shape: tuple[int, ...]) -> None:
    """Raise UsageError for a shape that no file can hold."""
    if len(shape) > 8 or any(n < 0 for n in shape) or prod(shape) > MAX_ELEMENTS:
        raise UsageError(f"{path} is damaged: tensor {brief(name)} has the shape {brief(shape)}")


def brief(value: object) -> str:
    """A value for a message: printable and short."""
    text = ascii(value) if not isinstance(value, str) else ascii(value)[1:-1]
    return text if len(text) <= 60 else f"{text[:57]}..."


def folder_of(path: str | os.PathLike[str]) -> Path:
    """The folder that a file is in."""
    return Path(path).parent
