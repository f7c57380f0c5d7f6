"""A grid that moves every step, inside ComfyUI's sampler."""

import pytest

torch = pytest.importorskip("torch")

from tests_support import attach, family_parameters, replaced_blocks, settings

from h3video.errors import UsageError
from h3video.tiling.shift import PLACES

MOVES = dict(hex_res=3, shift="step")
CROPS = dict(tiles="crop", halo=16.0, **MOVES)
SIZE = (1, 4, 60, 88)


@pytest.fixture
def toys():
    import toys

    return toys


def spied(model):
    """The model's tiling, and (sigma, plan) of every forward pass."""
    tiling, seen = model.h3video_tiling, []
    original = tiling._tiled

    def tiled(forward, family, plan, options):
        seen.append((float(options["sigmas"].flatten()[0]), plan))
        return original(forward, family, plan, options)

    tiling._tiled = tiled
    return tiling, seen


def places(tiling, seen):
    """The places of the passes, by number."""
    (schedule,) = {id(s): s for s in [tiling.last]}.values()
    return [schedule.plans.index(plan) for _, plan in seen]


def watched(model, how):
    """A tiled model; what its passes ran; the schedule that it used."""
    tiled = attach(model, settings(**how))
    tiling, seen = spied(tiled)
    original = tiling.schedule

    def schedule(family, **steps):
        tiling.last = original(family, **steps)
        return tiling.last

    tiling.schedule = schedule
    return tiled, tiling, seen


@pytest.mark.parametrize("family", family_parameters())
def test_tokens_come_back_from_every_place(tiny, family):
    """With blocks that do nothing the tiled model is the untiled one at every step."""
    model = getattr(tiny, family)()
    with replaced_blocks(model, family):
        plain = tiny.sample(model, family, steps=3)
        tiled, _, seen = watched(model, MOVES)
        moved = tiny.sample(tiled, family, steps=3)
    assert len({id(plan) for _, plan in seen}) == 3
    assert all((a - b).norm() <= 1e-5 * b.norm() for a, b in zip(moved, plain))


def test_one_tile_is_no_tiling_bit_for_bit(tiny):
    model = tiny.wan()
    plain = tiny.sample(model, "wan")[0]
    for how in (dict(shape="none"), dict(hex_res=0)):
        tiled = attach(model, settings(shift="step", **how))
        assert torch.equal(tiny.sample(tiled, "wan")[0], plain)


def test_steps_take_the_places_in_turn_and_both_prompts_the_same(tiny):
    tiled, tiling, seen = watched(tiny.wan(), MOVES)
    tiny.sample(tiled, "wan", steps=PLACES + 2, cfg=3.0)
    assert places(tiling, seen) == [*range(PLACES), 0, 1]
    assert len(tiling.tables._tables) <= 2 * PLACES  # kept, so that none is built twice


@pytest.mark.parametrize("sampler", ["heun", "dpm_2", "res_multistep", "dpmpp_sde", "euler"])
def test_calls_at_one_noise_level_have_one_place(tiny, sampler):
    tiled, tiling, seen = watched(tiny.wan(), MOVES)
    tiny.sample(tiled, "wan", steps=4, sampler=sampler, cfg=2.0)
    by_sigma = {}
    for (sigma, _), place in zip(seen, places(tiling, seen)):
        by_sigma.setdefault(sigma, set()).add(place)
    assert all(len(found) == 1 for found in by_sigma.values())
    # And a call between two steps has the place of the step before it.
    from h3video.render.engines.comfyui.steps import step_of

    assert [next(iter(p)) for p in by_sigma.values()] == sorted(
        next(iter(p)) for p in by_sigma.values()
    )
    assert {p for found in by_sigma.values() for p in found} == {0, 1, 2, 3}
    assert step_of({}) is None


def pieces(tiny, model, steps, cuts, scheduler):
    """Sampled in pieces, as KSamplerAdvanced does: one after the other from its own sigmas."""
    import comfy.sample

    start, noise = tiny.latent("wan")
    for i, (first, last) in enumerate(cuts):
        with torch.inference_mode():
            start = comfy.sample.sample(
                model, noise if i == 0 else torch.zeros_like(noise), steps, 1.0, "euler",
                scheduler, tiny.prompt("wan"), tiny.prompt("wan", seed=2), start,
                start_step=first, last_step=last, disable_noise=i > 0, disable_pbar=True, seed=11,
            )  # fmt: skip
    return start


@pytest.mark.parametrize("scheduler", ["simple", "normal", "sgm_uniform"])
@pytest.mark.parametrize("cut", [1, 3, 6])
def test_a_sampling_in_two_halves_has_the_places_of_the_whole(tiny, scheduler, cut):
    whole, tiling, seen = watched(tiny.wan(), MOVES)
    pieces(tiny, whole, 8, [(0, 8)], scheduler)
    wanted = places(tiling, seen)
    halves, tiling, seen = watched(tiny.wan(), MOVES)
    pieces(tiny, halves, 8, [(0, cut), (cut, 8)], scheduler)
    assert places(tiling, seen) == wanted == list(range(8))


def test_partial_denoise_has_the_places_of_the_last_steps(tiny):
    tiled, tiling, seen = watched(tiny.wan(), MOVES)
    tiny.sample(tiled, "wan", steps=4, denoise=0.5)  # the last 4 of 8
    assert places(tiling, seen) == [4, 5, 6, 7]


