"""The rectangular baseline: a frame as equal rectangles of about a hexagon's area.

Same interface as HexGrid where tiles need it, so that every claim about
hexagons is one run of the same code with `shape="rect"`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any

from .hexgrid import NO_ORIGIN, Cell, Point, hex_grid, origin_json


@dataclass(frozen=True)
class RectGrid:
    """A frame of width x height px as rectangles. Make one with `rect_grid` or `rectangles`.

    columns, rows   whole rectangles that the frame's sides hold
    origin          px by which they are moved right and down; those at the edge are then cut
    """

    width: int
    height: int
    res: int
    columns: int
    rows: int
    cells: tuple[Cell, ...]
    origin: Point = NO_ORIGIN

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
            near.append(tuple(self.by_place[k] for k in keys if k in self.by_place))
        return tuple(near)

    @cached_property
    def by_place(self) -> dict[tuple[int, int], int]:
        """Cell index of each (column, row)."""
        return {(c.q, c.r): c.index for c in self.cells}

    def signed_distance(self, index: int, x: Any, y: Any) -> Any:
        """Euclidean distance of points to a rectangle's outline, inside positive: like x, px."""
        import numpy as np

        cell, (half_w, half_h) = self.cells[index], self.half_sides
        dx, dy = np.abs(x - cell.x) - half_w, np.abs(y - cell.y) - half_h
        outside = np.hypot(np.maximum(dx, 0.0), np.maximum(dy, 0.0))
        return -(outside + np.minimum(np.maximum(dx, dy), 0.0))

    def reach_distance(self, index: int, x: Any, y: Any) -> Any:
        """The distance that decides what a tile sees: the true one, so corners are round."""
        return self.signed_distance(index, x, y)

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
            first, last = self.cells[0], self.cells[-1]
            q = np.floor((px - self.origin[0]) / (2 * self.half_sides[0])).astype(int)
            r = np.floor((py - self.origin[1]) / (2 * self.half_sides[1])).astype(int)
            q, r = np.clip(q, first.q, last.q) - first.q, np.clip(r, first.r, last.r) - first.r
            index = np.full((rows, columns, 4), -1, np.int32)
            weight = np.zeros((rows, columns, 4), np.float32)
            index[..., 0], weight[..., 0] = r * (last.q - first.q + 1) + q, 1.0
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
            "columns": self.columns, "rows": self.rows, **origin_json(self.origin),
        }  # fmt: skip


@lru_cache(maxsize=32)
def rect_grid(
    width: int, height: int, res: int, span: float, rotation: float = 0.0,
    origin: Point = NO_ORIGIN,
) -> RectGrid:  # fmt: skip
    """Rectangles with about the area of the hexagons of resolution `res` on the same frame.

    `rotation` is taken so that both shapes have one signature; rectangles are not turned.
    """
    side = math.sqrt(hex_grid(width, height, res, span, rotation, origin).cell_area)
    columns, rows = max(1, round(width / side)), max(1, round(height / side))
    return rectangles(width, height, columns, rows, res, origin)


@lru_cache(maxsize=32)
def rectangles(
    width: int, height: int, columns: int, rows: int, res: int = 0, origin: Point = NO_ORIGIN
) -> RectGrid:
    """A frame as columns x rows equal rectangles.

    res      a number that plans carry; it decides nothing
    origin   px by which they are moved right and down: those at the edge are then cut, and
             there is a column or a row more
    """
    across = _pieces(width, columns, origin[0])
    down = _pieces(height, rows, origin[1])
    found = [
        (q, r, (q + 0.5) * width / columns + origin[0], (r + 0.5) * height / rows + origin[1],
         wide * tall)
        for r, tall in down
        for q, wide in across
    ]  # fmt: skip
    cells = tuple(Cell(i, i, *rest) for i, rest in enumerate(found))
    return RectGrid(width, height, res, columns, rows, cells, origin)


def _pieces(length: int, count: int, moved: float) -> list[tuple[int, int]]:
    """Numbers of the rectangles along one axis, with the pixels that each has."""
    pitch = length / count
    first = math.floor(-moved / pitch)
    found = []
    for i in range(first, first + count + 2):
        low, high = (min(max(round(e * pitch + moved), 0), length) for e in (i, i + 1))
        if high > low:
            found.append((i, high - low))
    return found
