"""FLIP, junctions, pulse, colour and variance on pictures with a known answer."""

import numpy as np
import pytest

pytest.importorskip("scipy")

from benchmarks.quality.measures import (
    colour_drift,
    flip,
    junction_error,
    junctions,
    pulse,
    variance_dip,
)


def tiles(h=60, w=80, x=30, y=20):
    """Four rectangles that meet at (x, y)."""
    rows, columns = np.mgrid[:h, :w]
    return (columns >= x) + 2 * (rows >= y)


# ---- FLIP ----


def test_flip_of_equal_and_of_opposite_pictures():
    pytest.importorskip("flip_evaluator")
    black, white = np.zeros((32, 32, 3)), np.ones((32, 32, 3))
    assert flip(white, white) == 0
    assert flip(white, black) == pytest.approx(0.97, abs=0.05)


def test_flip_grows_with_the_error_and_averages_frames():
    pytest.importorskip("flip_evaluator")
    grey = np.full((32, 32, 3), 0.5)
    small, large = flip(grey + 0.02, grey), flip(grey + 0.1, grey)
    assert 0 < small < large
    both = flip(np.stack([grey + 0.02, grey + 0.1]), np.stack([grey, grey]))
    assert both == pytest.approx((small + large) / 2)
    with pytest.raises(ValueError):
        flip(grey, grey[:-1])


# ---- junctions ----


def test_junction_of_four_and_of_three():
    assert junctions(tiles()).tolist() == [[30, 20]]
    three = tiles()
    three[20:] = 2  # two above, one below
    assert junctions(three).tolist() == [[30, 20]]
    assert len(junctions(np.repeat([[0, 1]], 9, 0))) == 0  # a seam has no junction


def test_junctions_of_a_hexagonal_grid_are_its_corners():
    from h3video.grid import hex_grid

    grid = hex_grid(300, 200, 3)
    index, _ = grid.sample_weights(300, 200, 1.0, 0.0)
    found = junctions(index[..., 0])
    corners = np.array([p for c in grid.cells for p in grid.corners(c.index)])
    assert len(found) > 4
    for point in found:
        assert np.hypot(*(corners - point).T).min() < 1.5


def test_junction_error_sees_only_its_disc():
    flat = np.zeros((60, 80, 3))
    far = flat.copy()
    far[:, 70:] = 0.1  # a step that is not near the junction
    near = flat.copy()
    near[:, 30:] = 10 / 255
    at = junctions(tiles())
    assert junction_error(far, flat, at, 8) == 0
    # 16 rows of a disc of radius 8 have a step of 10 levels in one of their columns.
    disc = sum(x * x + y * y <= 64 for x in range(-8, 9) for y in range(-8, 9))
    assert junction_error(near, flat, at, 8) == pytest.approx(10 * np.sqrt(17 / disc), rel=0.01)
    assert junction_error(near, flat, np.zeros((0, 2)), 8) == 0


# ---- pulse ----


def test_a_still_clip_has_no_pulse():
    assert pulse(np.full((5, 8, 8, 3), 0.3)).frame == 0
    assert pulse(np.full((1, 8, 8, 3), 0.3)).frame == 0


def test_a_jump_of_three_levels():
    clip = np.full((6, 8, 8, 3), 0.3)
    clip[3:] += 3 / 255
    found = pulse(clip)
    assert found.frame == pytest.approx(3)
    assert found.cell == pytest.approx(3 / np.sqrt(5))  # one step in five
    assert pulse(clip, clip).frame == 0  # the untiled clip has it, too


def test_flicker_of_one_tile_that_the_frame_hides():
    clip = np.full((7, 60, 80, 3), 0.3)
    owner = np.zeros((60, 80), int)
    owner[:, 40:] = 1
    sign = np.array([1, -1, 1, -1, 1, -1, 1])[:, None, None, None] / 255
    clip[:, :, :40] += sign
    clip[:, :, 40:] -= sign
    found = pulse(clip, None, owner)
    assert found.frame == pytest.approx(0, abs=1e-9)
    assert found.cell == pytest.approx(2)


# ---- colour ----


def test_no_drift_and_a_known_one():
    grey = np.full((3, 16, 16, 3), 0.5)
    assert colour_drift(grey, grey) == type(colour_drift(grey, grey))(0, 0, 0)
    # sRGB 0.5 is L* 53.39, 0.6 is 63.22: a step of 9.8 in lightness alone
    lighter = colour_drift(grey + 0.1, grey)
    assert lighter.frame == pytest.approx(9.83, abs=0.1)
    assert lighter.part == pytest.approx(lighter.frame)
    assert lighter.time == pytest.approx(0, abs=1e-6)


def test_drift_of_a_part_and_in_time():
    grey = np.full((4, 16, 16, 3), 0.5)
    corner = grey.copy()
    corner[:, :4, :4] += 0.1
    found = colour_drift(corner, grey)
    assert found.part == pytest.approx(16 * found.frame, rel=1e-3)
    late = grey.copy()
    late[-1] += 0.1
    assert colour_drift(late, grey).time == pytest.approx(9.83, abs=0.1)
    assert colour_drift(late[0], grey[0]).frame == 0  # a picture will do


# ---- variance ----


def test_averaged_noise_is_weaker_by_the_root_of_two():
    g = np.random.default_rng(0)
    a, b = g.normal(0, 0.05, (2, 200, 200, 3))
    weight = np.full((200, 200), 1.0)
    weight[:, 100:] = 0.5
    w = weight[..., None]
    dip = variance_dip(w * a + (1 - w) * b, np.zeros_like(a), weight)
    assert dip == pytest.approx(np.sqrt(0.5), rel=0.02)
    assert variance_dip(a, np.zeros_like(a), weight) == pytest.approx(1, rel=0.02)
    assert np.isnan(variance_dip(a, np.zeros_like(a), np.ones((200, 200))))
