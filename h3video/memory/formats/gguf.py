"""GGUF headers, versions 1 to 3, in both byte orders.

    "GGUF" | version u32 | tensors | pairs | pair...   | tensor...            | padding | data
                           u32 in version 1, else u64    name, dims, type, offset in the data

Strings are a length and bytes. Numbers of a big-endian file (version 3) are swapped throughout.
Rows come first in ggml's dimensions, last in PyTorch's: shapes here are PyTorch's.
"""

from __future__ import annotations

import os
import struct
from typing import Any, BinaryIO

from ...errors import UsageError
from ..quants import GGUF_TYPES, REMOVED_TYPES
from .header import (
    MAX_NAME,
    MAX_TENSORS,
    ArrayOf,
    FileHeader,
    StoredTensor,
    brief,
    check_layout,
    check_shape,
    open_regular,
)

MAX_PAIRS = 16_384
MAX_STEPS = 1_000_000
"""Values of arrays that are looked at one by one; the largest tokenizers have some 800,000."""

MAX_NAMES = 8 << 20
"""Bytes of all names together."""

MAX_KEPT = 4 << 20
"""Bytes of metadata that are kept; the rest is summed up."""

KEEP_ARRAY, KEEP_STRING = 256, 1 << 20
"""Longest array and longest string (bytes) that are kept as they are."""

CHUNK = 1 << 16
DEFAULT_ALIGNMENT = 32

_SCALARS = {  # number of a value type -> (struct letter, name)
    0: ("B", "u8"), 1: ("b", "i8"), 2: ("H", "u16"), 3: ("h", "i16"), 4: ("I", "u32"),
    5: ("i", "i32"), 6: ("f", "f32"), 7: ("?", "bool"), 10: ("Q", "u64"), 11: ("q", "i64"),
    12: ("d", "f64"),
}  # fmt: skip
_STRING, _ARRAY = 8, 9


def read_gguf(path: str | os.PathLike[str]) -> FileHeader:
    """The header of a GGUF file. Raises UsageError when it is damaged, cut off or absurd."""
    with open_regular(path) as (file, size):
        return _Reader(path, file, size).header()


