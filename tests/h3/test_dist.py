"""The checks of `make dist`: what they read from libraries, and what they refuse."""

import importlib.util
import re
import shutil
import struct
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from h3video.h3 import build, native, targets

ROOT = Path(__file__).parents[2]
sys.path[:0] = [str(ROOT / "tools"), str(Path(__file__).parent)]
try:
    import binaries
    import checks
    import crafted
    import macho
    import platforms
finally:
    del sys.path[:2]

needs_gcc = pytest.mark.skipif(
    not (shutil.which("gcc") and sys.platform == "linux"), reason="needs gcc on Linux"
)
MACOS = "libh3video-macos.dylib"
X86, ARM = crafted.X86_64, crafted.ARM64


def universal(**changes):
    """A macOS file that passes every check; changes go into the arm64 slice."""
    common = dict(name=f"@rpath/{MACOS}", exports=("f", "g"))
    thin = crafted.mach_o(X86, minimum=(10, 13), signed=False, **common)
    return targets.join([thin, crafted.mach_o(ARM, **{**common, **changes})])


def windows(**changes):
    return crafted.dll(**{"name": "h3video-win_amd64.dll", "exports": ("f", "g"), **changes})


def shared(folder, text, *flags):
    """A shared library by gcc."""
    source, out = folder / "a.c", folder / "libh3video-linux_x86_64.so"
    source.write_text(text)
    subprocess.run(["gcc", "-shared", "-fPIC", *flags, source, "-o", out, "-lm"], check=True)
    return out.read_bytes()


# ---- what is read ----


def test_a_universal_file_is_read():
    a, b = binaries.read(universal())
    assert (a.cpu, a.minimum, b.cpu, b.minimum) == ("x86_64", "10.13", "arm64", "11.0")
    assert a.exports == b.exports == {"f", "g"} and b.imports == {"sin"}
    assert b.needs == ["/usr/lib/libSystem.B.dylib"] and b.name == f"@rpath/{MACOS}"
    assert a.notes == set() and b.notes == {"signature"}


def test_a_dll_is_read():
    (b,) = binaries.read(windows(machine=0xAA64, imports=("sin", "malloc")))
    assert (b.format, b.cpu, b.needs, b.name) == (
        "pe", "arm64", ["ucrtbase.dll"], "h3video-win_amd64.dll",
    )  # fmt: skip
    assert b.exports == {"f", "g"} and b.imports == {"sin", "malloc"} and not b.notes


@needs_gcc
def test_an_elf_library_is_read(tmp_path):
    text = """
    #include <math.h>
    static int hidden(void) { return 1; }
    int f(void) { return hidden(); }
    double g(double x) { return sin(x); }
    __attribute__((visibility("hidden"))) int h(void) { return 2; }
    """
    (b,) = binaries.read(shared(tmp_path, text, "-O1", "-Wl,-soname,libx.so", "-nostartfiles"))
    assert b.exports == {"f", "g"} and b.imports == {"sin"} and b.name == "libx.so"
    assert b.needs[0] == "libm.so.6" and re.fullmatch(r"2\.\d+(\.\d+)?", b.minimum)
    readelf = shutil.which("readelf")
    if readelf:  # somebody else's reading of the same file
        path = tmp_path / "libh3video-linux_x86_64.so"
        out = subprocess.run([readelf, "-dW", path], capture_output=True, text=True).stdout
        assert re.findall(r"\(NEEDED\).*\[(.*)\]", out) == b.needs


@needs_gcc
@pytest.mark.parametrize("style", ["sysv", "gnu"])
def test_both_hash_tables_give_the_symbols(tmp_path, style):
    text = "".join(f"int f{i}(void) {{ return {i}; }}\n" for i in range(40))
    (b,) = binaries.read(shared(tmp_path, text, f"-Wl,--hash-style={style}", "-nostdlib"))
    assert b.exports == {f"f{i}" for i in range(40)}


@needs_gcc
@pytest.mark.parametrize("text, flags, note", [
    ("__attribute__((constructor)) void c(void) {}", [], "constructors"),
    ("int f;", ["-Wl,-z,execstack"], "executable stack"),
    ("int f;", ["-Wl,-rpath,/somewhere"], "rpath"),
    ("static int a(void) { return 1; } static void *pick(void) { return a; }\n"
     "int f(void) __attribute__((ifunc(\"pick\")));", [], "ifunc"),
])  # fmt: skip
def test_what_a_library_must_not_have_is_noticed(tmp_path, text, flags, note):
    (b,) = binaries.read(shared(tmp_path, text, *flags, "-nostartfiles"))
    assert note in b.notes
    (plain,) = binaries.read(shared(tmp_path, "int f;", "-nostartfiles"))
    assert not plain.notes


