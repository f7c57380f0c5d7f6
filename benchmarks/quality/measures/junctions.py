"""Junctions: points where three or four tiles meet, and the gradient that tiling adds there."""

from __future__ import annotations

from typing import Any

import numpy as np

from .seams import LEVELS

Array = Any


def junctions(owner: Array) -> Array:
    """Points (x, y) in px where three or more tiles meet, float [n, 2].

    owner   the tile that owns each pixel, int [h, w]

    A junction is a block of 2x2 pixels of three or four owners; neighbouring blocks are one.
    """
    from scipy.ndimage import center_of_mass, generate_binary_structure, label

    owner = np.asarray(owner)
    corners = np.sort(
        np.stack([owner[:-1, :-1], owner[:-1, 1:], owner[1:, :-1], owner[1:, 1:]], -1), -1
    )
    kinds = 1 + (np.diff(corners, axis=-1) != 0).sum(-1)
    number, count = label(kinds >= 3, generate_binary_structure(2, 2))
    if not count:
        return np.zeros((0, 2))
    centres = np.array(center_of_mass(number > 0, number, np.arange(1, count + 1)))
    return centres[:, ::-1] + 1.0  # the block's middle, pixel i spans i..i + 1


def junction_error(tiled: Array, untiled: Array, points: Array, radius: float) -> float:
    """Root mean square of the added gradient within `radius` px of the points; levels of 255 a px.

    tiled, untiled   pictures [h, w, 3] in 0..1
    points           (x, y) in px, [n, 2]; 0 where there is none
    """
    if len(points) == 0:
        return 0.0
    added = (np.asarray(tiled, np.float64) - np.asarray(untiled, np.float64)) * LEVELS
    energy = (np.diff(added, axis=1)[:-1] ** 2 + np.diff(added, axis=0)[:, :-1] ** 2).mean(-1)
    y, x = np.mgrid[: energy.shape[0], : energy.shape[1]] + 1.0
    near = np.zeros(energy.shape, bool)
    for px, py in points:
        near |= (x - px) ** 2 + (y - py) ** 2 <= radius**2
    return float(np.sqrt(energy[near].mean())) if near.any() else 0.0
