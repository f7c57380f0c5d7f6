"""The embedded model's part of the lab, without the model: settings, order, and going on."""

import json

import numpy as np
import pytest

pytest.importorskip("scipy")
pytest.importorskip("torch")
pytest.importorskip("flip_evaluator")

from benchmarks.quality import nano_runs
from benchmarks.quality.nano_runs import PATHS, VARIANTS, Canvas, run, tile_settings
from h3video.models.wan import WAN
from h3video.nano.data import render
from h3video.nano.follow import held_out_scenes
from h3video.tiling.tokens import plan_token_tiles

SMALL = Canvas(120, 72, 2, 5, 2, 0.6)


@pytest.mark.parametrize("canvas", [Canvas(budget=0.5), Canvas(480, 288, 2, 33)])
def test_rectangles_run_as_many_tokens_as_hexagons(canvas):
    plans = [
        plan_token_tiles(*canvas.large, canvas.frames, WAN, **s)
        for s in tile_settings(canvas).values()
    ]
    assert [p.shape for p in plans] == ["hex", "rect"]
    assert plans[1].tokens_run == pytest.approx(plans[0].tokens_run, rel=0.03)
    assert not plans[0].single


class Brush:
    """Paints the true clip, in tiles with a tint and a doubled subject."""

    drawn: list

    def __init__(self, pipe):
        Brush.drawn = []

    def draw(self, canvas, path, prompt, seed, size, tiles, start=None):
        Brush.drawn.append((path, seed, size, tiles is not None))
        clip = render(held_out_scenes(2)[seed], *size, canvas.frames)
        return clip if tiles is None else np.clip(clip * 0.97, 0, 1)


@pytest.fixture
def brush(monkeypatch):
    import contextlib

    import h3video.nano.follow as follow

    monkeypatch.setattr(nano_runs, "Painter", Brush)
    tiles = {"hexagons": dict(budget=0.6), "rectangles": dict(budget=0.6, shape="rect")}
    monkeypatch.setattr(nano_runs, "tile_settings", lambda canvas: tiles)
    monkeypatch.setattr(follow, "pipeline", lambda: contextlib.nullcontext())
    return Brush


def test_every_render_is_measured_and_remembered(brush, tmp_path):
    path = tmp_path / "deep" / "nano.jsonl"
    rows = run(path, 2, SMALL, lambda _: None)
    assert len(rows) == 2 * len(PATHS) * len(VARIANTS)
    assert [json.loads(line) for line in path.read_text().splitlines()] == rows
    for row in rows:
        assert (row["flip"] == 0) == (row["variant"] == "untiled")
        assert row["subjects"] == 1
        assert row["ground"]
    small = [d for d in brush.drawn if d[2] == (120, 72)]
    assert len(small) == 2  # one small render for each upscaled path, never tiled
    assert not any(d[3] for d in small)


def test_a_stopped_run_goes_on(brush, tmp_path):
    path = tmp_path / "nano.jsonl"
    first = run(path, 1, SMALL, lambda _: None)
    lines = path.read_text().splitlines()
    path.write_text("\n".join(lines[:3]) + "\n")  # the second path was lost
    again = run(path, 2, SMALL, lambda _: None)
    assert [d[:2] for d in brush.drawn if d[3]] == [("upscaled", 0)] * 2 + [
        (way, 1) for way in PATHS for _ in range(2)
    ]
    assert len(again) == 2 * len(first)


def test_upscaling_keeps_a_constant_and_the_frames():
    clip = np.full((3, 8, 16, 3), 0.4)
    big = nano_runs.upscaled(clip, (32, 16))
    assert big.shape == (3, 16, 32, 3)
    assert np.abs(big - 0.4).max() < 1 / 255
