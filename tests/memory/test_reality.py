"""The bill's comparison of prediction and measurement."""

import dataclasses

import pytest

from h3video.errors import UsageError
from h3video.memory import Phase, calibration
from h3video.render.bill import ledger_line
from h3video.render.job import RenderJob
from h3video.render.reality import comparison, comparison_text, predicted
from h3video.render.source import find_model

JOB = RenderJob(
    prompt="a", negative="", model="nano", width=480, height=288, frames=33, fps=16, steps=2,
    cfg=4.0, seed=0, dtype="bfloat16",
)  # fmt: skip


def plans(job=JOB):
    source = find_model("nano")
    return (
        source.folder, job.token_plan(source.family, source.denoiser(job.dtype)),
        job.crop_plan(source.family),
    )  # fmt: skip


def test_every_phase_of_a_render_is_compared():
    folder, tokens, crops = plans()
    ledger = predicted(JOB, folder, tokens, crops)
    assert ledger.ask.machine.gpu == "cpu" and ledger.ask.tiles.runs == tokens.runs
    phases = [Phase(name, 1.0, 10**9, None) for name in ("encode", "denoise", "decode", "save")]
    found = comparison(ledger, phases)
    assert [r["name"] for r in found["phases"]] == ["encode", "denoise", "decode", "save"]
    for row in found["phases"]:
        parts = row["program_bytes"] + row["weight_bytes"] + row["activation_bytes"]
        assert 0 < parts <= row["predicted_bytes"] and row["measured_bytes"] == 10**9
    assert comparison_text(found).count("\n") == 4
    learned, lines = calibration.learn({"ledger": found}, calibration.Calibration({}))
    assert lines and learned.of(ledger.ask)["program"] > 0


def test_a_devices_peak_is_compared_on_a_device():
    from h3video.memory.ledger import plan
    from h3video.memory.machine import find_machine

    folder, tokens, crops = plans()
    ledger = predicted(JOB, folder, tokens, crops)
    card = plan(ledger.ask.but(machine=find_machine("rtx4090")))
    found = comparison(card, [Phase("sample 1", 1.0, 9 * 10**9, 2 * 10**9)])
    assert found["memory"] == "device"
    assert [(r["name"], r["measured_bytes"]) for r in found["phases"]] == [("denoise", 2 * 10**9)]


def test_smaller_tiles_are_predicted_smaller():
    job = dataclasses.replace(JOB, width=1280, height=704, shape="none")
    folder, whole, _ = plans(job)
    tiled = dataclasses.replace(job, shape="hex", budget=0.25)
    one = predicted(job, folder, whole).phase("denoise").total()
    two = predicted(tiled, folder, plans(tiled)[1]).phase("denoise").total()
    assert two < one


def test_a_model_that_the_ledger_does_not_know_has_no_line(tmp_path):
    class Meter:
        phases = ()

    _, tokens, crops = plans()
    job = dataclasses.replace(JOB, model="someone/else")
    assert ledger_line(job, str(tmp_path), tokens, crops, Meter()) is None


GOOD = {"name": "denoise", "measured_bytes": 9, "predicted_bytes": 8, "program_bytes": 1,
        "activation_bytes": 2}  # fmt: skip


@pytest.mark.parametrize(
    "ledger",
    [
        None, 5, {}, {"phases": 5}, {"phases": []}, {"phases": [3]}, {"phases": [{"name": "x"}]},
        {"phases": [GOOD]},
        {"phases": [{**GOOD, "measured_bytes": "9"}], "runtime": "a", "gpu": "b"},
        {"phases": [{**GOOD, "measured_bytes": float("inf")}], "runtime": "a", "gpu": "b"},
        {"phases": [{**GOOD, "predicted_bytes": -1}], "runtime": "a", "gpu": "b"},
        {"phases": [{"measured_bytes": 9}], "runtime": "a", "gpu": "b"},
        {"phases": [{**GOOD, "measured_bytes": None}], "runtime": "a", "gpu": "b"},
    ],
)  # fmt: skip
def test_a_bill_of_another_kind_is_refused(ledger):
    with pytest.raises(UsageError, match="bill"):
        calibration.learn({"ledger": ledger}, calibration.Calibration({}))
