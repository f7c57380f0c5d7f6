"""The lab's command line; see the package."""

from __future__ import annotations

import argparse
import re
import sys
import time
from dataclasses import asdict
from pathlib import Path
from typing import Any

from . import counted, field_runs, report, store

PARTS = ("fields", "counted", "nano", "pictures", "report")


NANO_SEEDS = 20


def main(argv: list[str] | None = None) -> int:
    """Run parts of the lab; figures go to results/*.json, `report` puts them into the docs."""
    p = argparse.ArgumentParser(prog="python -m benchmarks.quality", description=__doc__)
    p.add_argument("parts", nargs="*", metavar="PART", help=f"of {', '.join(PARTS)}; default: all")
    p.add_argument("--seeds", type=int, default=field_runs.SEEDS, help="of the fields")
    p.add_argument("--workers", type=int, default=2, help="processes (fields), threads (nano)")
    p.add_argument("--no-nano-frames", action="store_true", help="fields on photographs only")
    p.add_argument("--nano-seeds", type=int, default=NANO_SEEDS, help="prompts of the nano part")
    p.add_argument("--nano-canvas", default="240x144x9", help="small canvas: WIDTHxHEIGHTxFRAMES")
    p.add_argument("--nano-factors", type=int, nargs="+", default=[2], help="of the large canvas")
    p.add_argument("--nano-steps", type=int, default=8, help="sampling steps")
    p.add_argument("--nano-budget", type=float, default=0.5, help="a tile's share of the frame")
    p.add_argument("--results", type=Path, default=store.FOLDER, help="folder of the figures")
    a = p.parse_args(argv)
    unknown = [part for part in a.parts if part not in PARTS]
    if unknown:
        p.error(f"unknown part {unknown[0]!r}; use {', '.join(PARTS)}")
    if a.seeds < 2:
        p.error(f"--seeds {a.seeds} gives no interval; use 2 or more (20 for the docs)")
    for name in ("nano_seeds", "nano_steps", "workers", "nano_factors"):
        value = getattr(a, name)
        if min(value if isinstance(value, list) else [value]) < 1:
            p.error(f"--{name.replace('_', '-')} {value} is out of range; use 1 or more")
    if not 0.0 < a.nano_budget <= 1.0:
        p.error(f"--nano-budget {a.nano_budget:g} is out of range 0..1, a share of the frame")
    sizes = re.fullmatch(r"(\d+)x(\d+)x(\d+)", a.nano_canvas)
    if not sizes:
        p.error(f"--nano-canvas {a.nano_canvas!r} is not WIDTHxHEIGHTxFRAMES, such as 240x144x9")
    started = time.monotonic()

    def say(text: str) -> None:
        print(f"{time.monotonic() - started:6.0f} s  {text}", file=sys.stderr, flush=True)

    for part in a.parts or PARTS:
        if part == "fields":
            found = field_runs.run_all(range(a.seeds), a.workers, say, not a.no_nano_frames)
            rows = {name: [r.to_json() for r in part] for name, part in found.items()}
            say(f"wrote {store.save('fields', rows, a.results)}")
        elif part == "counted":
            counts = {
                "plans": [c.to_json() for c in counted.run(say)],
                "interior": [asdict(i) for i in counted.run_interior()],
            }
            say(f"wrote {store.save('counted', counts, a.results)}")
        elif part == "nano":
            say(f"wrote {store.save('nano', {'rows': _nano(a, sizes, say)}, a.results)}")
        elif part == "pictures":
            from .pictures import write_all

            say(f"wrote {', '.join(p.name for p in write_all())}")
        else:
            report.write(folder=a.results)
            say(f"wrote {report.PAGE}")
    return 0


def _nano(a: argparse.Namespace, sizes: re.Match[str], say: Any) -> list[dict[str, Any]]:
    """Rows of every factor; the renders are remembered in build/quality."""
    import torch

    from .nano_runs import Canvas, run

    torch.set_num_threads(a.workers)  # make lab sets one thread, for the fields' processes
    rows = []
    for factor in a.nano_factors:
        width, height, frames = map(int, sizes.groups())
        canvas = Canvas(width, height, factor, frames, a.nano_steps, a.nano_budget)
        rows += run(Path("build/quality/nano.jsonl"), a.nano_seeds, canvas, say)
    return rows


if __name__ == "__main__":
    try:
        raise SystemExit(main())
    except KeyboardInterrupt:
        print("stopped; nano renders that are finished are kept", file=sys.stderr)
        raise SystemExit(130) from None
