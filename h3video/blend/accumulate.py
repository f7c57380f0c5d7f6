"""A running weighted mean of tiles that changes nothing where they agree.

Adding weighted tiles and dividing rounds: two equal tiles come out a bit off. Here each tile
moves the result towards itself by its share of the weight so far, which leaves equal numbers
as they are, bit for bit, in any order, and holds nothing but the result.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from .. import h3
from ..h3.pure_arrays import blend_alphas


def share_of_weight(weight: Any, before: Any) -> Any:
    """How far a tile of this weight moves a mean whose tiles weigh `before`: 0..1, 1 if it is the
    first. float32 numpy. Where both are 0 it is NaN, which blends nothing."""
    import numpy as np

    with np.errstate(invalid="ignore"):
        return weight / (before + weight)


def blend_into(
    out: Tensor, tile: Tensor, weight: Any, seen: Any = None, shares: Any = None
) -> None:
    """One tile into the mean, in place; see h3.blend_tile for the meaning and what is exact.

    out, tile   float32 [frames, planes, rows, columns, inner], views; last two axes contiguous
    weight      float32 numpy [rows, columns]; seen, shares: numpy, too
    Runs in the native library for CPU tensors, in torch elsewhere.
    """
    if out.device.type == "cpu" and tile.device.type == "cpu":
        h3.blend_tile(out.numpy(), tile.numpy(), weight, seen, shares)
        return
    tile = tile.to(out.device)
    for first, last, alpha in blend_alphas(len(out), weight, seen, shares):
        at = torch.from_numpy(alpha).to(out.device)
        _blend_torch(out[first:last], tile[first:last], at)


def _blend_torch(out: Tensor, tile: Tensor, alpha: Tensor) -> None:
    alpha = alpha[:, :, None]
    for o, t in zip(out, tile):  # frame by frame: no second copy of a tile
        mix(o, t, alpha)


def mix(out: Tensor, tile: Tensor, alpha: Tensor) -> None:
    """The blend of one piece in torch, in place; `alpha` broadcasts over it."""
    mixed = torch.where(tile == out, out, out + alpha * (tile - out))
    mixed = torch.where(alpha >= 1, tile, mixed)
    out.copy_(torch.where(alpha > 0, mixed, out))
