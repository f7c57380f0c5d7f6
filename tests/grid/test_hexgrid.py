"""A frame's cells: real H3 ids for every pixel, and the laws of the neighbour graph."""

import json
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from h3video import h3
from h3video.errors import UsageError
from h3video.grid import HexGrid, hex_grid, rect_grid
from h3video.grid.hexgrid import unproject

FRAMES = [
    (64, 40, 3, 0.0), (480, 288, 3, 0.0), (480, 288, 4, 19.1), (512, 512, 4, -33.0),
    (300, 700, 3, 90.0), (1024, 576, 4, 0.0), (161, 97, 2, 7.5), (640, 384, 5, 0.0),
]  # fmt: skip


@pytest.mark.parametrize(("width", "height", "res", "rotation"), FRAMES)
def test_ids_are_the_official_ones(width, height, res, rotation):
    official = pytest.importorskip("h3")
    grid = hex_grid(width, height, res, rotation=rotation)
    for cell in grid.cells:
        lat, lng = unproject(cell.x, cell.y, width, height, rotation=rotation)
        assert official.latlng_to_cell(lat, lng, res) == h3.int_to_str(cell.id)
    ids = grid.pixel_ids()
    rng = np.random.default_rng(0)
    for y, x in zip(rng.integers(0, height, 3000), rng.integers(0, width, 3000)):
        lat, lng = unproject(x + 0.5, y + 0.5, width, height, rotation=rotation)
        want = official.str_to_int(official.latlng_to_cell(lat, lng, res))
        assert ids[y, x] == want or near_an_edge(grid, x + 0.5, y + 0.5)


def near_an_edge(grid, x, y):
    """Within 1e-9 plane units of an edge either cell is right."""
    d = max(grid.signed_distance(i, np.array(x), np.array(y)) for i in range(len(grid.cells)))
    return d * grid.span / max(grid.width, grid.height) < 1e-9


@pytest.mark.parametrize(("width", "height", "res", "rotation"), FRAMES)
def test_every_pixel_is_owned_by_the_cell_with_its_id(width, height, res, rotation):
    grid = hex_grid(width, height, res, rotation=rotation)
    ids, counts = np.unique(grid.pixel_ids(), return_counts=True)
    found = dict(zip(ids.tolist(), counts.tolist()))
    assert set(found) == {c.id for c in grid.cells}
    assert sum(c.pixels for c in grid.cells) == width * height
    # the integer scan and the raster may differ only on pixels that lie on an edge
    assert sum(abs(found[c.id] - c.pixels) for c in grid.cells) <= 2


@pytest.mark.parametrize(("width", "height", "res", "rotation"), FRAMES)
def test_neighbours_are_h3_neighbours(width, height, res, rotation):
    grid = hex_grid(width, height, res, rotation=rotation)
    for cell in grid.cells:
        ring = set(h3.grid_ring(cell.id, 1))
        inside = {grid.cells[j].id for j in grid.neighbours[cell.index]}
        assert inside == ring & set(grid.by_id)
        for j in grid.neighbours[cell.index]:
            assert cell.index in grid.neighbours[j]
            assert grid.colours[j] != grid.colours[cell.index]
            assert grid.distance(cell.index, j) == 1


def test_grid_distance_is_the_planar_one():
    grid = hex_grid(1024, 576, 4)
    rings = grid.rings()
    centre = grid.cell_at(512, 288)
    assert rings[centre] == 0
    for cell in grid.cells:
        assert h3.grid_distance(grid.cells[centre].id, cell.id) == rings[cell.index]


@pytest.mark.parametrize("kind", ["spiral", "bfs", "scanline"])
@pytest.mark.parametrize("focus", [(None, None), (5.0, 5.0), (400.0, 200.0)])
def test_orders_visit_every_cell_once(kind, focus):
    grid = hex_grid(480, 288, 4)
    order = grid.order(kind, *focus)
    assert sorted(order) == list(range(len(grid.cells)))
    assert order == grid.order(kind, *focus)
    if kind != "scanline" and focus[0] is not None:
        assert order[0] == grid.cell_at(*focus)
    if kind == "bfs":
        seen = {order[0]}
        for i in order[1:]:
            assert seen & set(grid.neighbours[i])
            seen.add(i)
    if kind == "spiral":
        rings = grid.rings(*focus)
        assert [rings[i] for i in order] == sorted(rings)


