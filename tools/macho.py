"""What Apple's loader demands of a dylib, and the page hashes of its signature.

The rules follow the published source of dyld, in our reading: one UUID, an install name, segments
in order with the right permissions, what the link editor left in order, aligned and inside its
segment, and on arm64 a signature at the very end whose hash of every page is right.
"""

from __future__ import annotations

import hashlib
import itertools
import struct

from binaries import FormatError, commands

CODE_DIRECTORY = 0xFADE0C02
ADHOC = 2


def faults(d: bytes) -> list[str]:
    """Why a loader could refuse this thin dylib; empty when nothing is wrong."""
    arm = struct.unpack_from("<I", d, 4) == (0x0100000C,)
    found = commands(d)
    kinds = [kind for kind, _, _ in found]
    out = []
    if kinds.count(0x1B) != 1:
        out.append(f"{kinds.count(0x1B)} UUIDs")
    if kinds.count(0x0D) != 1:
        out.append("no install name")
    if 0x0C not in kinds:
        out.append("depends on nothing, not even libSystem")
    segments = [_segment(d, place) for kind, place, _ in found if kind == 0x19]
    out += _segment_faults(d, segments, arm, 32 + sum(length for _, _, length in found))
    out += _linkedit_faults(d, found, segments)
    signed = [struct.unpack_from("<2I", d, place + 8) for kind, place, _ in found if kind == 0x1D]
    if signed:
        out += signature_faults(d, *signed[0])
    elif arm:
        out.append("arm64 without a signature")
    return out


def _segment(d: bytes, place: int):
    """(name, address, memory, offset, bytes, permissions, flags), and its sections are inside."""
    name = d[place + 8 : place + 24].rstrip(b"\0").decode("ascii")
    address, memory, offset, size = struct.unpack_from("<4Q", d, place + 24)
    _, permissions, sections, flags = struct.unpack_from("<4I", d, place + 56)
    for i in range(sections):
        start, length = struct.unpack_from("<2Q", d, place + 72 + 80 * i + 32)
        if start < address or start + length > address + memory:
            raise FormatError(f"a section outside {name}")
    return name, address, memory, offset, size, permissions, flags


def _segment_faults(d: bytes, segments, arm: bool, header: int) -> list[str]:
    out, page = [], 0x4000 if arm else 0x1000
    allowed = {"__TEXT": 5, "__LINKEDIT": 1, "__DATA": 3, "__DATA_CONST": 3}
    names = [s[0] for s in segments]
    if len(set(names)) != len(names) or not {"__TEXT", "__LINKEDIT"} <= set(names):
        return [f"segments {names}"]
    for name, address, memory, offset, size, permissions, flags in segments:
        if offset + size > len(d) or size > memory:
            out.append(f"{name} reaches beyond the file or its memory")
        if permissions != allowed.get(name, permissions):
            out.append(f"{name} has permissions {permissions}")
        if name == "__DATA_CONST" and not flags & 0x10:
            out.append("__DATA_CONST is not marked read-only")
        if address % page or (size and offset % page):
            out.append(f"{name} is not on a page boundary")
        if name == "__TEXT" and (offset or size < header):
            out.append("the load commands do not fit into __TEXT")
        if name == "__LINKEDIT" and offset + size != len(d):
            out.append("__LINKEDIT does not end the file")
    for a, b in itertools.pairwise(segments):
        if b[1] < a[1] + a[2] or b[3] < a[3] + a[4]:
            out.append(f"{b[0]} overlaps {a[0]}")
    return out


def _linkedit_faults(d: bytes, found, segments) -> list[str]:
    """The link editor's tables follow each other, aligned, inside __LINKEDIT."""
    tables = []
    for kind, place, _ in found:
        if kind == 0x02:
            symbols, count, names, size = struct.unpack_from("<4I", d, place + 8)
            tables += [(symbols, 16 * count, 8, "symbols"), (names, size, 1, "names")]
        elif kind == 0x0B:
            indirect, count = struct.unpack_from("<2I", d, place + 8 + 48)
            tables.append((indirect, 4 * count, 4, "indirect symbols"))
        elif kind == 0x22:
            numbers = struct.unpack_from("<10I", d, place + 8)
            for i, name in enumerate(("rebases", "binds", "weak binds", "lazy binds", "exports")):
                tables.append((*numbers[2 * i : 2 * i + 2], 8, name))
        elif kind in (0x26, 0x29, 0x33, 0x34, 0x1D):
            tables.append((*struct.unpack_from("<2I", d, place + 8), 8, f"table {kind:#x}"))
    start, size = next(((s[3], s[4]) for s in segments if s[0] == "__LINKEDIT"), (0, 0))
    out, end = [], start
    for offset, length, alignment, name in sorted(t for t in tables if t[1]):
        if offset < end or offset + length > start + size:
            out.append(f"{name} overlap or leave __LINKEDIT")
        if offset % alignment:
            out.append(f"{name} are not aligned to {alignment} bytes")
        end = offset + length
    return out


def signature_faults(d: bytes, offset: int, size: int) -> list[str]:
    """Whether the ad-hoc signature covers the file up to itself and every page hash is right."""
    if offset % 16 or offset + size != len(d):
        return ["the signature is not aligned to 16 bytes at the end of the file"]
    magic, _, count = struct.unpack_from(">3I", d, offset)
    if magic != 0xFADE0CC0:
        return [f"signature of kind {magic:#x}"]
    for i in range(count):
        _, place = struct.unpack_from(">2I", d, offset + 12 + 8 * i)
        directory = d[offset + place :]
        if struct.unpack_from(">I", directory) == (CODE_DIRECTORY,):
            return _page_faults(d, directory, offset)
    return ["a signature without a code directory"]


def _page_faults(d: bytes, directory: bytes, end: int) -> list[str]:
    flags, hashes = struct.unpack_from(">2I", directory, 12)
    count, limit = struct.unpack_from(">2I", directory, 28)
    length, kind, _, bits = struct.unpack_from(">4B", directory, 36)
    out = [] if flags & ADHOC else ["the signature is not ad hoc"]
    if limit != end or count != -(-limit >> bits) or kind != 2:
        return [*out, "the signature does not cover the file with sha256"]
    for page in range(count):
        content = d[page << bits : min(page + 1 << bits, limit)]
        wanted = directory[hashes + page * length : hashes + (page + 1) * length]
        if hashlib.sha256(content).digest() != wanted:
            out.append(f"page {page} was changed after signing")
    return out
