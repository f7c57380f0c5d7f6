"""The lab's command line; see the package."""

from __future__ import annotations

import argparse
import sys
import time
from dataclasses import asdict
from pathlib import Path

from . import counted, field_runs, store

PARTS = ("fields", "counted", "nano", "report")


def main(argv: list[str] | None = None) -> int:
    """Run parts of the lab; figures go to results/*.json, `report` makes the docs of them."""
    p = argparse.ArgumentParser(prog="python -m benchmarks.quality", description=__doc__)
    p.add_argument("parts", nargs="*", metavar="PART", help=f"of {', '.join(PARTS)}; default: all")
    p.add_argument("--seeds", type=int, default=field_runs.SEEDS, help="of the fields")
    p.add_argument("--workers", type=int, default=2, help="processes of the fields")
    p.add_argument("--no-nano-frames", action="store_true", help="fields on photographs only")
    p.add_argument("--results", type=Path, default=store.FOLDER, help="folder of the figures")
    a = p.parse_args(argv)
    unknown = [part for part in a.parts if part not in PARTS]
    if unknown:
        p.error(f"unknown part {unknown[0]!r}; use {', '.join(PARTS)}")
    if a.seeds < 2:
        p.error(f"--seeds {a.seeds} gives no interval; use 2 or more (20 for the docs)")
    started = time.monotonic()

    def say(text: str) -> None:
        print(f"{time.monotonic() - started:6.0f} s  {text}", file=sys.stderr, flush=True)

    for part in a.parts or PARTS:
        if part == "fields":
            rows = field_runs.run_all(range(a.seeds), a.workers, say, not a.no_nano_frames)
            data = {name: [r.to_json() for r in part] for name, part in rows.items()}
            say(f"wrote {store.save('fields', data, a.results)}")
        elif part == "counted":
            counts = {
                "plans": [c.to_json() for c in counted.run(say)],
                "interior": [asdict(i) for i in counted.run_interior()],
            }
            say(f"wrote {store.save('counted', counts, a.results)}")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
