"""GridCells: weights per cell, masks, and the way to JSON and back."""

import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from h3video.errors import UsageError
from h3video.grid import GridCells, comfortable_res, finest_res, frame_grid, grid_cells, hex_grid


@given(
    st.integers(16, 400), st.integers(16, 400), st.integers(0, 4), st.floats(0, 60),
    st.floats(0, 1), st.floats(0, 1), st.floats(0, 1),
)  # fmt: skip
def test_mask_is_highest_at_the_focus_and_stays_within_the_cells_weights(
    width, height, res, overlap, fx, fy, falloff
):
    grid = hex_grid(width, height, min(res, finest_res(width, height, 0.075)))
    cells = grid_cells(grid, overlap, (fx * width, fy * height), falloff)
    weights = cells.attention()
    mask = cells.mask(weights)
    assert mask.shape == (height, width) and mask.dtype == np.float32
    assert max(weights) == 1.0 and min(weights) >= 1.0 - falloff - 1e-12
    assert mask.min() >= min(weights) - 1e-6 and mask.max() <= 1.0


def test_mask_is_the_cells_value_away_from_the_shared_bands():
    cells = grid_cells(hex_grid(640, 384, 4), 12.0)
    values = [i / 100.0 for i in range(len(cells.grid.cells))]
    mask = cells.mask(values)
    for cell in cells.grid.cells:
        if 0 < cell.x < 640 and 0 < cell.y < 384:
            assert mask[int(cell.y), int(cell.x)] == pytest.approx(values[cell.index], abs=1e-6)


def test_mask_by_bands_equals_the_definition_in_one_piece():
    cells = grid_cells(hex_grid(200, 300, 3), 24.0)
    values = np.linspace(0, 1, len(cells.grid.cells), dtype=np.float32)
    index, weight = cells.grid.sample_weights(200, 300, 1.0, 24.0)
    slow = np.where(index >= 0, values[index] * weight, 0).sum(-1)
    np.testing.assert_allclose(cells.mask(values), slow, atol=1e-6)


def test_even_mask_is_exactly_even():
    cells = grid_cells(hex_grid(333, 222, 4), 20.0, falloff=0.0)
    assert np.all(cells.mask(cells.attention()) == 1.0)


@pytest.mark.parametrize("size", [(512, 512), (640, 384), (1024, 576), (3840, 2160), (160, 96)])
def test_auto_gives_comfortable_cells(size):
    grid = frame_grid(*size, "auto")
    assert 30.0 <= grid.edge < 80.0


def test_auto_on_the_smallest_frame_is_legal():
    assert frame_grid(16, 16, "auto").cells
    assert comfortable_res(1, 1) >= 0


@pytest.mark.parametrize(
    "cells",
    [
        grid_cells(hex_grid(640, 384, 4, 0.1, 12.5), 20.0, (10.0, 20.0), 0.5),
        grid_cells(frame_grid(512, 256, "auto", projection="equirectangular"), 4.0),
    ],
)
def test_text_brings_the_same_cells_back(cells):
    again = GridCells.from_json(cells.to_json())
    assert again.grid == cells.grid if hasattr(cells.grid, "lattice") else True
    assert [c.id for c in again.grid.cells] == [c.id for c in cells.grid.cells]
    assert (again.overlap, again.focus, again.falloff) == (
        cells.overlap, cells.focus, cells.falloff,
    )  # fmt: skip
    assert again.projection == cells.projection


@pytest.mark.parametrize(
    "change, says",
    [
        (lambda d: d.update(format="x/1"), "h3video-cells/1"),
        (lambda d: d.pop("ids"), "'ids' is missing"),
        (lambda d: d["ids"].pop(), "do not belong"),
        (lambda d: d.update(rotation=30), "do not belong"),
        (lambda d: d.update(focus=[1]), "no grid of cells"),
        (lambda d: d.update(falloff=2), "falloff 2"),
        (lambda d: d.update(focus=[-1, 0]), "outside the frame"),
        (lambda d: d.update(width="wide"), "no grid of cells"),
    ],
)
def test_text_that_is_no_grid_is_refused(change, says):
    data = json.loads(grid_cells(hex_grid(640, 384, 4)).to_json())
    change(data)
    with pytest.raises(UsageError, match=says):
        GridCells.from_json(json.dumps(data))


@pytest.mark.parametrize("text", ["", "[]", "null", "{", '"x"', "3"])
def test_any_other_text_is_refused(text):
    with pytest.raises(UsageError, match="no grid of cells"):
        GridCells.from_json(text)


def test_globe_rings_grow_by_one_a_neighbour():
    cells = grid_cells(frame_grid(1024, 512, "1", projection="equirectangular"), 4.0)
    rings = cells.rings()
    for i, near in enumerate(cells.grid.neighbours):
        assert all(abs(rings[i] - rings[j]) <= 1 for j in near)
    assert rings.count(0) == 1 and max(rings) > 5


def test_too_many_cells_are_refused_with_the_finest_that_works():
    with pytest.raises(UsageError, match=r"limit is 50,000: use hex_res 7 or less"):
        hex_grid(16384, 16384, 8)


@pytest.mark.parametrize(
    "arguments, says",
    [
        ((64, 64, "x"), "hex_res 'x'"),
        ((64, 64, "4", 0.075, 0.0, "flat"), "projection 'flat'"),
        ((64, 64, "0", 0.1, 0.0, "equirectangular"), "no meaning"),
    ],
)
def test_bad_requests_are_refused(arguments, says):
    with pytest.raises(UsageError, match=says):
        frame_grid(*arguments)
