"""`python -m h3video.h3.build`: compilers, staleness, nothing half done, every platform."""

import os
import shutil
import stat
import sys

import pytest

from h3video.h3 import build, kernel, targets

needs_cc = pytest.mark.skipif(
    not any(map(shutil.which, ("cc", "gcc", "clang"))), reason="needs a C compiler"
)


@pytest.fixture
def sources(tmp_path, monkeypatch):
    """A copy of csrc that a test may change, built without optimisation: seconds less."""
    folder = tmp_path / "csrc"
    shutil.copytree(build.SOURCES, folder)
    monkeypatch.setattr(build, "SOURCES", folder)
    monkeypatch.setattr(build, "FLAGS", ["-O0" if f == "-O3" else f for f in build.FLAGS])
    return folder


def script(path, text):
    path.write_text(f"#!{sys.executable}\n{text}")
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return path


@needs_cc
def test_it_builds_once_and_again_only_when_a_source_is_newer(sources, tmp_path, capsys):
    out = tmp_path / "out"
    library = out / kernel.library_name()
    assert build.main(["--if-stale", "--out", str(out)]) == 0
    assert kernel.load(library).bridge_abi_version()
    assert f"built {library}" in capsys.readouterr().out
    before = library.stat().st_mtime_ns
    assert build.main(["--if-stale", "--out", str(out)]) == 0
    assert library.stat().st_mtime_ns == before and capsys.readouterr().out == ""
    for name in ("h3.c", "h3_bulk.c", "h3_bridge.h"):
        later = library.stat().st_mtime + 5
        os.utime(sources / name, (later, later))
        assert build.stale(library)
        os.utime(sources / name, (later - 100, later - 100))
        assert not build.stale(library)
    assert list(out.iterdir()) == [library]


@needs_cc
def test_a_source_that_does_not_compile_leaves_the_library_alone(sources, tmp_path, capsys):
    library = tmp_path / kernel.library_name()
    library.write_bytes(b"the one before")
    (sources / "h3_bridge.c").write_text("this is no C\n")
    assert build.main(["--out", str(tmp_path)]) == 1
    assert "failed:" in capsys.readouterr().err
    assert library.read_bytes() == b"the one before"
    assert not [p for p in tmp_path.iterdir() if p.name.startswith(library.name + ".")]


@needs_cc
def test_a_library_that_fails_its_self_test_takes_no_ones_place(sources, tmp_path, capsys):
    text = (sources / "h3_bridge.c").read_text()
    broken = text.replace("return BRIDGE_ABI;", "return BRIDGE_ABI + 1;")
    assert broken != text
    (sources / "h3_bridge.c").write_text(broken)
    out = tmp_path / "out"
    assert build.main(["--out", str(out)]) == 1
    assert "has ABI" in capsys.readouterr().err and list(out.iterdir()) == []


def test_without_sources_it_says_so(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(build, "SOURCES", tmp_path / "none")
    assert build.main([]) == 1
    assert "clone the repository" in capsys.readouterr().err


def test_without_a_compiler_it_names_three_ways_out(monkeypatch, tmp_path, capsys):
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("CC", raising=False)
    monkeypatch.setattr(targets.importlib.util, "find_spec", lambda name: None)
    assert build.main(["--out", str(tmp_path)]) == 1
    assert "install one, set CC, or `pip install ziglang==" in capsys.readouterr().err
    assert build.main(["--all", "--out", str(tmp_path)]) == 1
    assert f"pip install {targets.ZIG}" in capsys.readouterr().err


def test_a_compiler_that_is_not_there_is_named(monkeypatch, tmp_path, capsys):
    monkeypatch.setenv("CC", "no-such-compiler -O9")
    assert build.main(["--out", str(tmp_path)]) == 1
    assert "no-such-compiler does not run" in capsys.readouterr().err


def test_without_cc_ziglang_serves(monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("CC", raising=False)
    monkeypatch.setattr(targets.importlib.util, "find_spec", lambda name: object())
    assert build.compiler() == [sys.executable, "-m", "ziglang", "cc"]
    monkeypatch.setenv("CC", "ccache gcc")
    assert build.compiler() == ["ccache", "gcc"]


# ---- every platform ----


def test_the_targets_have_the_names_that_are_looked_for(monkeypatch):
    found = set()
    for system, platform in (("linux", "linux-x86_64"), ("linux", "linux-aarch64"),
                             ("darwin", "macosx-11.0-arm64"), ("win32", "win-amd64"),
                             ("win32", "win-arm64")):  # fmt: skip
        monkeypatch.setattr(sys, "platform", system)
        monkeypatch.setattr("sysconfig.get_platform", lambda p=platform: p)
        found.add(kernel.library_name())
    assert found == {t.file for t in targets.TARGETS}


FAKE = """
import struct, sys
from pathlib import Path
words = sys.argv[1:]
log = Path({log!r})
log.write_text((log.read_text() if log.exists() else "") + " ".join(words) + "\\n")
if {fail!r} and {fail!r} in words:
    sys.exit("no such target")
out = words[words.index("-o" if "-o" in words else "-l") + 1]
target = words[words.index("-target") + 1] if "-target" in words else ""
cpu = 0x0100000C if target.startswith("aarch64") else 0x01000007
Path(out).write_bytes(struct.pack("<3I", 0xFEEDFACF, cpu, 0) + target.encode())
"""


def fake_zig(tmp_path, monkeypatch, fail=""):
    log = tmp_path / "log"
    path = script(tmp_path / "zig", FAKE.format(log=str(log), fail=fail))
    monkeypatch.setattr(targets, "zig", lambda: [str(path)])
    return log


@pytest.mark.skipif(sys.platform == "win32", reason="a script as compiler")
def test_every_target_gets_the_strict_flags_and_an_explicit_triple(tmp_path, monkeypatch):
    log = fake_zig(tmp_path, monkeypatch)
    out = tmp_path / "out"
    built = targets.build_all(
        build.SOURCES, build.C_FILES, build.FLAGS, out, tmp_path / "work"
    )
    assert [p.name for p in built] == [t.file for t in targets.TARGETS]
    assert sorted(out.iterdir()) == sorted(built)
    lines = log.read_text().splitlines()
    compiling = [line for line in lines if build.C_FILES[0] in line.split()]
    assert len(compiling) == sum(len(t.triples) for t in targets.TARGETS)
    for line in compiling:
        words = line.split()
        assert words[words.index("-target") + 1] in {x for t in targets.TARGETS for x in t.triples}
        assert {"-ffp-contract=off", "-g0", "-Werror", "-fvisibility=hidden"} <= set(words)
        assert not [w for w in words if w.startswith("-march") or w.startswith("-mcpu")]
    mac = next(p for p in built if p.suffix == ".dylib").read_bytes()
    assert mac[:4] == b"\xca\xfe\xba\xbe" and b"aarch64-macos.11.0" in mac


@pytest.mark.skipif(sys.platform == "win32", reason="a script as compiler")
def test_one_target_that_fails_leaves_no_file(tmp_path, monkeypatch, capsys):
    fake_zig(tmp_path, monkeypatch, fail="aarch64-windows-gnu")
    out = tmp_path / "out"
    assert build.main(["--all", "--out", str(out)]) == 1
    assert "no such target" in capsys.readouterr().err
    assert not out.exists()
