"""What the contract promises beyond the official library: refusals, bounds, errors, loading."""

import ctypes
import math
import re
import shutil
import subprocess
from decimal import Decimal, getcontext

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from h3video import h3
from h3video.h3 import api, build, errors, kernel, native, pure, pure_arrays

CELL = 0x89283082A67FFFF
PENTAGON = 0x8009FFFFFFFFFFF

INVALID = {
    "zero": 0,
    "edge mode": CELL & ~(15 << 59) | (2 << 59),
    "reserved bits": CELL | (1 << 56),
    "high bit": CELL | (1 << 63),
    "7 inside the digits": CELL | (7 << (3 * 10)),
    "digit after the resolution": CELL & ~7,
    "base cell 122": CELL & ~(127 << 45) | (122 << 45),
    "deleted child of a pentagon": 0x8109BFFFFFFFFFF & ~(7 << 42) | (1 << 42),
    "beyond 64 bits": 1 << 64,
    "negative": -1,
}


@pytest.mark.parametrize("what", INVALID)
def test_invalid_cells_are_refused_everywhere(index, what):
    bad = INVALID[what]
    assert not index.is_valid_cell(bad)
    calls = [
        lambda: index.cell_to_latlng(bad), lambda: index.cell_to_boundary(bad),
        lambda: index.grid_disk(bad, 1), lambda: index.grid_disk_distances(bad, 1),
        lambda: index.grid_ring(bad, 1), lambda: index.grid_distance(bad, CELL),
        lambda: index.grid_distance(CELL, bad), lambda: index.are_neighbor_cells(CELL, bad),
        lambda: index.cell_to_parent(bad, 0), lambda: index.cell_to_children_size(bad, 15),
        lambda: index.cell_to_children(bad, 15), lambda: index.cell_to_center_child(bad, 15),
        lambda: index.is_pentagon(bad), lambda: index.get_resolution(bad),
        lambda: index.get_base_cell_number(bad),
    ]  # fmt: skip
    for call in calls:
        with pytest.raises(errors.H3CellInvalidError):
            call()


@pytest.mark.parametrize("res", [-1, 16, 2**40])
def test_resolutions_out_of_range(index, res):
    for call in (
        lambda: index.latlng_to_cell(0.0, 0.0, res), lambda: index.cell_to_parent(CELL, res),
        lambda: index.cell_to_children(CELL, res), lambda: index.get_pentagons(res),
        lambda: index.latlngs_to_cells([0.0], [0.0], res),
    ):  # fmt: skip
        with pytest.raises(errors.H3ResDomainError):
            call()


def test_other_refusals(index):
    for bad in (math.nan, math.inf, -math.inf):
        for point in ((bad, 0.0), (0.0, bad)):
            with pytest.raises(errors.H3LatLngDomainError):
                index.latlng_to_cell(*point, 5)
    for k in (-1, -(2**40)):
        for call in (index.grid_disk, index.grid_ring, index.grid_disk_distances):
            with pytest.raises(errors.H3DomainError):
                call(CELL, k)
    with pytest.raises(errors.H3ResMismatchError):
        index.grid_distance(CELL, PENTAGON)
    with pytest.raises(errors.H3ResMismatchError):
        index.cell_to_parent(PENTAGON, 1)
    with pytest.raises(errors.H3FailedError):  # base cells that are not side by side
        index.cell_to_local_ij(index.latlng_to_cell(80, 0, 3), index.latlng_to_cell(-80, 0, 3))
    with pytest.raises(errors.H3DomainError):
        index.plane_to_latlng(20, 0.0, 0.0)


@pytest.mark.parametrize(
    "text",
    ["", "xyz", "8928308280fffffZZ", "0x89283082a67ffff", "f" * 17, " 89283082a67ffff", "89\n",
     "\0", "8928é", "-1"],
)  # fmt: skip
def test_text_that_is_no_index(index, text):
    with pytest.raises(errors.H3FailedError):
        index.str_to_int(text)


@given(st.integers(0, 2**64 - 1))
def test_text_round_trip(h):
    for name in ("native", "pure"):
        with h3.use_backend(name):
            assert h3.str_to_int(h3.int_to_str(h)) == h
            assert h3.str_to_int(h3.int_to_str(h).upper()) == h


