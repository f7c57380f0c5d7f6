"""The pack as a user gets it: a copy of what git tracks, and nothing else."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
"""The repository, which is the node pack."""

FOLDER = "ComfyUI-H3-Video"
"""What `git clone` calls it."""


def tracked_files() -> list[Path]:
    """Paths under ROOT that git tracks, or would track: new files that it does not ignore."""
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT, capture_output=True, text=True, check=True,
    ).stdout  # fmt: skip
    names = sorted(set(listed.split("\0")) - {""})
    return [Path(name) for name in names if (ROOT / name).is_file()]


def copy_pack(target: Path) -> Path:
    """Copy the pack to the folder `target`; returns it. No build output comes along."""
    for name in tracked_files():
        file = target / name
        file.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(ROOT / name, file)
    return target
