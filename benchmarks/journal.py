"""What keeping every piece costs: the journal's share of a chunk's time.

    python benchmarks/journal.py [--chunks 6]

Makes a clip of the embedded model at its usual size, chunk after chunk, and counts the seconds
that are spent in the store: writing, hashing, flushing, reading back. The same clip on a larger
model takes longer for a chunk and writes the same.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import sys
import tempfile
import time
from pathlib import Path

os.environ.setdefault("OMP_NUM_THREADS", "1")
sys.path.insert(0, str(Path(__file__).parents[1]))

TIMED = ("begin", "put", "note", "drop", "get", "check", "adopt")


def timed(store_class: type, spent: dict[str, float]) -> None:
    """Count the seconds of the store's methods; calls inside of calls count once."""
    depth = [0]

    def wrap(name: str) -> None:
        real = getattr(store_class, name)

        def method(self, *args, **kwargs):
            depth[0] += 1
            started = time.perf_counter()
            try:
                return real(self, *args, **kwargs)
            finally:
                depth[0] -= 1
                if not depth[0]:
                    spent[name] = spent.get(name, 0.0) + time.perf_counter() - started

        setattr(store_class, name, method)

    for name in TIMED:
        wrap(name)


def main() -> None:
    """Run and print the shares."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--chunks", type=int, default=3)
    parser.add_argument("--width", type=int, default=480)
    parser.add_argument("--height", type=int, default=288)
    parser.add_argument("--steps", type=int, default=4, help="nano's own are 20")
    parser.add_argument("--json", action="store_true")
    args = parser.parse_args()
    from h3video.cli.main import main as h3video
    from h3video.render.store import PieceStore

    spent: dict[str, float] = {}
    timed(PieceStore, spent)
    frames = 33 + (args.chunks - 1) * 24
    with tempfile.TemporaryDirectory() as place, contextlib.redirect_stdout(sys.stderr):
        out = Path(place) / "out.mp4"
        code = h3video(
            ["render", "a red circle moves left over blue waves", "-o", str(out),
             "--frames", str(frames), "--chunk-frames", "33", "--chunk-overlap", "8",
             "--width", str(args.width), "--height", str(args.height),
             "--steps", str(args.steps)]
        )  # fmt: skip
        assert code == 0
        lines = (out.with_suffix(".job") / "journal.jsonl").read_text().splitlines()
        events = [json.loads(line[9:]) for line in lines]
        kept = sum(p.stat().st_size for p in (out.with_suffix(".job") / "pieces").iterdir())
    worked = sum(e["seconds"] for e in events if e["event"] == "memory")
    total = sum(spent.values())
    told = {
        "chunks": args.chunks, "work_seconds": round(worked, 2),
        "store_seconds": round(total, 3), "share": total / worked,
        "by_call": {k: round(v, 4) for k, v in sorted(spent.items())},
        "bytes": kept, "journal_lines": len(lines),
    }  # fmt: skip
    if args.json:
        print(json.dumps(told))
        return
    print(f"{args.chunks} chunks of 33 frames at {args.width}x{args.height}, {args.steps} steps: "
          f"{worked:.1f} s of work")  # fmt: skip
    for name, seconds in told["by_call"].items():
        print(f"  {name:<7} {seconds:8.4f} s")
    print(f"store and journal: {total:.3f} s for {kept / 2**20:.0f} MiB in {len(lines)} lines = "
          f"{told['share']:.2%} of the work (the bound is 1 %)")  # fmt: skip


if __name__ == "__main__":
    main()
