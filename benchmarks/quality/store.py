"""The lab's figures as JSON, one file a part, with the machine that they were measured on."""

from __future__ import annotations

import json
import os
import platform
import time
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).with_name("results")


def machine() -> dict[str, Any]:
    """What a reader must know to compare seconds."""
    return {
        "machine": platform.machine(), "cores": os.cpu_count(),
        "python": platform.python_version(), "day": time.strftime("%Y-%m-%d"),
    }  # fmt: skip


def save(name: str, data: dict[str, Any], folder: Path = FOLDER) -> Path:
    """Write a part's figures; the file appears under its name only when it is complete."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{name}.json"
    part = path.with_suffix(".part")
    text = json.dumps({"about": machine(), **data}, separators=(",", ":"))
    part.write_text(text.replace("},{", "},\n{") + "\n")
    os.replace(part, path)
    return path


def load(name: str, folder: Path = FOLDER) -> dict[str, Any] | None:
    """A part's figures, or None when it was not run."""
    path = folder / f"{name}.json"
    return json.loads(path.read_text()) if path.is_file() else None
