"""docs/tiling.md has the table that benchmarks/expected_times.py prints."""

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_the_docs_have_the_scripts_table():
    script = str(ROOT / "benchmarks" / "expected_times.py")
    run = subprocess.run(
        [sys.executable, script, "--markdown"], cwd=ROOT, capture_output=True, text=True,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )  # fmt: skip
    assert run.returncode == 0, run.stderr
    assert run.stdout in (ROOT / "docs" / "tiling.md").read_text(encoding="utf-8")
