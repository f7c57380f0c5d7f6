"""The default plan's peak against the full frame's, on models of the real proportions."""

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))

CANVAS = (1280, 704)


@pytest.mark.parametrize("family", ["wan", "hunyuan", "ltx", "minimax_h3", "ltxav"])
def test_a_third_of_the_peak_at_no_more_than_1_6_of_the_tokens(family):
    from comfy_tiling import models, peak_of

    found = models()
    if family not in found:
        pytest.skip("this ComfyUI does not have the model")
    model, (channels, px, frames) = found[family]
    size = (channels, frames, CANVAS[1] // px, CANVAS[0] // px)
    full, _ = peak_of(model, family, size, {"shape": "none"})
    tiled, plan = peak_of(model, family, size, {})
    assert plan.price <= 1.6
    assert tiled <= full / 3
