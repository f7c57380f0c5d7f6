"""What every library of a wheel must be: the rules of `make dist`, one list of faults a file."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from binaries import DAMAGE, Binary, FormatError, read
from macho import faults as macho_faults

from h3video.h3 import targets

_SYSTEM = set(targets.WINDOWS_IMPORTS["ucrtbase"])
_LOADER_S_OWN = {"__dso_handle", "_mh_dylib_header"}  # zig's linker exports them from every dylib


@dataclass(frozen=True)
class Rule:
    """What a library for one processor may need, and the oldest system it must run on."""

    cpu: str
    needs: frozenset[str]
    imports: frozenset[str]
    minimum: str  # glibc or macOS; "" for Windows


# What musl has too, under the same name: its loader takes the glibc file.
_LINUX = frozenset({"libc.so.6", "libm.so.6"}), frozenset(_SYSTEM | {"bcmp", "sincos"})
_MACOS = (
    frozenset({"/usr/lib/libSystem.B.dylib"}),
    frozenset(
        _SYSTEM | {"bzero", "__bzero", "__sincos_stret", "memset_pattern16", "dyld_stub_binder"}
    ),
)
_WINDOWS = (
    frozenset(f"{dll}.dll" for dll in targets.WINDOWS_IMPORTS),
    frozenset(name for names in targets.WINDOWS_IMPORTS.values() for name in names),
)
RULES = {
    "libh3video-linux_x86_64.so": (Rule("x86_64", *_LINUX, "2.17"),),
    "libh3video-linux_aarch64.so": (Rule("arm64", *_LINUX, "2.17"),),
    "libh3video-macos.dylib": (Rule("x86_64", *_MACOS, "10.13"), Rule("arm64", *_MACOS, "11.0")),
    "h3video-win_amd64.dll": (Rule("x86_64", *_WINDOWS, ""),),
    "h3video-win_arm64.dll": (Rule("arm64", *_WINDOWS, ""),),
}


def declared(header: Path) -> set[str]:
    """The functions that h3_bridge.h declares."""
    return set(re.findall(r"\bBRIDGE_API\s[^;{}]*?\b(bridge_\w+)\(", header.read_text()))


def faults(name: str, content: bytes, functions: set[str]) -> list[str]:
    """Why the file must not ship; empty when it may."""
    try:
        return _all_faults(name, read(content), functions)
    except FormatError as e:
        return [str(e)]
    except DAMAGE as e:
        return [f"damaged: {type(e).__name__}, {e}"]


def _all_faults(name: str, found: list[Binary], functions: set[str]) -> list[str]:
    rules = RULES[name]
    if [b.cpu for b in found] != [r.cpu for r in rules]:
        return [f"for {[b.cpu for b in found]}, not {[r.cpu for r in rules]}"]
    return [
        f"{binary.cpu}: {fault}"
        for binary, rule in zip(found, rules)
        for fault in _faults(name, binary, rule, functions)
    ]


def _faults(name: str, binary: Binary, rule: Rule, functions: set[str]) -> list[str]:
    out = []
    if extra := set(binary.needs) - rule.needs:
        out.append(f"needs {sorted(extra)}")
    if extra := binary.imports - rule.imports:
        out.append(f"imports {sorted(extra)}, which some system lacks")
    exports = binary.exports - (_LOADER_S_OWN if binary.format == "mach-o" else set())
    if exports != functions:
        out.append(f"exports differ from the header's in {sorted(exports ^ functions)}")
    if binary.name.removeprefix("@rpath/") != name:
        out.append(f"calls itself {binary.name!r}")
    out += _too_new(binary, rule)
    if binary.format == "mach-o":
        out += macho_faults(binary.content)
    out += sorted(binary.notes - {"signature"})
    return out


def _too_new(binary: Binary, rule: Rule) -> list[str]:
    if not rule.minimum:
        return []
    if binary.format == "mach-o" and binary.minimum != rule.minimum:
        return [f"is for macOS {binary.minimum or '?'}, not {rule.minimum}"]
    if binary.format == "elf" and _numbers(binary.minimum) > _numbers(rule.minimum):
        return [f"needs glibc {binary.minimum}, beyond {rule.minimum}"]
    return []


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(map(int, version.split("."))) if version else ()


def summary(name: str, content: bytes) -> str:
    """One line for people: what is in a file."""
    parts = []
    for b in read(content):
        system = {"elf": "glibc symbols up to", "mach-o": "macOS from", "pe": "Windows"}[b.format]
        signed = ", signed ad hoc" if "signature" in b.notes else ""
        needs = " ".join(n.rsplit("/", 1)[-1] for n in b.needs)
        parts.append(f"{b.cpu}, {system} {b.minimum}".rstrip() + f", needs {needs}{signed}")
    return f"{name:28} {len(content):7} bytes  {'; '.join(parts)}"
