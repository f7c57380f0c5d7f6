"""Regions of a frame with prompts of their own, on the token grid."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any

from ..errors import UsageError
from .tokens import TokenPlan

Map = Any  # float32 numpy array


@dataclass(frozen=True, eq=False)
class Region:
    """A region: its name for messages, and a mask [height, width] with values 0..1, any size."""

    name: str
    mask: Map


def token_weights(regions: Sequence[Region], columns: int, rows: int) -> list[Map]:
    """How much of every token belongs to the base prompt and to each region.

    Returns float32 maps [rows, columns], the base's first; at every token they sum to 1. Where
    masks overlap their sum is taken down to 1; what they leave is the base's.
    Raises UsageError for a mask without a value above 0.
    """
    import numpy as np

    masks = [area_mean(region.mask, columns, rows) for region in regions]
    for region, mask in zip(regions, masks):
        if not mask.max() > 0.0:
            raise UsageError(
                f"the mask of {region.name} is empty at {columns}x{rows} tokens; a region must "
                "cover something, or be left out"
            )
    if not masks:
        return [np.ones((rows, columns), np.float32)]
    total = np.sum(masks, 0)
    scale = np.where(total > 1.0, 1.0 / np.maximum(total, 1e-6), 1.0)
    parts = [(mask * scale).astype(np.float32) for mask in masks]
    base = np.clip(1.0 - np.sum(parts, 0), 0.0, 1.0).astype(np.float32)
    base[base < 1e-6] = 0.0  # rounding must not make every tile run the base prompt, too
    return [base, *parts]


def area_mean(mask: Map, columns: int, rows: int) -> Map:
    """A map resized to columns x rows by the mean over each token's area, float32."""
    import numpy as np

    values = np.asarray(mask, np.float64)
    if values.ndim != 2 or not values.size:
        raise UsageError(f"a region's mask has shape {values.shape}; one of [height, width] is due")
    if not np.isfinite(values).all() or values.min() < 0.0 or values.max() > 1.0:
        raise UsageError("a region's mask has values outside 0..1; make it a proper mask first")
    across = _shares(values.shape[1], columns)
    down = _shares(values.shape[0], rows)
    return (down @ values @ across.T).astype(np.float32)


def _shares(fine: int, coarse: int) -> Map:
    """[coarse, fine]: the share of each fine piece in each coarse one; rows sum to 1."""
    import numpy as np

    edges = np.arange(coarse + 1) * (fine / coarse)
    pieces = np.arange(fine)
    low = np.maximum(edges[:-1, None], pieces[None])
    high = np.minimum(edges[1:, None], pieces[None] + 1)
    shares = np.clip(high - low, 0.0, None)
    return shares / shares.sum(1, keepdims=True)


def tiles_of(plan: TokenPlan, weight: Map) -> dict[int, float]:
    """The tiles that have weight on a token where `weight` [rows, columns] is above 0.

    Returns for each the share of the frame that it owns of the region.
    """
    flat = weight.reshape(-1)
    found = {}
    for number, own in enumerate(plan.weights()):
        both = float((own.weight * flat[own.points]).sum(dtype="float64"))
        if both > 0.0:
            found[number] = both / flat.size
    return found


def region_runs(plan: TokenPlan, weights: Collection[Map]) -> int:
    """How many tiles run in a step over all regions; len(plan.tiles) is no extra cost."""
    return sum(len(tiles_of(plan, weight)) for weight in weights)
