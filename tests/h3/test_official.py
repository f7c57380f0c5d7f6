"""Both backends against the official library."""

import math
import random

import numpy as np
import pytest

official = pytest.importorskip("h3.api.basic_int")

RES = range(16)


def random_points(n, seed):
    rng = np.random.default_rng(seed)
    return np.degrees(np.arcsin(rng.uniform(-1, 1, n))), rng.uniform(-180, 180, n)


def close(a, b, tolerance=1e-9):
    """Two points in degrees; longitudes modulo 360, and free at the poles."""
    turn = abs((a[1] - b[1] + 180) % 360 - 180) * max(math.cos(math.radians(b[0])), 1e-12)
    return abs(a[0] - b[0]) < tolerance and turn < tolerance


def some_cells(res, n, seed=0):
    lat, lng = random_points(n, seed + res)
    cells = [official.latlng_to_cell(a, b, res) for a, b in zip(lat, lng)]
    near = [c for p in official.get_pentagons(res) for c in official.grid_disk(p, 1)]
    return [*dict.fromkeys(cells + near)]


@pytest.mark.parametrize("res", RES)
def test_a_hundred_thousand_points(library, res):
    from h3video import h3

    lat, lng = random_points(100_000, 1000 + res)
    with h3.use_backend("native"):
        got = h3.latlngs_to_cells(lat, lng, res)
    want = np.fromiter(
        (official.latlng_to_cell(a, b, res) for a, b in zip(lat, lng)), np.uint64, len(lat)
    )
    # Within metres of the 20 face centres the official library is wrong at res 12 and up; a
    # random point is that close once in 10^10.
    assert (got == want).all()


@pytest.mark.parametrize("res", RES)
def test_points(index, res):
    lat, lng = random_points(400, res)
    for a, b in zip(lat, lng):
        assert index.latlng_to_cell(a, b, res) == official.latlng_to_cell(a, b, res)


LANDMARKS = {
    "San Francisco, Ferry Building": (37.7955, -122.3937, "89283082a67ffff"),
    "Paris, Tour Eiffel": (48.8584, 2.2945, None),
    "Sydney, Opera House": (-33.8568, 151.2153, None),
    "Rio, Cristo Redentor": (-22.9519, -43.2105, None),
    "Tokyo, Tower": (35.6586, 139.7454, None),
    "Null Island": (0.0, 0.0, None),
}


@pytest.mark.parametrize("name", LANDMARKS)
def test_landmarks_latitude_first(index, name):
    lat, lng, known = LANDMARKS[name]
    cell = index.latlng_to_cell(lat, lng, 9)
    assert cell == official.latlng_to_cell(lat, lng, 9)
    if known:
        assert index.int_to_str(cell) == known
    if lat != lng:
        assert index.latlng_to_cell(lng, lat, 9) != cell  # swapped arguments show
    assert close(index.cell_to_latlng(cell), official.cell_to_latlng(cell))


@pytest.mark.parametrize("res", RES)
def test_poles_and_antimeridian(index, res):
    for pole in (90.0, -90.0):
        assert len({index.latlng_to_cell(pole, lng, res) for lng in range(-180, 181, 15)}) == 1
        assert index.latlng_to_cell(pole, 0.0, res) == official.latlng_to_cell(pole, 0.0, res)
    for lat in (-67.0, -12.3, 0.0, 45.6, 81.0):
        west, east = index.latlng_to_cell(lat, -180.0, res), index.latlng_to_cell(lat, 180.0, res)
        assert west == east == official.latlng_to_cell(lat, 180.0, res)
    # longitudes out of range wrap
    assert index.latlng_to_cell(10.0, 242.5, res) == index.latlng_to_cell(10.0, -117.5, res)


@pytest.mark.parametrize("res", RES)
def test_pentagons(index, res):
    assert index.get_pentagons(res) == sorted(official.get_pentagons(res))
    for cell in index.get_pentagons(res):
        assert index.is_pentagon(cell)
        assert len(index.grid_disk(cell, 1)) == 6
        assert close(index.cell_to_latlng(cell), official.cell_to_latlng(cell))
        assert index.latlng_to_cell(*index.cell_to_latlng(cell), res) == cell


