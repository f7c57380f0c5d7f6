"""The libraries that a wheel carries, all from one machine with ziglang, a C compiler on PyPI.

Five files serve seven platforms: Linux x86_64 and aarch64 (glibc 2.17 and later; musl's loader
takes the same file, since it maps libc.so.6 and libm.so.6 to itself), macOS 11 on arm64 and 10.13
on x86_64 in one file, Windows x64 and arm64. The same sources and the same ziglang give the same
bytes, on any machine and in any folder.
"""

from __future__ import annotations

import importlib.util
import os
import struct
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

ZIG = "ziglang==0.17.1"
"""What `pip install` must be told; the bytes depend on the version."""

STRICT = ["-g0", "-s", "-Wall", "-Wextra", "-Werror"]
# The Windows libraries link no C runtime start-up, only these functions of the system's own DLLs.
WINDOWS_IMPORTS = {
    "ucrtbase": (
        "acos", "asin", "atan", "atan2", "calloc", "ceil", "cos", "floor", "free", "hypot",
        "malloc", "memcmp", "memcpy", "memmove", "memset", "pow", "qsort", "realloc", "sin",
        "sqrt", "strlen", "tan",
    ),
}  # fmt: skip
WINDOWS_ENTRY = "windows_entry.c"
WINDOWS_FLAGS = ["-fno-builtin-sin", "-fno-builtin-cos"]  # else pairs become sincos: not in there


class BuildError(Exception):
    """A compiler or linker refused; the message says which command and why."""


@dataclass(frozen=True)
class Target:
    """One file of the wheel and the zig triples that it is made of (macOS: two, joined)."""

    file: str
    triples: tuple[str, ...]

    @property
    def windows(self) -> bool:
        return self.file.endswith(".dll")


TARGETS = (
    Target("libh3video-linux_x86_64.so", ("x86_64-linux-gnu.2.17",)),
    Target("libh3video-linux_aarch64.so", ("aarch64-linux-gnu.2.17",)),
    Target("libh3video-macos.dylib", ("x86_64-macos.10.13", "aarch64-macos.11.0")),
    Target("h3video-win_amd64.dll", ("x86_64-windows-gnu",)),
    Target("h3video-win_arm64.dll", ("aarch64-windows-gnu",)),
)
"""File names are those that kernel.library_name() looks for."""


def zig() -> list[str]:
    """The command of ziglang in this interpreter. Raises BuildError where it is not installed."""
    if importlib.util.find_spec("ziglang") is None:
        raise BuildError(f"ziglang is not installed; `{sys.executable} -m pip install {ZIG}`")
    return [sys.executable, "-m", "ziglang"]


def build_all(
    sources: Path, files: Sequence[str], flags: Sequence[str], out: Path, work: Path
) -> list[Path]:
    """Build every target of C `files` in folder `sources` into `out`; scratch goes to `work`.

    Compiler caches lie in `work` too, unless $ZIG_GLOBAL_CACHE_DIR says otherwise. Raises
    BuildError; a file appears in `out` only when all targets are built.
    """
    env = {**os.environ, "ZIG_LOCAL_CACHE_DIR": str(work / "zig-local")}
    env.setdefault("ZIG_GLOBAL_CACHE_DIR", str(work / "zig-global"))
    made = []
    for target in TARGETS:
        thin = []
        for triple in target.triples:
            folder = work / triple
            folder.mkdir(parents=True, exist_ok=True)
            build = _windows if target.windows else _unix
            thin.append(build(sources, files, flags, target, triple, folder, env))
        made.append((target.file, join(thin) if len(thin) > 1 else thin[0]))
    out.mkdir(parents=True, exist_ok=True)
    for name, content in made:
        partial = out / f"{name}.{os.getpid()}"
        partial.write_bytes(content)
        os.replace(partial, out / name)
    return [out / name for name, _ in made]


