"""The measurement is honest: it reads true clips right, and says so when there is nothing."""

import numpy as np
import pytest

from h3video.nano.follow import JUDGE_LIMIT, LIMITS, held_out_scenes, true_clips
from h3video.nano.judge import largest_blob, measure, nearest, to_lab


def test_true_clips_are_read_right():
    report = true_clips(held_out_scenes(60, seed=11))
    assert all(v >= JUDGE_LIMIT for v in report.shares().values()), report.misses()
    assert set(report.shares()) == set(LIMITS)


def test_a_clip_without_a_thing():
    clip = np.full((5, 48, 80, 3), (60, 100, 180), np.uint8)
    seen = measure(clip)
    assert (seen.colour, seen.direction, seen.ground) == (None, None, "blue")


def test_a_still_thing_has_no_direction():
    clip = np.full((9, 48, 80, 3), (130, 130, 130), np.uint8)
    clip[:, 10:30, 20:40] = (170, 30, 30)
    seen = measure(clip)
    assert (seen.colour, seen.direction) == ("red", None)
    assert seen.area == pytest.approx(400 / (48 * 80), rel=0.02)


def test_largest_blob():
    mask = np.zeros((12, 12), bool)
    mask[1:4, 1:4] = True
    mask[6:11, 6:11] = True
    mask[0, 11] = True
    assert largest_blob(mask).sum() == 21  # 5 x 5 without its corners
    assert largest_blob(np.zeros((4, 4), bool)).sum() == 0


def test_lab_of_known_colours():
    assert to_lab((255, 255, 255)) == pytest.approx((100.0, 0.0, 0.0), abs=0.1)
    assert to_lab((255, 0, 0)) == pytest.approx((53.2, 80.1, 67.2), abs=0.3)
    tones = {"a": to_lab((200, 0, 0)), "b": to_lab((0, 0, 200))}
    assert nearest((180, 20, 10), tones) == "a"
