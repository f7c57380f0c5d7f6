"""A long clip as chunks that a model can make one after the other, in plain ints.

Every chunk is a clip on the model family's own frame grid. How it continues the one before is the
family's matter:

- latents: the last latent frames of the chunk before are the first of this one. Latent frames of
  the whole clip are counted through, so that a position means one moment; the first of a chunk
  decodes as a single frame in causal decoders, which is never shown.
- first-frame: the last picture of the chunk before is this one's first.
- none: chunks share frames only for the join.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from itertools import pairwise
from typing import Any

from ..errors import UsageError
from ..models.family import VideoFamily

CONTINUITIES = ("latents", "first-frame", "none")

MAX_CHUNKS = 4096

DEFAULT_OVERLAP = 12
"""Frames shared by neighbours without a wish: enough to carry a movement on."""


@dataclass(frozen=True)
class Chunk:
    """One chunk. Frames and latent frames are counted in the whole clip, from 0.

    start          frame that the chunk's first generated frame is
    frames         generated frames, on the family's grid
    skip           generated frames at its head that are not shown
    shared         frames after those that the chunk before shows, too
    latent_start, latent_frames   its latent frames
    latent_shared  of these, so many at the head are the chunk before's (continuity latents)
    """

    index: int
    start: int
    frames: int
    skip: int
    shared: int
    latent_start: int
    latent_frames: int
    latent_shared: int

    @property
    def first(self) -> int:
        """Its first frame that can be shown."""
        return self.start + self.skip

    @property
    def stop(self) -> int:
        """The frame after its last."""
        return self.start + self.frames

    @property
    def new(self) -> int:
        """Its first frame that the chunk before does not show."""
        return self.first + self.shared


@dataclass(frozen=True)
class ChunkPlan:
    """All chunks of a clip of `frames` frames; make one with `plan_chunks`."""

    frames: int
    continuity: str
    chunks: tuple[Chunk, ...]

    @property
    def made(self) -> int:
        """Frames that are generated, all chunks together."""
        return sum(c.frames for c in self.chunks)

    def to_json(self) -> dict[str, Any]:
        """The plan as plain data."""
        return {
            "frames": self.frames, "continuity": self.continuity,
            "chunks": [asdict(c) for c in self.chunks],
        }  # fmt: skip

    @staticmethod
    def from_json(data: dict[str, Any]) -> ChunkPlan:
        """The plan that `to_json` gave."""
        chunks = tuple(Chunk(**c) for c in data["chunks"])
        return ChunkPlan(data["frames"], data["continuity"], chunks)

    def describe(self) -> str:
        """One line for people."""
        if len(self.chunks) == 1:
            return f"1 chunk of {self.chunks[0].frames} frames"
        longest = max(c.frames for c in self.chunks)
        shared = self.chunks[1].shared
        how = {
            "latents": f"each continues from {self.chunks[1].latent_shared} frozen latent frames "
            "of the one before",
            "first-frame": "each starts from the last picture of the one before",
            "none": "each is made for itself",
        }[self.continuity]
        return (
            f"{len(self.chunks)} chunks of up to {longest} frames for {self.frames}: {how}, "
            f"{shared} frames joined ({self.made / self.frames:.2f} x the frames are made)"
        )


def plan_chunks(
    frames: int, family: VideoFamily, chunk_frames: int, overlap_frames: int | None = None,
    continuity: str = "latents",
) -> ChunkPlan:  # fmt: skip
    """Cut a clip into chunks that differ by at most one step of the family's grid.

    frames           of the whole clip, any number from 1
    chunk_frames     most frames of a chunk, taken down to the family's grid
    overlap_frames   frames that neighbours share at least (None: 12, or less in short chunks);
                     with first-frame it is always the one picture
    continuity       latents | first-frame | none

    What the last chunk makes beyond `frames` is cut off at the end. Raises UsageError.
    """
    if continuity not in CONTINUITIES:
        raise UsageError(f"continuity {continuity!r} is unknown; use {', '.join(CONTINUITIES)}")
    if frames < 1:
        raise UsageError(f"frames {frames} is out of range: at least 1")
    least = family.frame_first + (family.frame_step if family.frame_first == 1 else 0)
    if chunk_frames < least:
        raise UsageError(
            f"chunk_frames {chunk_frames} is too short for {family.name}; use at least {least}"
        )
    if frames <= chunk_frames:
        steps = max(0, -(-(frames - family.frame_first) // family.frame_step))
        if family.frame_first + steps * family.frame_step <= chunk_frames:
            return ChunkPlan(frames, continuity, (_alone(steps, family),))
    if continuity == "latents":
        return _by_latents(frames, family, chunk_frames, overlap_frames)
    shared = 1 if continuity == "first-frame" else _wanted(overlap_frames, chunk_frames, 0)
    return _by_frames(frames, family, chunk_frames, shared, continuity)


def _alone(steps: int, family: VideoFamily) -> Chunk:
    made = family.frame_first + steps * family.frame_step
    return Chunk(0, 0, made, 0, 0, 0, family.latent_frames(made), 0)


def _wanted(overlap: int | None, chunk_frames: int, least: int) -> int:
    if overlap is None:
        return max(least, min(DEFAULT_OVERLAP, chunk_frames // 4))
    if overlap < least:
        raise UsageError(f"overlap {overlap} is too short; use at least {least} frames")
    return overlap


def _by_latents(
    frames: int, family: VideoFamily, chunk_frames: int, overlap: int | None
) -> ChunkPlan:
    """Chunks over one row of latent frames: the first latent frame is one frame, others a step."""
    if family.latent_step != 1 or family.frame_first != 1:
        raise UsageError(
            f"{family.name}'s latent frames are not alike ({family.latent_grid()} of them), so "
            "none can be frozen at a chunk's head; use continuity first-frame"
        )
    step = family.frame_step
    most = (chunk_frames - 1) // step + 1
    # One latent frame of the shared ones is never shown: it decodes as a single frame.
    shared = -(-_wanted(overlap, chunk_frames, step) // step) + 1
    if overlap is None:
        shared = min(shared, max(2, most // 2))
    total = max(1, -(-(frames - 1) // step) + 1)
    sizes = _even(total - shared, most - shared, 1)
    if sizes is None:
        raise UsageError(
            f"chunks of {chunk_frames} frames ({most} latent frames) that share {shared} latent "
            f"frames do not advance; use chunk_frames of at least {shared * step + 1}"
        )
    _check_count(len(sizes), chunk_frames)
    chunks, at = [], 0
    for i, advance in enumerate(sizes):
        length = advance + shared
        head = (0, 0, 0) if i == 0 else (1, (shared - 1) * step, shared)
        skip, both, frozen = head
        made = (length - 1) * step + 1
        chunks.append(Chunk(i, at * step, made, skip, both, at, length, frozen))
        at += advance
    _check_room(chunks, step)
    return ChunkPlan(frames, "latents", tuple(chunks))


def _by_frames(
    frames: int, family: VideoFamily, chunk_frames: int, shared: int, continuity: str
) -> ChunkPlan:
    step, first = family.frame_step, family.frame_first
    most = (chunk_frames - first) // step
    if shared >= first + most * step:
        raise UsageError(
            f"chunks of {chunk_frames} frames that share {shared} do not advance; share fewer"
        )
    count = -(-(frames - shared) // (first + most * step - shared))
    _check_count(count, chunk_frames)
    # All chunks together make the frames, one step more at most: spread the steps evenly.
    steps = max(0, -(-(frames - shared - count * (first - shared)) // step))
    chunks, at = [], 0
    for i in range(count):
        made = first + (steps * (i + 1) // count - steps * i // count) * step
        both = shared if i else 0
        chunks.append(Chunk(i, at, made, 0, both, 0, family.latent_frames(made), 0))
        at += made - shared
    _check_room(chunks, 1)
    return ChunkPlan(frames, continuity, tuple(chunks))


def _even(total: int, most: int, least: int) -> list[int] | None:
    """`total` as the fewest parts of at most `most` that differ by one at most."""
    if most < least or total < least:
        return None
    count = -(-total // most)
    return [total * (i + 1) // count - total * i // count for i in range(count)]


def _check_count(count: int, chunk_frames: int) -> None:
    if count > MAX_CHUNKS:
        raise UsageError(
            f"chunk_frames {chunk_frames} gives {count} chunks, the limit is {MAX_CHUNKS}; use "
            "longer chunks"
        )


def _check_room(chunks: list[Chunk], step: int) -> None:
    """A frame is in two chunks at most, or a join would have three to choose from."""
    for chunk, after in pairwise(chunks):
        room = chunk.frames - chunk.skip
        if chunk.shared + after.shared > room:
            raise UsageError(
                f"an overlap of {chunk.shared} frames is over half of a chunk of {room}; use at "
                f"most {max(1, room // 2 // step) * step}, or longer chunks"
            )


def frames_of(family: VideoFamily, latent_frames: int) -> int:
    """Frames that so many latent frames decode to: what `family.latent_frames` undoes."""
    steps = (latent_frames - family.latent_first) // family.latent_step
    return family.frame_first + steps * family.frame_step