def test_every_code_has_its_class():
    assert sorted(errors.CODES) == list(range(1, 20))
    for code, cls in errors.CODES.items():
        e = errors.error(code, "cell 0x1")
        assert type(e) is cls and e.code == code and "cell 0x1" in str(e)
        assert isinstance(e, MemoryError if code == 13 else ValueError)


def test_both_backends_provide_the_contract(library):
    both = (pure_arrays, native.Native(kernel.load(library)))
    for name in api.CONTRACT:
        assert all(callable(getattr(b, name, None)) for b in both), name
        assert callable(getattr(h3, name)), name


# ---- truth near face centres, where double precision loses digits if used carelessly ----


def exact_cell(face, u, v, res):
    """The lattice point nearest to a plane point, in 50 digits."""
    getcontext().prec = 50
    three, seven, five = Decimal(3).sqrt(), Decimal(7).sqrt(), Decimal(5).sqrt()
    scale = (3 - five) / 2 / seven**res
    x, y = Decimal(u), Decimal(v)
    if res % 2:
        sin, cos = (Decimal(3) / 28).sqrt(), (Decimal(25) / 28).sqrt()
        x, y = x * cos + y * sin, y * cos - x * sin
    r = y / scale * 2 / three
    q = x / scale - r / 2
    best = min(
        (((q - i) + (r - j) / 2) ** 2 + ((r - j) * three / 2) ** 2, i, j)
        for i in range(int(q) - 2, int(q) + 3)
        for j in range(int(r) - 2, int(r) + 3)
    )
    return pure._encode((face, best[1] + best[2], best[2]), res)


@pytest.mark.parametrize("res", [12, 13, 14, 15])
def test_right_near_face_centres(index, res):
    rng = np.random.default_rng(res)
    wrong = 0
    for face in range(20):
        for _ in range(12):
            u, v = rng.uniform(-1.5e-5, 1.5e-5, 2)  # within 100 m
            lat, lng = index.plane_to_latlng(face, u, v)
            got = index.latlng_to_cell(lat, lng, res)
            want = exact_cell(face, u, v, res)
            # the point passes through two roundings to 1e-16 radians; a cell is 1e-7 wide
            wrong += got != want
    assert wrong == 0


# ---- native and pure give the same ----


@given(
    st.integers(1, 24), st.integers(1, 24), st.integers(0, 15), st.floats(0.001, 0.33),
    st.floats(-3.2, 3.2), st.integers(0, 19), st.floats(-0.2, 0.2),
)  # fmt: skip
@settings(max_examples=40)
def test_frame_rasters_agree(width, height, res, span, rotation, face, u0):
    rasters = []
    for name in ("native", "pure"):
        with h3.use_backend(name):
            rasters.append(h3.frame_cells(face, u0, 0.01, width, height, span, rotation, res))
    different = rasters[0] != rasters[1]
    assert different.sum() <= 1  # a pixel on an edge may fall either way in the last bit


def test_frame_raster_of_a_span_wider_than_a_face(index):
    official = pytest.importorskip("h3.api.basic_int")
    cells = index.frame_cells(3, 0.0, 0.0, 12, 8, 2.5, 0.3, 4).reshape(8, 12)
    for y in range(8):
        for x in range(12):
            du, dv = (x + 0.5 - 6) * 2.5 / 12, -(y + 0.5 - 4) * 2.5 / 12
            c, s = math.cos(0.3), math.sin(0.3)
            lat, lng = index.plane_to_latlng(3, du * c - dv * s, du * s + dv * c)
            assert cells[y, x] == official.latlng_to_cell(lat, lng, 4)


