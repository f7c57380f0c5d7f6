"""H3ChunkSave: keep a chunk on disk, and never make one again that is there."""

from __future__ import annotations

from typing import Any

from comfy_api.latest import io

from ..errors import UsageError
from .chunk_graph import Graph, ancestors
from .chunk_store import ANY_CHUNK, ChunkClip, Chunks, load_value, save_value, state_of
from .chunk_values import KINDS
from .sockets import advanced


class H3ChunkSave(io.ComfyNode):
    """Save a chunk; a finished one is loaded, and what would make it does not run."""

    @classmethod
    def define_schema(cls) -> Any:
        return io.Schema(
            node_id="H3ChunkSave",
            display_name="H3 Chunk Save",
            category="h3-video/chunks",
            description="Saves a chunk with a checksum the moment it is made. If it is there "
            "already, made by the same nodes with the same settings, it is loaded and nothing "
            "before this node runs.",
            inputs=[
                io.MultiType.Input(
                    "value", [io.Latent, io.Image, io.Audio], lazy=True,
                    tooltip="The chunk: latents (with sound, too), images or audio. Only made if "
                    "it is not on disk.",
                ),
                Chunks.Input("chunks", tooltip="From H3 Chunk Plan."),
                io.Combo.Input(
                    "content", options=list(KINDS), default="images",
                    tooltip="What value is. One of each kind can be saved for every chunk.",
                ),
                io.Combo.Input(
                    "if_changed", options=["stop", "redo"], default="stop", optional=True,
                    tooltip="When the saved chunk was made with other settings: stop and name "
                    "them, or make it again.",
                ),
                advanced(io.Int.Input(
                    "index", default=-1, min=-1, max=4095, optional=True,
                    tooltip="Which chunk it is; -1: the one that H3 Chunk Plan says.",
                )),
                advanced(io.Combo.Input(
                    "precision", options=["exact", "8 bit"], default="exact", optional=True,
                    tooltip="8 bit keeps images in a quarter of the space, rounded as in a video "
                    "file; what is passed on is rounded, too.",
                )),
            ],
            outputs=[
                ANY_CHUNK.Output(
                    "saved", display_name="value",
                    tooltip="The chunk as it is on disk.",
                ),
                io.String.Output(
                    "report", display_name="report", tooltip="Saved, or found finished."
                ),
            ],
            hidden=[io.Hidden.prompt, io.Hidden.unique_id],
            is_output_node=True,
        )  # fmt: skip

    @classmethod
    def fingerprint_inputs(cls, **_: Any) -> float:
        """Never the same: the file may have been deleted since."""
        return float("nan")

    @classmethod
    def check_lazy_status(
        cls, chunks: ChunkClip, content: str, value: Any = None, if_changed: str = "stop",
        index: int = -1, precision: str = "exact",
    ) -> list[str]:  # fmt: skip
        """Ask for the value only if it must be made."""
        if value is not None:
            return []
        at = _index(chunks, index)
        state = state_of(chunks.store(), content, at, cls._graph())
        make = state.startswith("missing") or (state and if_changed == "redo")
        return ["value"] if make else []

    @classmethod
    def execute(
        cls, chunks: ChunkClip, content: str, value: Any = None, if_changed: str = "stop",
        index: int = -1, precision: str = "exact",
    ) -> Any:  # fmt: skip
        store, at, graph = chunks.store(), _index(chunks, index), cls._graph()
        state = state_of(store, content, at, graph)
        if state.startswith("changed") and if_changed == "stop":
            raise UsageError(
                f"chunk {at} in {chunks.folder} was made otherwise: {state[9:]}; undo the change, "
                "use another folder, or set if_changed to redo"
            )
        if state:
            if value is None:
                raise UsageError(f"chunk {at} is {state} and nothing came to save; queue it again")
            save_value(
                store, content, at, value, graph, eight_bit=precision == "8 bit",
                continues=chunks.plan.continuity != "none",
            )  # fmt: skip
        found = load_value(chunks.store(), content, at)
        if found is None:
            raise OSError(f"chunk {at} in {chunks.folder} cannot be read back; is the disk full?")
        text = f"chunk {at} ({content}): {'saved' if state else 'was finished'}"
        return io.NodeOutput(found[0], text, ui={"text": [text]})

    @classmethod
    def _graph(cls) -> Graph:
        """The nodes that make the value."""
        prompt = cls.hidden.prompt or {}
        node = prompt.get(str(cls.hidden.unique_id), {})
        return ancestors(prompt, node.get("inputs", {}).get("value"))


def _index(chunks: ChunkClip, index: int) -> int:
    at = chunks.index if index < 0 else index
    if at >= len(chunks.plan.chunks):
        raise UsageError(f"index {index} is out of range 0..{len(chunks.plan.chunks) - 1}")
    return at
