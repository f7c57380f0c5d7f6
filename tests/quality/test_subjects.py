"""Subjects are counted right on clips whose subjects are known."""

from dataclasses import replace

import numpy as np
import pytest

pytest.importorskip("scipy")

from benchmarks.quality.measures import count_subjects, region_adherence, subject_blobs
from h3video.nano.data import render
from h3video.nano.follow import held_out_scenes
from h3video.nano.words import CLASH

W, H, F = 240, 144, 5


def pasted(scene, count):
    """A clip with `count` subjects side by side, each in a part of the frame of its own."""
    parts = [render(replace(scene, size="small"), W // count, H, F) for _ in range(count)]
    return np.concatenate(parts, 2)


SCENES = held_out_scenes(40, seed=5)


def test_true_clips_have_one_subject():
    counts = [count_subjects(render(s, W, H, F), s.colour, s.ground) for s in SCENES]
    assert sum(c == 1 for c in counts) >= 39, list(zip(counts, SCENES))


@pytest.mark.parametrize("count", [2, 3])
def test_pasted_subjects_are_counted(count):
    found = [count_subjects(pasted(s, count), s.colour, s.ground) for s in SCENES[:20]]
    assert sum(c == count for c in found) >= 19, list(zip(found, SCENES))


def test_no_subject_and_another_colour():
    ground = np.zeros((3, H, W, 3)) + np.array((52, 96, 176)) / 255
    assert count_subjects(ground, "red", "blue") == 0
    scene = next(s for s in SCENES if s.colour == "red")
    assert count_subjects(render(scene, W, H, F), "cyan", scene.ground) == 0


def test_specks_are_not_subjects():
    scene = next(s for s in SCENES if s.colour == "red" and s.shape == "circle")
    frame = render(scene, W, H, 1)[0]
    frame[2:6, 2:6] = (0.7, 0.12, 0.12)
    blobs = subject_blobs(frame, "red", scene.ground)
    assert len(blobs) == 1
    assert blobs[0].sum() > 400


def test_a_short_lived_double_does_not_count_but_a_lasting_one_does():
    scene = SCENES[0]
    one, two = pasted(scene, 1), pasted(scene, 2)
    clip = np.concatenate([one[:3], two[:2]])
    assert count_subjects(clip, scene.colour, scene.ground) == 1
    clip = np.concatenate([one[:2], two[:3]])
    assert count_subjects(clip, scene.colour, scene.ground) == 2


def test_regions_are_judged_apart():
    a = SCENES[0]
    b = next(
        s for s in SCENES
        if s.ground != a.ground and s.colour != a.colour and a.colour not in CLASH[s.ground]
    )  # fmt: skip
    clip = np.concatenate([render(a, W // 2, H, F), render(b, W // 2, H, F)], 2)
    left = np.zeros((H, W), bool)
    left[:, : W // 2] = True
    for mask, own, other in ((left, a, b), (~left, b, a)):
        right = region_adherence(clip, mask, own.colour, own.ground)
        assert (right.colour, right.ground) == (True, True)
        wrong = region_adherence(clip, mask, other.colour, other.ground)
        assert (wrong.colour, wrong.ground) == (False, False)
    with pytest.raises(ValueError):
        region_adherence(clip, np.zeros((H, W), bool), "red", "blue")
