"""Small libraries written byte by byte, for the parsers of tools/: one Mach-O dylib, one DLL."""

import hashlib
import struct

ARM64, X86_64 = 0x0100000C, 0x01000007
PAGE = {ARM64: 0x4000, X86_64: 0x1000}


def padded(text, size):
    return text.encode().ljust(size, b"\0")


def mach_o(
    cpu=ARM64, exports=("f",), imports=("sin",), needs="/usr/lib/libSystem.B.dylib",
    name="@rpath/lib.dylib", minimum=(11, 0), signed=True, permissions=5, uuids=1,
):  # fmt: skip
    """A thin dylib: __TEXT of one page, then __LINKEDIT with symbols, names and a signature."""
    page = PAGE[cpu]
    symbols, names = b"", b"\0"
    for kind, group in ((0x0F, exports), (0x01, imports)):
        for symbol in group:
            symbols += struct.pack("<IBBHQ", len(names), kind, 1, 0, 0)
            names += b"_" + symbol.encode() + b"\0"
    names += bytes(-len(names) % 16)
    tables = symbols + names
    tables += bytes(-len(tables) % 16)
    code_end = page + len(tables)
    pages = -(-code_end // 4096)
    directory_size = 44 + 32 * pages
    signature_size = 20 + directory_size if signed else 0
    linkedit = len(tables) + signature_size

    def dylib(kind, text):
        body = padded(text, -(-(len(text) + 1) // 8) * 8)
        return struct.pack("<6I", kind, 24 + len(body), 24, 0, 0, 0) + body

    def segment(text, address, memory, offset, size, allowed):
        place = address, memory, offset, size
        return struct.pack("<2I16s4Q4I", 0x19, 72, padded(text, 16), *place, 7, allowed, 0, 0)

    load = [
        segment("__TEXT", 0, page, 0, page, permissions),
        segment("__LINKEDIT", page, page * 4, page, linkedit, 1),
        dylib(0x0D, name),
        dylib(0x0C, needs),
        struct.pack("<6I", 0x32, 24, 1, minimum[0] << 16 | minimum[1] << 8, 0, 0),
        struct.pack("<6I", 2, 24, page, len(symbols) // 16, page + len(symbols), len(names)),
        *[struct.pack("<2I16s", 0x1B, 24, b"u" * 16)] * uuids,
    ]
    if signed:
        load.append(struct.pack("<4I", 0x1D, 16, code_end, signature_size))
    commands = b"".join(load)
    head = struct.pack("<8I", 0xFEEDFACF, cpu, 0, 6, len(load), len(commands), 0x85, 0)
    code = (head + commands).ljust(page, b"\0") + tables
    if not signed:
        return code
    starts = range(0, len(code), 4096)
    hashes = b"".join(hashlib.sha256(code[i : i + 4096]).digest() for i in starts)
    directory = struct.pack(
        ">9I4B", 0xFADE0C02, directory_size, 0x20400, 2, 44, 44, 0, pages, len(code), 32, 2, 0, 12
    )
    directory = directory.ljust(44, b"\0") + hashes
    return code + struct.pack(">5I", 0xFADE0CC0, signature_size, 1, 0, 20) + directory


def dll(machine=0x8664, exports=("f",), imports=("sin",), needs="ucrtbase.dll", name="lib.dll",
        characteristics=0x0160, flags=0x2022):  # fmt: skip
    """A 64-bit DLL of one section at address 0x1000 with an export and an import directory."""
    base, data = 0x1000, bytearray(4096)
    place = 512

    def put(content):
        nonlocal place
        start = place
        data[start : start + len(content)] = content
        place += len(content) + len(content) % 2
        return base + start

    strings = [put(e.encode() + b"\0") for e in exports]
    pointers = put(struct.pack(f"<{len(strings)}I", *strings))
    own = put(name.encode() + b"\0")
    exported = put(struct.pack("<3I7I", 0, 0, 0, own, 1, len(exports), len(exports), base, pointers,
                               base))  # fmt: skip
    hints = [put(b"\0\0" + i.encode() + b"\0") for i in imports]
    lookup = put(struct.pack(f"<{len(hints) + 1}Q", *hints, 0))
    dll_name = put(needs.encode() + b"\0")
    imported = put(struct.pack("<10I", lookup, 0, 0, dll_name, lookup, 0, 0, 0, 0, 0))
    optional = bytearray(240)
    struct.pack_into("<H", optional, 0, 0x20B)
    struct.pack_into("<H", optional, 70, characteristics)
    struct.pack_into("<4I", optional, 112, exported, 40, imported, 40)
    coff = struct.pack("<2H3I2H", machine, 1, 0, 0, 0, len(optional), flags)
    section = struct.pack("<8s4I", b".rdata", len(data), base, len(data), 512) + bytes(16)
    head = b"MZ".ljust(0x3C, b"\0") + struct.pack("<I", 0x40)
    return (head + b"PE\0\0" + coff + optional + section).ljust(512, b"\0") + bytes(data)
