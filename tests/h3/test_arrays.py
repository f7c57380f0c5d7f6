"""Arrays: the same bits on every instruction set as one by one, buffers of all kinds, threads."""

import array
import re
import threading
import time
from pathlib import Path

import numpy as np
import pytest
from h3_cells import SLOW, random_cells

from h3video import h3
from h3video.h3 import api, errors, native

official = pytest.importorskip("h3.api.basic_int")
CSRC = Path(__file__).parents[2] / "csrc"


@pytest.fixture
def backend(library):
    with h3.use_backend("native"):
        yield api._use()


@pytest.fixture(params=[0, 1, 2], ids=["baseline", "avx2", "avx512"])
def level(request, backend):
    if backend.use_level(request.param) != request.param:
        backend.use_level(9)
        pytest.skip("not on this machine")
    yield request.param
    backend.use_level(9)


def mixed_cells(rng, n):
    """Cells of all resolutions, beside edges and pentagons, and some that are none."""
    cells = [c for res in range(16) for c in random_cells(res, 40, 7)]
    cells += [c ^ (1 << int(b)) for c, b in zip(cells[::9], rng.integers(0, 64, len(cells)))]
    return rng.choice(np.array(cells, np.uint64), n)


@pytest.mark.parametrize("res", range(16))
def test_points_to_cells_are_the_same_bits(level, res):
    rng = np.random.default_rng(res)
    lat, lng = rng.uniform(-95, 95, 1500), rng.uniform(-400, 400, 1500)
    lat[::97], lng[5::101] = np.nan, 1e12
    got = h3.latlngs_to_cells(lat, lng, res)
    for a, b, cell in zip(lat, lng, got):
        assert cell == (0 if np.isnan(a) else h3.latlng_to_cell(a, b, res))


def test_cells_to_everything_are_the_same_bits(level):
    rng = np.random.default_rng(level)
    cells = mixed_cells(rng, 4000)
    lat, lng = h3.cells_to_latlngs(cells)
    points, counts = h3.cells_to_boundaries(cells)
    valid, levels = h3.are_valid_cells(cells), h3.get_resolutions(cells)
    parents, middles = h3.cells_to_parents(cells, 3), h3.cells_to_center_children(cells, 9)
    areas = h3.cell_areas(cells)
    for i, cell in enumerate(cells.tolist()):
        assert valid[i] == h3.is_valid_cell(cell) == official.is_valid_cell(cell)
        if not valid[i]:
            assert counts[i] == -1 == levels[i] and parents[i] == 0 == middles[i]
            assert np.isnan([lat[i], lng[i], areas[i]]).all() and np.isnan(points[i]).all()
            continue
        res = h3.get_resolution(cell)
        assert levels[i] == res and areas[i] == h3.cell_area(cell)
        assert (lat[i], lng[i]) == h3.cell_to_latlng(cell)
        assert [tuple(p) for p in points[i, : counts[i]]] == h3.cell_to_boundary(cell)
        assert np.isnan(points[i, counts[i] :]).all()
        assert parents[i] == (h3.cell_to_parent(cell, 3) if res >= 3 else 0)
        assert middles[i] == (h3.cell_to_center_child(cell, 9) if res <= 9 else 0)


@pytest.mark.parametrize("k", [0, 1, 2, 3, 4, 9])
def test_disks_and_distances_are_the_same(level, k):
    rng = np.random.default_rng(k)
    cells = mixed_cells(rng, 300)
    found, offsets = h3.grid_disks(cells, k)
    for i, cell in enumerate(cells.tolist()):
        disk = found[offsets[i] : offsets[i + 1]].tolist()
        assert disk == (h3.grid_disk(cell, k) if h3.is_valid_cell(cell) else [])
        if disk:
            steps = h3.grid_distances(np.full(len(disk), cells[i]), disk)
            assert steps.tolist() == [h3.grid_distance(cell, d) for d in disk]
            assert steps.tolist() == [d for _, d in h3.grid_disk_distances(cell, k)]
    others = rng.permutation(cells)
    for a, b, steps in zip(cells.tolist(), others.tolist(), h3.grid_distances(cells, others)):
        try:
            assert steps == h3.grid_distance(a, b)
        except ValueError:
            assert steps == -1


