"""The synthetic clips: deterministic, described truly by their captions, sane at every size."""

import numpy as np
import pytest

from h3video.nano.data import Scene, random_scene, render, shape_distance
from h3video.nano.words import CLASH, COLOURS, GROUNDS, SHAPES, TEXTURES, WORDS

SCENE = Scene("red", "circle", "", "left", "blue", "waves", 7)


def test_same_seed_same_pixels():
    first, second = np.random.default_rng(5), np.random.default_rng(5)
    a, b = random_scene(first), random_scene(second)
    assert a == b
    assert a.caption(first) == b.caption(second)
    assert np.array_equal(render(a, 80, 48, 5), render(b, 80, 48, 5))
    assert not np.array_equal(render(a, 80, 48, 5), render(random_scene(first), 80, 48, 5))


@pytest.mark.parametrize("size", [(80, 48, 9), (48, 80, 5), (64, 64, 1)])
def test_any_frame_size(size):
    width, height, frames = size
    clip = render(SCENE, width, height, frames)
    assert clip.shape == (frames, height, width, 3)
    assert clip.dtype == np.float32
    assert clip.min() >= 0.0 and clip.max() <= 1.0


def test_sizes_are_relative_to_the_frame():
    small, large = render(SCENE, 120, 72, 5), render(SCENE, 240, 144, 5)
    shrunk = large.reshape(5, 72, 2, 120, 2, 3).mean((2, 4))
    assert np.abs(small - shrunk).mean() < 0.02


def test_captions_use_known_words_only():
    rng = np.random.default_rng(1)
    for _ in range(300):
        scene = random_scene(rng, held_out=None)
        for caption in (scene.caption(), scene.caption(rng)):
            assert set(caption.split()) <= set(WORDS), caption
            for value in (scene.colour, scene.shape, scene.direction, scene.ground, scene.texture):
                assert value in caption.split()


def test_held_out_combinations_are_never_trained_on():
    rng = np.random.default_rng(2)
    trained = [random_scene(rng) for _ in range(300)]
    kept = [random_scene(rng, held_out=True) for _ in range(50)]
    assert not any(s.held_out for s in trained)
    assert all(s.held_out for s in kept)
    assert all(s.colour not in CLASH[s.ground] for s in trained + kept)


def test_every_value_is_drawn():
    rng = np.random.default_rng(3)
    scenes = [random_scene(rng) for _ in range(600)]
    assert {s.colour for s in scenes} == set(COLOURS)
    assert {s.ground for s in scenes} == set(GROUNDS)
    assert {s.shape for s in scenes} == set(SHAPES)
    assert {s.texture for s in scenes} == set(TEXTURES)


@pytest.mark.parametrize("shape", SHAPES)
def test_shapes_have_about_unit_radius(shape):
    y, x = np.mgrid[-1.5:1.5:301j, -1.5:1.5:301j].astype(np.float32)
    inside = shape_distance(shape, x, y) < 0
    assert 0.8 < np.hypot(x, y)[inside].max() < 1.3
    assert 1.0 < inside.sum() * 0.01**2 < 3.2
