"""Right where the official library is wrong or refuses, against computed truth: breadth-first
search over all cells, and 50 digits near face centres. Numbers are those of the public reports."""

import math
import random
from itertools import pairwise

import numpy as np
import pytest
from h3_cells import SLOW, adjacency, random_cells, steps_from

from h3video import h3
from h3video.h3 import errors

official = pytest.importorskip("h3.api.basic_int")


@pytest.fixture
def native(library):
    with h3.use_backend("native"):
        yield h3


# ---- distance: true for every pair of cells ----


@pytest.mark.parametrize("res", [0, 1, 2, 3])
def test_distance_of_every_pair(native, res):
    """All pairs of res 0 and 1 (of res 2 too in slow mode); else all targets of some cells."""
    cells, near = adjacency(res)
    step = {0: 1, 1: 1, 2: 1 if SLOW else 90, 3: 13 if SLOW else 3000}[res]
    for start in range(0, len(cells), step):
        want = steps_from(near, start)
        got = native.grid_distances(np.full(len(cells), cells[start]), cells)
        assert (got == want).all()


def test_pure_distances(library):
    for res in (0, 1, 2):
        cells, near = adjacency(res)
        rng = random.Random(res)
        start = rng.randrange(len(cells))
        want = steps_from(near, start)
        with h3.use_backend("pure"):
            for other in rng.sample(range(len(cells)), 60):
                assert h3.grid_distance(int(cells[start]), int(cells[other])) == want[other]


@pytest.mark.parametrize("res", range(16))
def test_distance_is_a_metric_on_fine_grids(native, res):
    """Where breadth-first search cannot go: symmetric, 1 apart for neighbours, triangles hold."""
    rng = random.Random(res)
    cells = random_cells(res, 60)
    for _ in range(40):
        a, b = rng.sample(cells, 2)
        d = native.grid_distance(a, b)
        assert d == native.grid_distance(b, a) > 0
        steps = [native.grid_distance(n, b) for n in native.grid_disk(a, 1)[1:]]
        assert min(steps) == d - 1 and max(steps) <= d + 1


def test_far_cells_have_a_distance(index):
    """uber/h3 issue 1150: E_FAILED there."""
    a, b = 0x832A96FFFFFFFFF, 0x8348DBFFFFFFFFF
    with pytest.raises(Exception):  # noqa: B017
        official.grid_distance(a, b)
    steps = index.grid_distance(a, b)
    path = index.grid_path_cells(a, b)
    assert len(path) == steps + 1
    check_path(index, path, a, b)


# ---- paths ----


def check_path(index, path, start, end):
    assert path[0] == start and path[-1] == end and len(set(path)) == len(path)
    assert len(path) == index.grid_distance(start, end) + 1
    for a, b in pairwise(path):
        assert official.are_neighbor_cells(a, b)


def test_a_path_across_a_pentagon(index):
    """uber/h3 issue 184: not contiguous once, E_FAILED now."""
    start, end = 0x85285AA7FFFFFFF, 0x851D9B1BFFFFFFF
    check_path(index, index.grid_path_cells(start, end), start, end)


@pytest.mark.parametrize("res", [0, 1, 2, 3, 4])
def test_paths_between_any_cells(index, res):
    rng = random.Random(res)
    cells = random_cells(res, 50)
    for _ in range(40 if index.backend() == "native" else 4):
        start, end = rng.sample(cells, 2)
        check_path(index, index.grid_path_cells(start, end), start, end)
    assert index.grid_path_cells(start, start) == [start]


@pytest.mark.parametrize("res", [2, 5, 8])
def test_paths_past_every_pentagon(index, res):
    rng = random.Random(res)
    for five in official.get_pentagons(res)[:: 1 if index.backend() == "native" else 5]:
        disk = official.grid_disk(five, 6)
        for _ in range(12 if index.backend() == "native" else 3):
            start, end = rng.sample(disk, 2)
            check_path(index, index.grid_path_cells(start, end), start, end)