def _run(command: Sequence[str], folder: Path, env: Mapping[str, str]) -> None:
    done = subprocess.run(command, cwd=folder, env=env, capture_output=True, text=True)
    if done.returncode:
        raise BuildError(f"{' '.join(command)} failed:\n{done.stderr.strip()}")


def _unix(
    sources: Path, files: Sequence[str], flags: Sequence[str], target: Target, triple: str,
    folder: Path, env: Mapping[str, str],
) -> bytes:  # fmt: skip
    path = folder / target.file
    if "macos" in triple:
        name = f"-Wl,-install_name,@rpath/{target.file}"
    else:
        name = f"-Wl,-soname,{target.file},-z,noexecstack,-z,relro,-z,now"
    _run(
        [*zig(), "cc", "-target", triple, *flags, *STRICT, "-fPIC", "-shared", *files,
         "-o", str(path), name, "-lm"], sources, env,
    )  # fmt: skip
    return path.read_bytes()


def _windows(
    sources: Path, files: Sequence[str], flags: Sequence[str], target: Target, triple: str,
    folder: Path, env: Mapping[str, str],
) -> bytes:  # fmt: skip
    """No C runtime start-up: it would be compiled from scratch, and we have nothing to start."""
    objects = []
    for name in (*files, WINDOWS_ENTRY):
        objects.append(str(folder / f"{Path(name).stem}.obj"))
        _run(
            [*zig(), "cc", "-target", triple, *flags, *WINDOWS_FLAGS, *STRICT, "-c", name,
             "-o", objects[-1]], sources, env,
        )  # fmt: skip
    machine = "arm64" if triple.startswith("aarch64") else "i386:x86-64"
    libraries = []
    for dll, functions in WINDOWS_IMPORTS.items():
        listing = folder / f"{dll}.def"
        listing.write_text(f"LIBRARY {dll}.dll\nEXPORTS\n" + "\n".join(functions) + "\n")
        libraries.append(str(folder / f"{dll}.a"))
        _run([*zig(), "dlltool", "-m", machine, "-d", str(listing), "-l", libraries[-1]],
             sources, env)  # fmt: skip
    path = folder / target.file
    _run(
        [*zig(), "cc", "-target", triple, "-O2", "-s", "-shared", "-nostdlib",
         "-Wl,-e,DllMainCRTStartup", *objects, *libraries, "-o", str(path)], sources, env,
    )  # fmt: skip
    return path.read_bytes()


# ---- one Mach-O file for two processors ----

_MACH_O_64, _FAT = 0xFEEDFACF, 0xCAFEBABE
_PAGE_BITS = {0x01000007: 12, 0x0100000C: 14}  # x86_64: 4 KiB pages, arm64: 16 KiB


def join(thin: Sequence[bytes]) -> bytes:
    """A universal Mach-O file of 64-bit ones: what `lipo -create` writes.

    A header in network order lists (processor, subtype, offset, size, alignment); the files follow
    untouched, each on a page boundary of its processor, so that signatures stay valid. Raises
    BuildError for what is no Mach-O file of a known processor, or two of one processor.
    """
    known = []
    for content in thin:
        magic, cpu, subtype = struct.unpack_from("<3I", content.ljust(12, b"\0"))
        if magic != _MACH_O_64 or cpu not in _PAGE_BITS:
            raise BuildError(f"no 64-bit Mach-O file for x86_64 or arm64: {content[:8].hex()}")
        known.append((_PAGE_BITS[cpu], cpu, subtype, content))
    known.sort(key=lambda item: item[:2])
    if len({cpu for _, cpu, _, _ in known}) != len(known):
        raise BuildError("two Mach-O files for one processor")
    head, body, end = struct.pack(">2I", _FAT, len(known)), b"", 8 + 20 * len(known)
    for bits, cpu, subtype, content in known:
        start = -(-end >> bits) << bits
        head += struct.pack(">5I", cpu, subtype, start, len(content), bits)
        body += bytes(start - end) + content
        end = start + len(content)
    return head + body
