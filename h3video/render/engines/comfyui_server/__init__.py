"""The engine `comfyui`: chunks made by a running ComfyUI server with a workflow of the user's.

    h3video render "a fox" --frames 721 --engine comfyui --family wan
        --engine-option workflow=fox_api.json --engine-option server=http://127.0.0.1:8188

Titles of nodes say what a chunk fills in (workflow.py). If one is titled `first_frame`, every chunk
starts from the last picture of the one before; else chunks are made apart.
"""

from __future__ import annotations

import hashlib
import io
import logging
from pathlib import Path
from typing import Any

from ....errors import UsageError
from ...fingerprint import file_identity
from ..h3c.command import own_seed
from ..protocol import FIRST_FRAME, NOTHING, Cancel, ChunkRequest, ChunkResult, Progress
from .follow import Follower
from .results import PICTURES, SOUNDS, VIDEOS, choose, read_pictures, read_sound
from .server import Server
from .workflow import Workflow, load_workflow

__all__ = ["OPTIONS", "ComfyEngine", "open_engine", "traits"]

log = logging.getLogger("h3video")

OPTIONS = {
    "workflow": "a workflow in API format (File > Export (API)) with titled nodes",
    "server": "the server's address (default: http://127.0.0.1:8188)",
    "patience": "seconds that the server may be gone, for a restart (default: 300)",
}

DEFAULT_SERVER = "http://127.0.0.1:8188"


class ComfyEngine:
    """Chunks of one job; see Engine."""

    name = "comfyui"
    gives = "frames"

    def __init__(
        self, workflow: Workflow, path: Path, server: Server, patience: float = 300.0,
        image: str = "",
    ) -> None:  # fmt: skip
        self.workflow, self.path, self.server = workflow, path, server
        self.patience, self.image = patience, image
        self.continuity = FIRST_FRAME if workflow.takes("first_frame") else NOTHING

    def identity(self) -> dict[str, Any]:
        """The workflow without what is filled in. The server must answer."""
        try:
            version = self.server.version()
        except (OSError, ValueError) as e:
            raise UsageError(
                f"no ComfyUI answers at {self.server.url} ({e}); start it, or give its address "
                "with --engine-option server=URL"
            ) from None
        log.info("ComfyUI %s at %s", version, self.server.url)
        found: dict[str, Any] = {
            "workflow": {"file": str(self.path), "nodes": self.workflow.identity()}
        }
        if self.image:
            told = {"file": self.image, **file_identity(Path(self.image))}
            found["inputs"] = {"image": told}
        return found

    def generate(self, request: ChunkRequest, progress: Progress, cancel: Cancel) -> ChunkResult:
        """Make a chunk; see Engine."""
        values = self.values(request)
        prompt = self.workflow.filled(values)
        follower = Follower(
            self.server, prompt, progress, cancel, self.patience,
            lambda text: log.warning("%s", text),
        )  # fmt: skip
        return self.collect(follower.run(), request)

    def values(self, request: ChunkRequest) -> dict[str, Any]:
        """What is filled in for a chunk. Raises UsageError for what the workflow cannot take."""
        if request.negative and not self.workflow.takes("negative"):
            raise UsageError(
                f"workflow {self.path} has no node titled negative, so the negative prompt would "
                "be ignored; title one, or leave --negative out"
            )
        values: dict[str, Any] = {
            "positive": request.prompt, "negative": request.negative, "seed": own_seed(request),
            "frames": request.frames, "width": request.width, "height": request.height,
            "fps": request.fps, "steps": request.steps, "cfg": request.cfg,
            "index": request.index, "start": request.start,
        }  # fmt: skip
        if request.first_frame is not None and self.workflow.takes("first_frame"):
            data = _png(request.first_frame)
            name = f"{hashlib.sha256(data).hexdigest()[:16]}.png"
            try:
                values["first_frame"] = self.server.upload(name, data)
            except OSError as e:
                raise UsageError(f"{self.server.url} does not take a picture ({e})") from None
        return values

    def collect(self, outputs: dict[str, Any], request: ChunkRequest) -> ChunkResult:
        """A chunk from the files that the workflow has saved."""
        pictures = choose(outputs, self.workflow.results, (*VIDEOS, *PICTURES))
        if not pictures:
            raise UsageError(
                f"workflow {self.path} saved no pictures and no video; title the node that saves "
                "them result"
            )
        try:
            frames, video = read_pictures(
                pictures, self.server.download, request.width, request.height
            )
            sounds = choose(outputs, self.workflow.sounds, SOUNDS) if self.workflow.sounds else []
            heard = self.server.download(sounds[0]) if sounds else video
        except OSError as e:
            raise RuntimeError(f"a result cannot be fetched from {self.server.url} ({e})") from None
        if len(frames) != request.frames:
            raise UsageError(
                f"the workflow made {len(frames)} frames, {request.frames} were asked for; is the "
                "title frames on the right node, and --family the workflow's?"
            )
        sound = read_sound(heard, request.frames, request.fps) if heard is not None else None
        return ChunkResult(frames=frames, sound=sound)

    def decode(
        self, latents: Any, request: ChunkRequest, progress: Progress, cancel: Cancel
    ) -> ChunkResult:
        """Never called: `generate` gives frames."""
        raise RuntimeError("the workflow decodes its chunks itself")

    def release(self, everything: bool = False) -> None:
        """With `everything` the server is asked to free its memory."""
        if everything:
            try:
                self.server.post("/free", {"unload_models": True, "free_memory": True})
            except OSError as e:
                log.info("%s did not free its memory (%s)", self.server.url, e)

    def close(self) -> None:
        """Nothing is held between chunks."""


def traits(options: dict[str, str]) -> tuple[str, str]:
    """(continuity, gives), before there is a job. Raises UsageError."""
    workflow, _ = _workflow(options)
    return (FIRST_FRAME if workflow.takes("first_frame") else NOTHING), "frames"


def open_engine(document: dict[str, Any], options: dict[str, str]) -> ComfyEngine:
    """The engine of a job document. Raises UsageError."""
    workflow, path = _workflow(options)
    patience = options.get("patience", "300")
    try:
        seconds = float(patience)
    except ValueError:
        raise UsageError(f"engine option patience {patience!r} is no number of seconds") from None
    if any(c["negative"] for c in document["chunks"]) and not workflow.takes("negative"):
        raise UsageError(
            f"workflow {path} has no node titled negative, so the negative prompt would be "
            "ignored; title one, or leave --negative out"
        )
    image = document.get("inputs", {}).get("image", {}).get("file", "")
    if image and not workflow.takes("first_frame"):
        raise UsageError(
            f"workflow {path} has no node titled first_frame, so --image would be ignored; title "
            "the LoadImage node"
        )
    server = Server(options.get("server", DEFAULT_SERVER))
    return ComfyEngine(workflow, path, server, seconds, image)


def _workflow(options: dict[str, str]) -> tuple[Workflow, Path]:
    unknown = options.keys() - OPTIONS.keys()
    if unknown:
        raise UsageError(
            f"engine comfyui has no option {', '.join(sorted(unknown))}; use {', '.join(OPTIONS)}"
        )
    if "workflow" not in options:
        raise UsageError(
            "engine comfyui needs --engine-option workflow=FILE, a workflow exported with File > "
            "Export (API)"
        )
    path = Path(options["workflow"]).expanduser()
    return load_workflow(path), path


def _png(picture: Any) -> bytes:
    from PIL import Image

    buffer = io.BytesIO()
    Image.fromarray(picture).save(buffer, "PNG", compress_level=4)
    return buffer.getvalue()
