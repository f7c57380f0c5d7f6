"""H3ChunkLoad: a saved chunk, by default the one before the chunk of this run."""

from __future__ import annotations

from typing import Any

from comfy_api.latest import io

from ..errors import UsageError
from .chunk_store import ANY_CHUNK, ChunkClip, Chunks, load_value
from .chunk_values import KINDS


class H3ChunkLoad(io.ComfyNode):
    """Load a saved chunk."""

    @classmethod
    def define_schema(cls) -> Any:
        return io.Schema(
            node_id="H3ChunkLoad",
            display_name="H3 Chunk Load",
            category="h3-video/chunks",
            description="Loads a saved chunk: by default the one before the chunk of this run, so "
            "that its last picture or latent frames can be continued. For the first chunk it gives "
            "what is connected to otherwise.",
            inputs=[
                Chunks.Input("chunks", tooltip="From H3 Chunk Plan."),
                io.Combo.Input(
                    "content", options=list(KINDS), default="images",
                    tooltip="What to load: latents, images or audio.",
                ),
                io.Int.Input(
                    "offset", default=-1, min=-4095, max=4095, optional=True,
                    tooltip="Which chunk, counted from the one of this run: -1 is the one before.",
                ),
                io.Int.Input(
                    "last_frames", default=0, min=0, max=4096, optional=True,
                    tooltip="Give only so many of its last images; 0: all of it.",
                ),
                io.MultiType.Input(
                    "otherwise", [io.Latent, io.Image, io.Audio], lazy=True, optional=True,
                    tooltip="What to give when there is no such chunk: the start picture of the "
                    "clip, say.",
                ),
            ],
            outputs=[
                ANY_CHUNK.Output("loaded", display_name="value", tooltip="The chunk."),
                io.Boolean.Output(
                    "found", display_name="found", tooltip="Whether it came from the disk."
                ),
            ],
        )  # fmt: skip

    @classmethod
    def fingerprint_inputs(cls, **_: Any) -> float:
        """Never the same: what is on the disk decides."""
        return float("nan")

    @classmethod
    def check_lazy_status(
        cls, chunks: ChunkClip, content: str, offset: int = -1, last_frames: int = 0,
        otherwise: Any = None,
    ) -> list[str]:  # fmt: skip
        """Ask for `otherwise` only if it is needed."""
        return [] if otherwise is not None or chunks.index + offset >= 0 else ["otherwise"]

    @classmethod
    def execute(
        cls, chunks: ChunkClip, content: str, offset: int = -1, last_frames: int = 0,
        otherwise: Any = None,
    ) -> Any:  # fmt: skip
        at = chunks.index + offset
        if at < 0:
            if otherwise is None:
                raise UsageError(
                    f"chunk {chunks.index} is the first, so there is none at offset {offset}; "
                    "connect otherwise"
                )
            return io.NodeOutput(otherwise, False)
        store = chunks.store()
        found = load_value(store, content, at)
        if found is None:
            why = chunks.store().check(content, at)
            raise UsageError(
                f"chunk {at} ({content}) in {chunks.folder} is not there: {why}; make it first"
            )
        value = found[0]
        if last_frames and content == "images":
            value = value[-last_frames:].clone()
        elif last_frames:
            raise UsageError("last_frames is for images; set it to 0 for latents and audio")
        return io.NodeOutput(value, True)