def test_unknown_order_is_refused():
    with pytest.raises(UsageError, match="spiral, bfs or scanline"):
        hex_grid(480, 288, 3).order("zigzag")


def test_parents_are_h3_parents():
    grid = hex_grid(480, 288, 4)
    for cell in grid.cells:
        assert grid.parent(cell.index) == h3.cell_to_parent(cell.id, 3)


@given(
    st.integers(16, 600), st.integers(16, 600), st.integers(0, 4), st.floats(0.02, 0.33),
    st.floats(-360, 360),
)  # fmt: skip
@settings(max_examples=40)
def test_grids_of_any_frame_cover_it(width, height, res, span, rotation):
    try:
        grid = hex_grid(width, height, res, span, rotation)
    except UsageError as e:
        assert "edge" in str(e)
        return
    assert sum(c.pixels for c in grid.cells) == width * height
    assert len({c.id for c in grid.cells}) == len(grid.cells)
    assert HexGrid.from_json(json.loads(json.dumps(grid.to_json()))) == grid


@given(st.integers(0, 200), st.floats(-300, 300), st.floats(-300, 300))
def test_signed_distance_is_euclidean(pick, dx, dy):
    grid = hex_grid(480, 288, 3, rotation=11.0)
    cell = grid.cells[pick % len(grid.cells)]
    x, y = cell.x + dx, cell.y + dy
    corners = grid.corners(cell.index)
    sides = list(zip(corners, corners[1:] + corners[:1]))
    outline = min(to_segment((x, y), a, b) for a, b in sides)
    inside = all(
        (b[0] - a[0]) * (y - a[1]) - (b[1] - a[1]) * (x - a[0]) >= 0 for a, b in sides
    )
    got = float(grid.signed_distance(cell.index, np.array(x), np.array(y)))
    assert got == pytest.approx(outline if inside else -outline, abs=1e-6)


def to_segment(p, a, b):
    ax, ay, bx, by = *a, *b
    length = (bx - ax) ** 2 + (by - ay) ** 2
    t = max(0.0, min(1.0, ((p[0] - ax) * (bx - ax) + (p[1] - ay) * (by - ay)) / length))
    return math.dist(p, (ax + t * (bx - ax), ay + t * (by - ay)))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((0, 100, 3), "width 0 is out of range 1..16384"),
        ((100, 99999, 3), "height 99999 is out of range"),
        ((100, 100, 16), "hex_res 16 is out of range 0..15"),
        ((100, 100, -1), "hex_res -1 is out of range 0..15"),
        ((100, 100, 3, 0.5), "span 0.5 is out of range 0..0.33"),
        ((100, 100, 3, 0.0), "span 0 is out of range"),
        ((100, 100, 3, 0.075, math.nan), "rotation nan"),
        ((640, 384, 9), "use hex_res 7 or less"),
    ],
)
def test_bad_values_name_value_limit_and_remedy(arguments, message):
    with pytest.raises(UsageError, match=message.replace(".", r"\.")):
        hex_grid(*arguments)


def test_json_with_foreign_ids_is_refused():
    data = hex_grid(480, 288, 3).to_json()
    data["ids"][0] = hex_grid(480, 288, 4).to_json()["ids"][0]
    with pytest.raises(UsageError, match="do not belong"):
        HexGrid.from_json(data)


def test_rectangles_cover_the_frame_with_about_the_same_area():
    for width, height in ((480, 288), (1280, 704), (832, 480)):
        hexes, rects = hex_grid(width, height, 3), rect_grid(width, height, 3, 0.075)
        assert sum(c.pixels for c in rects.cells) == width * height
        assert rects.cell_area == pytest.approx(hexes.cell_area, rel=0.35)
        for i, near in enumerate(rects.neighbours):
            assert all(i in rects.neighbours[j] for j in near)
