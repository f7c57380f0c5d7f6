"""A short fixed run of the fuzz harness under sanitizers, and proof that it would notice."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from h3video.h3 import build

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "tools"))
try:
    import fuzz
finally:
    del sys.path[0]

FOLDER = build.SOURCES / "fuzz"


def entries(name):
    return re.findall(r"\bENTRY\((\w+)\)", (FOLDER / name).read_text().split("#define ENTRY")[1])


def test_every_function_of_the_headers_is_an_entry():
    index = "".join((build.SOURCES / name).read_text() for name in ("h3.h", "h3_bulk.h"))
    declared = set(re.findall(r"\bH3_EXPORT\((\w+)\)\(", index))
    found = entries("index.c")
    assert declared == set(found) and len(found) == len(declared)
    bridge = set(re.findall(r"\bbridge_(\w+)\(", (build.SOURCES / "h3_bridge.h").read_text()))
    found = entries("bridge.c")
    assert bridge == set(found) and len(found) == len(bridge)


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    """(engine, object files): compiled once."""
    work = tmp_path_factory.mktemp("fuzz")
    found = fuzz.engines(work, kinds=(False,))
    if not found:
        pytest.skip("no compiler here links the address and undefined-behaviour sanitizers")
    return found[0], fuzz.objects(found[0], work)


def test_nothing_is_found_in_a_short_run(built, tmp_path):
    engine, parts = built
    program = fuzz.link(engine, parts, tmp_path / "fuzz")
    code, count, said = fuzz.run(program, "-runs=30000", "-seed=1")
    assert (code, count) == (0, 30000), said[-3000:]


# One function each is replaced when linking: by one that writes an item too many, computes beyond
# its type, or breaks a promise.
PLANTED = {
    "getRes0Cells": ("""
        #include "h3.h"
        H3Error __real_h3v_getRes0Cells(H3Index *out);
        H3Error __wrap_h3v_getRes0Cells(H3Index *out) {
            out[122] = 1;
            return __real_h3v_getRes0Cells(out);
        }""", "heap-buffer-overflow"),
    "getNumCells": ("""
        #include "h3.h"
        H3Error __real_h3v_getNumCells(int res, int64_t *out);
        H3Error __wrap_h3v_getNumCells(int res, int64_t *out) {
            volatile int most = 2147483640;
            most = most + res;
            return __real_h3v_getNumCells(res, out);
        }""", "signed integer overflow"),
    "pentagonCount": ("int __wrap_h3v_pentagonCount(void) { return 13; }",
                      "PROMISE BROKEN in pentagonCount"),
}  # fmt: skip


@pytest.mark.skipif(sys.platform != "linux", reason="needs ld --wrap")
@pytest.mark.parametrize("name", PLANTED)
def test_a_planted_fault_is_found(built, tmp_path, name):
    engine, parts = built
    text, said_for_it = PLANTED[name]
    (tmp_path / "planted.c").write_text(text)
    planted = tmp_path / "planted.o"
    subprocess.run(
        [engine.compiler, *engine.flags, f"-I{build.SOURCES}", "-c", tmp_path / "planted.c",
         "-o", planted], check=True,
    )  # fmt: skip
    wrap = f"-Wl,--wrap=h3v_{name}"
    program = fuzz.link(engine, [*parts, planted], tmp_path / "fuzz", wrap)
    code, _, said = fuzz.run(program, "-runs=300000", "-seed=1")
    assert code != 0 and said_for_it in said
    assert re.search(r"run \d+, input [0-9a-f]+", said)
