"""Where a model's token sequence holds the frame, and which of it each tile takes.

A transformer's sequence is the frame's tokens (latent frame by latent frame, row by row) with
others before, after or between: text, sound, references, keyframes. The frame's own are cut into
tiles; tokens on the same spatial grid (keyframes) follow the tile; all others go along whole.
Plain integers; the runner makes tensors of them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from .tokens import TokenPlan

IndexArray = Any  # int64 numpy array


@dataclass(frozen=True)
class Span:
    """Latent frames of the plan's spatial grid, one after the other in a sequence.

    start     index of the first token
    frames    number of latent frames
    target    whether these are the frame being made: windows apply, the blend is by weights.
              Else a condition on the same grid (a keyframe): every window sees all of them
    """

    start: int
    frames: int
    target: bool = True


@dataclass(frozen=True)
class Sequence:
    """A sequence of `total` tokens with the spans that lie on the frame's grid, in order."""

    total: int
    spans: tuple[Span, ...] = ()

    def check(self, plan: TokenPlan, what: str) -> None:
        """Raise RuntimeError unless the spans fit the sequence and the plan."""
        spatial, at = plan.columns * plan.rows, 0
        for span in self.spans:
            if span.start < at or span.start + span.frames * spatial > self.total:
                raise RuntimeError(
                    f"{what} has {self.total} tokens; {span.frames} latent frames of "
                    f"{plan.columns}x{plan.rows} do not fit at {span.start}"
                )
            if span.target and span.frames != plan.latent_frames:
                raise RuntimeError(
                    f"{what} has {span.frames} latent frames, the plan is for {plan.latent_frames}"
                )
            at = span.start + span.frames * spatial


@dataclass(frozen=True)
class Piece:
    """A span as one tile has it: `frames` latent frames from `first`, at `offset` in the tile."""

    span: Span
    first: int
    frames: int
    offset: int


@dataclass(frozen=True)
class TileIndex:
    """The tokens of one tile in one window.

    index     positions in the sequence, ascending: int64 [n]
    pieces    where its spans are in that list
    along     (start in the tile, start in the sequence, length) of the runs that go along whole
    """

    index: IndexArray
    pieces: tuple[Piece, ...]
    along: tuple[tuple[int, int, int], ...]


def tile_index(
    sequence: Sequence, spatial: int, tokens: IndexArray, window: tuple[int, int]
) -> TileIndex:
    """The tokens of a tile.

    spatial    tokens of a full latent frame
    tokens     the tile's spatial tokens, ascending: int64 [m]
    window     first latent frame and number of latent frames of the target
    """
    import numpy as np

    parts: list[Any] = []
    pieces: list[Piece] = []
    along: list[tuple[int, int, int]] = []
    at = offset = 0

    def whole(stop: int) -> None:
        nonlocal offset
        if stop > at:
            parts.append(np.arange(at, stop))
            along.append((offset, at, stop - at))
            offset += stop - at

    for span in sequence.spans:
        whole(span.start)
        first, frames = window if span.target else (0, span.frames)
        starts = span.start + (first + np.arange(frames)) * spatial
        parts.append((starts[:, None] + tokens).reshape(-1))
        pieces.append(Piece(span, first, frames, offset))
        offset += frames * len(tokens)
        at = span.start + span.frames * spatial
    whole(sequence.total)
    index = np.concatenate(parts) if parts else np.zeros(0, np.int64)
    return TileIndex(index.astype(np.int64), tuple(pieces), tuple(along))
