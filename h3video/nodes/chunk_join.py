"""H3ChunkJoin: all saved chunks as one clip, with its sound."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from comfy_api.latest import io

from ..errors import UsageError
from .chunk_store import ChunkClip, Chunks, load_value
from .sockets import advanced

READ = 16
"""Frames that are read at a time."""


class H3ChunkJoin(io.ComfyNode):
    """Join saved chunks."""

    @classmethod
    def define_schema(cls) -> Any:
        return io.Schema(
            node_id="H3ChunkJoin",
            display_name="H3 Chunk Join",
            category="h3-video/chunks",
            description="Joins the saved images (and audio) of all chunks to one clip of exactly "
            "the planned length. While chunks are missing, nothing after it runs.",
            inputs=[
                Chunks.Input("chunks", tooltip="From H3 Chunk Plan."),
                io.Combo.Input(
                    "join", options=["cell", "fade", "cut"], default="cell",
                    tooltip="cell: every hexagonal cell switches at its own best frame. fade: a "
                    "dissolve. cut: in the middle of the overlap.",
                ),
                io.Combo.Input(
                    "colour", options=["hold", "ease", "off"], default="hold", optional=True,
                    tooltip="hold: later chunks keep the first one's brightness and tint. ease: "
                    "they return to their own over the overlap. off: left as they are.",
                ),
                io.AnyType.Input(
                    "after", optional=True,
                    tooltip="Anything that must be done first: the value of the last H3 Chunk "
                    "Save.",
                ),
                advanced(io.Int.Input(
                    "hex_res", default=-1, min=-1, max=15, optional=True,
                    tooltip="Resolution of the cells; -1: chosen for the frame.",
                )),
            ],
            outputs=[
                io.Image.Output("images", display_name="images", tooltip="The whole clip."),
                io.Audio.Output(
                    "audio", display_name="audio",
                    tooltip="Its sound; silence if no chunk has saved any.",
                ),
                io.String.Output(
                    "report", display_name="report",
                    tooltip="How every join was made, or which chunks are missing.",
                ),
            ],
            is_output_node=True,
        )  # fmt: skip

    @classmethod
    def fingerprint_inputs(cls, **_: Any) -> float:
        """Never the same: what is on the disk decides."""
        return float("nan")

    @classmethod
    def execute(
        cls, chunks: ChunkClip, join: str, colour: str = "hold", after: Any = None,
        hex_res: int = -1,
    ) -> Any:  # fmt: skip
        from comfy_execution.graph_utils import ExecutionBlocker

        store = chunks.store()
        count = len(chunks.plan.chunks)
        missing = [k for k in range(count) if store.check("images", k)]
        if missing:
            shown = ", ".join(map(str, missing[:8])) + (", ..." if len(missing) > 8 else "")
            text = f"{count - len(missing)} of {count} chunks are there, missing: {shown}"
            wait = ExecutionBlocker(None)
            return io.NodeOutput(wait, wait, text, ui={"text": [text]})
        from ..tiling.join import JoinSettings

        settings = JoinSettings(join, colour, "auto" if hex_res < 0 else hex_res)
        images, lines = join_images(chunks, settings)
        audio = join_audio(chunks)
        text = "\n".join([f"{len(images)} frames of {count} chunks", *lines])
        return io.NodeOutput(images, audio, text, ui={"text": [text]})


def join_images(chunks: ChunkClip, settings: Any) -> tuple[Any, list[str]]:
    """All frames, float32 [F, H, W, C], and a line for every join."""
    import comfy.model_management as mm
    import comfy.utils
    import torch

    from ..tiling.join import ClipJoiner

    plan, store = chunks.plan, chunks.store()
    joiner, out, at = ClipJoiner(settings), None, 0
    bar = comfy.utils.ProgressBar(plan.frames)
    for chunk in plan.chunks:
        after = plan.chunks[chunk.index + 1 :][:1]
        frames = saved_frames(store.path("images", chunk.index), chunk.frames, chunk.skip)
        for frame in joiner.feed(frames, chunk.shared, after[0].shared if after else 0):
            if at == plan.frames:
                break  # the last chunk may be longer than what was asked for
            if out is None:
                out = torch.empty((plan.frames, *frame.shape), dtype=torch.float32)
            out[at] = torch.from_numpy(frame)
            at += 1
            bar.update(1)
            mm.throw_exception_if_processing_interrupted()
    if out is None or at < plan.frames:
        raise UsageError(f"the chunks hold {at} frames, {plan.frames} were planned; redo them")
    lines = [f"join {i}: {p.summary()}" for i, p in enumerate(joiner.plans)]
    return out.clamp_(0.0, 1.0), lines


def saved_frames(path: Path, count: int, skip: int) -> Iterator[Any]:
    """The shown frames of a saved chunk, float32 numpy, some at a time."""
    import numpy as np

    from ..render.tensors import Rows

    rows = Rows(path, "images")
    if len(rows) != count:
        raise UsageError(
            f"{path.name} has {len(rows)} frames, its chunk {count}; was `length` of H3 Chunk Plan "
            "connected to the model?"
        )
    for start in range(skip, len(rows), READ):
        for frame in rows[start : start + READ]:
            yield (
                frame.astype(np.float32) / 255.0
                if frame.dtype == np.uint8
                else frame.astype(np.float32, copy=False)
            )


def join_audio(chunks: ChunkClip) -> dict[str, Any]:
    """The clip's sound as AUDIO; silence if there is none. Raises UsageError if some is missing."""
    import torch

    from ..tiling.sound import fit_sound, join_sounds, sample_at

    plan, store, fps = chunks.plan, chunks.store(), chunks.fps
    have = [c.index for c in plan.chunks if store.piece("audio", c.index) is not None]
    if not have:
        total = sample_at(plan.frames, 44_100, fps)
        return {"waveform": torch.zeros(1, 2, total), "sample_rate": 44_100}
    parts, rate = [], 0
    for chunk in plan.chunks:
        found = load_value(store, "audio", chunk.index)
        if found is None:
            raise UsageError(f"chunk {chunk.index} has no saved audio, others have; redo it")
        rate = int(found[0]["sample_rate"])
        first = sample_at(chunk.start, rate, fps)
        sound = found[0]["waveform"][0].float().cpu().numpy()
        parts.append((first, fit_sound(sound, sample_at(chunk.stop, rate, fps) - first, rate)))
    joined = join_sounds(parts, sample_at(plan.frames, rate, fps), rate)
    return {"waveform": torch.from_numpy(joined)[None], "sample_rate": rate}
