"""FLIP: the difference that a person would notice when flipping between two pictures.

Andersson et al., FLIP: A Difference Evaluator for Alternating Images, HPG 2020; computed by its
authors' package flip-evaluator, at their default viewing distance (67 px a degree).
"""

from __future__ import annotations

from typing import Any

import numpy as np

Array = Any


def flip(tiled: Array, untiled: Array) -> float:
    """Mean FLIP of a picture [h, w, 3] in 0..1 against the untiled one, 0 (equal) to 1.

    Of clips [f, h, w, 3] the mean over frames. Values outside 0..1 are clipped.
    """
    from flip_evaluator import evaluate

    tiled, untiled = np.asarray(tiled), np.asarray(untiled)
    if tiled.shape != untiled.shape or tiled.ndim not in (3, 4):
        raise ValueError(f"{tiled.shape} and {untiled.shape}; both must be [(f,) h, w, 3]")
    if tiled.ndim == 4:
        return float(np.mean([flip(a, b) for a, b in zip(tiled, untiled)]))
    pair = [np.ascontiguousarray(np.clip(p, 0.0, 1.0), np.float32) for p in (untiled, tiled)]
    return float(evaluate(*pair, "LDR", applyMagma=False)[1])
