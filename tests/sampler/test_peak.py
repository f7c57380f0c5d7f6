"""The default plan's peak against the full frame's, on models of the real proportions."""

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))

CANVAS = (1280, 704)


def peak(model, family, size, **settings):
    """Bytes alive at most during the transformer's pass, and the plan."""
    import tiny as models
    from comfy.patcher_extension import WrappersMP
    from tiling import LiveBytes

    from h3video.render.engines.comfyui.attach import attach
    from h3video.tiling.settings import HexSettings

    peaks = []

    def watch(executor, *args, **kwargs):
        with LiveBytes() as live:
            out = executor(*args, **kwargs)
        peaks.append(live.peak)
        return out

    watched = model.clone()
    watched.add_wrapper_with_key(WrappersMP.DIFFUSION_MODEL, "watch", watch)
    tiled = attach(watched, HexSettings(**settings))
    models.sample(tiled, family, steps=1, size=size)
    return max(peaks), tiled.h3video_tiling.plans[-1]


@pytest.mark.parametrize("family", ["wan", "hunyuan", "ltx", "minimax_h3", "ltxav"])
def test_a_third_of_the_peak_at_no_more_than_1_6_of_the_tokens(family):
    from comfy_tiling import models

    found = models()
    if family not in found:
        pytest.skip("this ComfyUI does not have the model")
    model, (channels, px, frames) = found[family]
    size = (channels, frames, CANVAS[1] // px, CANVAS[0] // px)
    full, _ = peak(model, family, size, shape="none")
    tiled, plan = peak(model, family, size)
    assert plan.price <= 1.6
    assert tiled <= full / 3
