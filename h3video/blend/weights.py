"""The partition of unity: which tile owns how much of every sample point.

For point p and cell c with signed distance d (inside positive) the weight is
`kernel(d / overlap + 1/2)`, normalised over cells; the kernel is a smoothstep
unless another is asked for. A tile owns one or several cells; its weight is the
sum of theirs, so borders inside a tile vanish.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from ..grid import HexGrid, RectGrid
from .kernels import check_kernel, fade

Grid = HexGrid | RectGrid


@dataclass(frozen=True)
class TileWeights:
    """One tile's weights over a raster of columns x rows points.

    points   flat indices (row-major) where the weight is above zero, ascending: int64 [n]
    weight   the weights there: float32 [n]
    """

    points: Any
    weight: Any


def tile_weights(
    grid: Grid, groups: Sequence[Sequence[int]], columns: int, rows: int, step: float,
    overlap: float, kernel: str = "smoothstep",
) -> list[TileWeights]:  # fmt: skip
    """Weights of tiles that own groups of cells, at the raster's points.

    grid      HexGrid or RectGrid
    groups    cell indices of every tile. A cell in no tile (one that owns no point of this
              raster, say) gives its weight to the others
    step      distance of sample points in px; point (i, j) is at ((i + 0.5) step, (j + 0.5) step)
    overlap   width of the shared band in px, 0..grid.max_overlap()
    kernel    the fade's curve across the band, see kernels.py

    At every point the weights of all tiles sum to 1 within 1e-6 (float32).
    """
    import numpy as np

    index, weight = grid.sample_weights(columns, rows, step, overlap)
    if check_kernel(kernel) != "smoothstep" and overlap > 0.0:
        weight = _other_curve(grid, index, weight, step, overlap, kernel)
    tile_of_cell = np.full(len(grid.cells) + 1, -1, np.int64)
    for tile, cells in enumerate(groups):
        tile_of_cell[list(cells)] = tile
    slots = weight.shape[-1]
    tiles = tile_of_cell[index.reshape(-1, slots)]  # -1 (no cell) reads the last entry, -1
    weight = np.where(tiles >= 0, weight.reshape(-1, slots).astype(np.float64), 0.0)
    weight /= weight.sum(1, keepdims=True)
    points = np.broadcast_to(np.arange(columns * rows)[:, None], tiles.shape)
    used = weight > 0.0
    tiles, points, weight = tiles[used], points[used], weight[used]
    out = []
    for tile in range(len(groups)):
        mine = tiles == tile
        total = np.bincount(points[mine], weights=weight[mine], minlength=columns * rows)
        where = np.flatnonzero(total)
        out.append(TileWeights(where, total[where].astype(np.float32)))
    return out


def _other_curve(
    grid: Grid, index: Any, weight: Any, step: float, overlap: float, kernel: str
) -> Any:
    """A raster's weights [rows, columns, slots] with another curve, over the same cells.

    The raster says which cells are in reach; only where there are several can a curve matter.
    """
    import numpy as np

    slots = index.shape[-1]
    index, out = index.reshape(-1, slots), weight.reshape(-1, slots).astype(np.float64)
    rows, places = np.nonzero((weight.reshape(-1, slots) > 0.0) & (index[:, 1:2] >= 0))
    cells, columns = index[rows, places], weight.shape[1]
    x, y = (rows % columns + 0.5) * step, (rows // columns + 0.5) * step
    for cell in np.unique(cells):
        mine = np.flatnonzero(cells == cell)
        t = grid.signed_distance(int(cell), x[mine], y[mine]) / overlap + 0.5
        out[rows[mine], places[mine]] = fade(t, kernel)
    # Where rounding leaves no cell in reach the raster's own weights stand.
    lost = out.sum(1) <= 0.0
    out[lost] = weight.reshape(-1, slots)[lost]
    return (out / out.sum(1, keepdims=True)).reshape(weight.shape)
