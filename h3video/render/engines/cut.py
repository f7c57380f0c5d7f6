"""What a block is given, cut down to one tile: helpers of every engine's family adapters."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from torch import Tensor

from ...errors import UsageError
from ...tiling.sequence import Sequence, Span
from ...tiling.table import Tile


def frame_span(total: int, frame: tuple[int, int, int], start: int, what: str) -> Sequence:
    """A sequence with the frame's tokens at `start` and everything else going along.

    frame   token columns, token rows, latent frames
    Raises UsageError when they do not fit.
    """
    columns, rows, latent_frames = frame
    if start < 0 or start + columns * rows * latent_frames > total:
        raise UsageError(
            f"{what} has {total} tokens, which do not hold {columns}x{rows} tokens x "
            f"{latent_frames} latent frames; this input has no tiles yet, run it without tiling"
        )
    return Sequence(total, (Span(start, latent_frames),))


def per_token(tile: Tile, name: str, value: Any, axis: int, frames: int | None = None) -> Any:
    """The tile's rows of a modulation that has one row for all tokens or one for each.

    frames   latent frames of the sequence, where one row for each of them is known, too
    """
    if not isinstance(value, Tensor) or value.ndim <= axis or value.shape[axis] == 1:
        return value
    if value.shape[axis] == tile.total(name):
        return tile.rows(name, value, axis)
    if frames is not None and value.shape[axis] == frames:
        wanted = tile.frames(name)
        if wanted == list(range(frames)):
            return value
        return value.index_select(axis, value.new_tensor(wanted).long())
    by_frame = "" if frames is None else f", {frames} (latent frames)"
    raise UsageError(
        f"a modulation has {value.shape[axis]} rows, neither 1{by_frame} nor {tile.total(name)} "
        "(tokens); this input has no tiles yet, run it without tiling"
    )


def pair_rows(tile: Tile, name: str, pair: Any, axis: int) -> Any:
    """The tile's rows of a rotary table that is kept as (cosines, sines); None stays None."""
    if pair is None:
        return None
    return tuple(tile.rows(name, half, axis) for half in pair)


def in_chunks(tokens: int, pieces: int = 8) -> Iterator[tuple[int, int]]:
    """(start, stop) of about `pieces` runs over `tokens`."""
    step = max(1, -(-tokens // pieces))
    for start in range(0, tokens, step):
        yield start, min(start + step, tokens)
