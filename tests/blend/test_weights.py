"""The partition of unity, over hundreds of random frames."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from h3video.blend import tile_weights
from h3video.errors import UsageError
from h3video.grid import hex_grid, rect_grid


def dense(weights, points):
    out = np.zeros((len(weights), points), np.float32)
    for row, w in zip(out, weights):
        row[w.points] = w.weight
    return out


@given(
    st.integers(32, 400), st.integers(32, 400), st.integers(1, 4), st.floats(-180, 180),
    st.floats(0, 1), st.sampled_from([1.0, 4.0, 8.0, 16.0]), st.sampled_from(["hex", "rect"]),
)  # fmt: skip
@settings(max_examples=300)
def test_weights_sum_to_one_and_none_is_missing(width, height, res, rot, fade, step, shape):
    make = hex_grid if shape == "hex" else rect_grid
    try:
        grid = make(width, height, res, 0.075, rot)
    except UsageError:
        return
    if len(grid.cells) > 150:
        return
    overlap = fade * grid.max_overlap()
    columns, rows = max(1, int(width // step)), max(1, int(height // step))
    groups = [(c.index,) for c in grid.cells]
    d = dense(tile_weights(grid, groups, columns, rows, step, overlap), columns * rows)
    assert np.abs(d.sum(0, dtype=np.float32) - 1.0).max() <= 1e-6
    assert (d.max(0) >= 0.25 - 1e-6).all()
    assert (np.count_nonzero(d, 0) <= 4).all()
    constant = (d * np.float32(0.7)).sum(0, dtype=np.float32)
    assert np.abs(constant - 0.7).max() <= 1e-6


@pytest.mark.parametrize("rotation", [0.0, 13.0])
@pytest.mark.parametrize("overlap", [0.0, 8.0, 40.0])
def test_hexagon_weights_are_the_written_definition(rotation, overlap):
    grid = hex_grid(160, 96, 3, rotation=rotation)
    xs, ys = np.meshgrid(np.arange(160) + 0.5, np.arange(96) + 0.5)
    distance = np.stack([grid.signed_distance(c.index, xs, ys) for c in grid.cells])
    if overlap:
        t = np.clip(distance / overlap + 0.5, 0, 1)
        want = t * t * (3 - 2 * t)
    else:
        want = (distance == distance.max(0)).astype(float)
    want /= want.sum(0)
    groups = [(c.index,) for c in grid.cells]
    got = dense(tile_weights(grid, groups, 160, 96, 1.0, overlap), 160 * 96)
    assert np.abs(got - want.reshape(len(groups), -1)).max() < 1e-6


def test_a_group_is_the_sum_of_its_cells():
    grid = hex_grid(480, 288, 3)
    single = dense(tile_weights(grid, [(c.index,) for c in grid.cells], 60, 36, 8.0, 40.0), 2160)
    groups = [(0, 1, 2), tuple(range(3, len(grid.cells)))]
    got = dense(tile_weights(grid, groups, 60, 36, 8.0, 40.0), 2160)
    for row, cells in zip(got, groups):
        assert np.abs(row - single[list(cells)].sum(0)).max() < 1e-6


def test_a_cell_in_no_tile_leaves_its_weight_to_the_others():
    grid = hex_grid(480, 288, 3)
    groups = [(c.index,) for c in grid.cells[1:]]
    weights = tile_weights(grid, groups, 30, 18, 16.0, grid.max_overlap())
    total = dense(weights, 540).sum(0)
    index, _ = grid.sample_weights(30, 18, 16.0, grid.max_overlap())
    others = (index.reshape(-1, 4) > 0).any(1)
    assert np.abs(total[others] - 1.0).max() <= 1e-6


def test_the_fade_has_the_asked_width():
    grid = hex_grid(1024, 576, 3)
    a, b = grid.cells[grid.cell_at(512, 288)], None
    b = grid.cells[grid.neighbours[a.index][0]]
    weights = tile_weights(grid, [(c.index,) for c in grid.cells], 1024, 576, 1.0, 64.0)
    field = np.zeros(1024 * 576)
    field[weights[a.index].points] = weights[a.index].weight
    t = np.linspace(0, 1, 400)
    x, y = a.x + (b.x - a.x) * t, a.y + (b.y - a.y) * t
    line = field.reshape(576, 1024)[y.astype(int), x.astype(int)]
    length = np.hypot(b.x - a.x, b.y - a.y) / 400
    assert np.count_nonzero((line > 0.0) & (line < 1.0)) * length == pytest.approx(64.0, abs=3.0)
