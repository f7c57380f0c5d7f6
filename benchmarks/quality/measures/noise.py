"""Variance dip: where two independent textures are averaged, the mean is smoother than either."""

from __future__ import annotations

from typing import Any

import numpy as np

Array = Any


def variance_dip(tiled: Array, untiled: Array, largest: Array) -> float:
    """Strength of the added texture in the shared bands against inside the tiles.

    tiled, untiled   pictures [h, w, 3] in 0..1
    largest          the largest weight of any tile at each pixel, [h, w]

    1 is no dip; where two equal shares of independent textures meet, a plain mean gives 0.71. The
    band counts where the largest weight is below 0.6. NaN where there is no band.
    """
    added = np.asarray(tiled, np.float64) - np.asarray(untiled, np.float64)
    band, inside = np.asarray(largest) < 0.6, np.asarray(largest) > 0.999
    if not band.any() or not inside.any():
        return float("nan")
    return float(np.sqrt((added[band] ** 2).mean() / (added[inside] ** 2).mean()))
