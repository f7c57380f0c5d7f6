"""Every function but indexing against the official library: all cells of coarse resolutions."""

import math
import random

import pytest
from h3_cells import SLOW, every_cell, random_cells

from h3video.h3 import errors

official = pytest.importorskip("h3.api.basic_int")


def sample(index, res, native=300, pure=25):
    """Cells to look at: all (native, coarse, or slow mode), else some."""
    few = pure if index.backend() == "pure" else native
    if res <= 3 and index.backend() == "native" and (SLOW or res <= 1):
        return every_cell(res)
    cells = every_cell(res) if res <= 2 else random_cells(res, 4 * few)
    pentagons = [*official.get_pentagons(res)][:: 1 if index.backend() == "native" else 4]
    return [*random.Random(res).sample(cells, min(few, len(cells))), *pentagons]


def close(a, b, tolerance=1e-9):
    turn = abs((a[1] - b[1] + 180) % 360 - 180) * max(math.cos(math.radians(b[0])), 1e-12)
    return abs(a[0] - b[0]) < tolerance and turn < tolerance


COARSE_AND_FINE = (0, 1, 2, 3, 6, 9, 14, 15)


@pytest.mark.parametrize("res", COARSE_AND_FINE)
def test_directed_edges(index, res):
    for cell in sample(index, res):
        edges = index.origin_to_directed_edges(cell)
        assert edges == sorted(official.origin_to_directed_edges(cell))
        for edge in edges:
            ends = index.directed_edge_to_cells(edge)
            assert ends == tuple(official.directed_edge_to_cells(edge))
            assert index.get_directed_edge_origin(edge) == cell == ends[0]
            assert index.get_directed_edge_destination(edge) == ends[1]
            assert index.cells_to_directed_edge(*ends) == edge
            assert index.is_valid_directed_edge(edge) and index.is_valid_index(edge)
            back = index.reverse_directed_edge(edge)
            assert back == official.cells_to_directed_edge(*ends[::-1])
            line = index.directed_edge_to_boundary(edge)
            want = official.directed_edge_to_boundary(edge)
            assert len(line) == len(want) and all(map(close, line, want))
            assert all(map(close, index.directed_edge_to_boundary(back), line[::-1]))
            length = official.edge_length(edge, "m")
            assert index.edge_length(edge, "m") == pytest.approx(length, rel=1e-7, abs=1e-6)


@pytest.mark.parametrize("res", COARSE_AND_FINE)
def test_vertexes(index, res):
    for cell in sample(index, res):
        vertexes = index.cell_to_vertexes(cell)
        assert vertexes == official.cell_to_vertexes(cell)
        for i, vertex in enumerate(vertexes):
            assert index.cell_to_vertex(cell, i) == vertex
            assert index.is_valid_vertex(vertex) and index.is_valid_index(vertex)
            assert close(index.vertex_to_latlng(vertex), official.vertex_to_latlng(vertex))
        with pytest.raises(errors.H3DomainError):
            index.cell_to_vertex(cell, len(vertexes))


@pytest.mark.parametrize("res", COARSE_AND_FINE)
def test_validity_of_edges_and_vertexes_bit_by_bit(index, res):
    rng = random.Random(res)
    for cell in sample(index, res, 30, 5)[:40]:
        kinds = official.origin_to_directed_edges(cell), official.cell_to_vertexes(cell)
        for h in map(rng.choice, kinds):
            for bit in rng.sample(range(64), 24 if index.backend() == "native" else 6):
                other = h ^ (1 << bit)
                assert index.is_valid_directed_edge(other) == official.is_valid_directed_edge(other)
                assert index.is_valid_vertex(other) == official.is_valid_vertex(other)
                assert index.is_valid_index(other) == official.is_valid_index(other)


@pytest.mark.parametrize("res", COARSE_AND_FINE)
def test_facts(index, res):
    assert index.get_num_cells(res) == official.get_num_cells(res)
    area = official.average_hexagon_area(res, "km^2")
    assert index.average_hexagon_area(res) == pytest.approx(area, rel=1e-8)
    length = official.average_hexagon_edge_length(res, "km")
    assert index.average_hexagon_edge_length(res) == pytest.approx(length, rel=1e-8)
    for cell in sample(index, res):
        assert index.get_icosahedron_faces(cell) == sorted(official.get_icosahedron_faces(cell))
        assert index.is_res_class_iii(cell) == official.is_res_class_III(cell)
        digits = [index.get_index_digit(cell, r) for r in range(1, 16)]
        assert digits == [official.get_index_digit(cell, r) for r in range(1, 16)]
        base = index.get_base_cell_number(cell)
        assert index.construct_cell(base, *digits[:res]) == cell
        area = official.cell_area(cell, "rads^2")
        digits_left = 1e-3 if res > 12 else 1e-7  # of the official one: 2e-14 at res 15
        assert index.cell_area(cell, "rads^2") == pytest.approx(area, rel=digits_left)


