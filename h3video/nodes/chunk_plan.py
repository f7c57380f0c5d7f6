"""H3ChunkPlan: cut a long clip into chunks, and say which one this run makes."""

from __future__ import annotations

from typing import Any

from comfy_api.latest import io

from ..errors import UsageError
from ..models import FAMILIES
from ..tiling.chunks import CONTINUITIES, plan_chunks
from .chunk_store import ChunkClip, Chunks, first_missing
from .chunk_values import KINDS
from .sockets import advanced


class H3ChunkPlan(io.ComfyNode):
    """Plan the chunks of a clip."""

    @classmethod
    def define_schema(cls) -> Any:
        return io.Schema(
            node_id="H3ChunkPlan",
            display_name="H3 Chunk Plan",
            category="h3-video/chunks",
            description="Cuts a long clip into chunks on the model's frame grid and says which one "
            "this run makes: the first that is not saved yet. Queue the workflow as often as there "
            "are chunks; after a crash, queue it again.",
            inputs=[
                io.Int.Input(
                    "frames", default=241, min=1, max=1_000_000,
                    tooltip="Frames of the whole clip.",
                ),
                io.Int.Input(
                    "chunk_frames", default=81, min=5, max=4096,
                    tooltip="Frames of a chunk at most; taken down to the model's frame grid.",
                ),
                io.Combo.Input(
                    "family", options=[n for n in FAMILIES if FAMILIES[n].fps], default="wan",
                    tooltip="The model's family, which decides the frame grid.",
                ),
                io.String.Input(
                    "folder", default="h3_chunks/clip",
                    tooltip="Where chunks are kept, under ComfyUI's output folder. One folder a "
                    "clip.",
                ),
                io.Int.Input(
                    "index", default=-1, min=-1, max=4095, optional=True,
                    tooltip="The chunk that this run makes, from 0; -1: the first that is not "
                    "saved yet.",
                ),
                io.Combo.Input(
                    "continuity", options=list(CONTINUITIES), default="first-frame", optional=True,
                    tooltip="How a chunk continues the one before: from its last picture, from "
                    "frozen latent frames, or not at all.",
                ),
                io.Int.Input(
                    "overlap_frames", default=-1, min=-1, max=512, optional=True,
                    tooltip="Frames that neighbours share and the join works on; -1: chosen. With "
                    "first-frame it is always the one picture.",
                ),
                advanced(io.Combo.Input(
                    "content", options=list(KINDS), default="images", optional=True,
                    tooltip="What must be saved for a chunk to count as finished.",
                )),
                advanced(io.Float.Input(
                    "fps", default=16.0, min=1.0, max=240.0, step=0.001, optional=True,
                    tooltip="Frames a second, by which sound is joined.",
                )),
            ],
            outputs=[
                Chunks.Output(
                    "chunks", display_name="chunks",
                    tooltip="The plan, for H3 Chunk Save, Load and Join.",
                ),
                io.Int.Output("now", display_name="index", tooltip="The chunk of this run."),
                io.Int.Output("length", display_name="length", tooltip="Its frames to make."),
                io.Int.Output(
                    "start", display_name="start",
                    tooltip="Frame of the whole clip that its first frame is.",
                ),
                io.Int.Output("count", display_name="count", tooltip="Number of chunks."),
                io.Boolean.Output(
                    "continues", display_name="continues",
                    tooltip="Whether there is a chunk before it.",
                ),
                io.String.Output(
                    "summary", display_name="summary", tooltip="All chunks, and which are done."
                ),
            ],
        )  # fmt: skip

    @classmethod
    def fingerprint_inputs(cls, **_: Any) -> float:
        """Never the same: what is on the disk decides."""
        return float("nan")

    @classmethod
    def execute(
        cls, frames: int, chunk_frames: int, family: str, folder: str, index: int = -1,
        continuity: str = "first-frame", overlap_frames: int = -1, content: str = "images",
        fps: float = 16.0,
    ) -> Any:  # fmt: skip
        if family not in FAMILIES:
            raise UsageError(f"family {family!r} is unknown; use {', '.join(FAMILIES)}")
        if content not in KINDS:
            raise UsageError(f"content {content!r} is unknown; use {', '.join(KINDS)}")
        overlap = None if overlap_frames < 0 else overlap_frames
        plan = plan_chunks(frames, FAMILIES[family], chunk_frames, overlap, continuity)
        count = len(plan.chunks)
        store = ChunkClip(plan, folder, 0, fps).store()
        at = first_missing(store, content, count) if index < 0 else index
        if at >= count:
            raise UsageError(
                f"index {index} is out of range 0..{count - 1}: {frames} frames are {count} chunks"
            )
        chunk = plan.chunks[at]
        lines = [plan.describe()]
        for c in plan.chunks:
            done = "done" if not store.glance(content, c.index) else "missing"
            now = "  <- this run" if c.index == at else ""
            lines.append(f"chunk {c.index}: frames {c.start}-{c.stop - 1}, {done}{now}")
        text = "\n".join(lines)
        return io.NodeOutput(
            ChunkClip(plan, folder, at, fps), at, chunk.frames, chunk.start, count, at > 0, text,
            ui={"text": [text]},
        )  # fmt: skip
