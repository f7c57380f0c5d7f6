"""The latent that ComfyUI samples: one tensor, or several streams (video, audio) packed into one.

Packed, the streams lie one after the other along the last axis of [B, 1, N]; their shapes come
with the conditioning or from the guider.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from ....errors import UsageError
from ....tiling.latent_crops import LatentBox

Shape = tuple[int, ...]


@dataclass(frozen=True)
class LatentLayout:
    """Where a latent's rows and columns are.

    shapes   the shape of every stream; the batch axis is not relied on
    packed   whether they are packed into [B, 1, N]
    The first stream is the one with a frame to crop; the others are carried whole.
    """

    shapes: tuple[Shape, ...]
    packed: bool

    @property
    def columns(self) -> int:
        """Columns of the frame in latents."""
        return self.shapes[0][-1]

    @property
    def rows(self) -> int:
        """Rows of the frame in latents."""
        return self.shapes[0][-2]

    @property
    def frames(self) -> int:
        """Latent frames; 1 for a 4-D latent."""
        return self.shapes[0][2] if len(self.shapes[0]) == 5 else 1

    def flat_shape(self) -> list[int]:
        """The shape of the tensor that the sampler has."""
        if not self.packed:
            return list(self.shapes[0])
        return [self.shapes[0][0], 1, sum(math.prod(s[1:]) for s in self.shapes)]

    def split(self, x: Tensor) -> list[Tensor]:
        """The streams of a latent, as views."""
        if not self.packed:
            return [x]
        found, start = [], 0
        for shape in self.shapes:
            size = math.prod(shape[1:])
            part = x[..., start : start + size]
            found.append(part.reshape(x.shape[0], *shape[1:]))
            start += size
        if start != x.shape[-1]:
            raise RuntimeError(
                f"a packed latent of {x.shape[-1]} values does not hold streams of "
                f"{[tuple(s) for s in self.shapes]}"
            )
        return found

    def join(self, streams: Sequence[Tensor]) -> Tensor:
        """The latent of these streams; the inverse of `split`."""
        if not self.packed:
            return streams[0]
        return torch.cat([s.reshape(s.shape[0], 1, -1) for s in streams], dim=-1)

    def cropped(self, box: LatentBox) -> LatentLayout:
        """The layout of a crop."""
        first = (*self.shapes[0][:-2], box.rows, box.columns)
        return LatentLayout((first, *self.shapes[1:]), self.packed)

    def crop(self, x: Tensor, box: LatentBox) -> Tensor:
        """A crop of a latent: its own memory, contiguous."""
        first, *rest = self.split(x)
        return self.join([crop(first, box).contiguous(), *rest])


def crop(values: Tensor, box: LatentBox) -> Tensor:
    """The box of a tensor whose last two axes are the frame's rows and columns; a view."""
    return values[..., box.top : box.top + box.rows, box.left : box.left + box.columns]


def find_layout(shape: Sequence[int], streams: Any = None) -> LatentLayout:
    """The layout of a latent of this shape.

    streams   the streams' shapes if known (ComfyUI's latent_shapes)

    Raises UsageError for a latent without rows and columns.
    """
    shape = tuple(shape)
    known = tuple(tuple(int(n) for n in s) for s in streams or ())
    if len(known) > 1 and len(shape) == 3 and len(known[0]) in (4, 5):
        return LatentLayout(known, True)
    if len(known) < 2 and len(shape) in (4, 5):
        return LatentLayout((shape,), False)
    what = f"streams of {[list(s) for s in known]}" if len(known) > 1 else f"shape {list(shape)}"
    raise UsageError(
        f"the latent ({what}) has no rows and columns to tile; crop tiles take 4-D and 5-D "
        "latents, or packed ones whose first stream is one"
    )


def latent_shapes(conds: Any, model: Any = None, stored: Any = None) -> Any:
    """ComfyUI's latent_shapes of the call: the conditioning's own, else the sampling's.

    conds    lists of ComfyUI's conditioning dicts
    stored   what the guider said when sampling began
    """
    for group in conds:
        for cond in group or ():
            found = cond.get("model_conds", {}).get("latent_shapes")
            if found is not None:
                return found.cond
    return stored if stored is not None else getattr(model, "latent_shapes", None)
