"""A grid that moves every step, and other curves, on tiny pipelines of diffusers."""

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("diffusers")

import h3video
from h3video.errors import UsageError
from h3video.render.engines.diffusers.steps import schedule_step
from h3video.tiling.shift import PLACES

MOVES = dict(hex_res=3, shift="step")


def watch(tiling):
    """The place of every pass, in a list that fills."""
    seen, original = [], tiling.plan

    def plan(*args):
        found = original(*args)
        schedule = tiling.schedule(*args[:4])
        seen.append(schedule.plans.index(found))
        return found

    tiling.plan = plan
    return seen


def test_steps_take_the_places_in_turn_and_both_prompts_the_same(tiny_pipe, run_pipe):
    tiling = h3video.apply_hex_tiling(tiny_pipe, **MOVES)
    seen = watch(tiling)
    a = run_pipe(tiny_pipe, steps=PLACES + 2, cfg=4.0)
    assert seen == [p for k in range(PLACES + 2) for p in (k % PLACES,) * 2]
    assert len(tiling.plans) == PLACES
    seen.clear()
    assert torch.equal(run_pipe(tiny_pipe, steps=PLACES + 2, cfg=4.0), a)
    assert seen[:4] == [0, 0, 1, 1]  # a new sampling begins anew
    h3video.apply_hex_tiling(tiny_pipe, **MOVES, shift_seed=1)
    assert not torch.equal(run_pipe(tiny_pipe, steps=PLACES + 2, cfg=4.0), a)


@pytest.mark.parametrize("how", [dict(shape="none"), dict(budget=1.0), dict(hex_res=0)], ids=str)
def test_one_tile_is_bit_identical(tiny_pipe, run_pipe, how):
    plain = run_pipe(tiny_pipe)
    h3video.apply_hex_tiling(tiny_pipe, shift="step", **how)
    tiled = run_pipe(tiny_pipe)
    assert torch.equal(tiled, plain) or how == dict(budget=1.0)


@pytest.mark.parametrize(
    "how",
    [
        {}, dict(exchange="block"), dict(accumulate="cpu"), dict(shape="rect"),
        dict(window=1, window_overlap=0),
    ],
    ids=str,
)  # fmt: skip
def test_it_stays_close_to_the_whole_with_other_settings(tiny_pipe, run_pipe, how):
    plain = run_pipe(tiny_pipe, steps=3)
    tiling = h3video.apply_hex_tiling(tiny_pipe, **MOVES, **how)
    seen = watch(tiling)
    moved = run_pipe(tiny_pipe, steps=3)
    assert sorted(set(seen)) == [0, 1, 2]
    assert 0.0 < (moved - plain).norm() / plain.norm() < 0.2
    assert torch.equal(run_pipe(tiny_pipe, steps=3), moved)


def test_it_goes_with_start_and_end_step(tiny_pipe, run_pipe):
    tiling = h3video.apply_hex_tiling(tiny_pipe, **MOVES, start_step=1, end_step=3)
    seen = watch(tiling)
    run_pipe(tiny_pipe, steps=4)
    assert sorted(set(seen)) == [1, 2]


def test_a_sampling_that_begins_later_has_the_places_of_its_steps(tiny_pipe, run_pipe):
    """What video to video does: the schedule is whole, the first steps are left out."""
    scheduler = tiny_pipe.scheduler
    scheduler.set_timesteps(8)
    for begun in (True, False):
        for k in range(8):
            scheduler._begin_index = k if begun else None
            scheduler._step_index = None
            now = None if begun else torch.tensor([scheduler.timesteps[k], 0.0])
            assert schedule_step(scheduler, now) == k
            scheduler._step_index = k
            assert schedule_step(scheduler, now) == k


def test_calls_at_one_noise_level_have_one_place():
    from diffusers import FlowMatchHeunDiscreteScheduler

    scheduler = FlowMatchHeunDiscreteScheduler()
    scheduler.set_timesteps(4)
    found = {}
    for k in range(len(scheduler.timesteps)):
        scheduler._step_index = k
        found.setdefault(float(scheduler.timesteps[k]), set()).add(schedule_step(scheduler))
    assert sorted(found) == sorted(set(map(float, scheduler.timesteps)))
    assert [p for t in sorted(found, reverse=True) for p in found[t]] == list(range(len(found)))


def test_a_scheduler_that_tells_no_step_is_refused(tiny_pipe):
    class Silent:
        config: dict = {}

    object.__setattr__(tiny_pipe, "scheduler", Silent())
    with pytest.raises(UsageError, match="shift=step cannot be kept"):
        h3video.apply_hex_tiling(tiny_pipe, shift="step")


def test_the_plan_of_a_clip_is_the_largest(tiny_pipe):
    tiling = h3video.apply_hex_tiling(tiny_pipe, **MOVES)
    plans = tiling.schedule(19, 11, 2, None).plans
    largest = tiling.token_plan(304, 176, 5)
    assert largest in plans and largest.share == max(p.share for p in plans)


@pytest.mark.parametrize("kernel", ["cosine", "gaussian", "smoothstep"])
def test_other_curves(tiny_pipe, run_pipe, kernel):
    plain = run_pipe(tiny_pipe)
    h3video.apply_hex_tiling(tiny_pipe, hex_res=3)
    usual = run_pipe(tiny_pipe)
    tiling = h3video.apply_hex_tiling(tiny_pipe, hex_res=3, kernel=kernel)
    other = run_pipe(tiny_pipe)
    assert not torch.equal(usual, other)
    assert (other - usual).norm() < 0.5 * (usual - plain).norm()
    assert tiling.plans[0].to_json()["kernel"] == kernel


def test_what_it_cannot_do_is_refused_by_name(tiny_pipe):
    with pytest.raises(UsageError, match="blend=variance is for crops"):
        h3video.apply_hex_tiling(tiny_pipe, blend="variance")
    with pytest.raises(UsageError, match="kernel 'round' is unknown"):
        h3video.apply_hex_tiling(tiny_pipe, kernel="round")
    with pytest.raises(UsageError, match="shift 'block' is unknown"):
        h3video.apply_hex_tiling(tiny_pipe, shift="block")
    assert not h3video.remove_hex_tiling(tiny_pipe)
