"""Walk plans: every cell once, along the neighbours, colours never touch, nothing left over."""

import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from h3video.errors import UsageError
from h3video.tiling.settings import HexSettings
from h3video.tiling.walk import WALK_ORDERS, by_importance, plan_walk


def walk(columns=40, rows=24, unit=8, patch=2, order="spiral", focus=(0.5, 0.5), fits=None,
         importance=None, **how):  # fmt: skip
    return plan_walk(
        columns, rows, unit, patch, HexSettings(**{"hex_res": 4, **how}), order=order, focus=focus,
        importance=importance, fits=fits,
    )  # fmt: skip


plans = st.builds(
    walk,
    columns=st.integers(12, 60), rows=st.integers(12, 60), patch=st.sampled_from([1, 2, 8]),
    hex_res=st.sampled_from(["auto", 3, 4]), overlap=st.sampled_from([None, 0.0, 16.0, 64.0]),
    halo=st.sampled_from([None, 16.0]), rotation=st.floats(-90, 90),
    order=st.sampled_from(["spiral", "bfs"]),
    focus=st.tuples(st.floats(0, 1), st.floats(0, 1)),
)  # fmt: skip


@given(plans)
@settings(max_examples=40)
def test_every_cell_once_and_every_latent_once(plan):
    if plan.single:
        assert plan.share == 1.0 and plan.steps[0].latents == plan.columns * plan.rows
        return
    assert sorted(s.cell for s in plan.steps) == list(range(len(plan.grid.cells)))
    owner = plan.finished_by
    assert owner.shape == (plan.rows, plan.columns) and owner.min() >= 0
    counts = np.bincount(owner.ravel(), minlength=len(plan.steps))
    assert counts.tolist() == [s.latents for s in plan.steps]
    assert sorted(i for stage in plan.stages() for i in stage) == list(plan.sampled)
    assert sorted(i for colour in plan.classes() for i in colour) == list(plan.sampled)


@given(plans)
@settings(max_examples=40)
def test_crops_hold_what_they_finish_with_context(plan):
    for i, step in enumerate(plan.steps):
        box = plan.box(i)
        assert (box.columns, box.rows) == (plan.crop_columns, plan.crop_rows)
        assert 0 <= box.left <= plan.columns - box.columns
        assert 0 <= box.top <= plan.rows - box.rows
        if plan.columns % plan.patch == plan.rows % plan.patch == 0:
            assert box.left % plan.patch == box.top % plan.patch == 0
        y, x = np.nonzero(plan.finished_by == i)
        if step.latents:
            assert x.min() >= box.left and x.max() < box.left + box.columns
            assert y.min() >= box.top and y.max() < box.top + box.rows


@given(plans)
@settings(max_examples=40)
def test_colours_never_touch(plan):
    if plan.single:
        return
    colour = {s.cell: s.colour for s in plan.steps}
    for cell, near in enumerate(plan.grid.neighbours):
        assert all(colour[cell] != colour[j] for j in near)
    assert set(colour.values()) <= {0, 1, 2}


@given(plans)
@settings(max_examples=40)
def test_a_stage_depends_only_on_earlier_ones(plan):
    stage = {i: n for n, steps in enumerate(plan.stages()) for i in steps}
    for i in plan.sampled:
        box = plan.box(i)
        seen = plan.finished_by[box.top : box.top + box.rows, box.left : box.left + box.columns]
        earlier = {int(j) for j in np.unique(seen) if j < i}
        assert earlier == set(plan.steps[i].after)
        assert all(stage[j] < stage[i] for j in earlier)


def test_the_ring_is_in_the_crop():
    plan = walk(80, 48)
    for i, step in enumerate(plan.steps):
        box = plan.box(i)
        for j in plan.grid.neighbours[step.cell]:
            left, top, right, bottom = plan.grid.bounds(j)
            assert max(0, left) >= box.left * 8 - 1e-6 and max(0, top) >= box.top * 8 - 1e-6
            assert min(640, right) <= (box.left + box.columns) * 8 + 1e-6
            assert min(384, bottom) <= (box.top + box.rows) * 8 + 1e-6