def test_the_longest_paths(native):
    """From pentagon to opposite pentagon, over faces: found by the fuzzer as broken once."""
    start, end = 0x870800000FFFFFF, 0x87F000000FFFFFF
    check_path(native, native.grid_path_cells(start, end), start, end)


# ---- disks and rings ----


@pytest.mark.parametrize("res", [0, 1, 2, 3, 4])
def test_disks_and_rings_around_pentagons(native, res):
    if res == 4:
        starts = random.Random(4).sample(random_cells(4, 30), 25)
    cells, near = adjacency(min(res, 3))
    place = {int(c): i for i, c in enumerate(cells)}
    fives = [c for p in official.get_pentagons(min(res, 3)) for c in official.grid_disk(p, 3)]
    for cell in random.Random(res).sample(fives, 40) if res < 4 else []:
        steps = steps_from(near, place[cell])
        for k in (1, 3, 7, 12, 16):
            disk = native.grid_disk_distances(cell, k)
            assert sorted(h for h, _ in disk) == cells[steps <= k].tolist()
            assert all(steps[place[h]] == d for h, d in disk)
            assert sorted(native.grid_ring(cell, k)) == cells[steps == k].tolist()
    for cell in starts if res == 4 else []:
        disk = native.grid_disk_distances(cell, 20)
        assert {h for h, _ in disk} == set(official.grid_disk(cell, 20))
        assert all(native.grid_distance(cell, h) == d for h, d in disk)


@pytest.mark.parametrize("res", [5, 6, 9, 14, 15])
def test_disks_near_pentagons_on_fine_grids(native, res):
    rng = random.Random(res)
    for five in official.get_pentagons(res):
        cell = rng.choice(official.grid_disk(five, 12))
        disk = native.grid_disk_distances(cell, 14)
        assert {h for h, _ in disk} == set(official.grid_disk(cell, 14))
        assert len(disk) == len({h for h, _ in disk})
        assert all(native.grid_distance(cell, h) == d for h, d in disk)
        assert [d for _, d in disk] == sorted(d for _, d in disk)
        found, offsets = native.grid_disks([cell, five], 14)
        assert found[: offsets[1]].tolist() == [h for h, _ in disk]


def test_rings_beyond_five_faces(native):
    """Found by the fuzzer: breadth-first search took 10 s for this ring."""
    import time

    start = time.process_time()
    ring = native.grid_ring(0x86EA0010FFFFFFF, 1767)
    assert time.process_time() - start < 2.0
    assert len(ring) == len(set(ring)) == 6860
    assert (native.grid_distances(np.full(len(ring), 0x86EA0010FFFFFFF), ring) == 1767).all()
    whole = [native.grid_disk_distances(c, 10**6) for c in native.get_pentagons(2)[:3]]
    for disk in whole:
        assert len(disk) == len({h for h, _ in disk}) == native.get_num_cells(2)
        assert [d for _, d in disk] == sorted(d for _, d in disk)


def test_a_disk_holds_no_gaps(index):
    """H3.jl issue 11: 15 zeros among 721 cells of the official library."""
    disk = index.grid_disk(0x85300537FFFFFFF, 15 if index.backend() == "native" else 6)
    assert 0 not in disk and len(set(disk)) == len(disk)


def test_a_ring_of_less_than_nothing(index):
    """uber/h3 pull request 1235: the official library crashes."""
    for call in (index.grid_ring, index.grid_ring_unsafe, index.grid_disk_unsafe):
        with pytest.raises(errors.H3DomainError):
            call(0x89283082A67FFFF, -1)


def test_disks_near_pentagons_cost_no_more_than_their_cells(native):
    """The official library's time grows as k^3; ours as k^2: cells per second stay about equal."""
    import time

    five = official.get_pentagons(10)[0]
    rates = []
    for k in (40, 160):
        best = math.inf
        for _ in range(5):
            start = time.process_time()
            found = len(native.grid_disks([five], k)[0])
            best = min(best, time.process_time() - start)
        rates.append(found / best)
    assert rates[1] > rates[0] / 3


