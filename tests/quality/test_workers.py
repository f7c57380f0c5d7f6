"""Worker processes end with the lab."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

pytest.importorskip("scipy")

LAB = """
import os, sys, time
from benchmarks.quality.workers import pool

def task(n):
    os.write(1, f"{os.getpid()}\\n".encode())  # in one call: two of them at once stay two lines
    time.sleep(60)

if __name__ == "__main__":
    with pool(2) as p:
        try:
            list(p.map(task, range(6)))
        except BaseException:
            p.shutdown(wait=False, cancel_futures=True)
            raise
"""


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
@pytest.mark.parametrize("how", ["ctrl-c", "killed"])
def test_workers_do_not_outlive_the_lab(tmp_path, how):
    script = tmp_path / "lab.py"
    script.write_text(LAB)
    env = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])}
    lab = subprocess.Popen(
        [sys.executable, str(script)], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
        start_new_session=True, env=env, text=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )  # fmt: skip
    workers = {int(lab.stdout.readline()) for _ in range(2)}
    assert len(workers) == 2
    if how == "ctrl-c":
        os.killpg(lab.pid, signal.SIGINT)
    else:
        lab.kill()
    lab.wait(15)
    lab.stdout.close()
    until = time.monotonic() + 15
    while any(alive(w) for w in workers) and time.monotonic() < until:
        time.sleep(0.1)
    assert not [w for w in workers if alive(w)]


def alive(pid):
    try:
        return Path(f"/proc/{pid}/stat").read_text().split(")")[1].split()[0] != "Z"
    except OSError:
        return False
