"""Latents on disk: a safetensors file with the job in its metadata.

Written before the decoder starts, so that a failure there loses nothing.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from ..errors import UsageError
from .job import RenderJob


def latents_path(video: Path) -> Path:
    """Where the latents of a video are kept: out.mp4 -> out.latents.safetensors."""
    return video.with_name(f"{video.stem}.latents.safetensors")


def save_latents(path: Path, latents: Any, job: RenderJob, steps_done: int) -> None:
    """Write latents [1, C, T, h, w] (normalised, as the sampler leaves them) atomically."""
    from safetensors.torch import save_file

    partial = path.with_name(f".{path.name}.partial")
    try:
        save_file(
            {"latents": latents.detach().float().cpu().contiguous()}, str(partial),
            metadata={"h3video_job": job.to_json(), "steps_done": str(steps_done)},
        )  # fmt: skip
        with open(partial, "rb") as f:
            os.fsync(f.fileno())
        umask = os.umask(0)
        os.umask(umask)
        partial.chmod(0o666 & ~umask)  # safetensors makes it private
        os.replace(partial, path)
    finally:
        partial.unlink(missing_ok=True)


def read_job(path: Path) -> tuple[RenderJob, int]:
    """The job and the number of finished steps of a latents file; loads no tensor.

    Raises UsageError when the file is missing, damaged or not ours.
    """
    from safetensors import safe_open

    if not path.is_file():
        raise UsageError(f"latents file {path} is not there; `h3video render` writes one")
    try:
        with safe_open(str(path), framework="np") as f:
            metadata = f.metadata() or {}
            names = set(f.keys())
    except Exception as e:  # safetensors raises its own type, which moved between releases
        raise UsageError(f"{path} is no readable safetensors file ({e}); render again") from None
    if "h3video_job" not in metadata or names != {"latents"}:
        raise UsageError(f"{path} holds no h3video job; use a file that `h3video render` wrote")
    return RenderJob.from_json(metadata["h3video_job"]), int(metadata.get("steps_done", 0))


def load_latents(path: Path) -> Any:
    """The tensor [1, C, T, h, w], float32."""
    from safetensors.torch import load_file

    return load_file(str(path))["latents"]
