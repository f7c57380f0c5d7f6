"""Blends that keep detail: strength, and everything that must not change."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from h3video.blend import tile_weights
from h3video.blend.accumulate import mix
from h3video.blend.variance import Placed, local_mean, raise_detail
from h3video.grid import hex_grid, rect_grid


def placed(overlap, unit=8, size=(480, 288), shape="hex", margin=None):
    """Every cell's place on a frame's raster: the whole frame, or a box around its weights."""
    grid = (hex_grid if shape == "hex" else rect_grid)(*size, 3, 0.075)
    columns, rows = size[0] // unit, size[1] // unit
    found = []
    groups = [(c.index,) for c in grid.cells]
    for w in tile_weights(grid, groups, columns, rows, float(unit), overlap):
        flat = np.zeros(columns * rows, np.float32)
        flat[w.points] = w.weight
        weight = torch.from_numpy(flat.reshape(rows, columns))
        top, bottom, left, right = 0, rows, 0, columns
        if margin is not None:
            ys, xs = np.divmod(w.points, columns)
            top, bottom = max(0, ys.min() - margin), min(rows, ys.max() + 1 + margin)
            left, right = max(0, xs.min() - margin), min(columns, xs.max() + 1 + margin)
        found.append(Placed(int(top), int(left), weight[top:bottom, left:right].contiguous()))
    return found, rows, columns


def blend(places, tiles, rows, columns):
    """The plain running mean, as hosts make it."""
    mean = torch.zeros(*tiles[0].shape[:-2], rows, columns)
    seen = torch.zeros(rows, columns)
    for place, tile in zip(places, tiles):
        part = place.of(seen)
        mix(place.of(mean), tile, torch.nan_to_num(place.weight / (part + place.weight)))
        part += place.weight
    return mean


def shares(places, rows, columns):
    squares = torch.zeros(rows, columns)
    for place in places:
        place.of(squares).add_(place.weight**2)
    return squares


def noise(places, channels, frames, seed=0):
    torch.manual_seed(seed)
    return [torch.randn(1, channels, frames, *p.weight.shape) for p in places]


@pytest.mark.parametrize("shape", ["hex", "rect"])
@pytest.mark.parametrize(
    "channels, frames, unit, radius, overlap",
    [(16, 3, 8, 2, 64.0), (4, 1, 8, 2, 64.0), (3, 1, 1, 4, 32.0), (1, 1, 1, 4, 8.0)],
)
def test_independent_textures_keep_their_strength(shape, channels, frames, unit, radius, overlap):
    places, rows, columns = placed(overlap, unit, shape=shape)
    squares = shares(places, rows, columns)
    inside, shared = squares == 1.0, squares < 0.6
    strengths = []
    for seed in range(4):
        tiles = noise(places, channels, frames, seed)
        mean = blend(places, tiles, rows, columns)
        kept = raise_detail(places, [mean], [tiles], radius)[0]
        level = tiles[0][..., inside].std()
        strengths.append([float(v[..., shared].std() / level) for v in (mean, kept)])
    plain, kept = np.mean(strengths, 0)
    assert plain < 0.75  # the dip that there is to fill
    assert kept == pytest.approx(1.0, abs=0.05)


@pytest.mark.parametrize("margin", [None, 0, 1, 4])
def test_tiles_that_agree_keep_their_bits(margin):
    places, rows, columns = placed(64.0, margin=margin)
    torch.manual_seed(1)
    picture = torch.randn(2, 4, 3, rows, columns)
    tiles = [p.of(picture).clone() for p in places]
    mean = blend(places, tiles, rows, columns)
    assert torch.equal(mean, picture)
    assert torch.equal(raise_detail(places, [mean], [tiles])[0], picture)


def test_nothing_changes_outside_the_shared_bands():
    places, rows, columns = placed(48.0)
    tiles = noise(places, 4, 2)
    mean = blend(places, tiles, rows, columns)
    kept = raise_detail(places, [mean], [tiles])[0]
    alone = shares(places, rows, columns) == 1.0
    assert alone.any() and torch.equal(kept[..., alone], mean[..., alone])
    assert not torch.equal(kept, mean)


@pytest.mark.parametrize("margin", [None, 2])
def test_flat_colours_stay_the_mean(margin):
    places, rows, columns = placed(64.0, margin=margin)
    tiles = [torch.full((1, 3, 1, *p.weight.shape), 0.1 * i) for i, p in enumerate(places)]
    mean = blend(places, tiles, rows, columns)
    kept = raise_detail(places, [mean], [tiles])[0]
    assert (kept - mean).abs().max() < 1e-5


@given(st.integers(0, 2**31), st.floats(0.0, 1.0), st.sampled_from([16.0, 48.0, 64.0]))
@settings(max_examples=25, deadline=None)
def test_the_gain_lies_between_one_and_what_strangers_need(seed, common, overlap):
    places, rows, columns = placed(overlap, size=(320, 192))
    torch.manual_seed(seed)
    shared = torch.randn(1, 4, 1, rows, columns) * common
    tiles = [shared + torch.randn(1, 4, 1, rows, columns) for _ in places]
    mean = blend(places, tiles, rows, columns)
    zero_mean = mean - local_mean(mean, 2)
    kept = raise_detail(places, [mean], [tiles])[0]
    most = shares(places, rows, columns).rsqrt()
    raised = (kept - mean).abs()
    # The blend of the details is not quite the detail of the blend: the weights change in between.
    assert (raised <= (most - 1.0) * (zero_mean.abs() + 1.0) + 1e-5).all()
    assert float(most.max()) <= 2.0 + 1e-6


def test_edges_at_other_places_are_not_blown_up():
    places, rows, columns = placed(64.0)
    bars = (torch.arange(columns) // 3 % 2).float().expand(1, 1, 1, rows, columns)
    tiles = [bars if i % 2 else 1.0 - bars for i in range(len(places))]  # they cancel each other
    mean = blend(places, tiles, rows, columns)
    kept = raise_detail(places, [mean], [tiles])[0]
    # In full strength they would be 0.67 from the grey in between (a bar is no third of its box).
    assert float((kept - 0.5).abs().max()) <= 0.67


def test_pictures_together_have_one_gain_and_clips_of_a_batch_their_own():
    places, rows, columns = placed(64.0)
    first, second = noise(places, 4, 1, 0), noise(places, 4, 1, 1)
    means = [blend(places, t, rows, columns) for t in (first, second)]
    alone = raise_detail(places, means[:1], [first])[0]
    picture = torch.randn(1, 4, 1, rows, columns) * 5.0
    agreed = [place.of(picture) for place in places]
    with_agreed = raise_detail(places, [means[0], picture], [first, agreed])
    assert (with_agreed[0] - means[0]).abs().sum() < 0.5 * (alone - means[0]).abs().sum()
    larger = raise_detail(places, [means[0], 3 * means[0]], [first, [3 * t for t in first]])
    assert torch.allclose(3 * larger[0], larger[1], atol=1e-5)
    batch = [torch.cat([a, b]) for a, b in zip(first, second)]
    apart = raise_detail(places, [blend(places, batch, rows, columns)], [batch])[0]
    for i, own in enumerate((first, second)):
        alone = raise_detail(places, [means[i]], [own])[0]
        assert torch.allclose(apart[i : i + 1], alone, atol=1e-6)


def test_the_same_tiles_give_the_same_bytes():
    places, rows, columns = placed(64.0)
    tiles = noise(places, 16, 2)
    mean = blend(places, tiles, rows, columns)
    assert torch.equal(
        raise_detail(places, [mean], [tiles])[0], raise_detail(places, [mean], [tiles])[0]
    )


def test_half_precision_tiles_are_taken_in_float32():
    places, rows, columns = placed(64.0)
    tiles = [t.bfloat16() for t in noise(places, 4, 1)]
    mean = blend(places, [t.float() for t in tiles], rows, columns)
    assert raise_detail(places, [mean], [tiles])[0].dtype == torch.float32
