"""Which library serves: lookup by platform, refusals with a reason, a kernel of somebody else's."""

import ctypes
import logging
import os
import shutil
import subprocess
import sys
import time

import pytest

from h3video import h3
from h3video.errors import UsageError
from h3video.h3 import api, build, kernel, native, selftest
from h3video.h3 import pure_arrays as pure

COMPILER = next(filter(shutil.which, ("cc", "gcc", "clang")), None)
needs_cc = pytest.mark.skipif(not COMPILER, reason="needs a C compiler")
CELL = 0x89283082A67FFFF


def compiled(folder, name, source, *more):
    """A shared library from C text."""
    (folder / f"{name}.c").write_text(source)
    path = folder / f"{name}.so"
    subprocess.run(
        [COMPILER, "-shared", "-fPIC", "-O1", f"-I{build.SOURCES}", str(folder / f"{name}.c"),
         *more, "-o", str(path), "-lm"], check=True,
    )  # fmt: skip
    return path


# ---- lookup ----


@pytest.mark.parametrize("system, platform, name", [
    ("linux", "linux-x86_64", "libh3video-linux_x86_64.so"),
    ("linux", "linux-aarch64", "libh3video-linux_aarch64.so"),
    ("darwin", "macosx-11.0-arm64", "libh3video-macos.dylib"),
    ("darwin", "macosx-10.13-universal2", "libh3video-macos.dylib"),
    ("win32", "win-amd64", "h3video-win_amd64.dll"),
    ("win32", "win-arm64", "h3video-win_arm64.dll"),
    ("linux", "linux-riscv64", "libh3video-linux_riscv64.so"),
])  # fmt: skip
def test_every_platform_has_its_own_name(monkeypatch, system, platform, name):
    monkeypatch.setattr(sys, "platform", system)
    monkeypatch.setattr("sysconfig.get_platform", lambda: platform)
    monkeypatch.delenv("H3VIDEO_H3_LIBRARY", raising=False)
    assert kernel.library_name() == name
    assert kernel.library_path() == kernel.FOLDER / name
    assert kernel.library_path().is_absolute()


def test_the_variable_names_another_library(monkeypatch):
    monkeypatch.setenv("H3VIDEO_H3_LIBRARY", "~/mine.so")
    assert str(kernel.library_path()) == os.path.expanduser("~/mine.so")
    monkeypatch.setenv("H3VIDEO_H3_LIBRARY", "")
    assert kernel.library_path().parent == kernel.FOLDER


# ---- refusals ----


def test_a_missing_library_is_one_line_and_pure_serves(tmp_path, monkeypatch, caplog):
    monkeypatch.setenv("H3VIDEO_H3_LIBRARY", str(tmp_path / "nothing.so"))
    with caplog.at_level(logging.WARNING, "h3video"), h3.use_backend("auto"):
        assert h3.backend() == "pure"
        assert h3.latlng_to_cell(37.7955, -122.3937, 9) == CELL
    assert len(caplog.records) == 1
    assert "no native index at" in caplog.text and "\n" not in caplog.records[0].getMessage()


@pytest.mark.parametrize("content", [b"", b"not a library", b"\x7fELF" + b"\0" * 60])
def test_a_wrong_architecture_is_one_line(tmp_path, content):
    path = tmp_path / "bad.so"
    path.write_bytes(content)
    with pytest.raises(kernel.LibraryError, match="does not load on this 64-bit") as e:
        kernel.load(path)
    assert "\n" not in str(e.value)


@needs_cc
def test_another_abi_and_missing_functions_are_named(tmp_path):
    path = compiled(tmp_path, "empty", "int nothing;\n")
    with pytest.raises(kernel.LibraryError, match=r"no function bridge_abi_version.*h3_bridge\.h"):
        kernel.load(path)
    path = compiled(tmp_path, "other", "int bridge_abi_version(void) { return 99; }\n")
    with pytest.raises(kernel.LibraryError, match=f"has ABI 99, this package needs {native.ABI}"):
        kernel.load(path)
    path = compiled(
        tmp_path, "half", f"int bridge_abi_version(void) {{ return {native.ABI}; }}\n"
    )
    with pytest.raises(kernel.LibraryError, match="has no function bridge_latlng_to_cell"):
        kernel.load(path)


