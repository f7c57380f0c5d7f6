"""The equirectangular map."""

import numpy as np
import pytest

from h3video import h3
from h3video.errors import UsageError
from h3video.grid import globe_grid


def test_ids_are_the_official_ones():
    official = pytest.importorskip("h3.api.basic_int")
    grid = globe_grid(256, 128, 0)
    for y in range(0, 128, 7):
        for x in range(0, 256, 11):
            lat, lng = 90 - (y + 0.5) * 180 / 128, (x + 0.5) * 360 / 256 - 180
            assert grid.pixel_ids()[y, x] == official.latlng_to_cell(lat, lng, 0)
    assert sum(c.pixels for c in grid.cells) == 256 * 128
    assert {c.id for c in grid.cells} == set(h3.get_res0_cells())


def test_neighbours_go_around_the_globe():
    grid = globe_grid(256, 128, 0)
    for cell in grid.cells:
        assert len(grid.neighbours[cell.index]) == (5 if h3.is_pentagon(cell.id) else 6)


@pytest.mark.parametrize("overlap", [0.0, 4.0, 7.0])
def test_weights_sum_to_one_at_poles_and_rim_too(overlap):
    grid = globe_grid(256, 128, 0)
    index, weight = grid.sample_weights(64, 32, 4.0, overlap)
    assert np.abs(weight.sum(-1) - 1.0).max() <= 1e-6
    owner, _ = grid.sample_weights(64, 32, 4.0, 0.0)
    # the largest weight is the owner's, a few points on edges excepted
    assert (index[..., 0] == owner[..., 0]).mean() > 0.97
    assert (np.diff(weight, axis=-1) <= 1e-6).all()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((1024, 576, 2), "cells of 5.8 px edge, at least 8 px are needed; use hex_res 1 or less"),
        ((64, 32, 0), "use height 114 px"),
        ((1024, 576, 16), "hex_res 16 is out of range 0..15"),
        ((0, 576, 0), "width 0 is out of range"),
    ],
)
def test_small_cells_are_refused_with_the_numbers(arguments, message):
    with pytest.raises(UsageError) as e:
        globe_grid(*arguments)
    assert message in str(e.value)
