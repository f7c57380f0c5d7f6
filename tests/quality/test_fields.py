"""Fields, tilings and photographs: equal areas, equal damages, known results."""

import numpy as np
import pytest

pytest.importorskip("scipy")

from benchmarks.quality import fields, photos
from benchmarks.quality.fields import FIELDS, damaged
from benchmarks.quality.tilings import HEXAGONS, RECTANGLES, tiling

W, H, SIDE = 320, 192, 64


def grey():
    return np.full((H, W, 3), 0.5)


@pytest.mark.parametrize("name", [RECTANGLES, HEXAGONS, f"{HEXAGONS} 0", f"{HEXAGONS} 15"])
@pytest.mark.parametrize("overlap", [0.0, 8.0, 32.0])
def test_tilings_have_equal_area_and_weights_that_sum_to_one(name, overlap):
    t = tiling(name, W, H, SIDE, overlap)
    assert t.grid.cell_area == pytest.approx(SIDE**2, rel=1e-9)
    total = np.zeros(W * H)
    for w in t.weights:
        total[w.points] += w.weight
    assert np.abs(total - 1).max() < 1e-6
    band = (t.largest < 0.999).mean()
    assert band == 0 if overlap == 0 else band > 0.05


def test_turns_are_what_they_say():
    native, turned = (tiling(n, W, H, SIDE, 8.0).grid for n in (HEXAGONS, f"{HEXAGONS} 0"))
    angle = np.degrees(native.lattice.theta - turned.lattice.theta) % 60
    assert min(angle, 60 - angle) == pytest.approx(19.107, abs=0.01)
    fifteen = tiling(f"{HEXAGONS} 15", W, H, SIDE, 8.0).grid
    angle = np.degrees(fifteen.lattice.theta - turned.lattice.theta) % 60
    assert min(angle, 60 - angle) == pytest.approx(15, abs=1e-6)


def test_squares_must_divide_the_frame():
    with pytest.raises(ValueError, match="do not divide"):
        tiling(RECTANGLES, W, H, 50, 8.0)


def test_no_damage_gives_the_picture_back():
    picture = np.random.default_rng(0).random((H, W, 3))
    for name in (RECTANGLES, HEXAGONS):
        out = damaged(picture, tiling(name, W, H, SIDE, 8.0), lambda p, rng: p, 0)
        assert np.abs(out - picture).max() < 1e-6


def test_a_tint_is_one_colour_a_tile():
    t = tiling(HEXAGONS, W, H, SIDE, 8.0)
    out = damaged(grey(), t, FIELDS["tint"], 3) - 0.5
    inside = t.largest > 0.99999
    tints = []
    for tile in np.unique(t.owner):
        here = out[inside & (t.owner == tile)]
        if len(here):
            assert np.ptp(here, axis=0).max() < 1e-4
            tints.append(here.mean(0))
    assert 0.5 < np.std(tints) / fields.TINT < 1.5


def test_damages_have_the_strength_they_say():
    rng = np.random.default_rng(1)
    picture = photos.photo("coffee")[:128, :160]
    grain = fields.texture(picture, rng) - picture
    assert grain.std() == pytest.approx(fields.TEXTURE, rel=1e-6)
    assert np.ptp(grain, axis=-1).max() < 1e-12
    dot = np.zeros((41, 41, 3))
    dot[20, 20] = 1
    moved = [fields.misalignment(dot, rng) for _ in range(50)]
    at = [np.array([(m[..., 0] * g).sum() for g in np.mgrid[:41, :41]]) - 20 for m in moved]
    lengths = np.linalg.norm(at, axis=1)
    assert fields.SHIFT[0] - 0.01 < lengths.min() < 1.6
    assert 3.4 < lengths.max() < fields.SHIFT[1] + 0.01
    darker = [fields.gamma(grey(), np.random.default_rng(s)).mean() for s in range(200)]
    assert np.log(np.log(darker) / np.log(0.5)).std() == pytest.approx(fields.GAMMA, rel=0.2)


def test_seeds_repeat_and_differ():
    t = tiling(RECTANGLES, W, H, SIDE, 8.0)
    a, b, c = (damaged(grey(), t, FIELDS["tint"], s) for s in (1, 1, 2))
    assert np.array_equal(a, b)
    assert not np.array_equal(a, c)
    with pytest.raises(ValueError, match="the tiling is for"):
        damaged(grey()[:100], t, FIELDS["tint"], 1)


@pytest.mark.parametrize("name", photos.PHOTOS)
def test_photographs_are_there_without_a_download(name, monkeypatch):
    monkeypatch.setenv("SKIMAGE_DATADIR", "/nonexistent")
    p = photos.photo(name)
    assert p.shape == (photos.HEIGHT, photos.WIDTH, 3)
    assert p.min() >= 0.06 - 1e-9
    assert p.max() <= 0.94 + 1e-9
    assert p.std() > 0.05
