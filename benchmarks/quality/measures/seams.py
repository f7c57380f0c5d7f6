"""Seam energy: the gradient that tiling added, and how much of it lies on straight lines.

The added picture is tiled minus untiled; its gradient is what an eye could find. The part of it
that lines up in columns is what remains of the horizontal gradient when every column is replaced
by its mean: the usual split of a sum of squares into "between columns" and "within columns".
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

Array = Any

ANGLES = 60
"""Directions that are tried, 3 degrees apart: 8 px at the end of a line of 300 px between two."""

LEVELS = 255.0


@dataclass(frozen=True)
class Seams:
    """Seam energies in (levels of 255 per px) squared, means over the picture.

    total      of the whole added gradient, both ways
    axis       the part that lines up in columns and rows
    line       the same for the gradient's size: seams whose step changes sign from tile to tile
               stay visible as one line, but cancel in `axis`
    chance     `axis` of a picture whose seams prefer no direction: twice the mean over directions.
               axis - chance is what columns and rows have beyond other directions
    angle      the part that lines up along the worst direction, and which that is, degrees of
               the lines from the vertical, clockwise

    chance and angle are measured on means of 2x2 gradients, which fades of 8 px do not feel.
    """

    total: float
    axis: float
    line: float
    chance: float
    angle: float
    worst: float


def seam_energy(tiled: Array, untiled: Array, angles: int = ANGLES) -> Seams:
    """Seam energies of a picture [h, w, 3] in 0..1 against the untiled one of the same shape."""
    gx, gy = _gradient(tiled, untiled)
    half = _halved(gx), _halved(gy)
    by_angle = [_aligned(*half, np.pi * k / angles) for k in range(angles)]
    worst = int(np.argmax(by_angle))
    return Seams(
        total=float((gx**2 + gy**2).mean()),
        axis=_aligned(gx, gy, 0.0) + _aligned(gx, gy, np.pi / 2),
        line=_profile(gx, 0) + _profile(gy, 1),
        chance=2.0 * float(np.mean(by_angle)),
        angle=by_angle[worst],
        worst=180.0 * worst / angles,
    )


def directional_energy(tiled: Array, untiled: Array, degrees: float) -> float:
    """The part of the added gradient that lines up along lines `degrees` from the vertical."""
    return _aligned(*_gradient(tiled, untiled), np.radians(degrees))


def _gradient(tiled: Array, untiled: Array) -> tuple[Array, Array]:
    """Steps to the right and down of the added picture, [h - 1, w - 1, c], levels of 255."""
    tiled, untiled = np.asarray(tiled, np.float64), np.asarray(untiled, np.float64)
    if tiled.shape != untiled.shape or tiled.ndim != 3:
        raise ValueError(f"pictures of {tiled.shape} and {untiled.shape}; both must be [h, w, c]")
    added = (tiled - untiled) * LEVELS
    return np.diff(added, axis=1)[:-1], np.diff(added, axis=0)[:, :-1]


def _halved(gradient: Array) -> Array:
    """Means of 2x2 pixels; an odd last row or column is left out."""
    rows, columns = gradient.shape[0] // 2, gradient.shape[1] // 2
    even = gradient[: 2 * rows, : 2 * columns]
    return even.reshape(rows, 2, columns, 2, -1).mean((1, 3))


def _aligned(gx: Array, gy: Array, angle: float) -> float:
    """Energy of the gradient across lines of one direction after averaging along each of them.

    A line is a strip one px wide. Every strip counts by its number of pixels, so that at 0 and 90
    degrees this is the between-columns and the between-rows part exactly.
    """
    rows, columns, channels = gx.shape
    cos, sin = np.cos(angle), np.sin(angle)
    strip, count = _strips(rows, columns, angle)
    energy = 0.0
    for c in range(channels):
        across = (gx[..., c] * cos + gy[..., c] * sin).ravel()
        total = np.bincount(strip, weights=across)
        energy += float((total**2 / np.maximum(count, 1)).sum())
    return energy / (rows * columns * channels)


@lru_cache(maxsize=4 * ANGLES)
def _strips(rows: int, columns: int, angle: float) -> tuple[Array, Array]:
    """The strip of every pixel, flat, and the pixels of every strip."""
    y, x = np.mgrid[:rows, :columns]
    strip = np.round(x * np.cos(angle) + y * np.sin(angle)).astype(np.int64).ravel()
    strip -= strip.min()
    return strip, np.bincount(strip)


def _profile(gradient: Array, along: int) -> float:
    """Variance of the mean size of the gradient from column to column (along=0) or row to row."""
    size = np.sqrt((gradient**2).mean(-1))
    return float(size.mean(along).var())