def test_a_step_finishes_its_cell_and_half_the_overlap_beyond():
    plan = walk(80, 48, overlap=48.0)
    first = plan.steps[0]
    xs, ys = np.meshgrid((np.arange(80) + 0.5) * 8, (np.arange(48) + 0.5) * 8)
    distance = plan.grid.signed_distance(first.cell, xs, ys)
    assert ((plan.finished_by == 0) == (distance >= -24.0 + 1e-6)).all()
    hard = walk(80, 48, overlap=0.0)
    index, _ = hard.grid.sample_weights(80, 48, 8.0, 0.0)
    cells = np.array([s.cell for s in hard.steps])
    assert (cells[hard.finished_by] == index[..., 0]).all()


def test_a_sliver_that_others_finish_is_not_sampled():
    plan = walk(80, 48, overlap=64.0)
    assert 0 < len(plan.sampled) < len(plan.steps)
    assert plan.price == pytest.approx(plan.share * len(plan.sampled))


@pytest.mark.parametrize("order", ["spiral", "bfs"])
def test_orders_begin_at_the_focus_and_go_along_the_neighbours(order):
    plan = walk(80, 48, order=order, focus=(0.2, 0.8))
    assert plan.steps[0].cell == plan.grid.cell_at(0.2 * 640, 0.8 * 384)
    rings = plan.grid.rings(0.2 * 640, 0.8 * 384)
    walked = [rings[s.cell] for s in plan.steps]
    assert order == "bfs" or walked == sorted(walked)
    done = {plan.steps[0].cell}
    for step in plan.steps[1:]:
        assert any(j in done for j in plan.grid.neighbours[step.cell])
        done.add(step.cell)


def test_importance_goes_from_bright_to_dark():
    mask = np.zeros((48, 80))
    mask[30:40, 10:20] = 1.0
    plan = walk(80, 48, order="importance", importance=mask)
    first = plan.grid.cells[plan.steps[0].cell]
    assert 80 <= first.x <= 160 and 240 <= first.y <= 320
    done = {plan.steps[0].cell}
    for step in plan.steps[1:]:
        assert any(j in done for j in plan.grid.neighbours[step.cell])
        done.add(step.cell)


@given(st.lists(st.integers(0, 9), min_size=1, max_size=30), st.randoms(use_true_random=False))
def test_by_importance_visits_everything_once(values, random):
    near = [set() for _ in values]
    for i in range(len(values)):
        for j in random.sample(range(len(values)), min(3, len(values))):
            if i != j:
                near[i].add(j)
                near[j].add(i)
    order = by_importance(values, [sorted(n) for n in near])
    assert sorted(order) == list(range(len(values)))
    assert values[order[0]] == max(values)
    for k, i in enumerate(order[1:], 1):
        border = {j for d in order[:k] for j in near[d]} - set(order[:k])
        assert not border or (i in border and values[i] == max(values[j] for j in border))


def test_auto_takes_the_coarsest_that_fits():
    assert walk(160, 90, hex_res="auto").share <= 0.5
    tight = walk(160, 90, hex_res="auto", budget=0.1)
    assert tight.share <= 0.1 and tight.grid.res >= walk(160, 90, hex_res="auto").grid.res
    assert walk(6, 6, hex_res="auto").single
    assert 2 * walk(24, 24, hex_res="auto").grid.inradius >= 32
    by_bytes = walk(160, 90, hex_res="auto", budget=1000, fits=lambda c, r: c * r <= 2000)
    assert by_bytes.crop_columns * by_bytes.crop_rows <= 2000


def test_plan_is_plain_data():
    plan = walk(80, 48)
    data = json.loads(json.dumps(plan.to_json()))
    assert [s["id"] for s in data["steps"]] == [f"{s.id:x}" for s in plan.steps]
    assert len(data["classes"]) == 3 and data["stages"][0][0] == 0
    assert "by colour" in plan.summary() and "stages" in plan.summary()


@pytest.mark.parametrize(
    ("how", "message"),
    [
        (dict(shape="rect"), "shape hex"),
        (dict(order="random"), "order 'random' is unknown; use spiral, bfs, importance"),
        (dict(focus=(1.2, 0.5)), "focus 1.2, 0.5 is out of range 0..1"),
        (dict(order="importance"), "needs a mask"),
        (dict(order="importance", importance=np.ones((3, 3))), "3x3 points"),
        (dict(budget=1000), "use a share"),
        (dict(hex_res="auto", budget=1000, fits=lambda c, r: False), "fits the budget"),
        (dict(hex_res=6, columns=400, rows=300), "at most 1024 can be walked"),
    ],
)
def test_refused(how, message):
    with pytest.raises(UsageError, match=message):
        walk(**how)


def test_orders_are_listed():
    assert WALK_ORDERS == ("spiral", "bfs", "importance")
