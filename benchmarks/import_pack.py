"""How long ComfyUI takes to load the node pack, beside what ComfyUI has imported already.

    python benchmarks/import_pack.py        # ComfyUI: $COMFYUI_PATH, else the wheel of the tests

Every load happens in a fork of a process that holds ComfyUI, torch and the API, as
main.py has when it comes to the packs. The first one also compiles the pack's files.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

LIMIT_MS = 100.0
ROUNDS = 15

HERE = Path(__file__).resolve().parents[1] / "tests" / "comfy"
sys.path.insert(0, str(HERE))

from comfy_harness import comfyui_folder, copy_pack  # noqa: E402


def main() -> int:
    """Print ms on the clock and of the CPU; the exit status is 1 for a best over the limit."""
    with tempfile.TemporaryDirectory() as folder:
        pack = copy_pack(Path(folder) / "ComfyUI-H3-Video")
        cases = f"{json.dumps({'pack': str(pack)})}\n" * (1 + ROUNDS)
        command = [sys.executable, str(HERE / "comfy_harness" / "load_pack.py"),
                   str(comfyui_folder())]  # fmt: skip
        environment = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
        done = subprocess.run(
            command, input=cases, capture_output=True, text=True, check=True, env=environment
        )
    answers = [json.loads(line) for line in done.stdout.splitlines()]
    if not all(a["loaded"] for a in answers):
        raise SystemExit(answers[0]["log"])
    print("ms                     clock    CPU")
    best = 0.0
    for name, pick in (("first, compiling", 0), ("best", 1), ("median", 1 + ROUNDS // 2)):
        clock, cpu = (
            1000 * [answers[0][key], *sorted(a[key] for a in answers[1:])][pick]
            for key in ("seconds", "cpu")
        )
        print(f"{name:<20} {clock:7.1f} {cpu:6.1f}")
        best = clock if name == "best" else best
    print(f"limit                {LIMIT_MS:7.1f}, {ROUNDS} loads")
    return int(best > LIMIT_MS)


if __name__ == "__main__":
    raise SystemExit(main())
