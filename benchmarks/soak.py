"""Kill a job of the embedded model again and again: does what comes out differ by a byte?

    python benchmarks/soak.py [--kills 200] [--seed 0]

Runs a small clip in chunks unbroken. Then runs it in fresh folders, killed with SIGKILL at random
moments and resumed, until the number of kills is reached and the last job is finished. Every
finished job's video and pieces must be byte-identical to the unbroken run's, and no more pieces may
have been begun than there are pieces and kills.

The interpreter with everything imported is forked for every run: a kill costs no second import.
"""

from __future__ import annotations

import argparse
import gc
import hashlib
import json
import os
import random
import shutil
import signal
import sys
import tempfile
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

os.environ.setdefault("OMP_NUM_THREADS", "1")
sys.path.insert(0, str(Path(__file__).parents[1]))

PROMPT = "a red circle moves left over blue waves"
CLIP = (  # noqa: SIM905
    "--frames 15 --chunk-frames 9 --chunk-overlap 4 --width 32 --height 32 --steps 2 --cfg 1 "
    "--dtype float32 --device cpu"
).split()
"""Three chunks, the last one cut; two of three latent frames are frozen."""


def command(folder: Path) -> list[str]:
    """The arguments that start or continue the job in a folder."""
    return ["render", PROMPT, "-o", str(folder / "out.mp4"), *CLIP]


def preload() -> None:
    """Import what a run needs, and touch every code path once, so that a fork starts at once."""
    import diffusers
    import torch
    import transformers

    import h3video.render.chain
    import h3video.render.engines.diffusers_engine
    import h3video.render.video  # noqa: F401

    torch.set_num_threads(1)
    for name in ("AutoencoderKLWan", "WanTransformer3DModel", "UniPCMultistepScheduler",
                 "WanPipeline", "WanImageToVideoPipeline"):  # fmt: skip
        getattr(diffusers, name)
    for name in ("AutoTokenizer", "UMT5EncoderModel", "PreTrainedTokenizerFast"):
        getattr(transformers, name)
    gc.collect()
    gc.freeze()  # else every collection in a child looks through all that was imported


def run(arguments: list[str], log: Path) -> int:
    """Fork a process that runs the command line; returns its number."""
    sys.stdout.flush()
    pid = os.fork()
    if pid:
        return pid
    handle = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    os.dup2(handle, 1)
    os.dup2(handle, 2)
    from h3video.cli.main import main

    code = 99
    try:
        code = main(arguments)
    finally:
        sys.stdout.flush()
        os._exit(code)


def finish(pid: int) -> int:
    """Wait for a process; its exit code, or minus the signal that ended it."""
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


def digests(folder: Path) -> dict[str, str]:
    """The sha256 of the video and of every piece."""
    files = [folder / "out.mp4", *sorted((folder / "out.job" / "pieces").iterdir())]
    return {f.name: hashlib.sha256(f.read_bytes()).hexdigest() for f in files}


def entries(folder: Path) -> list[dict]:
    """The journal's lines; a torn last one is left out."""
    try:
        data = (folder / "out.job" / "journal.jsonl").read_bytes()
    except OSError:
        return []
    return [json.loads(line[9:]) for line in data.split(b"\n")[:-1]]


def unfinished(folder: Path) -> list[Path]:
    """Drafts of pieces and of the video."""
    pieces = folder / "out.job" / "pieces"
    return [*pieces.glob(".*.new"), *folder.glob(".out.partial*")]


@dataclass
class Report:
    """What a soak found. `moments` counts what the killed processes were doing."""

    kills: int = 0
    jobs: int = 0
    pieces: int = 0
    begun: int = 0
    moments: Counter = field(default_factory=Counter)
    unbroken: float = 0.0
    seconds: float = 0.0


