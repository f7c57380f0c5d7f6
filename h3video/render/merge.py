"""Decoded chunks become one video file: frames are read, joined and written one after the other."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from ..tiling.chunks import ChunkPlan
from ..tiling.join import ClipJoiner, JoinSettings
from ..tiling.sound import fit_sound, join_sounds, sample_at
from .store import PieceStore
from .tensors import Rows

READ = 16
"""Frames that are read at a time."""


def joined(
    plan: ChunkPlan, store: PieceStore, settings: JoinSettings,
    log: Callable[[str], None] | None = None,
) -> Iterator[Any]:  # fmt: skip
    """The frames of a clip, uint8 numpy [H, W, 3], exactly `plan.frames` of them.

    log   is told of every join
    """
    joiner = ClipJoiner(settings)
    left = plan.frames
    for chunk in plan.chunks:
        after = plan.chunks[chunk.index + 1 :][:1]
        frames = read_frames(store.path("frames", chunk.index), chunk.skip)
        for frame in joiner.feed(frames, chunk.shared, after[0].shared if after else 0):
            if left == 0:
                break
            left -= 1
            yield frame
        if log is not None and chunk.shared:
            log(f"chunks {chunk.index} and {chunk.index + 1}: {joiner.plans[-1].summary()}")
    if left:
        raise RuntimeError(f"the chunks hold {left} frames too few for {plan.frames}")


def read_frames(path: Path, skip: int) -> Iterator[Any]:
    """The frames of a decoded chunk one by one, without its first `skip`."""
    rows = Rows(path, "frames")
    for start in range(skip, len(rows), READ):
        yield from rows[start : start + READ]


def sound_of(plan: ChunkPlan, store: PieceStore, fps: float) -> tuple[Any, int] | None:
    """The clip's sound as (float32 numpy [channels, samples], rate), None if chunks have none."""
    if store.piece("sound", 0) is None:
        return None
    parts, rate = [], 0
    for chunk in plan.chunks:
        found = store.get("sound", chunk.index, "numpy")
        if found is None:
            raise RuntimeError(f"the sound of chunk {chunk.index + 1} was damaged; resume the job")
        tensors, told = found
        rate = int(told["rate"])
        first = sample_at(chunk.start, rate, fps)
        # Codecs round lengths: each chunk's sound is as long as its frames, to the sample.
        whole = sample_at(chunk.stop, rate, fps) - first
        parts.append((first, fit_sound(tensors["samples"], whole, rate)))
    return join_sounds(parts, sample_at(plan.frames, rate, fps), rate), rate