@pytest.mark.parametrize("res", [0, 1, 2, 3, 4])
def test_areas_sum_to_the_sphere(library, res):
    from h3video import h3

    with h3.use_backend("native"):
        areas = h3.cell_areas(every_cell(res), "rads^2")
    assert math.fsum(areas) == pytest.approx(4 * math.pi, rel=2e-14)
    assert areas.min() > 0


@pytest.mark.parametrize("res", COARSE_AND_FINE)
def test_places_among_children(index, res):
    rng = random.Random(res)
    for cell in sample(index, res, 60, 8):
        for up in range(res + 1):
            assert index.cell_to_child_pos(cell, up) == official.cell_to_child_pos(cell, up)
        for down in range(res, 16):
            pos = rng.randrange(official.cell_to_children_size(cell, down))
            child = official.child_pos_to_cell(cell, down, pos)
            assert index.child_pos_to_cell(cell, down, pos) == child
            assert index.cell_to_child_pos(child, res) == pos
            for none in (-1, official.cell_to_children_size(cell, down)):
                with pytest.raises(errors.H3DomainError):
                    index.child_pos_to_cell(cell, down, none)


def test_children_and_places_are_one_order(index):
    for cell in (official.get_pentagons(2)[3], official.latlng_to_cell(10, 10, 2)):
        children = index.cell_to_children(cell, 5)
        assert [index.child_pos_to_cell(cell, 5, i) for i in range(len(children))] == children


@pytest.mark.parametrize("seed", range(6))
def test_compaction(index, seed):
    rng = random.Random(seed)
    res = rng.randint(2, 6)
    some = rng.sample(sample(index, res - 2, 40, 12), 6) + [official.get_pentagons(res - 2)[seed]]
    cells = [c for p in {*some} for c in official.cell_to_children(p, res)]
    rng.shuffle(cells)
    cells = cells[: len(cells) - rng.randint(0, 3)]
    small = index.compact_cells(cells)
    assert sorted(small) == sorted(official.compact_cells(cells))
    assert sorted(index.uncompact_cells(small, res)) == sorted(cells)
    assert index.compact_cells([]) == [] == index.uncompact_cells([], res)
    with pytest.raises(errors.H3DuplicateInputError):
        index.compact_cells([*cells, cells[0]])
    with pytest.raises(errors.H3ResMismatchError):
        index.compact_cells([*cells, official.cell_to_parent(cells[0], res - 1)])
    with pytest.raises(errors.H3ResMismatchError):
        index.uncompact_cells(cells, res - 1)
    with pytest.raises(errors.H3CellInvalidError):
        index.compact_cells([*cells, 5])


def test_compaction_of_the_whole_globe(index):
    res = 3 if index.backend() == "native" else 1
    assert sorted(index.compact_cells(every_cell(res))) == index.get_res0_cells()