class _Reader:
    """A position in a file whose every number is doubted."""

    def __init__(self, path: str | os.PathLike[str], file: BinaryIO, size: int) -> None:
        self.path, self.file, self.size = path, file, size
        self.order, self.wide = "<", "Q"
        self.position = self.steps = self.kept = self.names = 0

    def header(self) -> FileHeader:
        """Everything up to the data."""
        if self.take(4) != b"GGUF":
            raise UsageError(f"{self.path} does not begin with GGUF; give a .gguf file")
        version = self._version()
        tensor_count = self._count("tensors", MAX_TENSORS)
        pair_count = self._count("metadata entries", MAX_PAIRS)
        metadata: dict[str, Any] = {}
        for _ in range(pair_count):
            key = self._text(MAX_NAME, "a metadata key")
            if key in metadata:
                raise self.damaged(f"metadata {brief(key)} is there twice")
            metadata[key] = self._value(self._number("I"), 0)
        found = [self._tensor() for _ in range(tensor_count)]
        return self._assemble(version, metadata, found)

    def _version(self) -> int:
        raw = self.take(4)
        version = int.from_bytes(raw, "little")
        if version > 0xFFFF:
            version, self.order = int.from_bytes(raw, "big"), ">"
        if not 1 <= version <= 3:
            raise UsageError(
                f"{self.path} is GGUF version {version}; versions 1 to 3 exist, get it again"
            )
        self.wide = "I" if version == 1 else "Q"
        return version

    def _tensor(self) -> tuple[str, tuple[int, ...], int, int]:
        """(name, shape, type, offset in the data)"""
        name = self._text(MAX_NAME, "a tensor's name")
        dims = self._number("I")
        if dims > 8:
            raise self.damaged(f"tensor {brief(name)} has {dims} dimensions")
        shape = tuple(self._number(self.wide) for _ in range(dims))[::-1]
        check_shape(self.path, name, shape)
        return name, shape, self._number("I"), self._number("Q")

    def _assemble(
        self,
        version: int,
        metadata: dict[str, Any],
        found: list[tuple[str, tuple[int, ...], int, int]],
    ) -> FileHeader:
        alignment = metadata.get("general.alignment", DEFAULT_ALIGNMENT)
        if type(alignment) is not int or not 1 <= alignment <= 1 << 20 or alignment & alignment - 1:
            raise self.damaged(f"general.alignment is {brief(alignment)}, not a power of two")
        start = -(-self.position // alignment) * alignment
        tensors = tuple(self._place(*f, start, alignment) for f in found)
        if len({t.name for t in tensors}) != len(tensors):
            raise self.damaged("two tensors have the same name")
        check_layout(self.path, tensors, start, self.size)
        parts, part = metadata.get("split.count"), metadata.get("split.no", 0)
        notes: tuple[str, ...] = ()
        if type(parts) is int and parts > 1 and type(part) is int:
            notes = (f"part {part + 1} of {parts}: the rest is not counted",)
        return FileHeader(
            "gguf", str(self.path), metadata, tensors, sum(t.bytes for t in tensors), self.size,
            version, self.order == ">", notes=notes,
        )  # fmt: skip

    def _place(
        self,
        name: str,
        shape: tuple[int, ...],
        number: int,
        offset: int,
        start: int,
        alignment: int,
    ) -> StoredTensor:
        kind = GGUF_TYPES.get(number)
        if kind is None:
            gone = REMOVED_TYPES.get(number)
            what = f"{gone} ({number}), which ggml has removed" if gone else f"{number}, unknown"
            raise UsageError(
                f"{self.path}: tensor {brief(name)} has the type {what}; get a current file"
            )
        if not kind.fits(shape):
            raise self.damaged(
                f"tensor {brief(name)} is {kind.name}, but its rows of {shape[-1:]} are no "
                f"multiples of {kind.block}"
            )
        if offset % alignment:
            raise self.damaged(f"tensor {brief(name)} begins off the alignment of {alignment}")
        return StoredTensor(name, shape, kind.name, start + offset, kind.size(shape))

    def _value(self, kind: int, depth: int) -> Any:
        if kind in _SCALARS:
            return self._number(_SCALARS[kind][0])
        if kind == _STRING:
            length = self._number(self.wide)
            if length > KEEP_STRING or self.kept + length > MAX_KEPT:
                self.skip(length)
                return ArrayOf("characters", length)
            self.kept += length
            return self._decode(self.take(length))
        if kind == _ARRAY:
            return self._array(depth + 1)
        raise self.damaged(f"a metadata value has the type {kind}, and types go up to 12")

    def _array(self, depth: int) -> Any:
        if depth > 4:
            raise self.damaged("its metadata nests arrays deeper than 4")
        kind, count = self._number("I"), self._number(self.wide)
        if kind in _SCALARS:
            letter, name = _SCALARS[kind]
            width = struct.calcsize("=" + letter)
            if count > KEEP_ARRAY or self.kept + 64 * count > MAX_KEPT:
                self.skip(count * width)
                return ArrayOf(name, count)
            self.kept += 64 * count
            return list(struct.unpack(f"{self.order}{count}{letter}", self.take(count * width)))
        if kind not in (_STRING, _ARRAY):
            raise self.damaged(f"a metadata array has the type {kind}, and types go up to 12")
        self.steps += count
        if count > self.size // 4 or self.steps > MAX_STEPS:
            raise self.damaged(f"its metadata has arrays of more than {MAX_STEPS} values")
        if count <= KEEP_ARRAY and self.kept + 64 * count <= MAX_KEPT:
            self.kept += 64 * count
            return [self._value(kind, depth) for _ in range(count)]
        if kind == _STRING:
            self._pass_strings(count)
            return ArrayOf("string", count)
        for _ in range(count):
            self._value(kind, depth)
        return ArrayOf("array", count)

    def _pass_strings(self, count: int) -> None:
        """Go past `count` strings: a tokenizer's half a million, so not one read for each."""
        length = struct.Struct(self.order + self.wide)
        width, unpack = length.size, length.unpack_from
        buffer, at, end = b"", 0, 0
        for _ in range(count):
            if at + width > end:
                buffer = buffer[at:] + self.file.read(CHUNK)
                at, end = 0, len(buffer)
                if width > end:
                    self._within(self.size)
                    raise self.damaged("its strings end in the middle")
            step = width + unpack(buffer, at)[0]
            self.position += step
            at += step
            if at > end:
                self._within(0)
                self.file.seek(at - end, os.SEEK_CUR)
                buffer, at, end = b"", 0, 0
        self.file.seek(at - end, os.SEEK_CUR)

    def _count(self, what: str, limit: int) -> int:
        count = self._number(self.wide)
        if count > limit:
            raise self.damaged(f"it claims {count} {what}, more than {limit}")
        return count

    def _text(self, limit: int, what: str) -> str:
        length = self._number(self.wide)
        if length > limit:
            raise self.damaged(f"{what} is {length} bytes long, more than {limit}")
        self.names += length
        if self.names > MAX_NAMES:
            raise self.damaged(f"its names take more than {MAX_NAMES} bytes")
        return self._decode(self.take(length))

    def _decode(self, raw: bytes) -> str:
        return raw.decode("utf-8", "replace")

    def _number(self, letter: str) -> Any:
        kind = self.order + letter
        return struct.unpack(kind, self.take(struct.calcsize(kind)))[0]

    def take(self, count: int) -> bytes:
        """The next `count` bytes; never asks for more than the file has."""
        self._within(count)
        raw = self.file.read(count)
        if len(raw) != count:
            raise UsageError(f"{self.path} was cut while it was read; try again")
        return raw

    def skip(self, count: int) -> None:
        """Go on without reading."""
        self._within(count)
        self.file.seek(count, os.SEEK_CUR)

    def _within(self, count: int) -> None:
        self.position += count
        if self.position > self.size:
            raise UsageError(
                f"{self.path} is cut off: its header goes on after the file's end at byte "
                f"{self.size}; download it again"
            )

    def damaged(self, why: str) -> UsageError:
        """The error for a file that contradicts itself."""
        return UsageError(f"{self.path} is damaged: {why}; get it again")
