"""The engine `h3c`: chunks made by antirez/h3.c, a Metal program for MiniMax-H3.

Every chunk is one run of the program. The next one starts from the last picture of the one before
(--first-frame). Its pictures come as they are made, uncompressed; its sound from the mp4.
"""

from __future__ import annotations

import shutil
import subprocess
import tempfile
from pathlib import Path
from typing import Any

from ....errors import UsageError
from ...fingerprint import file_identity, folder_identity
from ..protocol import FIRST_FRAME, Cancel, ChunkRequest, ChunkResult, Progress
from .command import OPTIONS, Said, check_job, chunk_command, option_flags
from .process import run
from .results import read_frames, read_sound, write_png

__all__ = ["OPTIONS", "H3cEngine", "open_engine", "traits"]

SHADERS = "h3_shaders.metal"
"""Compiled at run time from the folder that the program runs in, so that is its own folder."""

MODEL_PARTS = ("FL2VA", "model_index.json", "config.json")

INFO_SECONDS = 120.0


class H3cEngine:
    """Chunks of one job; see Engine."""

    name = "h3c"
    continuity = FIRST_FRAME
    gives = "frames"

    def __init__(self, binary: Path, model: Path, options: dict[str, str], image: str = "") -> None:
        self.binary, self.model, self.image = binary, model, image
        self.options = options
        self.flags = option_flags(options)

    def identity(self) -> dict[str, Any]:
        """The program, its shaders, the model's files; the program must know them, too."""
        found: dict[str, Any] = {
            "model": {"file": str(self.model), "files": folder_identity(self.model, MODEL_PARTS)},
            "program": {"file": str(self.binary), **file_identity(self.binary)},
            "program_version": self._info(),
        }
        shaders = self.binary.parent / SHADERS
        if shaders.is_file():
            found["shaders"] = {"file": str(shaders), **file_identity(shaders)}
        if self.image:
            path = Path(self.image)
            found["inputs"] = {"image": {"file": self.image, **file_identity(path)}}
        return found

    def _info(self) -> str:
        """The program's own version, from --info, which checks the model without loading it."""
        try:
            told = subprocess.run(
                [str(self.binary), "-d", str(self.model), "--info"], cwd=self.binary.parent,
                stdin=subprocess.DEVNULL, capture_output=True, timeout=INFO_SECONDS,
            )  # fmt: skip
        except OSError as e:
            raise UsageError(f"{self.binary} cannot be started ({e.strerror})") from None
        except subprocess.TimeoutExpired:
            raise UsageError(f"{self.binary} --info did not end in {INFO_SECONDS:g} s") from None
        if told.returncode:
            lines = told.stderr.decode("utf-8", "replace").split("\n")
            why = next((s for s in lines if s.startswith("h3:")), f"status {told.returncode}")
            raise UsageError(
                f"{self.binary} does not run with {self.model}: {why.removeprefix('h3: ')}"
            )
        first = told.stdout.decode("utf-8", "replace").split("\n")[0].strip()
        return first if first.startswith("h3") else "unknown"

    def generate(self, request: ChunkRequest, progress: Progress, cancel: Cancel) -> ChunkResult:
        """Make a chunk; see Engine."""
        check_job(request.width, request.height, request.frames, request.fps, request.steps)
        if request.negative:
            raise UsageError(
                "h3.c knows no negative prompt (its model needs no guidance); leave it empty"
            )
        with tempfile.TemporaryDirectory(prefix="h3video-h3c-") as name:
            folder = Path(name)
            if request.first_frame is not None:
                write_png(request.first_frame, folder / "first.png")
            command = chunk_command(self.binary, self.model, self.flags, request, folder)
            run(command, self.binary.parent, cancel, _Shares(progress).hear)
            frames = read_frames(folder / "frames", request)
            sound = read_sound(folder / "chunk.mp4", request.frames, request.fps)
        return ChunkResult(frames=frames, sound=sound)

    def decode(
        self, latents: Any, request: ChunkRequest, progress: Progress, cancel: Cancel
    ) -> ChunkResult:
        """Never called: `generate` gives frames."""
        raise RuntimeError("h3.c decodes its chunks itself")

    def release(self, everything: bool = False) -> None:
        """Nothing is held between chunks: the program has ended."""

    def close(self) -> None:
        """Nothing is held."""


class _Shares:
    """Turns "denoise 3/20" into shares of a phase that sum to 1."""

    def __init__(self, progress: Progress) -> None:
        self.progress = progress
        self.done: dict[str, float] = {}

    def hear(self, said: Said) -> None:
        if not said.phase or said.phase == "denoise enqueue":
            return  # work that is queued is not yet done
        now = min(1.0, said.done / said.total)
        before = self.done.get(said.phase, 0.0)
        if now > before:
            self.done[said.phase] = now
            self.progress(said.phase, now - before)


def traits(options: dict[str, str]) -> tuple[str, str]:
    """(continuity, gives), before there is a job."""
    return FIRST_FRAME, "frames"


def open_engine(document: dict[str, Any], options: dict[str, str]) -> H3cEngine:
    """The engine of a job document. Raises UsageError."""
    option_flags(options)
    wanted = options.get("binary", "h3")
    found = shutil.which(wanted)
    if found is None:
        raise UsageError(
            f"the program {wanted} of engine h3c is not there; build antirez/h3.c on a Mac with "
            "`make` and give its path with --engine-option binary=PATH"
        )
    model = Path(options.get("model") or document["model"]["file"]).expanduser()
    if not model.is_dir():
        raise UsageError(
            f"model folder {model} is not there; h3.c needs the MiniMax-H3 snapshot in bfloat16 "
            "(--engine-option model=FOLDER)"
        )
    settings = document["settings"]
    longest = max(c["frames"] for c in document["plan"]["chunks"])
    check_job(
        settings["width"], settings["height"], longest, settings["fps"], settings["steps"]
    )  # fmt: skip
    if any(c["negative"] for c in document["chunks"]):
        raise UsageError("h3.c knows no negative prompt; leave --negative out")
    image = document.get("inputs", {}).get("image", {}).get("file", "")
    return H3cEngine(Path(found).resolve(), model.resolve(), options, image)
