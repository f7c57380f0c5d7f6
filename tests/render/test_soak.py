"""kill -9 at random moments: what comes out is byte-identical, at most one piece a kill is lost."""

import importlib.util
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

pytest.importorskip("torch")
pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork and SIGKILL")

ROOT = Path(__file__).parents[2]


def test_ten_kills(tmp_path):
    """`make soak` runs 200 of them."""
    out = subprocess.run(
        [sys.executable, str(ROOT / "benchmarks/soak.py"), "--kills", "10", "--json"],
        capture_output=True, text=True, check=False, env={**os.environ, "TMPDIR": str(tmp_path)},
    )  # fmt: skip
    assert out.returncode == 0, out.stderr[-3000:]
    report = json.loads(out.stdout.splitlines()[-1])
    assert report["kills"] == 10 and sum(report["moments"].values()) == 10
    assert report["begun"] <= report["pieces"] + report["kills"]


def load_soak():
    spec = importlib.util.spec_from_file_location("soak", ROOT / "benchmarks/soak.py")
    module = importlib.util.module_from_spec(spec)
    sys.modules["soak"] = module
    spec.loader.exec_module(module)
    return module


def test_the_command_itself_killed_and_run_again(tmp_path):
    """Without a fork: the program as a user starts it, killed when a piece is there."""
    soak = load_soak()
    command = [sys.executable, "-m", "h3video", *soak.command(tmp_path)]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    with open(tmp_path / "log", "w") as log:
        process = subprocess.Popen(command, stdout=log, stderr=log, env=environment)
        until = time.monotonic() + 120
        while time.monotonic() < until and process.poll() is None:
            if any(e["event"] == "done" for e in soak.entries(tmp_path)):
                break
            time.sleep(0.01)
        process.send_signal(signal.SIGKILL)
        assert process.wait() == -signal.SIGKILL, (tmp_path / "log").read_text()
    done = [e["index"] for e in soak.entries(tmp_path) if e["event"] == "done"]
    out = subprocess.run(
        [sys.executable, "-m", "h3video", "resume", str(tmp_path / "out.job"), "--json"],
        capture_output=True, text=True, env=environment, check=False,
    )  # fmt: skip
    assert out.returncode == 0, out.stderr
    bill = json.loads(out.stdout)
    assert bill["made"] == [
        *(f"latents-{k:04d}" for k in range(3) if k not in done),
        "frames-0000", "frames-0001", "frames-0002", "merged-0000",
    ]  # fmt: skip
    assert (tmp_path / "out.mp4").is_file()
