"""The lab's command line; see the package."""

from __future__ import annotations

import argparse
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
    p.add_argument("--workers", type=int, default=2, help="processes of one thread")
    p.add_argument("--no-nano-frames", action="store_true", help="fields on photographs only")
    p.add_argument("--nano-seeds", type=int, default=NANO_SEEDS, help="prompts of the nano part")
    p.add_argument("--results", type=Path, default=store.FOLDER, help="folder of the figures")
    a = p.parse_args(argv)
    unknown = [part for part in a.parts if part not in PARTS]
    if unknown:
        p.error(f"unknown part {unknown[0]!r}; use {', '.join(PARTS)}")
    if a.seeds < 2:
        p.error(f"--seeds {a.seeds} gives no interval; use 2 or more (20 for the docs)")
    for name in ("nano_seeds", "workers"):
        if getattr(a, name) < 1:
            value = getattr(a, name)
            p.error(f"--{name.replace('_', '-')} {value} is out of range; use 1 or more")
    started = time.monotonic()

    def say(text: str) -> None:
        print(f"{time.monotonic() - started:6.0f} s  {text}", file=sys.stderr, flush=True)

    def keep(part: str, figures: dict[str, Any]) -> None:
        took = {"seconds": round(time.monotonic() - began), "workers": a.workers}
        say(f"wrote {store.save(part, {**took, **figures}, a.results)}")

    for part in a.parts or PARTS:
        began = time.monotonic()
        if part == "fields":
            found = field_runs.run_all(range(a.seeds), a.workers, say, not a.no_nano_frames)
            rows = {name: [r.to_json() for r in part] for name, part in found.items()}
            keep("fields", rows)
        elif part == "counted":
            counts = {
                "plans": [c.to_json() for c in counted.run(say)],
                "interior": [asdict(i) for i in counted.run_interior()],
            }
            keep("counted", counts)
        elif part == "nano":
            from . import nano_runs

            rows, drawn = nano_runs.run(a.nano_seeds, a.workers, say)
            keep("nano", {"rows": rows, "drawn": drawn})
        elif part == "pictures":
            from .pictures import write_all

            say(f"wrote {', '.join(p.name for p in write_all())}")
        else:
            report.write(folder=a.results)
            say(f"wrote {report.PAGE}")
    return 0


if __name__ == "__main__":
    try:
        raise SystemExit(main())
    except KeyboardInterrupt:
        print("stopped; nano renders that are finished are kept", file=sys.stderr)
        raise SystemExit(130) from None
