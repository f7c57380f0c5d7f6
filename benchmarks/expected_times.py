"""What hexagonal tiles should cost on real models, by arithmetic: nothing is run, no torch needed.

    python benchmarks/expected_times.py [--markdown]

For each clip the default plan of H3 Hex Tiles, whose grid moves every step: tokens, tiles, the
largest tile's share of the frame, all tiles' tokens against the frame's (price), the part of an
untiled step that attention takes, and the peak of activations and the time of a step against
untiled. Tiles, share and memory are those of the largest of the grid's eight places, price and time
the mean over all. Times count the multiply-adds of
every layer; they hold where all of them run at one speed, and leave out what tiling itself costs.
"""

from __future__ import annotations

import argparse
from statistics import fmean

from h3video.models import HUNYUAN, HUNYUAN_15, LTX2, MINIMAX_H3, WAN
from h3video.models.family import DenoiserShape
from h3video.models.minimax_h3 import shape as minimax_shape
from h3video.tiling.settings import HexSettings
from h3video.tiling.shift import clip_schedule
from h3video.tiling.tokens import TokenPlan


def minimax_h3(frames: int) -> DenoiserShape:
    """300 tokens of text, two a sound frame."""
    return minimax_shape(5376, 14336, 56, 128, 50, along=300 + 2 * round(frames * 40 / 24))


def wan_14b(frames: int) -> DenoiserShape:
    """Text, 512 tokens, comes in through cross attention."""
    return DenoiserShape(5120, 13824, 40, 40, 512)


def ltx2(frames: int) -> DenoiserShape:
    """The picture's stream; the sound's, half as wide and with few tokens, is left out."""
    d = 4096
    return DenoiserShape(d, 4 * d, 32, 48, linear=14 * d * d + 2 * 1024 * d)


def hunyuan(frames: int) -> DenoiserShape:
    """Double and single blocks cost the same: text, some 256 tokens, is part of the sequence."""
    d = 3072
    return DenoiserShape(d, 4 * d, 24, 60, linear=12 * d * d, along=256)


def hunyuan_15(frames: int) -> DenoiserShape:
    """Double blocks only."""
    d = 2048
    return DenoiserShape(d, 4 * d, 16, 54, linear=12 * d * d, along=300)


MODELS = {
    "MiniMax-H3 33B": (MINIMAX_H3, minimax_h3), "Wan 2.1 / 2.2 14B": (WAN, wan_14b),
    "LTX-2 19B": (LTX2, ltx2), "HunyuanVideo 13B": (HUNYUAN, hunyuan),
    "HunyuanVideo 1.5 8B": (HUNYUAN_15, hunyuan_15),
}  # fmt: skip
"""Name -> family, and the shape for a number of frames."""

CLIPS = (
    ("MiniMax-H3 33B", 1344, 768, 124), ("MiniMax-H3 33B", 1344, 768, 362),
    ("MiniMax-H3 33B", 1920, 1088, 124), ("MiniMax-H3 33B", 1920, 1088, 362),
    ("Wan 2.1 / 2.2 14B", 832, 480, 81), ("Wan 2.1 / 2.2 14B", 1280, 704, 81),
    ("Wan 2.1 / 2.2 14B", 1920, 1088, 81),
    ("LTX-2 19B", 1920, 1088, 121), ("LTX-2 19B", 3840, 2176, 121),
    ("HunyuanVideo 13B", 1280, 720, 129), ("HunyuanVideo 1.5 8B", 1280, 720, 121),
    ("HunyuanVideo 1.5 8B", 1920, 1088, 121),
)  # fmt: skip
"""(model, width, height, frames)."""

HEAD = ("model", "clip", "tokens", "tiles", "share", "price", "attention", "memory", "step time")
"""share, price, memory and step time are against untiled."""


def attention_part(plan: TokenPlan) -> float:
    """The part of an untiled step's work that attention is, 0..1."""
    d, tokens = plan.denoiser, plan.frame_tokens
    assert d is not None
    return d.attention_flops(tokens) / (d.attention_flops(tokens) + d.linear_flops(tokens))


def row(model: str, width: int, height: int, frames: int) -> tuple[str, ...]:
    """One line of the table."""
    family, shape = MODELS[model]
    plans = clip_schedule(width, height, frames, family, HexSettings(), shape(frames))
    plan = plans.largest
    mine, full = plan.activation_bytes(), plan.untiled_bytes()
    assert mine and full
    time = fmean(p.expected_time or 0.0 for p in plans.plans)
    return (
        model, f"{width}x{height}x{frames}", f"{plan.frame_tokens:,}", str(len(plan.tiles)),
        f"{plan.share:.0%}", f"x{plans.price:.2f}", f"{attention_part(plan):.0%}",
        f"x{mine / full:.2f}", f"x{time:.2f}",
    )  # fmt: skip


def main() -> None:
    """Print the table."""
    p = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    p.add_argument("--markdown", action="store_true", help="as docs/tiling.md has it")
    markdown = p.parse_args().markdown
    rows = [HEAD, *(row(*clip) for clip in CLIPS)]
    if markdown:
        rows.insert(1, ("---", "---", *("--:",) * (len(HEAD) - 2)))
        print("\n".join(f"| {' | '.join(r)} |" for r in rows))
        return
    wide = [max(len(r[i]) for r in rows) for i in range(len(HEAD))]
    for r in rows:
        print("  ".join(c.ljust(w) if i < 2 else c.rjust(w)
                        for i, (c, w) in enumerate(zip(r, wide))))  # fmt: skip


if __name__ == "__main__":
    main()