@pytest.mark.parametrize("content", [b"", b"MZ", b"\x7fELF", b"text", b"\xca\xfe\xba\xbe",
                                     b"\xcf\xfa\xed\xfe", b"MZ" + bytes(300)])  # fmt: skip
def test_no_library_is_said_so(content):
    with pytest.raises(binaries.FormatError):
        binaries.read(content)


SAMPLES = [universal(), windows(), crafted.mach_o(X86)]


@settings(max_examples=400)
@given(st.sampled_from(SAMPLES), st.data())
def test_damaged_files_end_in_a_format_error_or_faults(content, data):
    """Never in another exception, whatever byte changed or is missing."""
    cut = data.draw(st.integers(0, len(content)))
    damaged = bytearray(content[:cut] if data.draw(st.booleans()) else content)
    for _ in range(data.draw(st.integers(0, 4))):
        if damaged:
            place = data.draw(st.integers(0, min(len(damaged), 1500) - 1))
            damaged[place] = data.draw(st.integers(0, 255))
    for name in (MACOS, "h3video-win_amd64.dll", "libh3video-linux_x86_64.so"):
        assert isinstance(checks.faults(name, bytes(damaged), {"f"}), list)


@needs_gcc
def test_damaged_elf_files_too(tmp_path):
    content = shared(tmp_path, "#include <math.h>\ndouble f(double x) { return sin(x); }")
    places = [*range(0, 0x400), *range(0, len(content), 97)]
    for place in places:
        damaged = bytearray(content)
        damaged[place] ^= 0xFF
        assert isinstance(checks.faults("libh3video-linux_x86_64.so", bytes(damaged), {"f"}), list)
        cut = content[:place]
        assert checks.faults("libh3video-linux_x86_64.so", cut, {"f"})


# ---- what is refused ----


def test_good_files_pass():
    assert checks.faults(MACOS, universal(), {"f", "g"}) == []
    assert checks.faults("h3video-win_amd64.dll", windows(), {"f", "g"}) == []


@pytest.mark.parametrize("changes, fault", [
    (dict(exports=("f",)), r"exports differ .*\['g'\]"),
    (dict(exports=("f", "g", "leak")), r"exports differ .*\['leak'\]"),
    (dict(imports=("printf",)), r"imports \['printf'\]"),
    (dict(needs="/opt/lib/libc++.dylib"), "needs .*libc"),
    (dict(name="@rpath/other.dylib"), "calls itself"),
    (dict(minimum=(15, 0)), "is for macOS 15.0, not 11.0"),
    (dict(signed=False), "arm64 without a signature"),
    (dict(permissions=7), "__TEXT has permissions 7"),
    (dict(uuids=0), "0 UUIDs"),
    (dict(uuids=2), "2 UUIDs"),
])  # fmt: skip
def test_macos_faults_are_named(changes, fault):
    (found,) = checks.faults(MACOS, universal(**changes), {"f", "g"})
    assert re.search(f"arm64: {fault}|{fault}", found)


@pytest.mark.parametrize("changes, fault", [
    (dict(exports=("f",)), r"exports differ .*\['g'\]"),
    (dict(imports=("sincos",)), r"imports \['sincos'\]"),
    (dict(needs="libgcc_s_seh-1.dll"), "needs .*libgcc"),
    (dict(machine=0xAA64), "for .'arm64'., not .'x86_64'."),
    (dict(machine=0x14C), "PE machine 0x14c"),
    (dict(characteristics=0x0120), "no ASLR"),
    (dict(flags=0x2023), "relocations stripped"),
    (dict(flags=0x0022), "no DLL"),
])  # fmt: skip
def test_windows_faults_are_named(changes, fault):
    (found,) = checks.faults("h3video-win_amd64.dll", windows(**changes), {"f", "g"})
    assert re.search(fault, found)


@pytest.mark.parametrize("where, page", [(0x0FFF, 0), (0x2000, 2), (0x4008, 4)])
def test_a_changed_page_breaks_the_signature(where, page):
    content = bytearray(crafted.mach_o(ARM))
    assert macho.faults(bytes(content)) == []
    content[where] ^= 1
    assert macho.faults(bytes(content)) == [f"page {page} was changed after signing"]


