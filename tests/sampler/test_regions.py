"""Prompts by region, on tiles."""

import logging

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from tests_support import attach, attach_seeing_all, family_parameters, settings

from h3video.errors import UsageError

TILED = dict(hex_res=4, overlap=64.0)


def half(shape, left=True):
    mask = torch.zeros(shape)
    middle = shape[1] // 2
    mask[:, :middle] = 1.0
    return mask if left else 1.0 - mask


def with_regions(base, *regions):
    from h3video.nodes.region_prompts import add_region, region_mask

    for prompt, mask in regions:
        base = add_region(base, prompt, region_mask(mask, None, ""))
    return base


def size_of(tiny, family):
    return tiny.SIZE[family][-2:]


@pytest.mark.parametrize("family", family_parameters())
def test_the_same_prompt_everywhere_is_no_region_at_all(tiny, family):
    model = getattr(tiny, family)()
    prompt = tiny.prompt(family)
    tiling = attach(model, settings(**TILED, shift="none"))
    plain = tiny.sample(tiling, family, positive=prompt)
    regional = with_regions(prompt, (prompt, half(size_of(tiny, family))))
    got = tiny.sample(tiling, family, positive=regional)
    for a, b in zip(got, plain):
        assert (a - b).norm() <= 1e-4 * b.norm()


@pytest.mark.parametrize("family", family_parameters())
def test_a_change_in_one_region_changes_nothing_beyond_the_overlap(tiny, family):
    model = getattr(tiny, family)()
    tiling = attach(model, settings(**TILED))
    mask = half(size_of(tiny, family))
    base = tiny.prompt(family)
    outs = []
    for seed in (20, 21):
        positive = with_regions(base, (tiny.prompt(family, tokens=5 + seed, seed=seed), mask))
        outs.append(tiny.sample(tiling, family, positive=positive, steps=1))
    changed = (outs[0][0] - outs[1][0]).abs().amax(tuple(range(outs[0][0].ndim - 2)))
    wide = changed.shape[-1]
    assert changed[:, : wide // 2 - 2].max() > 1e-4
    assert changed[:, wide // 2 + 2 :].max() == 0.0


def test_pure_tiles_run_once_and_mixed_tiles_once_per_region(tiny):
    model = tiny.wan()
    tiling = attach(model, settings(**TILED))
    plan_ran = []
    block = model.model.diffusion_model.blocks[0]
    original = block.forward

    def count(*args, **kwargs):
        plan_ran.append(kwargs["context"].shape[1])
        return original(*args, **kwargs)

    positive = with_regions(tiny.prompt("wan", tokens=7),
                            (tiny.prompt("wan", tokens=5), half((24, 40))))  # fmt: skip
    object.__setattr__(block, "forward", count)
    try:
        tiny.sample(tiling, "wan", positive=positive, steps=1)
    finally:
        object.__delattr__(block, "forward")
    plan = tiling.h3video_tiling.plans[-1]
    mask = half((12, 20)).numpy().reshape(-1)
    mixed = sum(1 for w in plan.weights() if 0 < (mask[w.points] > 0).mean() < 1)
    assert 0 < mixed < len(plan.tiles)
    assert len(plan_ran) == len(plan.tiles) + mixed
    assert set(plan_ran) == {5, 7}


def test_two_masks_a_gap_and_prompts_of_5_and_300_tokens(tiny):
    model = tiny.wan()
    tiling = attach(model, settings(**TILED))
    left, right = torch.zeros(24, 40), torch.zeros(24, 40)
    left[:, :14], right[:, 26:] = 1.0, 1.0
    base, a, b = (tiny.prompt("wan", tokens=t, seed=s) for t, s in ((7, 1), (5, 31), (300, 32)))
    regions = with_regions(base, (a, left), (b, right))
    both = tiny.sample(tiling, "wan", positive=regions, steps=1)[0]
    only = {
        name: tiny.sample(tiling, "wan", positive=p, steps=1)[0]
        for name, p in (("base", base), ("a", a), ("b", b))
    }
    # Deep inside each part the result is that of its prompt alone.
    for name, columns in (("a", slice(0, 6)), ("base", slice(19, 21)), ("b", slice(34, 40))):
        got, want = both[..., columns], only[name][..., columns]
        others = [only[n][..., columns] for n in only if n != name]
        near = (got - want).norm()
        assert all(near < 0.5 * (got - o).norm() for o in others), name


def test_a_mask_of_one_half_mixes_both_prompts(tiny):
    model = tiny.wan()
    tiling = attach(model, settings(**TILED))
    base, a = tiny.prompt("wan"), tiny.prompt("wan", seed=40)
    mixed = with_regions(base, (a, torch.full((24, 40), 0.5)))
    got = tiny.sample(tiling, "wan", positive=mixed, steps=1)[0]
    one, two = (tiny.sample(tiling, "wan", positive=p, steps=1)[0] for p in (base, a))
    torch.testing.assert_close(got, (one + two) / 2, rtol=1e-3, atol=1e-4)


def test_without_tiles_comfyuis_own_masks_do_the_same(tiny):
    model = tiny.wan()
    base, a = tiny.prompt("wan"), tiny.prompt("wan", seed=41)
    positive = with_regions(base, (a, half((24, 40))))
    untiled = tiny.sample(model, "wan", positive=positive, steps=1)[0]
    tiling = attach_seeing_all(model, settings(**TILED))
    one = tiny.sample(tiling, "wan", positive=positive, steps=1)[0]
    torch.testing.assert_close(one, untiled, rtol=1e-3, atol=1e-3)


def test_regions_with_guidance_only_touch_the_prompt(tiny):
    model = tiny.wan()
    tiling = attach(model, settings(**TILED))
    base = tiny.prompt("wan")
    same = with_regions(base, (base, half((24, 40))))
    plain = tiny.sample(tiling, "wan", positive=base, cfg=3.0)[0]
    got = tiny.sample(tiling, "wan", positive=same, cfg=3.0)[0]
    torch.testing.assert_close(got, plain, rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize(
    "mask, message",
    [
        (torch.zeros(24, 40), "the mask is empty"),
        (torch.ones(5, 24, 40), "batch of shape"),
    ],
)
def test_masks_that_are_errors(mask, message):
    from h3video.nodes.region_prompts import region_mask

    with pytest.raises(UsageError, match=message):
        region_mask(mask, None, "")


def test_a_region_is_a_mask_or_cells():
    from h3video.nodes.region_prompts import region_mask

    with pytest.raises(UsageError, match="neither is connected"):
        region_mask(None, None, "")


def test_a_speck_that_no_token_sees_is_an_error(tiny):
    from h3video.tiling.regions import Region, token_weights

    tiny_mask = np.zeros((1000, 1000), np.float32)
    with pytest.raises(UsageError, match="region 1 is empty"):
        token_weights([Region("region 1", tiny_mask)], 4, 4)


def test_the_log_says_what_happens_to_sound_and_warns_of_repeats(tiny, caplog):
    model = tiny.wan()
    with caplog.at_level(logging.INFO, "h3video"):
        tiny.sample(attach(model, settings(**TILED)), "wan", steps=1)
    assert "may draw the subject for itself" in caplog.text
    assert caplog.text.count("hex tiles at hex_res") == 1