# ---- points ----


@pytest.mark.parametrize("res", range(16))
def test_round_trips_where_numbers_are_delicate(index, res):
    """Poles, antimeridian, face centres and edges, pentagons: the centre's cell is the cell."""
    few = index.backend() == "pure"
    points = [(90, 0), (-90, 50), (89.999999999, 7), (0, 180), (-45, -180), (12, 179.9999999999)]
    for face in range(20):
        points += [index.plane_to_latlng(face, u, v) for u, v in ((0, 0), (0.38196601125, 0))]
    for lat, lng in points:
        cell = index.latlng_to_cell(lat, lng, res)
        for near in index.grid_disk(cell, 1 if few else 3):
            assert index.latlng_to_cell(*index.cell_to_latlng(near), res) == near


def test_latitude_near_the_poles(index):
    """The official asin(z) is 9 mm off; the truth from 50 digits."""
    mpmath = pytest.importorskip("mpmath")
    from h3video.h3 import pure

    mpmath.mp.dps = 50
    for pole in (90.0, -90.0):
        for cell in index.grid_disk(index.latlng_to_cell(pole, 0.0, 15), 3):
            face, a, b = pure._decode(cell)
            a, b = pure._down(16, a, b)
            x, y = pure._plane(pure._tables().scale[16], a, b)
            p = [mpmath.mpf(v) for v in pure._tables().plane_vec(face, x, y)]
            lat = mpmath.atan2(p[2], mpmath.sqrt(p[0] ** 2 + p[1] ** 2))
            assert abs(math.radians(index.cell_to_latlng(cell)[0]) - lat) < 4e-16


@pytest.mark.parametrize(
    "lat, lng", [(1e46, 0.0), (0.0, 1e300), (1e8, -1e9), (12345678.9, 0.1), (400.0, 725.0)]
)
def test_huge_angles_wrap(index, lat, lng):
    radians = math.radians(lat), math.radians(lng)
    place = math.asin(math.sin(radians[0])), math.sin(radians[1]), math.cos(radians[1])
    if math.cos(radians[0]) < 0:
        place = place[0], -place[1], -place[2]
    want = index.latlng_to_cell(math.degrees(place[0]), math.degrees(math.atan2(*place[1:])), 7)
    assert index.latlng_to_cell(lat, lng, 7) == want
    assert index.latlngs_to_cells([lat, math.nan, 1.0], [lng, 0.0, 1.0], 7).tolist() == [
        want, 0, index.latlng_to_cell(1.0, 1.0, 7),
    ]  # fmt: skip


def test_ids_rounded_by_json_are_refused(index):
    """uber/h3 issue 977."""
    assert not index.is_valid_cell(600090378170794000)


@pytest.mark.parametrize("text", ["8928308280fffffZZ", "f" * 18, "8928308280fffff "])
def test_text_with_more_behind_it(index, text):
    """h3-js issue 79, MobilityDB 1830: the official parser takes both."""
    with pytest.raises(errors.H3FailedError):
        index.str_to_int(text)


def test_outlines_with_more_corners(index):
    """uber/h3 issues 45, 29 and others: bends are no duplicates."""
    for cell, corners in ((0x894CC536537FFFF, 7), (0x83A350FFFFFFFFF, 8), (646055440295133184, 10)):
        points = index.cell_to_boundary(cell)
        assert len(points) == corners == len({(round(a, 9), round(b, 9)) for a, b in points})


def test_a_far_origin_and_a_huge_k(index):
    """ClickHouse issue 19219: a kRing of junk with k = 1000 overran its buffer."""
    with pytest.raises(errors.H3CellInvalidError):
        index.grid_disk(0x7FFFFFFFFFFFFFFF, 1000)
