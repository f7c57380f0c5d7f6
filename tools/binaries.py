"""Facts of shared libraries, read with the standard library: ELF, Mach-O (thin, universal), PE.

`read(content)` gives one Binary per processor in the file. `macho.py` holds the rules that Apple's
loader and its signature check put on a file. Nothing is executed.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass, field


class FormatError(Exception):
    """The bytes are no library of a known format, or contradict themselves."""


DAMAGE = (struct.error, LookupError, ValueError, OverflowError)
"""What reading beyond the end, or a name that is no text, comes to."""


@dataclass
class Binary:
    """What the checks of `make dist` ask about one library for one processor."""

    format: str  # "elf", "mach-o", "pe"
    cpu: str  # "x86_64" or "arm64"
    needs: list[str] = field(default_factory=list)  # libraries, as named in the file
    imports: set[str] = field(default_factory=set)
    exports: set[str] = field(default_factory=set)
    name: str = ""  # soname, install name, or the name in the export directory
    minimum: str = ""  # highest glibc symbol version, or the oldest macOS; "" for Windows
    notes: set[str] = field(default_factory=set)  # properties that a check may forbid
    content: bytes = b""  # the slice itself


def read(content: bytes) -> list[Binary]:
    """The libraries in a file. Raises FormatError."""
    try:
        if content[:4] == b"\x7fELF":
            return [_elf(content)]
        if content[:2] == b"MZ":
            return [_pe(content)]
        if content[:4] == b"\xca\xfe\xba\xbe":
            return [_mach_o(part) for part in slices(content)]
        if content[:4] == b"\xcf\xfa\xed\xfe":
            return [_mach_o(content)]
    except DAMAGE as e:
        raise FormatError(f"damaged: {type(e).__name__}, {e}") from None
    raise FormatError(f"no ELF, Mach-O or PE file: it begins with {content[:8].hex() or 'nothing'}")


def _text(content: bytes, start: int) -> str:
    """The zero-terminated name at `start`."""
    if not 0 <= start < len(content):
        raise FormatError(f"a name at {start} of {len(content)} bytes")
    end = content.find(b"\0", start)
    if end < 0:
        raise FormatError(f"a name at {start} that never ends")
    return content[start:end].decode("ascii")


# ---- ELF ----

_ELF_CPU = {62: "x86_64", 183: "arm64"}
_LOAD, _DYNAMIC, _STACK = 1, 2, 0x6474E551
_NEEDED, _STRTAB, _SYMTAB, _SONAME, _TEXTREL, _RPATH, _RUNPATH = 1, 5, 6, 14, 22, 15, 29
_HASH, _GNU_HASH, _VERNEED, _VERNEEDNUM, _INIT_ARRAY = 4, 0x6FFFFEF5, 0x6FFFFFFE, 0x6FFFFFFF, 25
_JUMPREL, _PLTRELSZ, _RELA, _RELASZ = 23, 2, 7, 8
_IRELATIVE = {"x86_64": 37, "arm64": 1032}


def _elf(d: bytes) -> Binary:
    kind, order, machine = struct.unpack_from("<2B12xH", d, 4)
    if (kind, order) != (2, 1) or machine not in _ELF_CPU:
        raise FormatError(f"ELF class {kind}, byte order {order}, machine {machine}")
    out = Binary("elf", _ELF_CPU[machine], content=d)
    if struct.unpack_from("<H", d, 16) != (3,):
        raise FormatError("no shared object (ELF type is not DYN)")
    start, = struct.unpack_from("<Q", d, 32)
    size, count = struct.unpack_from("<2H", d, 54)
    segments = [struct.unpack_from("<2I6Q", d, start + i * size) for i in range(count)]
    loads = [(va, offset, length) for t, _, offset, va, _, length, _, _ in segments if t == _LOAD]

    def at(address: int) -> int:
        for va, offset, length in loads:
            if va <= address < va + length:
                return address - va + offset
        raise FormatError(f"address {address:#x} is in no segment")

    for t, flags, _, _, _, _, _, align in segments:
        if t == _LOAD:
            out.notes |= {"writable code"} if flags & 3 == 3 else set()
            if align < (0x10000 if out.cpu == "arm64" else 0x1000):
                out.notes.add("pages too small")  # arm64 kernels may have pages of 64 KiB
        if t == _STACK and flags & 1:
            out.notes.add("executable stack")
    if not any(s[0] == _STACK for s in segments):
        out.notes.add("executable stack")  # what the kernel assumes then
    dynamic = next(((s[2], s[5]) for s in segments if s[0] == _DYNAMIC), None)
    if dynamic is None:
        raise FormatError("no dynamic section")
    tags = list(struct.iter_unpack("<2Q", d[dynamic[0] : dynamic[0] + dynamic[1]]))
    tags = tags[: next((i for i, (tag, _) in enumerate(tags) if tag == 0), len(tags))]
    table = dict(tags)
    names = at(table[_STRTAB])
    out.needs = [_text(d, names + value) for tag, value in tags if tag == _NEEDED]
    out.name = _text(d, names + table[_SONAME]) if _SONAME in table else ""
    for tag, note in ((_TEXTREL, "text relocations"), (_RPATH, "rpath"), (_RUNPATH, "rpath"),
                      (_INIT_ARRAY, "constructors")):  # fmt: skip
        out.notes |= {note} if tag in table else set()
    _elf_symbols(d, out, at(table[_SYMTAB]), names, _elf_symbol_count(d, table, at))
    out.minimum = _elf_versions(d, table, at, names)
    for where, length in ((_RELA, _RELASZ), (_JUMPREL, _PLTRELSZ)):
        if where in table:
            first = at(table[where])
            for _, info, _ in struct.iter_unpack("<2Qq", d[first : first + table[length]]):
                if info & 0xFFFFFFFF == _IRELATIVE[out.cpu]:
                    out.notes.add("ifunc")  # musl's loader has none
    return out


def _elf_symbol_count(d, table, at) -> int:
    if _HASH in table:
        return struct.unpack_from("<2I", d, at(table[_HASH]))[1]
    if _GNU_HASH not in table:
        raise FormatError("no hash table, so nothing says how many symbols there are")
    start = at(table[_GNU_HASH])
    buckets, first, bloom, _ = struct.unpack_from("<4I", d, start)
    chains = start + 16 + 8 * bloom
    last = max(struct.unpack_from(f"<{buckets}I", d, chains), default=0)
    if last < first:
        return first
    chains += 4 * buckets
    while not struct.unpack_from("<I", d, chains + 4 * (last - first))[0] & 1:
        last += 1
    return last + 1


def _elf_symbols(d: bytes, out: Binary, start: int, names: int, count: int) -> None:
    for i in range(1, count):
        name, info, _, section = struct.unpack_from("<I2BH", d, start + 24 * i)
        if info >> 4 == 0:  # local
            continue
        (out.exports if section else out.imports).add(_text(d, names + name))
        if info & 15 == 10:
            out.notes.add("ifunc")


def _elf_versions(d, table, at, names) -> str:
    """The highest GLIBC_ version asked of a library, or "" where none is."""
    found, place = [(0,)], at(table[_VERNEED]) if _VERNEED in table else 0
    for _ in range(table.get(_VERNEEDNUM, 0)):
        _, count, _, first, following = struct.unpack_from("<2H3I", d, place)
        entry = place + first
        for _ in range(count):
            _, _, _, name, step = struct.unpack_from("<I2H2I", d, entry)
            version = _text(d, names + name)
            if not version.startswith("GLIBC_"):
                raise FormatError(f"symbol version {version}")
            found.append(tuple(map(int, version[6:].split("."))))
            entry += step or len(d)
        place += following or len(d)
    highest = max(found)
    return "" if highest == (0,) else ".".join(map(str, highest))


# ---- PE ----

_PE_CPU = {0x8664: "x86_64", 0xAA64: "arm64"}


def _pe(d: bytes) -> Binary:
    head, = struct.unpack_from("<I", d, 0x3C)
    if d[head : head + 4] != b"PE\0\0":
        raise FormatError("no PE header")
    machine, count = struct.unpack_from("<2H", d, head + 4)
    optional, flags = struct.unpack_from("<2H", d, head + 20)
    if machine not in _PE_CPU or struct.unpack_from("<H", d, head + 24) != (0x20B,):
        raise FormatError(f"PE machine {machine:#x}, or no 64-bit image")
    if not flags & 0x2000:
        raise FormatError("no DLL")
    out = Binary("pe", _PE_CPU[machine], content=d)
    sections = [
        struct.unpack_from("<4I", d, head + 24 + optional + 40 * i + 8) for i in range(count)
    ]

    def at(address: int) -> int:
        for memory, va, length, offset in sections:
            if va <= address < va + min(memory or length, length):
                return address - va + offset
        raise FormatError(f"address {address:#x} is in no section")

    characteristics, = struct.unpack_from("<H", d, head + 24 + 70)
    for bit, note in ((0x0040, "no ASLR"), (0x0100, "no DEP"), (0x0020, "no high-entropy ASLR")):
        out.notes |= set() if characteristics & bit else {note}
    if flags & 1:
        out.notes.add("relocations stripped")
    directories = [struct.unpack_from("<2I", d, head + 24 + 112 + 8 * i) for i in range(10)]
    if directories[9][0]:
        out.notes.add("thread-local storage")
    if directories[0][0]:
        _pe_exports(d, out, at, directories[0][0])
    place = at(directories[1][0]) if directories[1][0] else None
    while place is not None:
        lookup, _, _, name, table = struct.unpack_from("<5I", d, place)
        if not name:
            break
        out.needs.append(_text(d, at(name)))
        entry = at(lookup or table)
        while value := struct.unpack_from("<Q", d, entry)[0]:
            by_number = value >> 63
            out.imports.add(f"#{value & 0xFFFF}" if by_number else _text(d, at(value) + 2))
            entry += 8
        place += 20
    return out


def _pe_exports(d: bytes, out: Binary, at, address: int) -> None:
    name, _, _, count, _, names = struct.unpack_from("<6I", d, at(address) + 12)
    out.name = _text(d, at(name))
    if count:
        for pointer in struct.unpack_from(f"<{count}I", d, at(names)):
            out.exports.add(_text(d, at(pointer)))


# ---- Mach-O ----

_MACH_CPU = {0x01000007: "x86_64", 0x0100000C: "arm64"}


def slices(d: bytes) -> list[bytes]:
    """The thin files of a universal one; they lie on page boundaries and do not overlap."""
    count, = struct.unpack_from(">I", d, 4)
    out, end = [], 8 + 20 * count
    for i in range(count):
        cpu, subtype, offset, size, bits = struct.unpack_from(">5I", d, 8 + 20 * i)
        page = 0x4000 if _MACH_CPU.get(cpu) == "arm64" else 0x1000
        if offset % page or offset % (1 << bits) or offset < end or offset + size > len(d):
            raise FormatError(f"slice {i} at {offset}, {size} bytes: misplaced")
        if struct.unpack_from("<2I", d, offset + 4) != (cpu, subtype):
            raise FormatError(f"slice {i} is for another processor than the header says")
        end = offset + size
        out.append(d[offset:end])
    return out


def commands(d: bytes) -> list[tuple[int, int, int]]:
    """(kind, offset, size) of the load commands of a thin file."""
    magic, cpu, _, kind, count, size = struct.unpack_from("<6I", d)
    if magic != 0xFEEDFACF or kind != 6 or cpu not in _MACH_CPU:
        raise FormatError(f"no 64-bit dylib for x86_64 or arm64 (type {kind}, processor {cpu:#x})")
    out, place = [], 32
    for _ in range(count):
        command, length = struct.unpack_from("<2I", d, place)
        if length < 8 or length % 8 or place + length > 32 + size:
            raise FormatError(f"load command of {length} bytes at {place}")
        out.append((command & 0x7FFFFFFF, place, length))
        place += length
    if place != 32 + size:
        raise FormatError("load commands do not fill their room")
    return out


def _mach_o(d: bytes) -> Binary:
    cpu, = struct.unpack_from("<I", d, 4)
    out = Binary("mach-o", _MACH_CPU.get(cpu, "?"), content=d)
    for command, place, length in commands(d):
        if command in (0x0C, 0x18, 0x1F, 0x23):  # load a dylib (weak, re-exported, upward)
            offset, = struct.unpack_from("<I", d, place + 8)
            out.needs.append(_text(d[: place + length], place + offset))
        elif command == 0x0D:
            offset, = struct.unpack_from("<I", d, place + 8)
            out.name = _text(d[: place + length], place + offset)
        elif command == 0x32:
            platform, minimum = struct.unpack_from("<2I", d, place + 8)
            out.minimum = _version(minimum)
            out.notes |= set() if platform == 1 else {f"platform {platform}"}
        elif command == 0x24:
            out.minimum = _version(struct.unpack_from("<I", d, place + 8)[0])
        elif command == 0x02:
            _mach_o_symbols(d, out, *struct.unpack_from("<4I", d, place + 8))
        elif command == 0x1D:
            out.notes.add("signature")
        elif command == 0x1C:
            out.notes.add("rpath")
    return out


def _version(packed: int) -> str:
    return f"{packed >> 16}.{packed >> 8 & 255}"


def _mach_o_symbols(d: bytes, out: Binary, start: int, count: int, names: int, size: int) -> None:
    for i in range(count):
        name, kind = struct.unpack_from("<IB", d, start + 16 * i)
        if not kind & 1 or kind & 0xE0:  # not external, or a debugger's
            continue
        text = _text(d[: names + size], names + name).removeprefix("_")
        (out.exports if kind & 0x0E else out.imports).add(text)
