"""H3MemoryLedger on ComfyUI's real modules."""

import importlib
import sys

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("PIL")

from h3video.errors import UsageError
from h3video.models.catalog import model_spec


@pytest.fixture(scope="module")
def ledger(comfyui):
    """The node's class."""
    sys.path.insert(0, str(comfyui))
    import comfy.cli_args

    comfy.cli_args.args.cpu = True
    return importlib.import_module("h3video.nodes.memory_ledger").H3MemoryLedger


def run(cls, **more):
    given = {"model": "wan2.1-t2v-14b", "quant": "Q8_0", "width": 1280, "height": 720,
             "frames": 81, "machine": "m3max-36gb", **more}  # fmt: skip
    out = cls.execute(**given)
    return out.args if hasattr(out, "args") else out.result


class Loaded:
    """A MODEL with the tensors of a catalog entry, without their memory."""

    def __init__(self, name, dtype=torch.bfloat16):
        tensors = {
            t.name: torch.empty(t.shape, device="meta", dtype=dtype)
            for t in model_spec(name).tensors()
        }
        module = torch.nn.Module()
        module.state_dict = lambda: tensors
        self.model = torch.nn.Module()
        self.model.diffusion_model = module


def test_a_plan_that_fits_asks_for_nothing(ledger):
    report, picture, fits, budget, chunk = run(ledger, machine="m3ultra-256gb")
    assert fits and "FITS: " in report and (budget, chunk) == ("100%", 81)
    assert picture.ndim == 4 and picture.shape[-1] == 3 and 0.0 <= picture.min() < picture.max()


def test_what_does_not_fit_gives_values_that_do(ledger):
    """Planning again with the outputs fits: that is what they are connected for."""
    from h3video.memory.ledger import plan
    from h3video.memory.machine import find_machine
    from h3video.render.forecast import make_ask

    clip = {"width": 1920, "height": 1088, "frames": 161, "machine": "m3max-36gb"}
    report, _, fits, budget, chunk = run(ledger, **clip)
    assert not fits and "it fits with:" in report
    assert budget != "100%" or chunk < 161
    tiling = {} if budget == "100%" else {"budget": budget}
    again = make_ask(
        model_spec("wan2.1-t2v-14b"), "Q8_0", find_machine("m3max-36gb"), width=1920, height=1088,
        frames=chunk, tiling=tiling,
    )  # fmt: skip
    assert plan(again).fits


def test_budget_is_what_hex_tiles_takes(ledger):
    from h3video.tiling import parse_budget

    _, _, _, budget, _ = run(ledger, width=1920, height=1088, frames=161)
    assert 0.0 < parse_budget(budget) <= 1.0


def test_a_loaded_model_counts_itself(ledger):
    report = run(ledger, model="minimax-h3", loaded=Loaded("wan2.1-t2v-1.3b"), width=832,
                 height=480)[0]  # fmt: skip
    assert "Wan 2.1 text to video 1.3B BF16" in report
    with pytest.raises(UsageError, match="no transformer of a known model"):
        strange = Loaded("nano")
        strange.model.diffusion_model.state_dict = lambda: {"a": torch.zeros(2, 2)}
        run(ledger, loaded=strange)


def test_wrong_values_are_refused_in_words(ledger):
    for more, message in (
        ({"machine": "toaster"}, "is unknown"), ({"height": 728}, "use 720 or 736"),
        ({"encoder_quant": "Q9"}, "is not known"),
    ):  # fmt: skip
        with pytest.raises(UsageError, match=message):
            run(ledger, **more)


def test_flags(ledger):
    report = run(ledger, flags="--lowvram --smart-vram")[0]
    assert "--smart-vram: unknown" in report and "--lowvram does nothing" in report


def test_this_machine_is_asked_again_every_time(ledger):
    once, twice = ledger.fingerprint_inputs(), ledger.fingerprint_inputs()
    assert once != twice  # not a number is never equal
    assert ledger.fingerprint_inputs(machine="rtx4090") == "rtx4090"
    report = run(ledger, model="nano", quant="as published", machine="this machine", width=480,
                 height=288, frames=33)[0]  # fmt: skip
    assert "nano" in report
