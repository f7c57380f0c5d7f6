"""Seam energy on pictures whose energy is known."""

import numpy as np
import pytest

pytest.importorskip("scipy")

from benchmarks.quality.measures import directional_energy, seam_energy

H, W = 65, 97  # the gradient has a row and a column less: 64 x 96
BLACK = np.zeros((H, W, 3))


def picture(plane):
    return np.repeat(plane[..., None] / 255.0, 3, axis=-1)


def step(angle=0.0, height=10.0, fade=8):
    """A fade over `height` levels across a middle line, `angle` degrees from the vertical."""
    y, x = np.mgrid[:H, :W]
    t = np.radians(angle)
    across = (x - W / 2) * np.cos(t) + (y - H / 2) * np.sin(t)
    return picture(height * np.clip(across / fade + 0.5, 0, 1))


def test_nothing_added_is_no_energy():
    noise = np.random.default_rng(0).random((H, W, 3))
    s = seam_energy(noise, noise)
    assert (s.total, s.axis, s.line, s.angle) == (0, 0, 0, 0)


def test_a_constant_tint_is_no_seam():
    noise = np.random.default_rng(0).random((H, W, 3)) / 2
    assert seam_energy(noise + 0.1, noise).total == pytest.approx(0, abs=1e-20)


@pytest.mark.parametrize("turned", [False, True])
def test_a_straight_hard_step(turned):
    plane = np.where(np.arange(W) < 40, 0.0, 10.0)[None].repeat(H, 0)
    if turned:
        plane = np.where(np.arange(H) < 30, 0.0, 10.0)[:, None].repeat(W, 1)
    s = seam_energy(picture(plane), BLACK)
    share = 1 / 64 if turned else 1 / 96  # of the gradient's rows or columns
    assert s.total == pytest.approx(100 * share)
    assert s.axis == pytest.approx(s.total)  # all of it lines up
    assert s.worst == (90 if turned else 0)
    assert s.line == pytest.approx(100 * share * (1 - share))  # a variance, one in n


def test_signs_that_alternate_cancel_in_axis_but_not_in_line():
    sign = np.where(np.arange(H) < 32, 1.0, -1.0)[:, None]
    plane = sign * np.where(np.arange(W) < 40, 0.0, 10.0)
    s = seam_energy(picture(plane), BLACK)
    # Only the rows' own step (in the columns right of 40) lines up, with 56 of 96 columns.
    assert directional_energy(picture(plane), BLACK, 0) == pytest.approx(0, abs=1e-12)
    assert s.line > 100 / 96 * 0.9


def test_noise_lines_up_no_more_than_by_chance():
    noise = picture(np.random.default_rng(1).normal(0, 5, (H, W)))
    s = seam_energy(noise, BLACK)
    # Steps of white noise telescope: between columns remains 1 in 64 of the vertical part, or so.
    assert s.axis < 0.03 * s.total


@pytest.mark.parametrize("angle", [0, 20, 45, 70, 90, 110, 160])
def test_the_worst_direction_is_found(angle):
    s = seam_energy(step(angle), BLACK)
    off = abs(s.worst - angle) % 180
    assert min(off, 180 - off) <= 1.5
    assert s.angle > 0.6 * s.total


def test_chance_is_what_no_direction_gets():
    """A round bump has no preferred direction: its axes hold what chance gives them."""
    y, x = np.mgrid[:97, :97]
    bump = picture(20 * np.exp(-((x - 48) ** 2 + (y - 48) ** 2) / 200))
    s = seam_energy(bump, np.zeros_like(bump))
    assert s.axis == pytest.approx(s.chance, rel=0.1)
    upright = seam_energy(step(0), BLACK)
    assert upright.axis > 2.5 * upright.chance


def test_a_slanted_step_has_little_on_the_axes():
    upright, slanted = seam_energy(step(0), BLACK), seam_energy(step(20), BLACK)
    assert slanted.total == pytest.approx(upright.total, rel=0.25)
    assert slanted.axis < 0.4 * upright.axis
    assert slanted.line < 0.3 * upright.line
    assert slanted.angle == pytest.approx(upright.angle, rel=0.3)


def test_energy_grows_with_the_square_and_is_per_channel():
    one, two = seam_energy(step(30, 5), BLACK), seam_energy(step(30, 10), BLACK)
    assert two.total == pytest.approx(4 * one.total)
    red = step(30, 10) * [1, 0, 0]
    assert seam_energy(red, BLACK).total == pytest.approx(two.total / 3)


def test_shapes_must_agree():
    with pytest.raises(ValueError, match="both must be"):
        seam_energy(BLACK, BLACK[:-1])
