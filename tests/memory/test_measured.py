"""The predicted peak of a denoising pass against counted tensors: full frame and tiled."""

import dataclasses
import sys
import warnings
from pathlib import Path

import pytest

torch = pytest.importorskip("torch")
diffusers = pytest.importorskip("diffusers")

import h3video
from h3video import nano
from h3video.memory.activations import diffusers_block, pass_terms
from h3video.memory.ask import Ask
from h3video.memory.machine import find_machine
from h3video.models.catalog import model_spec
from h3video.models.wan import denoiser_shape
from h3video.render.forecast import tiles_of

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))
from tiling import LiveBytes, Pipe

SIZES = [(480, 288), (640, 384), (832, 480)]
SETTINGS = [{"shape": "none"}, {"shape": "hex"}, {"shape": "hex", "exchange": "block"}]
TINY = {"wide": (4, 32, 512), "narrow": (2, 64, 1024)}
FRAMES, TEXT = 5, 64


@pytest.fixture(scope="module", params=["nano", *TINY])
def model(request):
    warnings.simplefilter("ignore")
    if request.param == "nano":
        made = diffusers.WanTransformer3DModel.from_pretrained(
            nano.path(), subfolder="transformer", torch_dtype=torch.bfloat16
        )
    else:
        heads, width, ffn = TINY[request.param]
        torch.manual_seed(0)
        made = diffusers.WanTransformer3DModel(
            num_attention_heads=heads, attention_head_dim=width, ffn_dim=ffn, num_layers=2
        ).to(torch.bfloat16)
        made.rope.float()  # as from_pretrained keeps it
    return made.eval()


def ask_for(model, width, height, plan):
    spec = model_spec("nano")
    spec = dataclasses.replace(spec, denoiser=denoiser_shape(model.config, 2))
    return Ask(
        spec, "BF16", width, height, FRAMES, find_machine(ram="16GB", gpu="cpu"), "h3video",
        text=TEXT, passes=1, tiles=tiles_of(plan),
    )  # fmt: skip


def predicted(ask):
    """What a pass makes: the prompt's raw embeddings are there before it."""
    made = sum(t.bytes for t in pass_terms(ask, diffusers_block(ask, 2), "host"))
    return made + TEXT * ask.spec.denoiser.hidden * 2


def measured(model, width, height, settings):
    pipe = Pipe(model)
    tiling = h3video.apply_hex_tiling(pipe, **settings)
    x = torch.zeros(1, 16, 2, height // 8, width // 8, dtype=torch.bfloat16)
    text = torch.zeros(1, TEXT, 4096, dtype=torch.bfloat16)
    with torch.inference_mode():
        with LiveBytes() as live:
            model(x, torch.tensor([500.0]), text)
        h3video.remove_hex_tiling(pipe)
    return live.peak, tiling.plans[-1]


@pytest.mark.parametrize("size", SIZES, ids=lambda s: f"{s[0]}x{s[1]}")
def test_denoise_peak_within_15_per_cent(model, size):
    """Activations alone: with the weights, which are exact, the relative error is smaller still."""
    peaks = []
    for settings in SETTINGS:
        peak, plan = measured(model, *size, settings)
        guess = predicted(ask_for(model, *size, plan))
        assert abs(guess / peak - 1) < 0.15, (size, settings, guess, peak)
        peaks.append((guess, peak))
    assert peaks[1][0] < peaks[0][0] and peaks[1][1] < peaks[0][1]  # tiles show in both


def test_weights_of_a_random_model_are_exact(model):
    """The catalog's tensors of nano are those of the file; bf16 takes two bytes each."""
    from h3video.memory.parts import transformer

    counted = sum(p.numel() for p in model.parameters())
    if model.config.ffn_dim == 768:
        ask = ask_for(model, 480, 288, h3video.plan_token_tiles(
            480, 288, FRAMES, model_spec("nano").family, shape="none"))  # fmt: skip
        assert abs(transformer(ask, "host").bytes / (2 * counted) - 1) < 0.005
