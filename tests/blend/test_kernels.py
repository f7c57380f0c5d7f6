"""Fades of other curves: the same partition of unity over the same cells."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from h3video.blend import KERNELS, tile_weights
from h3video.blend.kernels import CUT, fade
from h3video.errors import UsageError
from h3video.grid import hex_grid, rect_grid

OTHERS = [k for k in KERNELS if k != "smoothstep"]


def dense(weights, points):
    out = np.zeros((len(weights), points), np.float32)
    for row, w in zip(out, weights):
        row[w.points] = w.weight
    return out


@pytest.mark.parametrize("kernel", KERNELS)
def test_a_curve_rises_from_zero_to_one_and_is_its_own_mirror(kernel):
    t = np.linspace(-0.5, 1.5, 2001)
    y = fade(t, kernel)
    assert (y[t <= 0] == 0.0).all() and (y[t >= 1] == 1.0).all()
    assert (np.diff(y) >= 0.0).all()
    assert np.abs(y + fade(1.0 - t, kernel) - 1.0).max() < 1e-7


def test_curves_are_what_their_names_say():
    t = np.linspace(0, 1, 57)
    assert np.allclose(fade(t, "linear"), t)
    assert np.allclose(fade(t, "cosine"), 0.5 - 0.5 * np.cos(np.pi * t))
    assert np.allclose(fade(t, "smoothstep"), 3 * t**2 - 2 * t**3)

    def below(z):  # the share of a normal variable, cut at CUT on both sides, that lies below z
        return (math.erf(z / 2**0.5) + math.erf(CUT / 2**0.5)) / (2 * math.erf(CUT / 2**0.5))

    want = [below((2 * v - 1) * CUT) for v in t]
    assert np.abs(fade(t, "gaussian") - want).max() < 1e-7


def test_a_curve_that_is_unknown_is_refused_with_the_known_ones():
    with pytest.raises(UsageError, match="'box' is unknown; use linear, smoothstep, cosine"):
        fade(0.5, "box")
    with pytest.raises(UsageError, match="linear"):
        tile_weights(hex_grid(64, 64, 3), [], 4, 4, 16.0, 0.0, "box")


@given(
    st.integers(32, 300), st.integers(32, 300), st.integers(1, 4), st.floats(-180, 180),
    st.floats(0, 1), st.sampled_from([1.0, 4.0, 16.0]), st.sampled_from(["hex", "rect"]),
    st.sampled_from(OTHERS),
)  # fmt: skip
@settings(max_examples=150, deadline=None)
def test_weights_sum_to_one_over_the_same_cells(width, height, res, rot, part, step, shape, kernel):
    make = hex_grid if shape == "hex" else rect_grid
    try:
        grid = make(width, height, res, 0.075, rot)
    except UsageError:
        return
    if len(grid.cells) > 100:
        return
    overlap = part * grid.max_overlap()
    columns, rows = max(1, int(width // step)), max(1, int(height // step))
    groups = [(c.index,) for c in grid.cells]
    usual = dense(tile_weights(grid, groups, columns, rows, step, overlap), columns * rows)
    found = dense(tile_weights(grid, groups, columns, rows, step, overlap, kernel), columns * rows)
    assert np.abs(found.sum(0, dtype=np.float32) - 1.0).max() <= 1e-6
    assert ((found > 0.0) <= (usual > 0.0)).all()
    alone = np.count_nonzero(usual, 0) == 1
    assert (found.max(0)[alone] == 1.0).all()


@pytest.mark.parametrize("kernel", OTHERS)
@pytest.mark.parametrize("shape", ["hex", "rect"])
def test_weights_are_the_written_definition(shape, kernel):
    grid = (hex_grid if shape == "hex" else rect_grid)(160, 96, 3, 0.075, 13.0)
    xs, ys = np.meshgrid(np.arange(160) + 0.5, np.arange(96) + 0.5)
    want = np.stack(
        [fade(grid.signed_distance(c.index, xs, ys) / 24.0 + 0.5, kernel) for c in grid.cells]
    )
    want /= want.sum(0)
    groups = [(c.index,) for c in grid.cells]
    got = dense(tile_weights(grid, groups, 160, 96, 1.0, 24.0, kernel), 160 * 96)
    assert np.abs(got - want.reshape(len(groups), -1)).max() < 1e-6


def test_no_overlap_is_a_hard_partition_with_every_curve():
    grid = hex_grid(160, 96, 3)
    groups = [(c.index,) for c in grid.cells]
    usual = dense(tile_weights(grid, groups, 40, 24, 4.0, 0.0), 960)
    for kernel in OTHERS:
        assert (dense(tile_weights(grid, groups, 40, 24, 4.0, 0.0, kernel), 960) == usual).all()


def test_curves_by_their_steepest_place():
    t = np.linspace(0, 1, 10001)
    steepest = {k: float(np.diff(fade(t, k)).max() * 10000) for k in KERNELS}
    assert steepest["linear"] == pytest.approx(1.0, abs=1e-3)
    assert steepest["smoothstep"] == pytest.approx(1.5, abs=1e-3)
    assert steepest["cosine"] == pytest.approx(math.pi / 2, abs=1e-3)
    assert steepest["gaussian"] == pytest.approx(1.672, abs=1e-3)
