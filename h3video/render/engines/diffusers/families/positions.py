"""Where the frame lies in a sequence, told from the positions of its tokens alone."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from .....errors import UsageError
from .....tiling.sequence import Span


@dataclass(frozen=True, eq=False)
class Positions:
    """Coordinates of tokens: time, tall, wide, each float64 [n] on the CPU."""

    time: Tensor
    tall: Tensor
    wide: Tensor

    @staticmethod
    def of(coordinates: Any) -> Positions:
        """From [3, n]."""
        time, tall, wide = coordinates.detach().to("cpu", torch.float64)
        return Positions(time, tall, wide)

    def at(self, start: int, stop: int) -> Positions:
        """Tokens start..stop."""
        cut = slice(start, stop)
        return Positions(self.time[cut], self.tall[cut], self.wide[cut])

    def __len__(self) -> int:
        return len(self.time)


def last_frames(positions: Positions) -> tuple[int, int, int]:
    """Token columns, rows and latent frames of the clip that ends a list of tokens.

    A latent frame is a run of one time; a clip is frames of one grid whose times rise.
    Raises UsageError when the end is no grid.
    """
    spatial = _run(positions.time)
    columns = _run(positions.tall[-spatial:])
    if spatial % columns:
        raise UsageError(
            f"the frame's last {spatial} tokens are no grid of rows of {columns}; "
            "this input has no tiles yet, run it without tiling"
        )
    count = len(positions) // spatial
    tail = positions.at(len(positions) - count * spatial, len(positions))
    time, tall, wide = (v.view(count, spatial) for v in (tail.time, tail.tall, tail.wide))
    whole = (time == time[:, :1]) & (tall == tall[-1]) & (wide == wide[-1])
    same = whole.all(1).tolist()
    times = time[:, 0].tolist()
    frames = 1
    while frames < count:
        k = count - 1 - frames
        if not same[k] or times[k] >= times[k + 1]:
            break
        frames += 1
    return columns, spatial // columns, frames


def same_grid(positions: Positions, frame: Positions, start: int) -> list[Span]:
    """Condition spans in a run of tokens that lie on the frame's own grid.

    positions   of the run;  frame   of one latent frame;  start   of the run in the sequence
    """
    spans: list[Span] = []
    spatial, at = len(frame), 0
    while at + spatial <= len(positions):
        part = positions.at(at, at + spatial)
        if not (
            torch.equal(part.tall, frame.tall)
            and torch.equal(part.wide, frame.wide)
            and bool((part.time == part.time[0]).all())
        ):
            # Go on behind the run of one time: a condition of another size is left whole.
            changed = (positions.time[at:] != positions.time[at]).nonzero()
            at = at + int(changed[0]) if len(changed) else len(positions)
            continue
        if spans and spans[-1].start + spans[-1].frames * spatial == start + at:
            spans[-1] = Span(spans[-1].start, spans[-1].frames + 1, target=False)
        else:
            spans.append(Span(start + at, 1, target=False))
        at += spatial
    return spans


def _run(values: Tensor) -> int:
    """How many values at the end equal the last."""
    different = (values != values[-1]).nonzero()
    return len(values) if not len(different) else len(values) - 1 - int(different[-1])
