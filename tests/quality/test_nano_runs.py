"""The embedded model's part of the lab, without the model: settings, order, and going on."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("scipy")
pytest.importorskip("torch")
pytest.importorskip("flip_evaluator")

from benchmarks.quality import nano_paint, nano_runs, nano_variants
from benchmarks.quality.nano_runs import Task, look, owners, run, tasks, work
from benchmarks.quality.nano_variants import (
    CANVASES,
    PATHS,
    STAGES,
    UNTILED,
    Canvas,
    Stage,
    fingerprint,
    main,
    pairs,
    plan,
    schedule,
)
from h3video.nano.data import render
from h3video.nano.follow import held_out_scenes

SMALL = Canvas(factor=2, budget=0.4)
STAGE = {path: Stage(SMALL, path, ("main",)) for path in PATHS}


# ---- what is compared ----


@pytest.mark.parametrize("name", CANVASES)
def test_rectangles_run_as_many_tokens_as_hexagons(name):
    canvas = CANVASES[name]
    hexes, rects = (plan(canvas, v.settings) for v in main(canvas))
    assert (hexes.shape, rects.shape) == ("hex", "rect")
    moving = [schedule(canvas, v.settings) for v in main(canvas)]
    assert moving[1].price == pytest.approx(moving[0].price, rel=0.02)
    assert (rects.overlap, rects.halo) == (hexes.overlap, hexes.halo)
    assert max(hexes.share, rects.share) <= canvas.budget
    assert moving[1].largest.share == pytest.approx(moving[0].largest.share, rel=0.02)
    assert not hexes.single


def test_pairs_have_equal_cells_fades_and_halos():
    canvas = CANVASES["4x"]
    rects, hexes = (plan(canvas, v.settings) for v in pairs(canvas))
    assert hexes.grid.cell_area == pytest.approx(rects.grid.cell_area, rel=1e-9)
    assert (hexes.overlap, hexes.halo) == (rects.overlap, rects.halo)
    assert hexes.tokens_run == pytest.approx(rects.tokens_run, rel=0.02)
    inner = [t for t in rects.tiles if not touches_edge(t, rects)]
    assert len(inner) >= 3
    assert min(len(rects.tiles), len(hexes.tiles)) >= 12


def touches_edge(tile, p):
    rows, columns = np.divmod(np.array(tile.tokens), p.columns)
    return (
        rows.min() == 0 or columns.min() == 0
        or rows.max() == p.rows - 1 or columns.max() == p.columns - 1
    )  # fmt: skip


def test_every_stage_differs_from_untiled_and_names_are_unique():
    for stage in STAGES:
        first, *others = stage.variants
        assert first.settings is None
        assert others
        assert all(not schedule(stage.canvas, v.settings).at(0).single for v in others)
    keys = [(s.canvas, s.path, v.name) for s in STAGES for v in s.variants if v.settings]
    assert len(set(keys)) == len(keys)


def test_a_fingerprint_is_that_of_the_plan():
    base = fingerprint(SMALL, {"budget": 0.5})
    assert base == fingerprint(SMALL, {"budget": 0.5})
    others = [{"budget": 0.4}, {"budget": 0.5, "halo": 64.0}, {"budget": 0.5, "kernel": "cosine"},
              {"budget": 0.5, "shift": "none"}]  # fmt: skip
    assert len({base, *(fingerprint(SMALL, s) for s in others)}) == 1 + len(others)
    halo = plan(SMALL, {"budget": 0.5}).halo
    assert fingerprint(SMALL, {"budget": 0.5, "halo": halo}) == base  # the same plans
    assert fingerprint(SMALL, {"budget": 0.5, "shift": "step"}) == base
    assert fingerprint(SMALL, None) == UNTILED


def test_owners_are_the_tiles_of_the_largest_weight():
    p = plan(SMALL, {"budget": 0.5})
    owner = owners(p)
    assert owner.shape == (p.height, p.width)
    counts = np.bincount(owner[8::16, 8::16].ravel(), minlength=len(p.tiles))
    # Where a tile owns two of three cells that meet, its weight may be the largest on the third.
    assert np.abs(counts - [t.owned for t in p.tiles]).max() <= 1


# ---- drawing, without the model ----


class Brush:
    """Paints the true clip; in tiles it is darker, and drawn twice."""

    def __init__(self):
        self.drawn = []

    def small(self, canvas, prompt, seed):
        self.drawn.append(("small", seed))
        return render(held_out_scenes(20)[seed], canvas.width, canvas.height, canvas.frames)

    def draw(self, canvas, prompt, seed, tiles, start=None):
        scene = held_out_scenes(20)[seed]
        assert prompt == scene.caption()
        self.drawn.append(("noise" if start is None else "upscaled", seed, tiles))
        if start is not None:
            assert start.shape == (canvas.frames, *canvas.large[::-1], 3)
        width, height = canvas.large
        if tiles is None:
            return render(scene, width, height, canvas.frames)
        half = render(replace(scene, size="small"), width // 2, height, canvas.frames)
        return np.concatenate([half, half], 2) * 0.97


def settings_of(row):
    return next(v.settings for v in main(SMALL) if v.name == row["variant"])


def test_what_is_measured(tmp_path):
    brush = Brush()
    rows = list(work(Task(SMALL, "upscaled", 1, STAGE["upscaled"].variants), tmp_path, brush))
    assert [r["variant"] for r in rows] == [UNTILED, "hexagons", "rectangles"]
    assert [r["subjects"] for r in rows] == [1, 2, 2]
    assert [r["flip"] > 0.05 for r in rows] == [False, True, True]
    assert rows[0]["line"] == rows[0]["pulse"] == rows[0]["drift"] == 0
    for r in rows[1:]:
        plans = schedule(SMALL, settings_of(r))
        p = plans.largest
        assert (r["tiles"], r["share"], r["tokens"]) == (len(p.tiles), p.share, plans.price)
        assert r["flicker"] >= 0
    assert brush.drawn[0] == ("small", 1)
    # Later variants find the small and the untiled clip on the shelf.
    again = Brush()
    more = list(work(Task(SMALL, "upscaled", 1, STAGE["upscaled"].variants[1:]), tmp_path, again))
    assert [d[0] for d in again.drawn] == ["upscaled"] * 2
    assert [r["flip"] for r in more] == [r["flip"] for r in rows[1:]]


def test_a_pulse_that_only_tiles_have():
    scene = held_out_scenes(1)[0]
    clip = render(scene, 96, 64, 5).astype(np.float64) * 0.9
    pulsing = clip + np.array([0, 0, 2, 2, 2])[:, None, None, None] / 255
    assert look(pulsing, clip, scene, None)["pulse"] == pytest.approx(2, abs=0.01)
    assert look(clip, clip, scene, None)["pulse"] == 0


@pytest.fixture
def brush(monkeypatch):
    made = Brush()
    monkeypatch.setattr(nano_runs, "_painter", lambda: made)  # worker processes are forks
    return made


def test_every_render_is_remembered_and_a_stopped_run_goes_on(brush, tmp_path):
    stages = tuple(STAGE.values())
    said = []
    rows, drawn = run(2, 1, said.append, tmp_path, stages)
    assert said[0] == "nano: 12 renders to do"
    assert len(rows) == drawn == 2 * len(PATHS) * 3
    path = tmp_path / "nano.jsonl"
    lines = path.read_text().splitlines()
    assert sorted(map(json.dumps, rows)) == sorted(lines)
    path.write_text("\n".join(lines[:4]) + "\n")
    left = list(tasks([json.loads(line) for line in lines[:4]], 2, stages))
    assert sum(len(t.variants) for t in left) == 8
    again, drawn = run(2, 1, said.append, tmp_path, stages)
    assert drawn == 8
    assert [drop_time(r) for r in again] == [drop_time(r) for r in rows]
    assert run(2, 1, said.append, tmp_path, stages) == (again, 0)
    assert said[-1] == "nano: 0 renders to do"


def drop_time(row):
    return {k: v for k, v in row.items() if k != "seconds"}


def test_rows_of_older_plans_are_left_out(brush, tmp_path):
    stages = (STAGE["noise"],)
    rows, _ = run(1, 1, lambda _: None, tmp_path, stages)
    older = [{**r, "mark": "0123456789", "flip": 9.0} for r in rows if r["variant"] != UNTILED]
    path = Path(tmp_path / "nano.jsonl")
    path.write_text("".join(json.dumps(r) + "\n" for r in [*older, *rows, *older]))
    assert run(1, 1, lambda _: None, tmp_path, stages) == (rows, 0)


def test_a_new_default_finds_what_was_drawn_under_another_name(brush, tmp_path, monkeypatch):
    rows, _ = run(1, 1, lambda _: None, tmp_path, (STAGE["noise"],))
    monkeypatch.setattr(nano_variants, "HEXAGONS", "a new name")
    said = []
    again, _ = run(1, 1, said.append, tmp_path, (Stage(SMALL, "noise", ("main",)),))
    assert said == ["nano: 0 renders to do"]
    names = [r["variant"] for r in again]
    assert names == [UNTILED, "a new name", "rectangles"]
    assert [r["flip"] for r in again] == [r["flip"] for r in rows]


def test_all_variants_start_from_one_encoding():
    torch = pytest.importorskip("torch")
    calls = []
    encode = nano_paint.once(lambda clip: calls.append(clip) or len(calls))
    a, b = torch.zeros(2, 3), torch.ones(2, 3)
    assert [encode(a), encode(a.clone()), encode(b), encode(a)] == [1, 1, 2, 3]


def test_enlarging_keeps_a_constant_and_the_frames():
    clip = np.full((3, 8, 16, 3), 0.4)
    big = nano_paint.enlarged(clip, (32, 16))
    assert big.shape == (3, 16, 32, 3)
    assert np.abs(big - 0.4).max() < 1 / 255
