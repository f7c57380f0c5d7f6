"""A blend that gives detail the strength that it has in the tiles.

Where tiles draw the same thing their mean is that thing. Where each draws a texture of its own
(grain, foliage, water) the mean is weaker than either: 0.71 of it where two equal shares meet.
Here every tile's detail d_i, what differs from the mean of its surroundings, is blended apart from
the rest, and its mean d = sum w d_i is raised to the strength T = sum w |d_i|^2 of the parts.

How far tiles are strangers is seen from their scatter S = sum w |d_i - d|^2 around the blend: it
is 0 where they agree and T (1 - sum w^2) where they know nothing of each other. With q, the share
of that (summed over channels, frames and the near surroundings, at most 1),

    gain = 1 / sqrt(1 - q (1 - sum w^2))

is exactly 1 where tiles agree, so nothing is changed there, bit for bit; the same outside the
shared bands, and flat colours have no detail. The most is 1 / sqrt(sum w^2), 1.41 where two meet
and 1.73 where three do: edges that tiles draw at different places, and which weaken each other
further, are not blown up.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor

from .accumulate import mix

BLENDS = ("mean", "variance")

RADIUS = 2
"""Points each way over which a local mean is taken; strengths are summed over twice as many."""


@dataclass(frozen=True)
class Placed:
    """Where a tile lies on the frame's raster, and how much it counts.

    top, left   its corner in points
    weight      float32 [rows, columns]; at every point the weights of all tiles sum to 1
    """

    top: int
    left: int
    weight: Tensor

    def of(self, frame: Tensor) -> Tensor:
        """The tile's part of a frame [..., rows, columns], a view."""
        rows, columns = self.weight.shape
        return frame[..., self.top : self.top + rows, self.left : self.left + columns]


def raise_detail(
    places: Sequence[Placed], means: Sequence[Tensor], tiles: Sequence[Sequence[Tensor]],
    radius: int = RADIUS,
) -> list[Tensor]:  # fmt: skip
    """Blends with their detail raised.

    places   of the tiles
    means    plain blends, float32 [batch, ..., rows, columns] each. All of them (a prompt's and
             the empty prompt's, say) get one gain, so that their difference is that of a blend
    tiles    for every blend the tiles [batch, ..., tile rows, tile columns] that it is made of
    radius   see RADIUS

    Returns float32 like `means`; where the gain is 1 it is their own bits. What lies apart in the
    batch has gains of its own.
    """
    details, scatter, total = [], 0.0, 0.0
    for mean, parts in zip(means, tiles):
        blended, apart = _blend_details(places, mean, parts, radius)
        details.append(blended)
        scatter, total = scatter + apart, total + apart + _strength(blended)
    gain = _gain(scatter, total, _strangers(places, means[0]), radius)
    out = []
    for mean, blended in zip(means, details):
        own = gain.view(gain.shape[0], *[1] * (mean.ndim - 3), *gain.shape[-2:])
        out.append(torch.where(own > 1.0, mean + (own - 1.0) * blended, mean))
    return out


def _blend_details(
    places: Sequence[Placed], mean: Tensor, tiles: Sequence[Tensor], radius: int
) -> tuple[Tensor, Tensor]:
    """The mean of the tiles' details, and their scatter around it [batch, rows, columns]."""
    blended = torch.zeros_like(mean)
    seen = torch.zeros(mean.shape[-2:], dtype=torch.float32, device=mean.device)
    details = []
    for place, tile in zip(places, tiles):
        found = _detail_of(tile.float(), place, mean, radius)
        before = place.of(seen)
        mix(place.of(blended), found, torch.nan_to_num(place.weight / (before + place.weight)))
        before += place.weight
        details.append(found)
    scatter = mean.new_zeros((mean.shape[0], *mean.shape[-2:]))
    for place, found in zip(places, details):
        place.of(scatter).add_(place.weight * _strength(found - place.of(blended)))
    return blended, scatter


def _detail_of(tile: Tensor, place: Placed, mean: Tensor, radius: int) -> Tensor:
    """A tile's detail; beyond its edge lies the blend, so that tiles which agree agree there."""
    rows, columns = place.weight.shape
    top, left = max(0, place.top - radius), max(0, place.left - radius)
    around = mean[..., top : place.top + rows + radius, left : place.left + columns + radius]
    around = around.clone()
    here = Placed(place.top - top, place.left - left, place.weight)
    here.of(around).copy_(tile)
    return here.of(around - local_mean(around, radius))


def _gain(scatter: Tensor, total: Tensor, strangers: Tensor, radius: int) -> Tensor:
    """By how much detail is raised: [batch, rows, columns], 1 or more.

    scatter, total   S and T of the module's text;  strangers   1 - sum w^2
    """
    most = local_mean(total * strangers, 2 * radius)
    share = local_mean(scatter, 2 * radius) / most.clamp_(min=torch.finfo(torch.float32).tiny)
    share = share.clamp_(0.0, 1.0)
    return (1.0 - share * strangers).rsqrt_()


def _strangers(places: Sequence[Placed], like: Tensor) -> Tensor:
    """1 - sum w^2 at every point [rows, columns]: 0 where one tile rules."""
    squares = torch.zeros(like.shape[-2:], dtype=torch.float32, device=like.device)
    for place in places:
        place.of(squares).add_(place.weight * place.weight)
    return (1.0 - squares).where(squares > 0.0, 0.0).clamp_(min=0.0)


def local_mean(picture: Tensor, radius: int) -> Tensor:
    """The mean of 2 radius + 1 points each way, of fewer at the edges: [..., rows, columns]."""
    flat = picture.reshape(-1, 1, *picture.shape[-2:])
    mean = F.avg_pool2d(flat, 2 * radius + 1, 1, radius, count_include_pad=False)
    return mean.view(picture.shape)


def _strength(picture: Tensor) -> Tensor:
    """Squares summed over everything but batch and place: [batch, rows, columns]."""
    return picture.square().flatten(1, -3).sum(1) if picture.ndim > 3 else picture.square()
