"""Colour drift: how far tiling moved the colours of the whole and of its parts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from h3video.nano.judge import to_lab

Array = Any

PARTS = 4
"""The frame is compared in PARTS x PARTS equal parts."""


@dataclass(frozen=True)
class Drift:
    """Distances in CIE L*a*b* (1 is just visible): of the frame's mean, of the worst part's mean,
    and between the first and the last frame's added colour (0 for a picture)."""

    frame: float
    part: float
    time: float


def colour_drift(tiled: Array, untiled: Array) -> Drift:
    """Colour drift of a picture [h, w, 3] or a clip [f, h, w, 3] in 0..1 from the untiled one."""
    tiled, untiled = np.asarray(tiled), np.asarray(untiled)
    if tiled.shape != untiled.shape:
        raise ValueError(f"{tiled.shape} and {untiled.shape} are not of one shape")
    added = to_lab(tiled * 255.0).astype(np.float64) - to_lab(untiled * 255.0)
    added = added.reshape(-1, *added.shape[-3:])
    parts = [
        part.mean((0, 1, 2))
        for band in np.array_split(added, PARTS, axis=1)
        for part in np.array_split(band, PARTS, axis=2)
    ]
    ends = added[-1].mean((0, 1)) - added[0].mean((0, 1))
    return Drift(
        float(np.linalg.norm(added.mean((0, 1, 2)))),
        float(max(np.linalg.norm(p) for p in parts)),
        float(np.linalg.norm(ends)),
    )
