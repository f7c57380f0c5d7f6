"""The rectangular baseline: a frame as equal rectangles of about a hexagon's area.

Same interface as HexGrid where tiles need it, so that every claim about
hexagons is one run of the same code with `shape="rect"`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any

from .hexgrid import Cell, hex_grid


@dataclass(frozen=True)
class RectGrid:
    """A frame of width x height px as columns x rows rectangles. Make one with `rect_grid`."""

    width: int
    height: int
    res: int
    columns: int
    rows: int
    cells: tuple[Cell, ...]

    shape = "rect"

    @property
    def half_sides(self) -> tuple[float, float]:
        """Half the width and half the height of a rectangle, in px."""
        return self.width / self.columns / 2.0, self.height / self.rows / 2.0

    @property
    def inradius(self) -> float:
        """Distance from a rectangle's centre to its nearer sides, in px."""
        return min(self.half_sides)

    @property
    def edge(self) -> float:
        """Length of the shorter side, in px."""
        return 2.0 * self.inradius

    @property
    def cell_area(self) -> float:
        """Area of a rectangle, in square px."""
        return self.width * self.height / (self.columns * self.rows)

    @cached_property
    def neighbours(self) -> tuple[tuple[int, ...], ...]:
        """For every rectangle the indices of those that share a side with it."""
        near = []
        for c in self.cells:
            keys = [(c.q + 1, c.r), (c.q, c.r + 1), (c.q - 1, c.r), (c.q, c.r - 1)]
            near.append(
                tuple(
                    r * self.columns + q
                    for q, r in keys
                    if 0 <= q < self.columns and 0 <= r < self.rows
                )
            )
        return tuple(near)

    def signed_distance(self, index: int, x: Any, y: Any) -> Any:
        """Euclidean distance of points to a rectangle's outline, inside positive: like x, px."""
        import numpy as np

        cell, (half_w, half_h) = self.cells[index], self.half_sides
        dx, dy = np.abs(x - cell.x) - half_w, np.abs(y - cell.y) - half_h
        outside = np.hypot(np.maximum(dx, 0.0), np.maximum(dy, 0.0))
        return -(outside + np.minimum(np.maximum(dx, dy), 0.0))

    def reach_distance(self, index: int, x: Any, y: Any) -> Any:
        """The distance that decides what a tile sees: a rectangle grows as a rectangle."""
        import numpy as np

        cell, (half_w, half_h) = self.cells[index], self.half_sides
        return -np.maximum(np.abs(x - cell.x) - half_w, np.abs(y - cell.y) - half_h)

    def sample_weights(
        self, columns: int, rows: int, step: float, overlap: float,
        x0: float = 0.0, y0: float = 0.0,
    ) -> tuple[Any, Any]:  # fmt: skip
        """Weights at a raster of sample points, as HexGrid.sample_weights gives them."""
        import numpy as np

        x = x0 + (np.arange(columns) + 0.5) * step
        y = y0 + (np.arange(rows) + 0.5) * step
        px, py = np.meshgrid(x, y)
        if overlap == 0.0:
            q = np.clip((px / (2 * self.half_sides[0])).astype(int), 0, self.columns - 1)
            r = np.clip((py / (2 * self.half_sides[1])).astype(int), 0, self.rows - 1)
            index = np.full((rows, columns, 4), -1, np.int32)
            weight = np.zeros((rows, columns, 4), np.float32)
            index[..., 0], weight[..., 0] = r * self.columns + q, 1.0
            return index, weight
        dense = np.stack([self.signed_distance(c.index, px, py) for c in self.cells])
        with np.errstate(over="ignore"):  # a tiny overlap makes far points infinitely far: right
            t = np.clip(dense / overlap + 0.5, 0.0, 1.0)
        dense = t * t * (3.0 - 2.0 * t)
        dense /= dense.sum(0)
        slots = min(4, len(self.cells))
        order = np.argsort(-dense, axis=0, kind="stable")[:slots]
        weight = np.zeros((rows, columns, 4), np.float32)
        index = np.full((rows, columns, 4), -1, np.int32)
        weight[..., :slots] = np.moveaxis(np.take_along_axis(dense, order, 0), 0, -1)
        index[..., :slots] = np.where(weight[..., :slots] > 0.0, np.moveaxis(order, 0, -1), -1)
        return index, weight

    def bounds(self, index: int) -> tuple[float, float, float, float]:
        """Left, top, right, bottom of a rectangle, in px."""
        cell, (half_w, half_h) = self.cells[index], self.half_sides
        return cell.x - half_w, cell.y - half_h, cell.x + half_w, cell.y + half_h

    def max_overlap(self) -> float:
        """Widest overlap in px: the shorter side, where at most four rectangles share a point."""
        return 2.0 * self.inradius

    def corners(self, index: int) -> list[tuple[float, float]]:
        """The four corners (x, y) of a rectangle, in px."""
        left, top, right, bottom = self.bounds(index)
        return [(left, top), (right, top), (right, bottom), (left, bottom)]

    def to_json(self) -> dict[str, Any]:
        """The grid as plain data."""
        return {
            "width": self.width, "height": self.height, "res": self.res,
            "columns": self.columns, "rows": self.rows,
        }  # fmt: skip


@lru_cache(maxsize=32)
def rect_grid(width: int, height: int, res: int, span: float, rotation: float = 0.0) -> RectGrid:
    """Rectangles with about the area of the hexagons of resolution `res` on the same frame.

    `rotation` is taken so that both shapes have one signature; rectangles are not turned.
    """
    side = math.sqrt(hex_grid(width, height, res, span, rotation).cell_area)
    columns, rows = max(1, round(width / side)), max(1, round(height / side))
    cells = tuple(
        Cell(
            r * columns + q, r * columns + q, q, r,
            (q + 0.5) * width / columns, (r + 0.5) * height / rows,
            (round((q + 1) * width / columns) - round(q * width / columns))
            * (round((r + 1) * height / rows) - round(r * height / rows)),
        )
        for r in range(rows)
        for q in range(columns)
    )  # fmt: skip
    return RectGrid(width, height, res, columns, rows, cells)
