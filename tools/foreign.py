"""Runs the code of a macOS dylib or a Windows arm64 DLL on Linux, by a loader of its own.

    python foreign.py LIBRARY SMOKE_LIBRARY ANSWERS

This machine has neither system, but the same processors (arm64 under qemu): the file's segments are
copied into memory, its pointers moved, its imports bound to this system's libm and libc, and
smoke.c (compiled as a library) calls it. That proves the machine code, the relocations and the
imports; what it does not prove is that Apple's or Microsoft's loader takes the file. A DLL for x64
is left to wine: its calling convention is another one.
"""

from __future__ import annotations

import ctypes
import platform
import struct
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
from binaries import commands, slices

CPU = {"x86_64": 0x01000007, "aarch64": 0x0100000C}
Find = Callable[[str], int]


class Memory:
    """Room for an image: readable, writable, executable."""

    def __init__(self, size: int) -> None:
        libc = ctypes.CDLL(None)
        libc.mmap.restype = ctypes.c_void_p
        libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, *[ctypes.c_int] * 3, ctypes.c_long]
        base = libc.mmap(None, size + 0x10000, 7, 0x22, -1, 0)
        self.base = -(-base // 0x10000) * 0x10000

    def put(self, place: int, content: bytes) -> None:
        ctypes.memmove(self.base + place, content, len(content))

    def number(self, place: int) -> int:
        return int(struct.unpack("<Q", ctypes.string_at(self.base + place, 8))[0])

    def set(self, place: int, value: int) -> None:
        self.put(place, struct.pack("<Q", value & (1 << 64) - 1))


def finder(shim: ctypes.CDLL) -> Find:
    """Addresses of functions by their C name: the shim's, then this system's."""
    libraries = (shim, ctypes.CDLL("libm.so.6"), ctypes.CDLL("libc.so.6"))

    def find(name: str) -> int:
        for library in libraries:
            try:
                return ctypes.cast(getattr(library, name), ctypes.c_void_p).value or 0
            except AttributeError:
                continue
        raise SystemExit(f"foreign: no {name} here to bind")

    return find


# ---- Mach-O ----


def uleb(d: bytes, p: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = d[p]
        value |= (byte & 127) << shift
        shift, p = shift + 7, p + 1
        if byte < 128:
            return value, p


def sleb(d: bytes, p: int) -> tuple[int, int]:
    start = p
    value, p = uleb(d, p)
    return (value - (1 << 7 * (p - start)) if d[p - 1] & 64 else value), p


def rebases(d: bytes) -> Iterator[tuple[int, int]]:
    """(segment, offset) of every pointer that moves with the image."""
    segment = offset = p = 0
    while p < len(d):
        code, low, p = d[p] & 0xF0, d[p] & 15, p + 1
        count, step = 0, 8
        if code == 0x00:
            return
        if code == 0x20:
            segment = low
            offset, p = uleb(d, p)
        elif code == 0x30:
            skip, p = uleb(d, p)
            offset += skip
        elif code == 0x40:
            offset += low * 8
        elif code == 0x50:
            count = low
        elif code == 0x60:
            count, p = uleb(d, p)
        elif code == 0x70:
            skip, p = uleb(d, p)
            count, step = 1, 8 + skip
        elif code == 0x80:
            count, p = uleb(d, p)
            skip, p = uleb(d, p)
            step = 8 + skip
        for _ in range(count):
            yield segment, offset
            offset += step


def binds(d: bytes) -> Iterator[tuple[int, int, str, int]]:
    """(segment, offset, symbol, addend) of every pointer to somebody else's function."""
    segment = offset = addend = p = 0
    symbol = ""
    while p < len(d):
        code, low, p = d[p] & 0xF0, d[p] & 15, p + 1
        count, step = 0, 8
        if code == 0x20:
            _, p = uleb(d, p)
        elif code == 0x40:
            end = d.index(b"\0", p)
            symbol, p = d[p:end].decode(), end + 1
        elif code == 0x60:
            addend, p = sleb(d, p)
        elif code == 0x70:
            segment = low
            offset, p = uleb(d, p)
        elif code == 0x80:
            skip, p = uleb(d, p)
            offset += skip
        elif code == 0x90:
            count = 1
        elif code == 0xA0:
            skip, p = uleb(d, p)
            count, step = 1, 8 + skip
        elif code == 0xB0:
            count, step = 1, 8 + low * 8
        elif code == 0xC0:
            count, p = uleb(d, p)
            skip, p = uleb(d, p)
            step = 8 + skip
        for _ in range(count):
            yield segment, offset, symbol, addend
            offset = (offset + step) & (1 << 64) - 1


def load_mach_o(d: bytes, find: Find) -> dict[str, int]:
    """Addresses of the exported functions of a thin dylib, loaded."""
    segments, info, symbols = [], None, None
    for kind, place, _ in commands(d):
        if kind == 0x19:
            segments.append(struct.unpack_from("<4Q", d, place + 24))
        elif kind == 0x22:
            info = struct.unpack_from("<10I", d, place + 8)
        elif kind == 0x02:
            symbols = struct.unpack_from("<4I", d, place + 8)
    if info is None or symbols is None:
        raise SystemExit("foreign: no dyld information of the kind that this loader reads")
    memory = Memory(max(address + size for address, size, _, _ in segments))
    for address, _, offset, size in segments:
        memory.put(address, d[offset : offset + size])
    for segment, offset in rebases(d[info[0] : info[0] + info[1]]):
        place = segments[segment][0] + offset
        memory.set(place, memory.number(place) + memory.base)
    for table in (2, 6):  # at once, and those that dyld binds at the first call
        for segment, offset, name, addend in binds(d[info[table] : info[table] + info[table + 1]]):
            if name != "dyld_stub_binder":
                memory.set(segments[segment][0] + offset, find(name[1:]) + addend)
    out = {}
    for i in range(symbols[1]):
        name, kind, _, _, value = struct.unpack_from("<IBBHQ", d, symbols[0] + 16 * i)
        if kind & 0x0F == 0x0F:
            end = d.index(b"\0", symbols[2] + name)
            out[d[symbols[2] + name + 1 : end].decode()] = memory.base + value
    return out


# ---- PE ----


def load_pe(d: bytes, find: Find) -> dict[str, int]:
    """Addresses of the exported functions of an arm64 DLL, loaded."""
    head, = struct.unpack_from("<I", d, 0x3C)
    machine, count = struct.unpack_from("<2H", d, head + 4)
    if machine != 0xAA64 or platform.machine() != "aarch64":
        raise SystemExit("foreign: only a DLL for arm64, and on arm64")
    optional, = struct.unpack_from("<H", d, head + 20)
    preferred, = struct.unpack_from("<Q", d, head + 24 + 24)
    size, = struct.unpack_from("<I", d, head + 24 + 56)
    directories = [struct.unpack_from("<2I", d, head + 24 + 112 + 8 * i) for i in range(6)]
    image = bytearray(size)
    for i in range(count):
        _, address, length, offset = struct.unpack_from("<4I", d, head + 24 + optional + 40 * i + 8)
        image[address : address + length] = d[offset : offset + length]
    image = image[:size]
    memory = Memory(size)

    def text(place: int) -> str:
        return image[place : image.index(b"\0", place)].decode()

    place, end = directories[5][0], sum(directories[5])
    while place < end:
        page, length = struct.unpack_from("<2I", image, place)
        for (entry,) in struct.iter_unpack("<H", image[place + 8 : place + length]):
            if entry >> 12 == 10:
                at = page + (entry & 0xFFF)
                value, = struct.unpack_from("<Q", image, at)
                struct.pack_into("<Q", image, at, value - preferred + memory.base)
        place += length
    place = directories[1][0]
    while place and any(fields := struct.unpack_from("<5I", image, place)):
        lookup, _, _, _, table = fields
        i = 0
        while entry := struct.unpack_from("<Q", image, (lookup or table) + 8 * i)[0]:
            struct.pack_into("<Q", image, table + 8 * i, find(text(entry + 2)))
            i += 1
        place += 20
    memory.put(0, bytes(image))
    number, functions, names, ordinals = struct.unpack_from("<4I", image, directories[0][0] + 24)
    out = {}
    for i in range(number):
        name, = struct.unpack_from("<I", image, names + 4 * i)
        which, = struct.unpack_from("<H", image, ordinals + 2 * i)
        address, = struct.unpack_from("<I", image, functions + 4 * which)
        out[text(name)] = memory.base + address
    return out


def main(library: str, smoke: str, answers: str) -> None:
    content, shim = Path(library).read_bytes(), ctypes.CDLL(smoke)
    if content[:2] == b"MZ":
        exports = load_pe(content, finder(shim))
    else:
        wanted = struct.pack("<I", CPU[platform.machine()])
        thin = next(s for s in slices(content) if s[4:8] == wanted)
        exports = load_mach_o(thin, finder(shim))
    lookup = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_char_p)
    named = lookup(lambda name: exports.get(name.decode()))
    code = shim.smoke_run(named, answers.encode())
    if code:
        raise SystemExit(f"foreign: smoke ends with {code}")


if __name__ == "__main__":
    main(*sys.argv[1:])
