"""How much two chunks differ where they overlap: by cell, by border, by frame.

Differences are measured on frames made smaller by whole numbers (grain is not a difference), as
the mean over channels, in units of the clip's range. numpy, one frame at a time.
"""

from __future__ import annotations

from dataclasses import dataclass
from statistics import median
from typing import Any

from ..grid import HexGrid

Frames = Any  # a sequence of float32 numpy [rows, columns, channels]

MEASURED = 480
"""Points across that differences are measured on at most."""


@dataclass(frozen=True)
class Differences:
    """What was measured of an overlap of n frames.

    cell       sum over a cell's points (by their weights) of the difference: float64 [n, cells]
    rms        root of the mean square of the same: float64 [n, cells]
    border     sum over the band between two cells: float64 [n, pairs]
    pairs      the cells (a, b), a < b, of every column of `border`
    natural    root mean square change from one frame to the next by itself: float64 [cells]
    """

    cell: Any
    rms: Any
    border: Any
    pairs: tuple[tuple[int, int], ...]
    natural: Any


class Weights:
    """The grid's partition of unity on the points that differences are measured on."""

    def __init__(self, grid: HexGrid, columns: int, rows: int, step: float, overlap: float) -> None:
        import numpy as np

        self.by = max(1, -(-max(columns, rows) // MEASURED))
        self.columns, self.rows = max(1, columns // self.by), max(1, rows // self.by)
        index, weight = grid.sample_weights(self.columns, self.rows, step * self.by, overlap)
        self.cells = len(grid.cells)
        flat, share = index.reshape(-1, 4), weight.reshape(-1, 4).astype(np.float64)
        used = share > 0.0
        self.point, slot = np.nonzero(used)
        self.cell, self.weight = flat[self.point, slot], share[self.point, slot]
        self.area = np.bincount(self.cell, self.weight, self.cells)
        self._bands(flat, share)

    def _bands(self, flat: Any, share: Any) -> None:
        """Points that two cells share: 4 x the product of their weights is 1 on the border."""
        import numpy as np

        points, keys, weights = [], [], []
        for i in range(4):
            for j in range(i + 1, 4):
                both = np.flatnonzero((share[:, i] > 0.0) & (share[:, j] > 0.0))
                low = np.minimum(flat[both, i], flat[both, j]).astype(np.int64)
                high = np.maximum(flat[both, i], flat[both, j])
                points.append(both)
                keys.append(low * self.cells + high)
                weights.append(4.0 * share[both, i] * share[both, j])
        pairs, self.pair = np.unique(np.concatenate(keys), return_inverse=True)
        self.pairs = tuple((int(p // self.cells), int(p % self.cells)) for p in pairs)
        self.band, self.band_weight = np.concatenate(points), np.concatenate(weights)

    def small(self, frame: Any) -> Any:
        """A frame [rows, columns, channels] on the points measured: [points, channels]."""
        by = self.by
        if by > 1:
            cut = frame[: self.rows * by, : self.columns * by]
            cut = cut.reshape(self.rows, by, self.columns, by, -1).mean((1, 3))
            return cut.reshape(self.rows * self.columns, -1)
        return frame.reshape(self.rows * self.columns, -1)

    def by_cell(self, values: Any) -> Any:
        """Weighted sum of values [points] over every cell: float64 [cells]."""
        import numpy as np

        return np.bincount(self.cell, self.weight * values[self.point], self.cells)

    def by_pair(self, values: Any) -> Any:
        """Weighted sum of values [points] over every border: float64 [pairs]."""
        import numpy as np

        return np.bincount(self.pair, self.band_weight * values[self.band], len(self.pairs))


def levels(weights: Weights, grid: HexGrid, old: Frames, new: Frames, limit: float) -> Any:
    """How much brighter the new chunk is in every cell and channel: float64 [cells, channels].

    The median over a cell and its neighbours of the mean difference over all frames, so that an
    object in another place does not count as light; at most `limit` either way.
    """
    import numpy as np

    total: Any = 0.0
    for a, b in zip(old, new):
        change = weights.small(b).astype(np.float64) - weights.small(a)
        total = total + np.stack([weights.by_cell(c) for c in change.T], 1)
    mean = total / (np.maximum(weights.area, 1e-9)[:, None] * max(len(old), 1))
    near = [[i, *grid.neighbours[i]] for i in range(weights.cells)]
    calm = np.array([[median(mean[cells, c]) for c in range(mean.shape[1])] for cells in near])
    return np.round(np.clip(calm, -limit, limit), 5)  # a thousandth of a step of 8 bits is none


def measure(weights: Weights, old: Frames, new: Frames) -> Differences:
    """The differences of two chunks whose levels agree."""
    import numpy as np

    cell, rms, border = [], [], []
    natural = np.zeros(weights.cells)
    area = np.maximum(weights.area, 1e-9)
    before: Any = None
    for a, b in zip(old, new):
        small = weights.small(a), weights.small(b)
        apart = np.abs(small[0] - small[1]).mean(1, dtype=np.float64)
        cell.append(weights.by_cell(apart))
        rms.append(np.sqrt(weights.by_cell(apart**2) / area))
        border.append(weights.by_pair(apart))
        if before is not None:
            for now, then in zip(small, before):
                change = ((now - then).astype(np.float64) ** 2).mean(1)
                natural = np.maximum(natural, np.sqrt(weights.by_cell(change) / area))
        before = small
    return Differences(
        np.array(cell), np.array(rms), np.array(border), weights.pairs, natural
    )  # fmt: skip