@pytest.mark.parametrize(
    "how",
    [
        {}, {"order": "tile-major"}, {"exchange": "block"}, {"accumulate": "cpu"},
        {"window": 2, "window_overlap": 1}, {"shape": "rect"}, {"start_step": 1, "end_step": 3},
    ],
    ids=str,
)  # fmt: skip
def test_it_goes_with_the_other_settings(tiny, how):
    model = tiny.wan()
    tiled, tiling, seen = watched(model, {**MOVES, **how})
    with replaced_blocks(model, "wan"):
        plain = tiny.sample(model, "wan", steps=4)[0]
        moved = tiny.sample(tiled, "wan", steps=4)[0]
    assert (moved - plain).norm() <= 1e-5 * plain.norm()
    first, last = how.get("start_step", 0), how.get("end_step", 4)
    assert places(tiling, seen) == list(range(first, last))
    a = tiny.sample(tiled, "wan", steps=4)[0]
    assert torch.equal(a, tiny.sample(tiled, "wan", steps=4)[0])
    other = attach(model, settings(**MOVES, **how, shift_seed=1))
    assert not torch.equal(a, tiny.sample(other, "wan", steps=4)[0])


def test_regions_run_on_the_tiles_of_the_step(tiny):
    from test_regions import half, with_regions

    model = tiny.wan()
    positive = with_regions(
        tiny.prompt("wan", tokens=7), (tiny.prompt("wan", tokens=5, seed=5), half((24, 40)))
    )
    tiled, _, seen = watched(model, MOVES)
    with replaced_blocks(model, "wan"):
        plain = tiny.sample(model, "wan", steps=3, positive=tiny.prompt("wan"))[0]
        moved = tiny.sample(tiled, "wan", steps=3, positive=positive)[0]
    assert (moved - plain).norm() <= 1e-5 * plain.norm()
    by_sigma = {}
    for sigma, plan in seen:
        by_sigma.setdefault(sigma, set()).add(id(plan))
    assert len(by_sigma) == 3 and all(len(plans) == 1 for plans in by_sigma.values())


def test_memory_is_that_of_the_largest_place(tiny):
    from h3video.render.engines.comfyui.memory import memory_share

    tiled, tiling, _ = watched(tiny.wan(), dict(budget=0.5, shift="step"))
    tiny.sample(tiled, "wan", steps=1)
    shares = [memory_share(plan) for plan in tiling.last.plans]
    assert memory_share(tiling._largest) == max(shares) > min(shares)


def test_the_log_states_the_largest_and_the_mean(tiny, caplog):
    with caplog.at_level("INFO", logger="h3video"):
        tiny.sample(attach(tiny.wan(), settings(**MOVES)), "wan", steps=3)
    (line,) = [r.message for r in caplog.records if "hex tiles" in r.message]
    assert f"moves every step, through {PLACES} places" in line and "mean price" in line


def test_the_grid_stays_where_the_sampler_does_not_tell_its_steps(tiny):
    from comfy.patcher_extension import WrappersMP

    def silent(executor, *args, **kwargs):
        def less(value):
            told = isinstance(value, dict) and "sample_sigmas" in value
            return {k: v for k, v in value.items() if k != "sample_sigmas"} if told else value

        return executor(*map(less, args), **{k: less(v) for k, v in kwargs.items()})

    model = tiny.wan()
    model.add_wrapper_with_key(WrappersMP.DIFFUSION_MODEL, "silent", silent)
    tiling = attach(model, settings(hex_res=3))
    tiny.sample(tiling, "wan", steps=3)
    (plan,) = tiling.h3video_tiling.plans
    assert plan.overlap == 64.0 and len(plan.tiles) > 1
    with pytest.raises(UsageError, match="shift=step needs a sampler that tells its sigmas"):
        tiny.sample(attach(model, settings(hex_res=3, shift="step")), "wan", steps=3)


def test_a_walk_refuses_it_and_the_others(tiny):
    from h3video.render.engines.comfyui.walk import WalkOptions, WalkSampler

    for name, value in (("shift", "step"), ("kernel", "cosine"), ("blend", "variance")):
        with pytest.raises(UsageError, match=f"{name}={value} is for tiles that are blended"):
            WalkSampler(None, settings(**{name: value}), WalkOptions())


# ---- crops ----


def test_crops_move_every_step(toys):
    model = attach(toys.toy(lambda x, _: x), settings(**CROPS))
    plain = toys.predictions(toys.toy(lambda x, _: x), SIZE, steps=4)
    moved = toys.predictions(model, SIZE, steps=4)
    assert all(torch.equal(a, b) for (a, _), (b, _) in zip(plain, moved))
    by_sigma = {}
    for _, inputs in model.model.diffusion_model.calls:
        box = inputs["options"]["h3video_crop"]
        by_sigma.setdefault(float(inputs["t"].flatten()[0]), set()).add((box.left, box.top))
    assert len(by_sigma) == 4 and len({frozenset(b) for b in by_sigma.values()}) == 4


def test_crops_of_all_places_are_checked_before_the_first_step(toys):
    """An input that only some crops could not take is refused at once."""
    model = attach(toys.toy(lambda x, _: x), settings(**CROPS))
    positive = toys.cond(toy_inputs={"unknown": torch.ones(1, 3, 60, 88)})
    with pytest.raises(Exception, match="unknown"):
        toys.predictions(model, SIZE, positive, steps=2)
    assert not model.model.diffusion_model.calls


def test_variance_and_a_moving_grid_go_together(toys):
    how = settings(blend="variance", kernel="cosine", overlap=24.0, **CROPS)
    plain = toys.predictions(toys.toy(lambda x, _: x), SIZE, steps=3)
    moved = toys.predictions(attach(toys.toy(lambda x, _: x), how), SIZE, steps=3)
    assert all(torch.equal(a, b) for (a, _), (b, _) in zip(plain, moved))
