"""The chunks of a clip that a workflow makes: a plan, a folder under ComfyUI's output, an index."""

from __future__ import annotations

import json
import struct
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from comfy_api.latest import io

from ..errors import UsageError
from ..render.lock import JobLock
from ..render.store import PieceStore
from ..tiling.chunks import Chunk, ChunkPlan
from .chunk_graph import Graph, difference
from .chunk_values import from_tensors, in_bytes, kind_of, to_tensors

Chunks = io.Custom("H3_CHUNKS")
"""A ChunkClip object."""

ANY_CHUNK = io.Custom("LATENT,IMAGE,AUDIO")
"""What the chunk nodes give."""


@dataclass(frozen=True)
class ChunkClip:
    """What H3_CHUNKS carries. fps is for the sound; index is the chunk that this run makes."""

    plan: ChunkPlan
    folder: str
    index: int
    fps: float

    @property
    def chunk(self) -> Chunk:
        """The chunk that this run makes."""
        return self.plan.chunks[self.index]

    def store(self) -> PieceStore:
        """The finished chunks. Raises UsageError when the folder is not under the output."""
        return PieceStore(chunk_folder(self.folder))


def chunk_folder(name: str) -> Path:
    """A folder of chunks under ComfyUI's output. Raises UsageError for one outside of it."""
    import folder_paths

    if not name.strip():
        raise UsageError("folder is empty; name one under ComfyUI's output, such as h3_chunks/clip")
    base = Path(folder_paths.get_output_directory()).resolve()
    path = (base / name.strip()).resolve()
    if path == base or base not in path.parents:
        raise UsageError(
            f"folder {name!r} is not inside ComfyUI's output folder; use h3_chunks/clip"
        )
    return path


def save_value(
    store: PieceStore, kind: str, index: int, value: Any, graph: Graph, *,
    eight_bit: bool = False, continues: bool = True,
) -> None:  # fmt: skip
    """Keep a chunk; on return it survives a power cut.

    eight_bit   images as uint8
    continues   it was made from the chunk before: when that is made again, so must this be

    Raises UsageError, OSError.
    """
    found = kind_of(value)
    if eight_bit and found == kind == "images":
        value = in_bytes(value)
    tensors, told = to_tensors(kind, value)
    metadata = {
        "format": "h3video-chunk/1", "kind": kind, "index": str(index),
        "value": json.dumps(told, sort_keys=True), "graph": json.dumps(graph, sort_keys=True),
    }  # fmt: skip
    store.folder.mkdir(parents=True, exist_ok=True)
    with JobLock(store.folder):
        store.open_for_writing()
        linked = continues and index > 0 and store.piece(kind, index - 1) is not None
        before = [(kind, index - 1)] if linked else []
        store.put(kind, index, tensors, before, metadata)


def load_value(store: PieceStore, kind: str, index: int) -> tuple[Any, Graph] | None:
    """A chunk and the graph that made it; None if it is not there, or damaged."""
    if store.check(kind, index):
        return None
    found = store.get(kind, index, "torch")
    if found is None:
        return None
    tensors, metadata = found
    return from_tensors(kind, tensors, json.loads(metadata["value"])), json.loads(metadata["graph"])


def state_of(store: PieceStore, kind: str, index: int, graph: Graph) -> str:
    """missing (why), changed (what), or "" when the chunk is there and made by this graph."""
    why = store.check(kind, index)
    if why:
        return f"missing: {why}"
    told = _graph_of(store, kind, index)
    what = difference(told, graph)
    return f"changed: {what}" if what else ""


def _graph_of(store: PieceStore, kind: str, index: int) -> Graph:
    """The graph that made a chunk, from its file's header alone."""
    with open(store.path(kind, index), "rb") as f:
        length = struct.unpack("<Q", f.read(8))[0]
        header = json.loads(f.read(length))
    return json.loads(header["__metadata__"]["graph"])  # type: ignore[no-any-return]


def first_missing(store: PieceStore, kind: str, count: int) -> int:
    """The first chunk that is not finished; the last one if all are."""
    for index in range(count):
        if store.glance(kind, index):
            return index
    return count - 1