@given(
    st.integers(1, 14), st.integers(1, 14), st.floats(0.5, 8.0), st.floats(4.0, 40.0),
    st.floats(-4, 4), st.floats(0, 1), st.integers(1, 12), st.floats(0, 30),
)  # fmt: skip
@settings(max_examples=60)
def test_weight_rasters_agree_with_the_definition(
    columns, rows, step, inradius, theta, fade, count, shift
):
    from h3video.grid.lattice import Lattice

    lattice = Lattice(shift, shift / 2, 2 * inradius, theta)
    places = sorted((q, r) for q in range(-2, 3) for r in range(-2, 3))[:: 25 // count or 1]
    cx, cy = zip(*(lattice.centre(q, r) for q, r in places))
    results = []
    for name in ("native", "pure"):
        with h3.use_backend(name):
            results.append(
                h3.hex_weights(columns, rows, 0.0, 0.0, step, cx, cy, inradius, theta,
                               fade * 2 * inradius)
            )  # fmt: skip
    (index_a, weight_a), (index_b, weight_b) = results
    assert np.abs(weight_a.sum(1) - 1).max() < 1e-6
    for p in range(columns * rows):
        a = {i: w for i, w in zip(index_a[p], weight_a[p]) if w > 1e-6}
        b = {i: w for i, w in zip(index_b[p], weight_b[p]) if w > 1e-6}
        if fade > 0:
            assert a.keys() == b.keys()
            assert all(abs(a[i] - b[i]) < 1e-5 for i in a)


@pytest.mark.parametrize(
    "change",
    [dict(columns=0), dict(rows=-3), dict(columns=2**30), dict(step=math.nan), dict(cx=[], cy=[]),
     dict(inradius=0.0), dict(inradius=-2.0), dict(overlap=-1.0), dict(overlap=21.0),
     dict(cx=[math.inf]), dict(theta=math.nan)],
)  # fmt: skip
def test_bad_weight_rasters_are_refused(index, change):
    good = dict(columns=4, rows=4, x0=0.0, y0=0.0, step=1.0, cx=[1.0], cy=[1.0], inradius=10.0,
                theta=0.0, overlap=4.0)  # fmt: skip
    index.hex_weights(**good)
    with pytest.raises(errors.H3DomainError):
        index.hex_weights(**(good | change))


@pytest.mark.parametrize(
    "change", [dict(width=0), dict(height=2**25), dict(span=0.0), dict(span=math.nan),
               dict(face=20), dict(rotation=math.inf)],
)  # fmt: skip
def test_bad_frames_are_refused(index, change):
    good = dict(face=0, u0=0.0, v0=0.0, width=4, height=4, span=0.1, rotation=0.0, res=4)
    with pytest.raises(errors.H3DomainError):
        index.frame_cells(**(good | change))


# ---- arrays ----


def test_bulk_forms_mark_what_failed(index):
    cells = index.latlngs_to_cells([10.0, math.nan, 20.0], [5.0, 5.0, math.inf], 7)
    assert cells[0] == index.latlng_to_cell(10.0, 5.0, 7)
    assert (cells[1:] == 0).all()
    lat, lng = index.cells_to_latlngs(np.array([cells[0], 0], np.uint64))
    assert np.isfinite(lat[0]) and np.isnan(lat[1]) and np.isnan(lng[1])
    points, counts = index.cells_to_boundaries([int(cells[0]), 5])
    assert counts.tolist() == [6, -1] and np.isnan(points[1]).all()
    assert np.isnan(points[0, 6:]).all()
    assert index.cells_to_parents([int(cells[0]), 5], 3).tolist() == [
        index.cell_to_parent(int(cells[0]), 3), 0,
    ]  # fmt: skip
    assert index.are_valid_cells([int(cells[0]), 5]).tolist() == [True, False]
    near = index.grid_disk(int(cells[0]), 1)
    assert index.grid_distances([int(cells[0])] * 2, [near[1], 5]).tolist() == [1, -1]


def test_bulk_equals_single(index):
    rng = np.random.default_rng(0)
    lat, lng = rng.uniform(-90, 90, 50), rng.uniform(-180, 180, 50)
    cells = index.latlngs_to_cells(lat, lng, 6)
    assert [index.latlng_to_cell(a, b, 6) for a, b in zip(lat, lng)] == cells.tolist()


# ---- bounds of the C functions ----


@pytest.mark.parametrize("room", [0, 1, 6, 18, 19, 20])
def test_outputs_are_never_overrun(library, room):
    lib = kernel.load(library)
    canary = 0xDEADBEEFDEADBEEF
    cases = [
        (lambda out, n: lib.bridge_grid_disk(CELL, 2, out, n), 19),
        (lambda out, n: lib.bridge_grid_ring(CELL, 3, out, n), 18),
        (lambda out, n: lib.bridge_cell_to_children(CELL, 10, out, n), 7),
        (lambda out, n: lib.bridge_get_pentagons(3, out, n), 12),
        (lambda out, n: lib.bridge_get_res0_cells(out, n), 122),
        (lambda out, n: lib.bridge_frame_cells(0, 0, 0, 5, 4, 0.1, 0.0, 4, out, n), 20),
    ]
    for call, needed in cases:
        out = (ctypes.c_uint64 * 200)(*[canary] * 200)
        assert call(out, room) == needed
        written = [v for v in out if v != canary]
        assert len(written) == (needed if room >= needed else 0)
    points = (ctypes.c_double * 40)(*[1e300] * 40)
    assert lib.bridge_cell_to_boundary(CELL, points, room) == 12
    assert sum(v != 1e300 for v in points) == (12 if room >= 12 else 0)


def test_a_pentagons_disk_is_dense(index):
    for k in (1, 2, 5):
        disk = index.grid_disk(PENTAGON, k) if k == 1 else index.grid_disk(
            index.cell_to_center_child(PENTAGON, 4), k
        )
        assert 0 not in disk
        if k > 1:
            assert len(disk) == 1 + 5 * k * (k + 1) // 2


# ---- the binding ----


def test_the_binding_covers_the_header():
    header = (build.SOURCES / "h3_bridge.h").read_text()
    declared = set(re.findall(r"\b(bridge_\w+)\(", header))
    assert declared == set(native.SIGNATURES)


# ---- the C sources ----

STRICT = [
    "-O2", "-std=c11", "-Wall", "-Wextra", "-Wpedantic", "-Wshadow", "-Wconversion", "-Werror",
    "-ffp-contract=off",
]  # fmt: skip
needs_gcc = pytest.mark.skipif(not shutil.which("gcc"), reason="needs gcc")


@needs_gcc
def test_compiles_without_a_warning(tmp_path):
    files = [build.SOURCES / name for name in build.C_FILES]
    out = tmp_path / "x.so"
    subprocess.run(["gcc", *STRICT, "-fPIC", "-shared", *files, "-o", out, "-lm"], check=True)


def test_the_index_is_one_readable_file():
    """h3.c: 2,000 lines at most, none too long, no part of it anywhere else, one line a step."""
    text = (build.SOURCES / "h3.c").read_text()
    lines = text.splitlines()
    assert len(lines) <= 2000 and max(map(len, lines)) <= 100
    assert re.findall(r'#include "(.*)"', text) == ["h3.h"]
    assert len(re.findall(r"^/\* ---- .* -+ \*/$", text, re.M)) >= 12  # a heading each topic
    several = [line for line in lines if re.search(r";\s*\w.*;\s*$", line) and "for (" not in line]
    assert all(line.count("{") for line in several)  # bodies of a single line
    assert len(re.findall(r"^ ?/?\*|/\*.*\*/$", text, re.M)) > len(lines) / 10


ALONE = """
#include <stdio.h>

#include "h3.h"

int main(void) {
    LatLng g = {0.6518, -2.1198};
    H3Index cell, disk[7];
    if (H3_EXPORT(latLngToCell)(&g, 9, &cell) || H3_EXPORT(gridDisk)(cell, 1, disk)) return 1;
    for (int i = 0; i < 7; i++) printf("%llx\\n", (unsigned long long)disk[i]);
    return 0;
}
"""


@needs_gcc
def test_the_index_compiles_and_runs_alone(tmp_path):
    """All that h3.h declares, with nothing but h3.c."""
    for name in ("h3.c", "h3.h"):
        shutil.copy(build.SOURCES / name, tmp_path)
    (tmp_path / "alone.c").write_text(ALONE)
    command = ["gcc", *STRICT, "h3.c", "alone.c", "-o", "alone", "-lm"]
    subprocess.run(command, cwd=tmp_path, check=True)
    done = subprocess.run([tmp_path / "alone"], capture_output=True, text=True, check=True)
    cell = h3.latlng_to_cell(math.degrees(0.6518), math.degrees(-2.1198), 9)
    assert [int(x, 16) for x in done.stdout.split()] == list(h3.grid_disk(cell, 1))
    subprocess.run(["gcc", "-c", "h3.c", "-o", "h3.o"], cwd=tmp_path, check=True)
    names = subprocess.run(["nm", "h3.o"], cwd=tmp_path, capture_output=True, text=True).stdout
    declared = set(re.findall(r"H3_EXPORT\((\w+)\)\(", (tmp_path / "h3.h").read_text()))
    assert declared == set(re.findall(r" T _?h3v_(\w+)$", names, re.M))