@needs_cc
@pytest.mark.parametrize("name", [n for n in native.SIGNATURES if n != "bridge_abi_version"])
def test_each_function_must_be_there(tmp_path_factory, name):
    names = [n for n in native.SIGNATURES if n not in (name, "bridge_abi_version")]
    text = f"int bridge_abi_version(void) {{ return {native.ABI}; }}\n" + "".join(
        f"long {n}(void) {{ return 0; }}\n" for n in names
    )
    path = compiled(tmp_path_factory.mktemp("lib"), name, text)
    with pytest.raises(kernel.LibraryError, match=f"has no function {name};"):
        kernel.load(path)


@needs_cc
def test_a_kernel_that_answers_nothing_is_refused(tmp_path):
    text = f"int bridge_abi_version(void) {{ return {native.ABI}; }}\n" + "".join(
        f"long {n}(void) {{ return 0; }}\n" for n in native.SIGNATURES if "abi" not in n
    )
    with pytest.raises(kernel.LibraryError, match="fails its self-test: latlng_to_cell"):
        kernel.load(compiled(tmp_path, "zeros", text))


# ---- a kernel of somebody else's ----

WRAPPED = """
#define {name} theirs_{name}
#include "h3_bridge.c"
#undef {name}
{body}
"""
COUNTER = """
static int64_t calls;
BRIDGE_API int64_t calls_so_far(void) { return calls; }
BRIDGE_API int64_t bridge_latlng_to_cell(double lat, double lng, int32_t res, uint64_t *out) {
    calls++;
    return theirs_bridge_latlng_to_cell(lat, lng, res, out);
}
"""
WRONG = {
    "latlng_to_cell": """
BRIDGE_API int64_t bridge_latlng_to_cell(double lat, double lng, int32_t res, uint64_t *out) {
    return theirs_bridge_latlng_to_cell(lng, lat, res, out); /* arguments swapped */
}""",
    "cell_to_latlng": """
BRIDGE_API int64_t bridge_cell_to_latlng(uint64_t cell, double *out2) {
    int64_t result = theirs_bridge_cell_to_latlng(cell, out2);
    out2[0] *= 57.29577951308232; /* degrees */
    return result;
}""",
    "is_valid_cell": """
BRIDGE_API int32_t bridge_is_valid_cell(uint64_t cell) { (void)cell; return 1; }""",
    "grid_distance": """
BRIDGE_API int64_t bridge_grid_distance(uint64_t a, uint64_t b, int64_t *out) {
    int64_t result = theirs_bridge_grid_distance(a, b, out);
    *out += 1;
    return result;
}""",
    "cells_to_latlngs": """
BRIDGE_API int64_t bridge_cells_to_latlngs(const uint64_t *cells, int64_t n, double unit,
                                           double *lat, double *lng, int64_t stride) {
    return theirs_bridge_cells_to_latlngs(cells, n, unit, lng, lat, stride);
}""",
    "are_valid_cells": """
BRIDGE_API int64_t bridge_are_valid_cells(const uint64_t *cells, int64_t n, uint8_t *out) {
    (void)cells;
    for (int64_t i = 0; i < n; i++) out[i] = 1;
    return 0;
}""",
}


@pytest.fixture(scope="module")
def wrapped(tmp_path_factory):
    """Makes kernels: our own sources with one function taken over."""
    index = tmp_path_factory.mktemp("index") / "h3.o"
    flags = ["-O1", "-fPIC", "-ffp-contract=off", "-fvisibility=hidden"]
    source = build.SOURCES / build.C_FILES[0]
    subprocess.run([COMPILER, *flags, "-c", source, "-o", index], check=True)

    def make(folder, name, body):
        source = WRAPPED.format(name=f"bridge_{name}", body=body)
        return compiled(folder, name, source, "-ffp-contract=off", str(index))

    return make


@pytest.fixture
def restored():
    before = api._backend
    yield
    api._backend = before


