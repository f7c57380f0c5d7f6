"""The ledger's predictions against measurements: published rows, and passes counted here.

    python benchmarks/ledger.py [--sizes 480x288 640x384 832x480] [--json FILE]

First the four published rows that constants may be fitted on (docs/ledger.md). Then one denoising
pass of the nano model's transformer at each size, untiled and tiled: live tensor bytes, counted as
in benchmarks/tiling.py, against the formula of h3video/memory/activations.py.
"""

from __future__ import annotations

import argparse
import json
from dataclasses import dataclass
from typing import Any

from h3video.memory.ask import Ask
from h3video.memory.ledger import plan
from h3video.memory.machine import find_machine
from h3video.models.catalog import model_spec

GIB = 2**30


@dataclass(frozen=True)
class Row:
    """A published row: what it says in GiB, and the ask that it is about."""

    name: str
    stated: float
    model: str
    quant: str
    machine: str
    runtime: str
    size: tuple[int, int, int]
    more: dict[str, Any]
    term: str = ""


ROWS = [
    Row("2: H3 pruned Q4_K_M, sd.cpp", 16.87, "minimax-h3-pruned", "Q4_K_M", "rtx4090", "sdcpp",
        (640, 384, 39), {"flags": ("--clip-on-cpu", "--diffusion-fa"), "encoder_quant": "Q2_K"}),
    Row("24: H3 BF16, vpipe, 50 blocks", 36751 / 1024, "minimax-h3", "BF16", "m5max-64gb",
        "vpipe", (544, 960, 124), {}, "50 blocks"),
    Row("41: Wan 2.1 1.3B, official code", 8.19, "wan2.1-t2v-1.3b", "BF16", "rtx4090", "official",
        (832, 480, 81), {"offload": "model", "flags": ("--t5_cpu",)}),
    Row("45: Wan 2.2 A14B, official code", 41.3, "wan2.2-t2v-a14b", "BF16", "a100", "official",
        (832, 480, 81), {"offload": "model"}),
]  # fmt: skip


def published() -> list[dict[str, Any]]:
    """Every row: stated and predicted GiB, the phase that decides."""
    out = []
    for row in ROWS:
        ask = Ask(
            model_spec(row.model), row.quant, *row.size, find_machine(row.machine), row.runtime,
            **row.more,
        )  # fmt: skip
        ledger = plan(ask)
        worst = max(ledger.phases, key=lambda p: p.total("device"))
        count = worst.total("device")
        if row.term:
            count = next(t.bytes for t in worst.terms if row.term in t.name)
        out.append({"row": row.name, "stated": row.stated, "predicted": count / GIB,
                    "phase": worst.name})  # fmt: skip
    return out


def counted(sizes: list[tuple[int, int]], frames: int = 9) -> list[dict[str, Any]]:
    """Passes of nano's transformer: counted and predicted MiB of activations."""
    import torch
    from diffusers import WanTransformer3DModel
    from tiling import LiveBytes, Pipe  # beside this file

    import h3video
    from h3video import nano
    from h3video.memory.activations import diffusers_block, pass_terms
    from h3video.render.forecast import tiles_of

    model = WanTransformer3DModel.from_pretrained(
        nano.path(), subfolder="transformer", torch_dtype=torch.bfloat16
    ).eval()
    cpu, out = find_machine(ram="16GB", gpu="cpu"), []
    for width, height in sizes:
        for name, settings in (
            ("untiled", {"shape": "none"}), ("hex", {"shape": "hex"}),
            ("hex, exchange block", {"shape": "hex", "exchange": "block"}),
        ):  # fmt: skip
            pipe = Pipe(model)
            tiling = h3video.apply_hex_tiling(pipe, **settings)
            x = torch.zeros(1, 16, (frames - 1) // 4 + 1, height // 8, width // 8).bfloat16()
            text = torch.zeros(1, 64, 4096).bfloat16()
            with torch.inference_mode(), LiveBytes() as live:
                model(x, torch.tensor([500.0]), text)
            h3video.remove_hex_tiling(pipe)
            ask = Ask(model_spec("nano"), "BF16", width, height, frames, cpu, "h3video", text=64,
                      passes=1, tiles=tiles_of(tiling.plans[-1]))  # fmt: skip
            terms = pass_terms(ask, diffusers_block(ask), "host")
            prompt = 64 * ask.spec.denoiser.hidden * 2  # its raw embeddings were there before
            out.append({"canvas": f"{width}x{height}x{frames}", "variant": name,
                        "counted": live.peak / 2**20,
                        "predicted": (sum(t.bytes for t in terms) + prompt) / 2**20})  # fmt: skip
    return out


def main() -> None:
    """Print both tables."""
    p = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    p.add_argument("--sizes", nargs="*", default=["480x288", "640x384", "832x480"])
    p.add_argument("--json", help="write the figures to a file")
    a = p.parse_args()
    rows = published()
    print(f"{'published row':<36} {'stated':>10} {'predicted':>10} {'ratio':>6}  decides")
    for r in rows:
        print(f"{r['row']:<36} {r['stated']:>6.2f} GiB {r['predicted']:>6.2f} GiB "
              f"{r['predicted'] / r['stated']:>6.3f}  {r['phase']}")  # fmt: skip
    sizes = [tuple(map(int, s.split("x"))) for s in a.sizes]
    passes = counted([(w, h) for w, h in sizes]) if sizes else []
    if passes:
        print(f"\n{'canvas':<12} {'variant':<20} {'counted':>11} {'predicted':>11} {'ratio':>6}")
    for r in passes:
        print(f"{r['canvas']:<12} {r['variant']:<20} {r['counted']:>7.1f} MiB "
              f"{r['predicted']:>7.1f} MiB {r['predicted'] / r['counted']:>6.3f}")  # fmt: skip
    if a.json:
        with open(a.json, "w") as f:
            json.dump({"published": rows, "counted": passes}, f, indent=1)


if __name__ == "__main__":
    main()