class Soak:
    """Kills at random moments; raises AssertionError when a byte differs."""

    def __init__(self, place: Path, seed: int = 0) -> None:
        self.place = place
        self.chance = random.Random(seed)
        self.report = Report()

    def unbroken(self) -> None:
        """The run that nobody kills."""
        folder = self.place / "unbroken"
        folder.mkdir(parents=True)
        started = time.perf_counter()
        code = finish(run(command(folder), folder / "log"))
        assert code == 0, (folder / "log").read_text()
        self.report.unbroken = time.perf_counter() - started
        self.expected = digests(folder)

    def job(self, kills: int) -> int:
        """One job, killed at most `kills` times; returns how often it was."""
        folder = self.place / f"job{self.report.jobs}"
        folder.mkdir()
        self.report.jobs += 1
        killed = 0
        while True:
            pid = run(command(folder), folder / "log")
            if killed < kills and self._kill(pid, folder):
                killed += 1
                continue
            if killed >= kills:
                code = finish(pid)
            else:
                code = self.code
            assert code == 0, (folder / "log").read_text()
            break
        self._check(folder, killed)
        shutil.rmtree(folder)
        return killed

    def _kill(self, pid: int, folder: Path) -> bool:
        """Wait for a random moment and kill; False if the process was finished before.

        A third of the moments are spread over the run's time, a third come up to 20 ms after the
        journal has grown, a third as soon as a draft of a piece, of the journal or of the video is
        seen.
        """
        had = len(entries(folder))
        kind = self.chance.choice(("time", "line", "draft"))
        lines = self.chance.randrange(1, 8)
        drafts = self.chance.randrange(1, 5)
        wait = self.chance.uniform(0.0, self.report.unbroken if kind == "time" else 0.02)
        due = time.perf_counter() + wait if kind == "time" else None
        seen = ""
        while True:
            done, status = os.waitpid(pid, os.WNOHANG)
            if done:
                self.code = os.waitstatus_to_exitcode(status)
                return False
            if due is not None:
                if time.perf_counter() >= due:
                    break
            elif kind == "line" and len(entries(folder)) >= had + lines:
                due = time.perf_counter() + wait
            elif kind == "draft":
                draft = next((p.name for p in unfinished(folder)), "")
                if draft and draft != seen:
                    seen, drafts = draft, drafts - 1
                    if not drafts:
                        break
            time.sleep(0.0005)
        os.kill(pid, signal.SIGKILL)
        finish(pid)
        self.report.moments[self._moment(folder)] += 1
        return True

    def _moment(self, folder: Path) -> str:
        """What the killed process was doing, from what it left."""
        if any(p.suffix == ".new" for p in unfinished(folder)):
            return "saving"
        lines = entries(folder)
        last = lines[-1] if lines else {}
        if last.get("event") != "begin":
            return "between pieces" if lines else "starting"
        return {"latents": "sampling", "frames": "decoding", "merged": "joining"}[last["kind"]]

    def _check(self, folder: Path, killed: int) -> None:
        found = digests(folder)
        assert found == self.expected, f"{folder} differs from the unbroken run: {found}"
        lines = entries(folder)
        begun = sum(e["event"] == "begin" for e in lines)
        pieces = len(self.expected)
        assert begun <= pieces + killed, f"{begun} pieces begun, {pieces} pieces, {killed} kills"
        assert not unfinished(folder), f"drafts were left: {unfinished(folder)}"
        self.report.kills += killed
        self.report.pieces += pieces
        self.report.begun += begun


def soak(place: Path, kills: int, seed: int = 0, each: int = 6) -> Report:
    """Kill jobs until `kills` are reached, up to `each` a job."""
    started = time.perf_counter()
    preload()
    it = Soak(place, seed)
    it.unbroken()
    while it.report.kills < kills:
        it.job(min(each, kills - it.report.kills))
    it.report.seconds = time.perf_counter() - started
    return it.report


def main() -> None:
    """Run and print what was found."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--kills", type=int, default=200)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--json", action="store_true")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="h3video-soak-") as place:
        report = soak(Path(place), args.kills, args.seed)
    told = {**report.__dict__, "moments": dict(report.moments)}
    if args.json:
        print(json.dumps(told))
        return
    print(
        f"{report.kills} kills in {report.jobs} jobs: every video and piece byte-identical to the "
        f"unbroken run; {report.begun} pieces begun for {report.pieces} "
        f"({report.begun - report.pieces} again)"
    )
    for moment, count in report.moments.most_common():
        print(f"  killed while {moment:<16} {count}")
    print(f"unbroken {report.unbroken:.1f} s, all {report.seconds:.0f} s")


if __name__ == "__main__":
    main()