@needs_cc
def test_a_second_kernel_serves_by_use(tmp_path, restored, wrapped):
    path = wrapped(tmp_path, "latlng_to_cell", COUNTER)
    h3.use(str(path))
    assert h3.backend() == "native"
    count = ctypes.CDLL(str(path)).calls_so_far
    count.restype = ctypes.c_int64
    before = count()
    assert h3.latlng_to_cell(37.7955, -122.3937, 9) == CELL
    assert count() == before + 1
    h3.use(None)
    assert h3.latlng_to_cell(37.7955, -122.3937, 9) == CELL
    assert count() == before + 1  # ours again


@needs_cc
def test_a_second_kernel_serves_by_the_variable(tmp_path, wrapped):
    path = wrapped(tmp_path, "latlng_to_cell", COUNTER)
    code = (
        "import ctypes, h3video.h3 as h\n"
        f"assert h.latlng_to_cell(37.7955, -122.3937, 9) == {CELL} and h.backend() == 'native'\n"
        f"print(ctypes.CDLL({str(path)!r}).calls_so_far())"
    )
    env = {**os.environ, "H3VIDEO_H3_LIBRARY": str(path)}
    out = subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, text=True)
    asked = sum(name == "latlng_to_cell" for name, _, _ in selftest.CELLS)
    assert (out.stdout, out.stderr) == (f"{asked + 1}\n", "")


@needs_cc
@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_kernel_is_refused_and_the_one_before_serves_on(
    tmp_path, restored, wrapped, name
):
    h3.use(None)
    before = api._use()
    with pytest.raises(UsageError, match=f"fails its self-test: {name}.* right is ") as e:
        h3.use(wrapped(tmp_path, name, WRONG[name]))
    assert "\n" not in str(e.value)
    assert api._use() is before


def test_use_refuses_what_is_not_there(tmp_path, restored):
    with pytest.raises(UsageError, match="no native index at"):
        h3.use(tmp_path / "none.so")


# ---- the self-test ----


def test_the_pure_index_passes_it():
    selftest.check_cells(pure)


def test_its_answers_are_the_official_librarys():
    official = pytest.importorskip("h3.api.basic_int")
    import math

    for name, arguments, want in selftest.CELLS:
        if name == "latlng_to_cell" and arguments[2] <= 15:
            lat, lng, res = arguments
            assert official.latlng_to_cell(math.degrees(lat), math.degrees(lng), res) == want
        across = name == "grid_distance" and arguments[0] == selftest.RING[0]  # it gives up there
        if name == "cells_to_directed_edge" and isinstance(want, int):
            assert official.cells_to_directed_edge(*arguments) == want
        if name == "compact_cells":
            assert list(official.compact_cells(*arguments)) == want
        if name == "cell_to_vertex":
            assert official.cell_to_vertex(*arguments) == want
        if name == "get_icosahedron_faces":
            assert set(official.get_icosahedron_faces(*arguments)) == want
        if name in ("cell_to_parent", "cell_to_center_child", "grid_distance") and not across:
            assert getattr(official, name)(*arguments) == want
        if name in ("grid_disk", "cell_to_children") or (name == "grid_ring" and arguments[1] > 0):
            assert set(getattr(official, name)(*arguments)) == want
        if name == "cell_to_boundary":
            corners = official.cell_to_boundary(*arguments)
            for got, right in zip(want, corners, strict=True):
                assert got == pytest.approx(tuple(map(math.radians, right)), abs=1e-11)


@pytest.mark.parametrize("case", range(len(selftest.CELLS)))
def test_each_case_can_fail(monkeypatch, case):
    """A backend that answers this one case wrongly does not get past it."""
    name, arguments, _ = selftest.CELLS[case]

    class Wrong:
        def __getattr__(self, asked):
            right = getattr(pure, asked)

            def answer(*given):
                return "nonsense" if (asked, given) == (name, tuple(arguments)) else right(*given)

            return answer

    with pytest.raises(selftest.WrongAnswer, match=f"{name}\\("):
        selftest.check_cells(Wrong())


def test_it_is_quick(library):
    loaded = kernel.load(library)
    start = time.perf_counter()
    for _ in range(10):
        selftest.check_cells(native.Native(loaded))
        selftest.check_arrays(loaded)
    assert (time.perf_counter() - start) / 10 < 0.02
