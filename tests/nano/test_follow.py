"""The embedded model does what held-out prompts say. Minutes: it draws 60 clips."""

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("diffusers")

from h3video.nano.follow import LIMITS, Report, follow, held_out_scenes, main, pipeline
from h3video.nano.judge import Seen


@pytest.mark.slow_model
def test_held_out_prompts():
    with pipeline() as pipe:
        report = follow(pipe, held_out_scenes(60))
    shares = report.shares()
    assert all(shares[kind] >= limit for kind, limit in LIMITS.items()), (
        shares, report.misses(),
    )  # fmt: skip


def test_held_out_scenes_are_balanced():
    scenes = held_out_scenes(22)
    assert scenes == held_out_scenes(22) and len(scenes) == 22
    assert all(s.held_out for s in scenes)
    counts = [[s.direction for s in scenes].count(d) for d in ("left", "right", "up", "down")]
    assert max(counts) - min(counts) <= 1


def test_report_counts_and_names_misses():
    scene = held_out_scenes(4)[0]
    report = Report()
    report.add(scene, Seen(scene.colour, scene.ground, scene.direction, 0.1))
    report.add(scene, Seen(None, scene.ground, "nowhere", 0.0))
    assert report.shares() == {"colour": 0.5, "ground": 1.0, "direction": 0.5}
    assert [m.rsplit(": ", 1)[1] for m in report.misses()] == ["colour None", "direction nowhere"]


def test_the_command_says_when_a_limit_is_missed(monkeypatch, capsys):
    from h3video.nano import follow as module

    monkeypatch.setattr(module, "pipeline", lambda _: __import__("contextlib").nullcontext())
    monkeypatch.setattr(module, "follow", lambda pipe, scenes, keep: Report(
        list(scenes), [Seen("red", "blue", "left", 0.1)] * len(scenes)))  # fmt: skip
    assert main(["--prompts", "4"]) == 1
    assert "limit 85%" in capsys.readouterr().out