@needs_gcc
def test_a_local_build_asks_for_this_machines_glibc(tmp_path):
    """What gcc links here may need a newer glibc than the rule allows, and is named if so."""
    text = "#include <math.h>\ndouble f(double x) { return hypot(x, x) + pow(x, x); }"
    content = shared(tmp_path, text, "-nostartfiles", "-Wl,-soname,libh3video-linux_x86_64.so")
    (b,) = binaries.read(content)
    version = tuple(map(int, b.minimum.split(".")))
    found = checks.faults("libh3video-linux_x86_64.so", content, {"f"})
    assert any("needs glibc" in f for f in found) == (version > (2, 17))


def test_the_rules_are_for_the_targets():
    assert set(checks.RULES) == {t.file for t in targets.TARGETS}
    declared = checks.declared(build.SOURCES / "h3_bridge.h")
    assert declared == set(native.SIGNATURES)


# ---- the universal file ----


@given(st.integers(0, 40000), st.integers(0, 40000), st.booleans())
def test_join_keeps_the_files_and_their_pages(a, b, swapped):
    x86 = struct.pack("<3I", 0xFEEDFACF, X86, 3) + b"x" * a
    arm = struct.pack("<3I", 0xFEEDFACF, ARM, 0) + b"a" * b
    joined = targets.join([arm, x86] if swapped else [x86, arm])
    assert binaries.slices(joined) == [x86, arm]
    assert len(joined) == 0x4000 * -(-(0x1000 + len(x86)) // 0x4000) + len(arm)


@pytest.mark.parametrize("thin, why", [
    ([b""], "no 64-bit Mach-O"),
    ([b"\x7fELF" + bytes(60)], "no 64-bit Mach-O"),
    ([struct.pack("<3I", 0xFEEDFACF, 7, 0)], "no 64-bit Mach-O"),
    ([crafted.mach_o(ARM), crafted.mach_o(ARM)], "two Mach-O files"),
])  # fmt: skip
def test_join_refuses(thin, why):
    with pytest.raises(targets.BuildError, match=why):
        targets.join(thin)


# ---- answers of the harness ----


def answers(cells=(1, 2), numbers=(0.5, float("nan")), weights=(1.0,)):
    out = b"icells  " + struct.pack("<q2q", len(cells), *cells)
    out += b"dlat    " + struct.pack(f"<q{len(numbers)}d", len(numbers), *numbers)
    return out + b"dweights" + struct.pack(f"<q{len(weights)}d", len(weights), *weights)


def test_answers_are_compared():
    assert platforms.compare(answers(), answers()) == (5, 0.0)
    count, worst = platforms.compare(answers(), answers(weights=(1.0 + 1e-15,)))
    assert count == 5 and 0 < worst < 2e-15


@pytest.mark.parametrize("other, why", [
    (answers(cells=(1, 3)), "1 of 2 cells"),
    (answers(numbers=(0.5 + 1.2e-16, float("nan"))), "lat"),
    (answers(weights=(1.0 + 1e-11,)), "weights"),
    (answers(numbers=(0.5, 0.0)), "lat"),
    (answers(numbers=(0.5,)), "another shape"),
])  # fmt: skip
def test_other_answers_are_refused(other, why):
    with pytest.raises(RuntimeError, match=why):
        platforms.compare(answers(), other)


@needs_gcc
def test_the_harness_compiles_against_the_header_and_runs(tmp_path, library):
    """It calls through the header's own types, so a changed signature fails here."""
    exe = tmp_path / "smoke"
    source = ROOT / "tools/smoke/smoke.c"
    subprocess.run(
        ["gcc", "-O1", "-Wall", "-Wextra", "-Werror", f"-I{build.SOURCES}", source, "-o", exe,
         "-ldl"], check=True,
    )  # fmt: skip
    subprocess.run([exe, library, tmp_path / "answers"], check=True)
    content = (tmp_path / "answers").read_bytes()
    named = dict(platforms.blocks(content))
    assert named["abi (q)"] == (native.ABI,)
    assert all(map(len, named.values())) and set(named["steps (q)"]) == {3}
    assert platforms.compare(content, content)[0] > 100_000


@pytest.mark.skipif(importlib.util.find_spec("ziglang") is None, reason="needs ziglang (make dist)")
def test_every_target_builds_and_passes(tmp_path):
    paths = targets.build_all(
        build.SOURCES, build.C_FILES, build.FLAGS, tmp_path / "out", tmp_path / "work"
    )
    functions = checks.declared(build.SOURCES / "h3_bridge.h")
    for path in paths:
        assert checks.faults(path.name, path.read_bytes(), functions) == []
