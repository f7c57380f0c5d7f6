"""Hexagonal tiles inside ComfyUI's sampler against the full frame, in one run.

    COMFYUI_PATH=... python benchmarks/comfy_tiling.py [--memory] [--time] [--json FILE]

Tiny random models in ComfyUI's own classes, with the proportions of the real ones. One sampling
step each: the full frame, the default plan, the default plan in squares, and a tile-by-tile loop
(all blocks of a tile, then the next tile, as other tilers do). Every figure is a ratio to the
full frame of the same run.

--memory   peak of live tensor bytes at 1280x704 and 1920x1088; our own share of the time
--time     seconds of a step from 10,000 to 200,000 tokens (one narrow layer; minutes)
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import sys
import time
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
VARIANTS: dict[str, dict[str, Any]] = {
    "full frame": {"shape": "none"},
    "hex (default)": {},
    "squares": {"shape": "rect"},
    "tile by tile": {"order": "tile-major"},
}
SIZES = {"1280x704": (1280, 704), "1920x1088": (1920, 1088)}
TOKENS = (10_000, 32_000, 100_000, 200_000)


def load_comfyui() -> None:
    """ComfyUI's modules and the tests' tiny models, in this process."""
    for folder in ("tests/comfy/comfy_harness", "tests/comfy", "tests/sampler", "."):
        sys.path.insert(0, str(ROOT / folder))
    import cpu_wheels
    from comfy_harness import comfyui_folder

    cpu_wheels.install()
    sys.path.insert(0, str(comfyui_folder()))
    kept, sys.argv = sys.argv, ["main.py", "--cpu", "--use-pytorch-cross-attention"]
    import comfy.options

    comfy.options.enable_args_parsing()
    import comfy.sample
    import comfy.samplers

    sys.argv = kept


def models(layers: int = 2) -> dict[str, tuple[Any, tuple[int, int, int], int]]:
    """Name -> (model, (channels, latent px, latent frames)); widths in the real proportions."""
    import tiny
    import torch

    # Rotary tables are as wide as a head: heads are many and narrow, as many as the real ones have.
    bf16 = torch.bfloat16
    found = {
        "wan": (tiny.wan(bf16, dim=640, ffn_dim=1728, num_heads=40, num_layers=layers), (16, 8, 1)),
        "hunyuan": (
            tiny.hunyuan(bf16, hidden_size=768, num_heads=24, axes_dim=[8, 12, 12], mlp_ratio=4.0),
            (16, 8, 1),
        ),
        "ltx": (tiny.ltx(bf16, cross_attention_dim=512, attention_head_dim=16,
                         num_attention_heads=32, num_layers=layers), (128, 32, 5)),
    }  # fmt: skip
    if hasattr(__import__("comfy.supported_models").supported_models, "MiniMaxH3"):
        found["minimax_h3"] = (
            tiny.minimax_h3(bf16, hidden_size=672, num_attention_heads=56, attention_head_dim=16,
                            ffn_hidden_size=1792, num_layers=layers, rope_inv_freq_len=2),
            (24, 16, 7),
        )  # fmt: skip
        found["ltxav"] = (
            tiny.ltxav(bf16, cross_attention_dim=512, audio_cross_attention_dim=256,
                       attention_head_dim=16, audio_attention_head_dim=8, num_attention_heads=32,
                       audio_num_attention_heads=32, num_layers=layers), (128, 32, 5),
        )  # fmt: skip
    return found


def peak_of(
    model: Any, family: str, size: tuple[int, ...], settings: dict[str, Any]
) -> tuple[int, Any]:
    """Bytes alive at most in the transformer's pass of one step (the sampler's own are not ours)
    and the plan: where a grid moves, that of the place that needs the most."""
    import tiny
    from comfy.patcher_extension import WrappersMP
    from tiling import LiveBytes

    from h3video.render.engines.comfyui.attach import attach
    from h3video.tiling.settings import HexSettings

    peaks = []

    def watch(executor: Any, *args: Any, **kwargs: Any) -> Any:
        with LiveBytes() as live:
            out = executor(*args, **kwargs)
        peaks.append(live.peak)
        return out

    watched = model.clone()
    watched.add_wrapper_with_key(WrappersMP.DIFFUSION_MODEL, "watch", watch)
    tiled = attach(watched, HexSettings(**settings))
    _stay_at_the_largest(tiled.h3video_tiling)
    tiny.sample(tiled, family, steps=1, size=size)
    return max(peaks), tiled.h3video_tiling.plans[-1]


def _stay_at_the_largest(tiling: Any) -> None:
    from h3video.tiling.shift import Schedule

    original = tiling.schedule
    tiling.schedule = lambda *args, **more: Schedule((original(*args, **more).largest,))


def one(model: Any, family: str, size: tuple[int, ...], settings: dict[str, Any]) -> dict[str, Any]:
    """One sampling step: seconds, peak bytes, the plan, our own share of the time."""
    import tiny

    from h3video.render.engines.comfyui.attach import attach
    from h3video.tiling.settings import HexSettings

    peak, plan = peak_of(model, family, size, settings)
    tiled = attach(model, HexSettings(**settings))
    tiling = tiled.h3video_tiling
    _stay_at_the_largest(tiling)
    tiny.sample(tiled, family, steps=1, size=size)  # index tensors, caches
    tiling.measure, tiling.own_seconds = True, 0.0
    started = time.perf_counter()
    tiny.sample(tiled, family, steps=1, size=size)
    seconds = time.perf_counter() - started
    return {"seconds": seconds, "peak": peak, "own": tiling.own_seconds / seconds,
            "tiles": len(plan.tiles), "estimate": plan.activation_bytes(),
            "share": plan.share, "price": plan.price,
            "expected": plan.expected_time, "tokens": plan.frame_tokens}  # fmt: skip


def memory(rows: list[dict[str, Any]], only: list[str] | None, layers: int) -> None:
    """The table of peaks."""
    print(f"{'model':<11} {'canvas':<10} {'variant':<14} {'tiles':>5} {'share':>6} {'price':>6} "
          f"{'peak MiB':>9} {'of full':>8} {'time of full':>12} {'ours':>6}")  # fmt: skip
    for family, (model, (channels, px, frames)) in models(layers).items():
        if only and family not in only:
            continue
        for canvas, (width, height) in SIZES.items():
            full = None
            for variant, settings in VARIANTS.items():
                row = one(model, family, (channels, frames, height // px, width // px), settings)
                full = full or row
                row |= {"model": family, "canvas": canvas, "variant": variant,
                        "memory_ratio": row["peak"] / full["peak"],
                        "time_ratio": row["seconds"] / full["seconds"]}  # fmt: skip
                rows.append(row)
                print(f"{family:<11} {canvas:<10} {variant:<14} {row['tiles']:>5} "
                      f"{row['share']:>6.2f} {row['price']:>6.2f} {row['peak'] / 2**20:>9.0f} "
                      f"{row['memory_ratio']:>8.2f} {row['time_ratio']:>12.2f} "
                      f"{row['own']:>6.1%}", flush=True)  # fmt: skip


def times(rows: list[dict[str, Any]], sizes: list[int]) -> None:
    """Seconds of a step by number of tokens, at 16:9."""
    import tiny
    import torch

    from h3video.render.engines.comfyui.attach import attach
    from h3video.tiling.settings import HexSettings

    model = tiny.wan(torch.bfloat16, dim=64, ffn_dim=172, num_heads=1, num_layers=1)
    print(f"{'tokens':>8} {'variant':<14} {'seconds':>8} {'of full':>8} {'expected':>8}")
    for wanted in sizes:
        frames = max(1, round(wanted / (120 * 68))) if wanted >= 32_000 else 3
        rows_, columns = (68, 120) if wanted >= 32_000 else (44, 80)
        size, full = (16, frames, rows_ * 2, columns * 2), 0.0
        for variant, settings in VARIANTS.items():
            tiled = attach(model, HexSettings(**settings))
            tiling = tiled.h3video_tiling
            # Plans and their tables are made once a run; here they would be once a step.
            _stay_at_the_largest(tiling)
            tiny.sample(tiled, "wan", steps=1, size=size)
            started = time.perf_counter()
            tiny.sample(tiled, "wan", steps=1, size=size)
            seconds = time.perf_counter() - started
            full = full or seconds
            plan = tiled.h3video_tiling.plans[-1]
            rows.append({"tokens": plan.frame_tokens, "variant": variant, "seconds": seconds,
                         "time_ratio": seconds / full, "expected": plan.expected_time})  # fmt: skip
            print(f"{plan.frame_tokens:>8} {variant:<14} {seconds:>8.2f} {seconds / full:>8.2f} "
                  f"{plan.expected_time or 0:>8.2f}", flush=True)  # fmt: skip


def main() -> None:
    """Print the tables."""
    p = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    p.add_argument("--memory", action="store_true")
    p.add_argument("--time", action="store_true")
    p.add_argument("--tokens", nargs="+", type=int, default=TOKENS, help="sizes for --time")
    p.add_argument("--models", nargs="+", help="only these models in the table of peaks")
    p.add_argument("--layers", type=int, default=2, help="of a model in the table of peaks; our "
                   "own share is paid once a step and falls with them (real ones have 28 to 60)")
    p.add_argument("--json", help="write the figures to a file")
    a = p.parse_args()
    load_comfyui()
    import torch

    print(f"{platform.machine()}, {os.cpu_count()} cores, torch {torch.__version__}, bfloat16")
    found: dict[str, list[dict[str, Any]]] = {"memory": [], "time": []}
    if a.memory or not a.time:
        memory(found["memory"], a.models, a.layers)
    if a.time or not a.memory:
        times(found["time"], a.tokens)
    if a.json:
        Path(a.json).write_text(json.dumps({"machine": platform.machine(), **found}, indent=1))


if __name__ == "__main__":
    main()
