"""Temporal pulse: brightness that jumps from frame to frame, in the frame and in its tiles."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from .seams import LEVELS

Array = Any

LUMA = np.array([0.2126, 0.7152, 0.0722])


@dataclass(frozen=True)
class Pulse:
    """Steps in levels of 255.

    frame   largest step of the frame's mean luma from one frame to the next
    cell    flicker: root mean square of the steps of a tile's mean luma, of the worst tile
    """

    frame: float
    cell: float


def pulse(tiled: Array, untiled: Array | None = None, owner: Array | None = None) -> Pulse:
    """Pulse of a clip [f, h, w, 3] in 0..1.

    untiled   what the clip should be: only what tiling added counts. None: the clip as it is
    owner     the tile of each pixel, int [h, w]; None: one tile
    """
    luma = np.asarray(tiled, np.float64) @ LUMA * LEVELS
    if untiled is not None:
        luma = luma - np.asarray(untiled, np.float64) @ LUMA * LEVELS
    frames = len(luma)
    if frames < 2:
        return Pulse(0.0, 0.0)
    steps = np.diff(luma.reshape(frames, -1).mean(1))
    place = np.zeros(luma[0].size, np.int64) if owner is None else np.asarray(owner).ravel()
    count = np.bincount(place)
    sums = np.array([np.bincount(place, weights=f.ravel()) for f in luma])
    means = sums[:, count > 0] / count[count > 0]
    flicker = np.sqrt((np.diff(means, axis=0) ** 2).mean(0))
    return Pulse(float(np.abs(steps).max()), float(flicker.max()))
