"""Draw the colours of tiles towards their neighbours', all at once.

Where two tiles overlap they show the same thing, so their channels' mean and spread should
agree there. A gain and an offset for every tile and channel are solved for by least squares
over all pairs of neighbours (gain compensation, as panoramas do it: Brown & Lowe 2007,
section 6), so no tile is the reference and nothing drifts along a row.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from .clip import ClipLayout, ClipTile

MAX_GAIN = 2.0
"""A tile's contrast is changed by this factor at most: beyond, it shows something else."""

PULL = 1e-3
"""Weight of "leave it as it is" against "agree with the neighbours": it only fixes the level."""

LEAST_SPREAD = 1e-4
"""A band flatter than this says nothing about contrast."""


@dataclass(frozen=True)
class ColourMatch:
    """gain, offset: float32 [tiles, channels]; a tile becomes gain x tile + offset."""

    gain: Tensor
    offset: Tensor

    def apply(self, index: int, tile: Tensor) -> Tensor:
        """The corrected tile: image [f, h, w, C] or latents [B, C, t, h, w]."""
        shape = (1, 1, 1, -1) if tile.ndim == 4 else (1, -1, 1, 1, 1)
        gain = self.gain[index].view(shape).to(tile.device, tile.dtype)
        offset = self.offset[index].view(shape).to(tile.device, tile.dtype)
        return torch.addcmul(offset, tile, gain)


@dataclass(frozen=True)
class _Pair:
    """What tiles a and b show where they overlap: weight, means and spreads [channels]."""

    a: int
    b: int
    weight: float
    mean_a: Tensor
    mean_b: Tensor
    spread_a: Tensor
    spread_b: Tensor


def match_tiles(layout: ClipLayout, tiles: Sequence[Tensor], order: Sequence[int]) -> ColourMatch:
    """Gains and offsets of tiles[i], which is tile order[i] of the layout."""
    place = {index: number for number, index in enumerate(order)}
    pairs, means = [], {}
    for number, index in enumerate(order):
        tile = tiles[number]
        means[index] = _channels_last(tile).mean((0, 1, 2)).double()
        for other in order:
            if other > index and (band := _shared(layout, layout.tiles[index],
                                                  layout.tiles[other], tile)):  # fmt: skip
                pairs.append(_pair(index, other, tile, tiles[place[other]], *band))
    channels = len(next(iter(means.values())))
    gain = torch.ones(len(layout.tiles), channels, dtype=torch.float64)
    offset = torch.zeros_like(gain)
    for c in range(channels):
        log_gain = _solve(
            order,
            [
                (p.a, p.b, p.weight, torch.log(p.spread_b[c] / p.spread_a[c]).item())
                for p in pairs
                if min(p.spread_a[c], p.spread_b[c]) > LEAST_SPREAD
            ],
            dict.fromkeys(order, 0.0),
        )
        limit = torch.log(torch.tensor(MAX_GAIN)).item()
        for index, value in log_gain.items():
            gain[index, c] = torch.tensor(max(-limit, min(limit, value))).double().exp()
        # Without a pull elsewhere a tile's own mean stays where it is.
        rest = {i: ((1.0 - gain[i, c]) * means[i][c]).item() for i in order}
        solved = _solve(
            order,
            [
                (
                    p.a, p.b, p.weight,
                    (gain[p.b, c] * p.mean_b[c] - gain[p.a, c] * p.mean_a[c]).item(),
                )
                for p in pairs
            ],
            rest,
        )  # fmt: skip
        for index, value in solved.items():
            offset[index, c] = value
    return ColourMatch(gain.float(), offset.float())


def _solve(
    order: Sequence[int], pairs: Sequence[tuple[int, int, float, float]], rest: dict[int, float]
) -> dict[int, float]:
    """Values v with v[a] - v[b] close to the wanted difference, and v close to `rest`."""
    n = len(order)
    at = {index: i for i, index in enumerate(order)}
    pull = PULL * (sum(w for _, _, w, _ in pairs) / max(len(pairs), 1) or 1.0)
    normal = torch.eye(n, dtype=torch.float64) * pull
    right = torch.tensor([rest[i] for i in order], dtype=torch.float64) * pull
    for a, b, weight, wanted in pairs:
        i, j = at[a], at[b]
        normal[i, i] += weight
        normal[j, j] += weight
        normal[i, j] -= weight
        normal[j, i] -= weight
        right[i] += weight * wanted
        right[j] -= weight * wanted
    found = torch.linalg.solve(normal, right)
    return {index: found[i].item() for index, i in at.items()}


Band = tuple[Any, Any]


def _shared(layout: ClipLayout, a: ClipTile, b: ClipTile, like: Tensor) -> Band | None:
    """Where two tiles overlap: slices (frames, rows, columns) inside each, or None."""
    first, last = max(a.start, b.start), min(a.stop, b.stop)
    same_place = (a.left, a.top) == (b.left, b.top)
    if first >= last or (not same_place and (a.start, a.stop) != (b.start, b.stop)):
        return None
    scale = (like.shape[2] if like.ndim == 4 else like.shape[4]) / layout.crop_columns
    left, right = max(a.left, b.left), min(a.left, b.left) + layout.crop_columns
    top, bottom = max(a.top, b.top), min(a.top, b.top) + layout.crop_rows
    if left >= right or top >= bottom:
        return None

    def inside(t: ClipTile) -> tuple[slice, slice, slice]:
        x, y = round((left - t.left) * scale), round((top - t.top) * scale)
        wide, tall = int((right - left) * scale), int((bottom - top) * scale)
        return (
            slice(first - t.start, last - t.start), slice(y, y + tall), slice(x, x + wide),
        )  # fmt: skip

    return inside(a), inside(b)


def _channels_last(tile: Tensor) -> Tensor:
    """A view [f, h, w, C] of an image or of the first latent of a batch."""
    return tile if tile.ndim == 4 else tile[0].permute(1, 2, 3, 0)


def _pair(a: int, b: int, tile_a: Tensor, tile_b: Tensor, in_a: Any, in_b: Any) -> _Pair:
    seen_a, seen_b = _channels_last(tile_a)[in_a], _channels_last(tile_b)[in_b]
    mean_a, spread_a = _moments(seen_a)
    mean_b, spread_b = _moments(seen_b)
    return _Pair(a, b, float(seen_a[..., 0].numel()), mean_a, mean_b, spread_a, spread_b)


def _moments(seen: Tensor) -> tuple[Tensor, Tensor]:
    """Mean and standard deviation of each channel of [f, h, w, C], frame by frame in float64."""
    count = seen[..., 0].numel()
    mean = sum(f.double().sum((0, 1)) for f in seen) / count
    spread = sum(((f.double() - mean) ** 2).sum((0, 1)) for f in seen) / count
    return mean, spread.sqrt()
