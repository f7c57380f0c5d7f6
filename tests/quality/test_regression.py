"""The lab's reached figures hold: a subset of its seeds, so the limits are near what it measures.

The same seeds give the same figures, so a limit that is missed is a change of grid, weights or
blend (or of a measure), not chance. docs/quality.md has the figures over all seeds.
"""

import pytest

pytest.importorskip("scipy")
pytest.importorskip("skimage")
pytest.importorskip("flip_evaluator")

from benchmarks.quality import counted, field_runs
from benchmarks.quality.report import against
from h3video.models.wan import WAN

SEEDS = range(4)
NANO_FLIP, NANO_AGAINST = 0.11, 1.1  # measured: 0.085, 1.00


@pytest.fixture(scope="module")
def seams():
    return [r.to_json() for s in SEEDS for r in field_runs.run_turns(s, turns=())]


@pytest.fixture(scope="module")
def flips():
    return [
        r.to_json() for s in range(2)
        for r in field_runs.run_seed(s, ("misalignment", "texture"), (8,))
    ]  # fmt: skip


# Against rectangles of equal area and overlap: lines on the axes, signed axis energy, junctions.
REACHED = {
    (128, 8): (0.08, 0.45, 0.95), (128, 32): (0.17, 1.25, 1.1),
    (64, 8): (0.08, 0.55, 0.95), (64, 32): (0.08, 1.3, 1.1),
}  # fmt: skip


@pytest.mark.parametrize(("side", "overlap"), REACHED)
def test_seams_of_the_tint_field(seams, side, overlap):
    where = {"side": side, "overlap": overlap}
    for key, limit in zip(("line", "axis", "junction"), REACHED[side, overlap]):
        assert against(seams, key, **where).value <= limit, key


def test_the_target_of_the_issue_for_lines_on_the_axes(seams):
    assert against(seams, "line", side=128, overlap=8).value <= 1 / 4
    assert against(seams, "line", side=128, overlap=32).value <= 1 / 2


@pytest.mark.parametrize("field", ["misalignment", "texture"])
def test_flip_is_not_worse(flips, field):
    assert against(flips, "flip", field=field, overlap=8).value <= 1.02


def test_an_inner_tile_runs_fewer_tokens():
    """At a context of one and two inradii: 8 % fewer than a crop, 3 % than a rounded square."""
    for context in (1.0, 2.0):
        found = counted.interior(384.0, context)
        assert found.hexagons <= 0.92 * found.rectangles
        assert found.hexagons <= 0.97 * found.rounded


def test_whole_plans_do_not_get_dearer():
    """A quarter of the frame, 64 px of context: fewer tokens than crops."""
    for width, height in ((832, 480), (1280, 704)):
        ways = {w: counted.best(WAN, width, height, 64.0, 1 / 4, w) for w in counted.WAYS}
        assert ways["hexagons"].tokens <= 0.99 * ways["crops"].tokens
        assert ways["hexagons"].tokens <= 1.12 * ways["rectangles"].tokens


# ---- the embedded model, at twice its canvas ----


@pytest.fixture(scope="module")
def drawn(tmp_path_factory):
    """Hexagons and rectangles of two prompts, enlarged and sampled again."""
    torch = pytest.importorskip("torch")
    pytest.importorskip("diffusers")
    from benchmarks.quality.nano_paint import Painter
    from benchmarks.quality.nano_runs import tasks, work
    from benchmarks.quality.nano_variants import CANVASES, Stage
    from h3video.nano.follow import pipeline

    folder, threads = tmp_path_factory.mktemp("nano"), torch.get_num_threads()
    torch.set_num_threads(1)
    with pipeline() as pipe:
        painter = Painter(pipe)
        todo = tasks([], 2, [Stage(CANVASES["2x"], "upscaled", ("main",))])
        rows = [row for task in todo for row in work(task, folder, painter)]
    torch.set_num_threads(threads)
    return {
        v: [r for r in rows if r["variant"] == v] for v in ("untiled", "hexagons", "rectangles")
    }


def test_hexagons_on_the_embedded_model(drawn):
    """The limits have room: bfloat16 differs from machine to machine."""
    flips = {v: sum(r["flip"] for r in rows) / 2 for v, rows in drawn.items()}
    assert flips["untiled"] == 0
    assert 0 < flips["hexagons"] <= NANO_FLIP
    assert flips["hexagons"] <= NANO_AGAINST * flips["rectangles"]


def test_no_pulse_on_the_embedded_model(drawn):
    assert max(r["pulse"] for r in drawn["hexagons"]) < 0.5


def test_colour_and_ground_stay_what_the_prompt_said(drawn):
    for tiled, untiled in zip(drawn["hexagons"], drawn["untiled"]):
        assert tiled["ground"] >= untiled["ground"]
        assert tiled["subjects"] <= max(1, untiled["subjects"])