@pytest.mark.parametrize("res", [0, 1, 2, 3, 5, 8])
def test_local_coordinates(index, res):
    rng, failed = random.Random(res), 0
    cells = sample(index, res, 120, 20)
    for cell in rng.sample(cells, min(len(cells), 130)):
        near = official.grid_disk(cell, rng.randint(1, 7))
        for other in rng.sample(near, min(len(near), 12)) + rng.sample(cells, 3):
            try:
                want = official.cell_to_local_ij(cell, other)
            except Exception:
                with pytest.raises(errors.H3FailedError):
                    index.cell_to_local_ij(cell, other)
                failed += 1
                continue
            assert index.cell_to_local_ij(cell, other) == tuple(want)
            assert index.local_ij_to_cell(cell, *want) == other
    assert failed  # both kinds were asked for
    for far in (2**31 - 1, -(2**31), 10**6):
        with pytest.raises(errors.H3FailedError):
            index.local_ij_to_cell(cells[0], far, -far // 2)


@pytest.mark.parametrize("res", [1, 3, 6, 11])
def test_unsafe_disks_have_the_official_order(index, res):
    from h3_official import grid_disk_unsafe, grid_ring_unsafe

    rng, refused = random.Random(res), 0
    some = rng.sample(sample(index, res, 80, 12), 12)
    for cell in (*some, *list(index.get_pentagons(res))[:2]):
        for k in (0, 1, 2, 4):
            for ours, theirs in (
                (index.grid_disk_unsafe, grid_disk_unsafe),
                (index.grid_ring_unsafe, grid_ring_unsafe),
            ):
                try:
                    got = ours(cell, k)
                except errors.H3PentagonError:
                    disk = official.grid_disk(cell, k)
                    assert any(map(official.is_pentagon, disk))
                    refused += 1
                    continue
                assert got == theirs(cell, k)
    assert refused


def test_great_circles(index):
    rng = random.Random(3)
    for _ in range(60):
        a, b = ((rng.uniform(-90, 90), rng.uniform(-180, 180)) for _ in range(2))
        for unit in ("km", "m", "rads"):
            want = official.great_circle_distance(a, b, unit)
            assert index.great_circle_distance(a, b, unit) == pytest.approx(want, rel=1e-12)
    assert index.great_circle_distance((10, 20), (10, 20)) == 0.0
    assert index.great_circle_distance((0, 0), (0, 180), "rads") == pytest.approx(math.pi)
    with pytest.raises(errors.H3OptionInvalidError):
        index.great_circle_distance((0, 0), (1, 1), "miles")


def test_constructing_cells(index):
    pentagon = official.get_pentagons(0)[0]
    base = official.get_base_cell_number(pentagon)
    with pytest.raises(errors.H3DeletedDigitError):
        index.construct_cell(base, 0, 1, 2)
    with pytest.raises(errors.H3DigitDomainError):
        index.construct_cell(3, 0, 7)
    with pytest.raises(errors.H3BaseCellDomainError):
        index.construct_cell(122)
    with pytest.raises(errors.H3ResDomainError):
        index.construct_cell(3, 1, res=2)
    assert index.construct_cell(base, 0, 2, 1) == official.construct_cell(base, 0, 2, 1)


def test_errors_have_words(index):
    assert index.describe_error(0) == "Success"
    texts = {index.describe_error(code) for code in range(20)}
    assert len(texts) == 20 and index.describe_error(99) == index.describe_error(-3)


JUNK = [0, 1, 2**64 - 1, 0x89283082A67FFFF | 1 << 56, 0x1189283082A67FFFF]


@pytest.mark.parametrize("bad", [*JUNK, -1, 1 << 64])
def test_what_is_no_index_is_refused(index, bad):
    good = 0x89283082A67FFFF
    assert not (index.is_valid_index(bad) or index.is_valid_vertex(bad))
    for call in (
        lambda: index.grid_path_cells(bad, good), lambda: index.grid_path_cells(good, bad),
        lambda: index.cell_to_local_ij(bad, good), lambda: index.cell_to_local_ij(good, bad),
        lambda: index.local_ij_to_cell(bad, 0, 0), lambda: index.cell_to_child_pos(bad, 0),
        lambda: index.child_pos_to_cell(bad, 15, 0), lambda: index.cell_to_vertex(bad, 0),
        lambda: index.cell_to_vertexes(bad), lambda: index.cell_area(bad),
        lambda: index.get_icosahedron_faces(bad), lambda: index.is_res_class_iii(bad),
        lambda: index.cells_to_directed_edge(bad, good), lambda: index.grid_ring_unsafe(bad, 1),
        lambda: index.cells_to_directed_edge(good, bad), lambda: index.grid_disk_unsafe(bad, 1),
        lambda: index.origin_to_directed_edges(bad),
    ):  # fmt: skip
        with pytest.raises(errors.H3CellInvalidError):
            call()
    for edge in (bad, good):
        for call in (
            lambda e=edge: index.directed_edge_to_cells(e),
            lambda e=edge: index.directed_edge_to_boundary(e),
            lambda e=edge: index.reverse_directed_edge(e), lambda e=edge: index.edge_length(e),
        ):  # fmt: skip
            with pytest.raises(errors.H3DirEdgeInvalidError):
                call()
        with pytest.raises(errors.H3VertexInvalidError):
            index.vertex_to_latlng(edge)
