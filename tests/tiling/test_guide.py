"""A small prediction of the whole frame leads the tiles': the arithmetic of noise and size."""

import pytest

torch = pytest.importorskip("torch")

from hypothesis import given, settings
from hypothesis import strategies as st

from h3video.errors import UsageError
from h3video.models.wan import WAN
from h3video.tiling.guide import MAX_FACTOR, Guide, Shrink, shrink_factor
from h3video.tiling.settings import HexSettings
from h3video.tiling.tokens import plan_latent_tiles


def noise(*shape, seed=0):
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed))


def seen(clean, noises, sigma):
    return (1.0 - sigma) * clean + sigma * noises


@settings(max_examples=40, deadline=None)
@given(st.floats(0.01, 1.0), st.sampled_from([2, 3, 4]), st.integers(4, 9), st.integers(4, 9))
def test_the_small_frame_is_what_the_model_sees_at_the_level_that_is_told(sigma, k, tall, wide):
    """Its noise is unit noise, its clean part the mean of the clean frame."""
    clean = noise(1, 3, 2, tall * 2 * k, wide * 2 * k, seed=1) * 0.7
    noises = noise(*clean.shape, seed=2)
    shrink = Shrink(k, 2, clean.shape[-1], clean.shape[-2])
    guide = Guide(seen(clean, noises, sigma), torch.tensor([sigma]), shrink)
    unit = shrink.small(noises) * k
    assert float(guide.small_sigma) <= sigma + 1e-6
    assert torch.allclose(
        guide.small_x, seen(shrink.small(clean), unit, guide.small_sigma), atol=1e-5
    )
    assert abs(float(unit.std()) - 1.0) < 0.15
    assert float(guide.ratio) == pytest.approx(float(guide.small_sigma) / sigma, rel=1e-5)


@settings(max_examples=40, deadline=None)
@given(st.floats(0.05, 1.0), st.sampled_from([2, 3]), st.integers(9, 23), st.integers(9, 23))
def test_predictions_that_agree_are_left_alone(sigma, k, tall, wide):
    clean = noise(2, 3, 2, tall, wide, seed=1)
    noises = noise(*clean.shape, seed=2)
    shrink = Shrink(k, 2, wide, tall)
    guide = Guide(seen(clean, noises, sigma), torch.tensor([sigma]), shrink)
    true = noises - clean
    small = k * shrink.small(noises) - shrink.small(clean)
    assert torch.allclose(guide.lead(true, small), true, atol=2e-4)


def test_large_forms_come_from_the_small_frame_and_detail_from_the_tiles():
    """Tiles with a tint of their own lose it; a pattern of single latents stays."""
    sigma, shrink = 0.8, Shrink(2, 2, 32, 16)
    clean, noises = noise(1, 4, 1, 16, 32, seed=1), noise(1, 4, 1, 16, 32, seed=2)
    guide = Guide(seen(clean, noises, sigma), torch.tensor([sigma]), shrink)
    tint = torch.zeros_like(clean)
    tint[..., :16], tint[..., 16:] = 1.0, -1.0
    pattern = torch.ones_like(clean)
    pattern[..., ::2] = -1.0  # its mean over two latents is nothing
    tiled = noises - clean - (tint + pattern) / sigma
    small = 2 * shrink.small(noises) - shrink.small(clean)
    away = guide.x - sigma * guide.lead(tiled, small) - clean
    assert (away - pattern)[..., 4:12].abs().max() < 0.02  # away from where the tint steps
    assert (away - pattern).abs().mean() < 0.15


@pytest.mark.parametrize("columns, rows", [(32, 16), (31, 17), (30, 19)])
def test_a_frame_that_does_not_divide_goes_on_as_in_a_mirror(columns, rows):
    shrink = Shrink(2, 2, columns, rows)
    small = shrink.small(torch.full((1, 2, 3, rows, columns), 5.0))
    assert small.shape == (1, 2, 3, -(-rows // 4) * 2, -(-columns // 4) * 2)
    assert torch.equal(small, torch.full_like(small, 5.0))
    assert torch.allclose(shrink.large(small), torch.full((1, 2, 3, rows, columns), 5.0))
    ramp = torch.arange(columns, dtype=torch.float32).expand(rows, columns)
    assert shrink.small(ramp[None, None]).max() <= columns - 1


def test_pictures_have_no_frames():
    shrink = Shrink(2, 2, 16, 8)
    assert shrink.small(torch.ones(1, 4, 8, 16)).shape == (1, 4, 4, 8)
    assert shrink.large(torch.ones(1, 4, 4, 8)).shape == (1, 4, 8, 16)


@pytest.mark.parametrize("share", [1.0, 0.5, 0.3, 0.2, 0.1])
def test_the_small_frame_has_no_more_tokens_than_a_tile(share):
    plan = plan_latent_tiles(80, 44, 5, WAN, budget=share, overlap=64.0)
    factor = shrink_factor(plan)
    assert plan.frame_tokens <= factor**2 * plan.tile_tokens
    assert factor == 2 or plan.frame_tokens > (factor - 1) ** 2 * plan.tile_tokens


def test_a_frame_is_not_shrunk_beyond_use():
    plan = plan_latent_tiles(160, 88, 3, WAN, budget=0.04)
    with pytest.raises(UsageError, match=rf"shrink the frame [5-9] times.*limit is {MAX_FACTOR}"):
        shrink_factor(plan)


def test_bad_levels_are_refused():
    shrink, x = Shrink(2, 2, 8, 8), noise(1, 4, 2, 8, 8)
    with pytest.raises(UsageError, match=r"one noise level for a frame.*32"):
        Guide(x, torch.full((1, 32), 0.5), shrink)
    with pytest.raises(UsageError, match=r"0 to 1, and found 14\.6"):
        Guide(x, torch.tensor([14.6]), shrink)


def test_settings():
    assert HexSettings().guide_steps == 0
    with pytest.raises(UsageError, match="guide_steps -1 is negative"):
        HexSettings(guide_steps=-1)
    with pytest.raises(UsageError, match="guide_steps 2 is for token tiles"):
        HexSettings(guide_steps=2, tiles="crop")
