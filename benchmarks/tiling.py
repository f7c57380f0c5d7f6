"""Token tiles against the full frame, in one run: memory, time, tokens, our own share.

    python benchmarks/tiling.py [--sizes 480x288 832x480 1280x704] [--frames 17] [--json FILE]

On the nano model's transformer (its real weights, or its sizes with random ones),
one denoising pass each: the untiled model, hexagons, rectangles of about the same
area and the same overlap, hexagons with an exchange after every block. Every
figure is a ratio to the untiled pass of the same run. Activation memory is the
peak of live tensor bytes beyond what was there before the pass, counted by a
dispatch mode; scratch inside a kernel is not seen.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import time
import weakref
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

import h3video
from h3video.render.device import cpu_has_bfloat16

VARIANTS: dict[str, dict[str, Any]] = {
    "untiled": {"shape": "none"},
    "hex": {"shape": "hex"},
    "rect": {"shape": "rect"},
    "hex, exchange block": {"shape": "hex", "exchange": "block"},
}


class LiveBytes(TorchDispatchMode):
    """Peak of the bytes of tensor storages that were made inside and are still alive."""

    def __init__(self) -> None:
        super().__init__()
        self.now = self.peak = 0
        self.known: dict[int, int] = {}

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        out = func(*args, **(kwargs or {}))
        for leaf in tree_leaves(out):
            if isinstance(leaf, torch.Tensor):
                storage = leaf.untyped_storage()
                key = storage._cdata
                if key not in self.known and storage.nbytes():
                    self.known[key] = storage.nbytes()
                    self.now += storage.nbytes()
                    self.peak = max(self.peak, self.now)
                    weakref.finalize(storage, self._gone, key)
        return out

    def _gone(self, key: int) -> None:
        self.now -= self.known.pop(key, 0)


def transformer(dtype: torch.dtype) -> Any:
    """The nano transformer, or its sizes with random weights when it is not there."""
    from diffusers import WanTransformer3DModel

    from h3video import nano

    try:
        model = WanTransformer3DModel.from_pretrained(
            nano.path(), subfolder="transformer", torch_dtype=dtype
        )
    except FileNotFoundError:
        model = WanTransformer3DModel(
            num_attention_heads=2, attention_head_dim=128, ffn_dim=768, num_layers=6
        ).to(dtype)
    return model.eval()


class Pipe:
    """What apply_hex_tiling needs of a pipeline."""

    vae = None

    def __init__(self, model: Any) -> None:
        self.transformer = model


@torch.inference_mode()
def measure(model: Any, size: tuple[int, int], frames: int, settings: dict[str, Any],
            repeats: int) -> dict[str, Any]:  # fmt: skip
    """Seconds (best of repeats), peak activation bytes and tokens of one pass."""
    width, height = size
    pipe = Pipe(model)
    tiling = h3video.apply_hex_tiling(pipe, **settings)
    dtype = model.dtype
    g = torch.Generator().manual_seed(0)
    x = torch.randn(1, 16, (frames - 1) // 4 + 1, height // 8, width // 8, generator=g).to(dtype)
    text = torch.randn(1, 512, 4096, generator=g).to(dtype)
    t = torch.tensor([500.0])
    model(x, t, text)  # warm up, and build the index tensors
    tiling.measure = True
    seconds, own = [], []
    for _ in range(repeats):
        tiling.own_seconds = 0.0
        started = time.perf_counter()
        model(x, t, text)
        seconds.append(time.perf_counter() - started)
        own.append(tiling.own_seconds / seconds[-1])
    with LiveBytes() as live:
        model(x, t, text)
    h3video.remove_hex_tiling(pipe)
    plan = tiling.plans[-1]
    return {
        "seconds": min(seconds), "own_share": min(own), "peak_bytes": live.peak,
        "estimated_bytes": plan.activation_bytes(), "tiles": len(plan.tiles),
        "tokens_per_tile": plan.tile_tokens, "tokens_run": plan.tokens_run,
        "frame_tokens": plan.frame_tokens, "price": plan.price, "share": plan.share,
        "expected_time": plan.expected_time, "hex_res": plan.grid.res,
    }  # fmt: skip


def main() -> None:
    """Measure and print a table; every ratio is against the untiled pass above it."""
    p = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    p.add_argument("--sizes", nargs="+", default=["480x288", "832x480", "1280x704"])
    p.add_argument("--frames", type=int, default=17)
    p.add_argument("--repeats", type=int, default=2)
    p.add_argument("--dtype", choices=("auto", "bfloat16", "float32"), default="auto")
    p.add_argument("--json", help="write the figures to a file")
    a = p.parse_args()
    name = a.dtype
    if name == "auto":
        name = "bfloat16" if cpu_has_bfloat16() else "float32"
    model = transformer(getattr(torch, name))
    rows = []
    print(f"{platform.machine()}, {os.cpu_count()} cores, torch {torch.__version__}, {name}, "
          f"{a.frames} frames, one pass")  # fmt: skip
    print(f"{'canvas':<10} {'variant':<20} {'tiles':>5} {'tokens/tile':>11} {'price':>6} "
          f"{'peak':>10} {'of full':>8} {'seconds':>8} {'of full':>8} {'expected':>9} "
          f"{'ours':>6}")  # fmt: skip
    for text in a.sizes:
        width, height = map(int, text.split("x"))
        full: dict[str, Any] = {}
        for variant, settings in VARIANTS.items():
            row = measure(model, (width, height), a.frames, settings, a.repeats)
            full = full or row
            row |= {
                "canvas": text, "variant": variant,
                "memory_ratio": row["peak_bytes"] / full["peak_bytes"],
                "time_ratio": row["seconds"] / full["seconds"],
            }  # fmt: skip
            rows.append(row)
            print(
                f"{text:<10} {variant:<20} {row['tiles']:>5} {row['tokens_per_tile']:>11} "
                f"{row['price']:>6.2f} {row['peak_bytes'] / 2**20:>6.0f} MiB "
                f"{row['memory_ratio']:>8.2f} {row['seconds']:>8.2f} {row['time_ratio']:>8.2f} "
                f"{row['expected_time']:>9.2f} {row['own_share']:>6.1%}",
                flush=True,
            )
    faster = [
        (r["frame_tokens"], r["canvas"]) for r in rows
        if r["variant"] == "hex" and r["time_ratio"] < 1.0
    ]  # fmt: skip
    if faster:
        tokens, canvas = min(faster)
        print(f"hexagons are faster than no tiling from {canvas} ({tokens} tokens)")
    if a.json:
        with open(a.json, "w") as f:
            json.dump({"machine": platform.machine(), "dtype": name, "rows": rows}, f, indent=1)


if __name__ == "__main__":
    main()