@pytest.mark.parametrize("res", range(16))
def test_random_points_against_the_official_library(backend, res):
    """20,000 points per resolution; in slow mode 1,000,000."""
    rng = np.random.default_rng(res)
    n = 1_000_000 if SLOW else 20_000
    lat, lng = np.degrees(np.arcsin(rng.uniform(-1, 1, n))), rng.uniform(-180, 180, n)
    cells = h3.latlngs_to_cells(lat, lng, res)
    want = np.fromiter(map(official.latlng_to_cell, lat, lng, [res] * n), np.uint64, n)
    assert (cells == want).all()
    part = cells[:: 1 if SLOW else 10]
    centres = np.array([official.cell_to_latlng(h) for h in part.tolist()])
    got = np.stack(h3.cells_to_latlngs(part), 1)
    away = np.abs(got - centres)
    away[:, 1] = np.minimum(away[:, 1], 360 - away[:, 1]) * np.cos(np.radians(centres[:, 0]))
    # the official asin of the latitude loses up to 9 mm near the poles
    assert away.max() < 2e-7 and np.median(away) < 1e-12
    assert (h3.latlngs_to_cells(*got.T, res) == part).all()


# ---- buffers ----


def test_buffers_are_not_copied(index):
    lat, lng = array.array("d", [10.0, 20.0, 30.0]), array.array("d", [5.0, 6.0, 7.0])
    out = array.array("Q", [0, 0, 0])
    cells = index.latlngs_to_cells(lat, lng, 7, out=out)
    assert out.tolist() == [index.latlng_to_cell(a, b, 7) for a, b in zip(lat, lng)]
    cells[0] = 1
    assert out[0] == 1  # the same memory
    out[0] = index.latlng_to_cell(10.0, 5.0, 7)
    for kind in (out, memoryview(out), np.array(out), np.array(out).astype(np.int64), list(out)):
        a, b = index.cells_to_latlngs(kind)
        assert (a[0], b[0]) == index.cell_to_latlng(out[0])
        assert index.are_valid_cells(kind).tolist() == [True] * 3
    both = bytearray(48)
    index.cells_to_latlngs(out, out=np.frombuffer(both, np.float64))
    assert np.frombuffer(both).reshape(2, 3)[0].tolist() == index.cells_to_latlngs(out)[0].tolist()
    flags = bytearray(3)
    index.are_valid_cells(out, out=memoryview(flags))
    assert flags == b"\1\1\1"
    steps = array.array("q", [9, 9, 9])
    index.grid_distances(out, out, out=steps)
    assert steps.tolist() == [0, 0, 0]
    points, counts = np.empty((3, 10, 2)), np.empty(3, np.int32)
    got = index.cells_to_boundaries(out, out=(points, counts))
    assert np.shares_memory(got[0], points) and counts.tolist() == [6, 6, 6]


def test_columns_of_a_table_are_not_copied(backend, monkeypatch):
    table = np.random.default_rng(1).uniform(-80, 80, (50, 3))
    seen = []
    fill = backend.latlngs_to_cells
    monkeypatch.setattr(backend, "latlngs_to_cells", lambda *a: (seen.append(a[0]), fill(*a)))
    cells = h3.latlngs_to_cells(table[:, 0], table[:, 2], 8)
    assert np.shares_memory(seen[0], table)
    assert cells.tolist() == [h3.latlng_to_cell(a, b, 8) for a, _, b in table]
    back = np.empty((50, 2))
    h3.cells_to_latlngs(cells, out=(back[:, 0].copy(), back[:, 1].copy()))
    reverse = h3.latlngs_to_cells(table[::-1, 0], table[::-1, 2], 8)
    assert reverse.tolist() == cells[::-1].tolist()