def same_outline(got, want):
    """Equal corners in equal order, from the same first corner."""
    return len(got) == len(want) and all(map(close, got, want))


@pytest.mark.parametrize("res", RES)
def test_centres_and_outlines(index, res):
    cells = some_cells(res, 150)
    if res <= 1:
        cells = [c for b in official.get_res0_cells() for c in official.cell_to_children(b, res)]
    for cell in cells:
        assert close(index.cell_to_latlng(cell), official.cell_to_latlng(cell))
        assert same_outline(index.cell_to_boundary(cell), official.cell_to_boundary(cell))
        assert index.latlng_to_cell(*index.cell_to_latlng(cell), res) == cell


@pytest.mark.parametrize("res", [2, 3])
def test_every_cell_of_a_resolution(library, res):
    from h3video import h3

    cells = [c for b in official.get_res0_cells() for c in official.cell_to_children(b, res)]
    with h3.use_backend("native"):
        points, counts = h3.cells_to_boundaries(cells)
        lat, lng = h3.cells_to_latlngs(cells)
        assert h3.are_valid_cells(cells).all()
    for i in range(0, len(cells), 1 if res == 2 else 5):
        assert close((lat[i], lng[i]), official.cell_to_latlng(cells[i]))
        outline = [tuple(p) for p in points[i, : counts[i]]]
        assert same_outline(outline, official.cell_to_boundary(cells[i]))


@pytest.mark.parametrize("res", RES)
def test_disks_and_rings(index, res):
    random.seed(res)
    cells = some_cells(res, 30)
    for cell in random.sample(cells, 25):
        k = random.randint(0, 4)
        disk = index.grid_disk_distances(cell, k)
        assert {h for h, _ in disk} == set(official.grid_disk(cell, k))
        assert len(disk) == len({h for h, _ in disk})
        assert [d for _, d in disk] == sorted(d for _, d in disk)
        assert index.grid_disk(cell, k) == [h for h, _ in disk]
        assert sorted(index.grid_ring(cell, k)) == sorted(h for h, d in disk if d == k)


@pytest.mark.parametrize("res", [1, 2, 3, 5])
def test_distance_is_that_of_a_breadth_first_search(index, res):
    random.seed(res)
    for cell in random.sample(some_cells(res, 60), 8):
        disk = index.grid_disk_distances(cell, 9)
        for other, steps in random.sample(disk, min(len(disk), 25)):
            assert index.grid_distance(cell, other) == steps
            assert index.grid_distance(other, cell) == steps
            assert index.are_neighbor_cells(cell, other) == (steps == 1)


@pytest.mark.parametrize("res", RES)
def test_hierarchy(index, res):
    random.seed(res)
    for cell in random.sample(some_cells(res, 30), 20):
        for up in range(res + 1):
            assert index.cell_to_parent(cell, up) == official.cell_to_parent(cell, up)
        for down in range(res, min(res + 3, 16)):
            children = index.cell_to_children(cell, down)
            assert children == sorted(official.cell_to_children(cell, down))
            assert len(children) == index.cell_to_children_size(cell, down)
            assert index.cell_to_center_child(cell, down) == official.cell_to_center_child(
                cell, down
            )
        assert index.get_resolution(cell) == res
        assert index.get_base_cell_number(cell) == official.get_base_cell_number(cell)
        assert index.is_pentagon(cell) == official.is_pentagon(cell)


def test_children_size_of_whole_base_cells(index):
    for cell in index.get_res0_cells():
        assert index.cell_to_children_size(cell, 15) == official.cell_to_children_size(cell, 15)
    assert index.get_res0_cells() == sorted(official.get_res0_cells())


def test_validity_bit_by_bit(index):
    random.seed(1)
    for res in RES:
        for cell in random.sample(some_cells(res, 20), 12):
            assert index.is_valid_cell(cell)
            for bit in range(64):
                flipped = cell ^ (1 << bit)
                assert index.is_valid_cell(flipped) == official.is_valid_cell(flipped)
    rng = np.random.default_rng(3)
    for h in rng.integers(0, 2**63, 3000).tolist():
        assert index.is_valid_cell(h) == official.is_valid_cell(h)
