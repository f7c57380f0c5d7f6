"""The curve by which a tile fades out across the band that it shares with its neighbours.

t runs from 0 (half the band outside the cell) to 1 (half the band inside); every curve goes from 0
to 1, never down, and gives t and 1 - t together 1. What differs is where the change happens:
`linear` is as gentle as a fade can be and has a corner at both ends of the band; `smoothstep` and
`cosine` have none and are about 1.5 and 1.57 times as steep in the middle; `gaussian` is the hard
border blurred by a normal distribution whose two standard deviations to each side are the band,
1.67 times as steep: the 4.6 % beyond are cut off, and the rest is stretched to go from 0 to 1.
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import Any

from ..errors import UsageError

KERNELS = ("linear", "smoothstep", "cosine", "gaussian")

DEFAULT_KERNEL = "linear"
"""Of tiles that are sampled: nearest to the untiled clip, with the fewest lines (docs/quality.md).
Masks and merged clips keep the smoothstep that their files were made with."""

CUT = 2.0
"""Standard deviations at which the Gaussian is cut, each way."""

_POINTS = 4097
"""Of the table from which the Gaussian is read; between them it is wrong by less than 1e-7."""


def check_kernel(kernel: str) -> str:
    """The kernel; raises UsageError for an unknown one."""
    if kernel not in KERNELS:
        raise UsageError(f"kernel {kernel!r} is unknown; use {', '.join(KERNELS)}")
    return kernel


def fade(t: Any, kernel: str) -> Any:
    """The curve at t, which is cut to 0..1: numpy, any shape.

    Raises UsageError for an unknown kernel.
    """
    import numpy as np

    t = np.clip(np.asarray(t, np.float64), 0.0, 1.0)
    if check_kernel(kernel) == "linear":
        return t
    if kernel == "cosine":
        return (1.0 - np.cos(np.pi * t)) / 2.0
    if kernel == "gaussian":
        return np.interp(t, np.linspace(0.0, 1.0, _POINTS), _normal())
    return t * t * (3.0 - 2.0 * t)


@lru_cache(maxsize=1)
def _normal() -> Any:
    """The distribution function of a normal variable cut at CUT: float64 [_POINTS], 0 to 1."""
    import numpy as np

    most = math.erf(CUT / math.sqrt(2.0))
    places = np.linspace(-CUT, CUT, _POINTS) / math.sqrt(2.0)
    return np.array([(math.erf(z) / most + 1.0) / 2.0 for z in places])