def test_places_to_write_that_do_not_fit(index):
    steps = np.empty(6, np.uint64)[::2]
    for out in (np.empty(2, np.uint64), np.empty(3, np.int32), b"x" * 24, steps):
        with pytest.raises(ValueError, match="out"):
            index.latlngs_to_cells([1.0, 2.0, 3.0], [1.0, 2.0, 3.0], 5, out=out)
    with pytest.raises(errors.H3DomainError):
        index.latlngs_to_cells([1.0], [1.0, 2.0], 5)
    with pytest.raises(errors.H3DomainError):
        index.latlngs_to_cells([1.0], [1.0], 5, threads=-1)


def test_nothing_is_an_array_too(index):
    assert index.latlngs_to_cells([], [], 5).shape == (0,)
    assert [len(x) for x in index.cells_to_latlngs([])] == [0, 0]
    assert index.cells_to_boundaries([])[0].shape == (0, 10, 2)
    assert index.grid_distances([], []).shape == (0,)


# ---- threads ----


def test_threads_give_the_same(backend):
    rng = np.random.default_rng(2)
    lat, lng = rng.uniform(-90, 90, 40_000), rng.uniform(-180, 180, 40_000)
    cells = h3.latlngs_to_cells(lat, lng, 9)
    for threads in (0, 2, 3):
        assert (h3.latlngs_to_cells(lat, lng, 9, threads=threads) == cells).all()
        for one, many in (
            (h3.cells_to_latlngs(cells), h3.cells_to_latlngs(cells, threads=threads)),
            (h3.cells_to_boundaries(cells), h3.cells_to_boundaries(cells, threads=threads)),
        ):
            assert all(np.array_equal(a, b, equal_nan=True) for a, b in zip(one, many))


def test_two_threads_overlap(backend):
    """ctypes lets go of the interpreter: Python runs while a long call is under way."""
    rng = np.random.default_rng(2)
    lat, lng = rng.uniform(-90, 90, 3_000_000), rng.uniform(-180, 180, 3_000_000)
    span = {}

    def call():
        span["start"] = time.perf_counter()
        h3.latlngs_to_cells(lat, lng, 15)
        span["end"] = time.perf_counter()

    worker = threading.Thread(target=call)
    ticks = []
    worker.start()
    while worker.is_alive():
        ticks.append(time.perf_counter())
        time.sleep(0.0005)
    inside = [t for t in ticks if span["start"] < t < span["end"]]
    assert len(inside) >= 5  # the main thread had its turns in the middle of the call


# ---- the binding is complete ----


def test_every_function_of_the_index_is_reached(library):
    """Both headers in the bridge, it in the binding, that in the class and the package."""
    headers = (CSRC / "h3.h").read_text() + (CSRC / "h3_bulk.h").read_text()
    public = set(re.findall(r"H3_EXPORT\((\w+)\)\(", headers))
    bridge = (CSRC / "h3_bridge.c").read_text()
    reached = set(re.findall(r"H3_EXPORT\((\w+)\)", bridge))
    # The same in other units, or the parts of what the bridge calls.
    plain = {
        "degsToRads", "radsToDegs", "greatCircleDistanceKm", "greatCircleDistanceM", "cellAreaKm2",
        "cellAreaM2", "edgeLengthKm", "edgeLengthM", "getHexagonAreaAvgM2",
        "getHexagonEdgeLengthAvgM", "gridDisk", "gridDiskDistancesSafe", "gridDiskUnsafe",
        "gridDisksUnsafe", "pentagonCount", "res0CellCount", "getDirectedEdgeOrigin",
        "getDirectedEdgeDestination", "name",
    }  # fmt: skip
    assert public - reached <= plain
    assert len(public) > 80
    code = Path(native.__file__).read_text()
    body = code[code.index("class Native") :]
    assert set(native.SIGNATURES) - set(re.findall(r"bridge_\w+", body)) == {"bridge_abi_version"}
    official_names = {n for n in dir(official) if re.match(r"[a-z]+_", n)} - {
        n for n in dir(official) if re.search(r"shape|geo|polygon|polyfill", n)
    }
    assert {n for n in official_names if not hasattr(h3, n)} == {"deconstruct_cell"}
