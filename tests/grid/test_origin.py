"""Grids whose centre lies off the frame's centre: real ids, whole cover, JSON, bounds."""

import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from h3video import h3
from h3video.blend.weights import tile_weights
from h3video.errors import UsageError
from h3video.grid import HexGrid, frame_grid, hex_grid, rect_grid, rectangles
from h3video.grid.hexgrid import unproject

FRAMES = [
    (160, 96, 3, 0.075, 0.0, (5.5, -9.25)), (161, 97, 2, 0.05, 20.0, (-30.0, 12.0)),
    (96, 200, 3, 0.1, -33.0, (0.0, 11.0)), (240, 144, 4, 0.03, 50.0, (17.3, 17.3)),
]  # fmt: skip


@pytest.mark.parametrize("frame", FRAMES)
def test_every_pixel_is_in_the_cell_of_its_official_id(frame):
    official = pytest.importorskip("h3")
    width, height, res, span, rotation, origin = frame
    grid = hex_grid(*frame)
    ids = grid.pixel_ids()
    for y in range(0, height, 3):
        for x in range(0, width, 3):
            where = unproject(x + 0.5, y + 0.5, width, height, span, rotation, origin)
            cell = grid.cells[grid.cell_at(x + 0.5, y + 0.5)]
            assert h3.int_to_str(cell.id) == official.latlng_to_cell(*where, res)
            assert int(ids[y, x]) == cell.id


@pytest.mark.parametrize("frame", FRAMES)
def test_neighbours_are_h3_neighbours(frame):
    grid = hex_grid(*frame)
    for cell in grid.cells:
        inside = {grid.cells[j].id for j in grid.neighbours[cell.index]}
        assert inside == set(h3.grid_ring(cell.id, 1)) & set(grid.by_id)


def on_edges(grid):
    """Pixels whose centre lies on the edge of two cells: they may count for both or for neither."""
    centres = np.array([(c.x, c.y) for c in grid.cells])
    found = 0
    for y in range(grid.height):
        points = np.stack([np.arange(grid.width) + 0.5, np.full(grid.width, y + 0.5)], 1)
        far = np.sort(np.linalg.norm(points[:, None] - centres[None], axis=2), axis=1)
        found += int((far[:, 1] - far[:, 0] < 1e-6).sum()) if len(centres) > 1 else 0
    return found


def test_a_pixel_on_an_edge_is_the_only_one_that_may_be_miscounted():
    grid = hex_grid(17, 16, 4, 0.03125)  # upright, edges through centres of pixels
    assert sum(c.pixels for c in grid.cells) - 17 * 16 == 6 <= on_edges(grid)


@given(
    st.integers(16, 400), st.integers(16, 400), st.integers(0, 4), st.floats(0.02, 0.33),
    st.floats(-180, 180), st.floats(0, 1), st.floats(0, 360),
)  # fmt: skip
@settings(max_examples=60)
def test_any_origin_within_a_cell_covers_the_frame(width, height, res, span, turn, far, angle):
    try:
        pitch = hex_grid(width, height, res, span, turn).lattice.pitch
        at = far * pitch * np.exp(1j * np.radians(angle))
        grid = hex_grid(width, height, res, span, turn, (float(at.real), float(at.imag)))
    except UsageError as e:
        assert "edge" in str(e) or "plane units" in str(e)
        return
    miscounted = abs(sum(c.pixels for c in grid.cells) - width * height)
    assert miscounted == 0 or miscounted <= 2 * on_edges(grid)
    assert len({c.id for c in grid.cells}) == len(grid.cells)
    assert HexGrid.from_json(json.loads(json.dumps(grid.to_json()))) == grid


@given(st.floats(-70, 70), st.floats(-70, 70), st.floats(0, 60), st.sampled_from(["hex", "rect"]))
@settings(max_examples=60)
def test_weights_sum_to_one_with_any_origin(x, y, overlap, shape):
    make = hex_grid if shape == "hex" else rect_grid
    grid = make(416, 240, 3, 0.075, 10.0, (x, y))
    total = np.zeros(26 * 15)
    groups = [(c.index,) for c in grid.cells]
    for w in tile_weights(grid, groups, 26, 15, 16.0, min(overlap, grid.max_overlap())):
        total[w.points] += w.weight
    assert np.abs(total - 1.0).max() <= 1e-6


def test_a_lattice_moved_by_one_cell_is_the_same():
    grid = hex_grid(480, 288, 3)
    x, y = grid.lattice.centre(1, 0)
    moved = hex_grid(480, 288, 3, origin=(x - 240.0, y - 144.0))
    assert [(round(c.x, 6), round(c.y, 6), c.pixels) for c in moved.cells] == [
        (round(c.x, 6), round(c.y, 6), c.pixels) for c in grid.cells
    ]
    assert [c.id for c in moved.cells] != [c.id for c in grid.cells]


def test_json_without_an_origin_is_read_and_written_as_ever():
    data = hex_grid(480, 288, 3).to_json()
    assert "origin" not in data
    assert HexGrid.from_json(data) == hex_grid(480, 288, 3, origin=(0.0, 0.0))
    moved = hex_grid(480, 288, 3, origin=(8.0, 3.0)).to_json()
    with pytest.raises(UsageError, match="do not belong"):
        HexGrid.from_json({**moved, "origin": [70.0, 0.0]})


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((480, 288, 3, 0.075, 0.0, (200.0, 0.0)), "origin 200, 0 .* at most 132"),
        ((480, 288, 3, 0.075, 0.0, (float("nan"), 0.0)), "origin nan"),
        ((480, 288, 2, 0.33, 0.0, (40.0, 0.0)), "the limit is 0.33; use a smaller span"),
    ],
)
def test_origins_that_lead_away_are_refused(arguments, message):
    with pytest.raises(UsageError, match=message):
        hex_grid(*arguments)


def test_the_globe_has_no_origin():
    with pytest.raises(UsageError, match="no meaning"):
        frame_grid(1024, 512, "auto", projection="equirectangular", origin=(1.0, 0.0))


@given(
    st.integers(20, 300), st.integers(20, 300), st.integers(1, 6), st.integers(1, 6),
    st.floats(-40, 40), st.floats(-40, 40),
)  # fmt: skip
def test_moved_rectangles_cover_the_frame(width, height, columns, rows, x, y):
    grid = rectangles(width, height, columns, rows, 0, (x, y))
    assert sum(c.pixels for c in grid.cells) == width * height
    index, _ = grid.sample_weights(width, height, 1.0, 0.0)
    xs, ys = np.meshgrid(np.arange(width) + 0.5, np.arange(height) + 0.5)
    inside = np.stack([grid.signed_distance(c.index, xs, ys) for c in grid.cells])
    # a pixel belongs to a rectangle that it lies in, or (a sliver without pixels) touches
    assert (np.take_along_axis(inside, index[None, ..., 0], 0) > -0.51).all()
