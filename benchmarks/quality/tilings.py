"""Tilings of one picture that may be compared: equal tile area, equal overlap.

The area is that of the rectangles, which must divide the frame; the hexagons' `span` follows from
it. So a hexagon has exactly a rectangle's area, whatever the orientation.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from h3video.blend.kernels import KERNELS
from h3video.blend.weights import Grid, TileWeights, tile_weights
from h3video.grid import hex_grid, rect_grid
from h3video.grid.lattice import spacing

Array = Any

KERNEL = "smoothstep"
"""Of tilings that name none: that of masks and merged clips."""

NATIVE, ALIGNED = 3, 4
"""Resolutions whose hexagons stand at H3's 19.1 degrees, and upright."""

RECTANGLES, HEXAGONS = "rectangles", "hexagons"
"""Names of tilings; hexagons stand at H3's native 19.1 degrees unless they say how they are turned,
as "hexagons 15" does: by 15 degrees from upright. "hexagons linear" has another kernel."""


@dataclass(frozen=True)
class Tiling:
    """A grid over a picture with its weights at every pixel.

    side      px of the square of a cell's area
    weights   every cell's; owner: the cell of each pixel; largest: the largest weight there
    """

    name: str
    side: int
    grid: Grid
    overlap: float
    weights: list[TileWeights]
    owner: Array
    largest: Array


def span_of(side: float, longer: int, res: int) -> float:
    """The `span` at which hexagons of `res` have the area of squares of `side` px."""
    pitch = side * math.sqrt(2.0 / math.sqrt(3.0))
    return spacing(res) * longer / pitch


@lru_cache(maxsize=48)
def tiling(name: str, width: int, height: int, side: int, overlap: float) -> Tiling:
    """The tiling of a name with cells of side x side px of area, `overlap` px shared."""
    if width % side or height % side:
        raise ValueError(f"squares of {side} px do not divide {width}x{height}")
    longer = max(width, height)
    kind, _, word = name.partition(" ")
    turn, kernel = ("", word) if word in KERNELS else (word, KERNEL)
    res = ALIGNED if turn else NATIVE
    if kind == RECTANGLES:
        grid: Grid = rect_grid(width, height, res, span_of(side, longer, res))
    else:
        grid = hex_grid(width, height, res, span_of(side, longer, res), float(turn or 0))
    cells = [(i,) for i in range(len(grid.cells))]
    weights = tile_weights(grid, cells, width, height, 1.0, overlap, kernel)
    owner, largest = np.zeros(width * height, np.int64), np.zeros(width * height)
    for i, w in enumerate(weights):
        better = w.weight > largest[w.points]
        owner[w.points[better]] = i
        largest[w.points[better]] = w.weight[better]
    shape = (height, width)
    return Tiling(
        name, side, grid, overlap, weights, owner.reshape(shape), largest.reshape(shape)
    )
