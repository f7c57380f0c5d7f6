"""The equirectangular projection, for the curious: a frame as a map of the whole globe.

Cells are stretched towards the poles (3 times at 75 degrees, 15 times beyond 85),
pentagons and the antimeridian are in the picture, and only resolutions 0 to 2 are
large enough to see. Use hex_grid for tiling; this shows why.
"""

from __future__ import annotations

import math
from collections import deque
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any

from .. import h3
from ..errors import UsageError
from .hexgrid import MAX_FRAME, Cell
from .lattice import spacing

MIN_EDGE_PX = 8.0

MAX_MAP = 1 << 24
"""Most pixels of a map: every one of them is located on the globe."""


@dataclass(frozen=True)
class GlobeGrid:
    """The H3 cells of a 360 x 180 degree map. Make one with `globe_grid`.

    Distances and overlaps are in px at the equator (`height` px are pi radians).
    """

    width: int
    height: int
    res: int
    cells: tuple[Cell, ...]
    ids: Any

    shape = "hex"

    @property
    def px_per_radian(self) -> float:
        """Px of the map's height that a radian takes."""
        return self.height / math.pi

    @property
    def edge(self) -> float:
        """Length of a cell's edge near the equator, in px."""
        return edge_px(self.height, self.res)

    @property
    def inradius(self) -> float:
        """Distance from a cell's centre to its edges near the equator, in px."""
        return self.edge * math.sqrt(3.0) / 2.0

    def max_overlap(self) -> float:
        """Widest overlap in px: half a cell's width, since cells are not all alike."""
        return self.inradius

    @cached_property
    def by_id(self) -> dict[int, int]:
        """Cell index of each H3 id."""
        return {c.id: c.index for c in self.cells}

    @cached_property
    def neighbours(self) -> tuple[tuple[int, ...], ...]:
        """For every cell the indices of its neighbours, over the antimeridian and the poles too."""
        return tuple(
            tuple(self.by_id[n] for n in h3.grid_ring(c.id, 1) if n in self.by_id)
            for c in self.cells
        )

    def pixel_ids(self) -> Any:
        """H3 id of every pixel: numpy uint64 [height, width]."""
        return self.ids

    def cell_at(self, x: float, y: float) -> int:
        """Index of the cell that holds the point (x, y) px of the map."""
        if not (0 <= x <= self.width and 0 <= y <= self.height):
            raise UsageError(
                f"point ({x:g}, {y:g}) is outside the frame of {self.width}x{self.height} px"
            )
        column, row = min(int(x), self.width - 1), min(int(y), self.height - 1)
        return self.by_id[int(self.ids[row, column])]

    def rings(self, x: float | None = None, y: float | None = None) -> tuple[int, ...]:
        """Steps from the cell at (x, y) px (default: the middle), counted along neighbours."""
        start = self.cell_at(
            self.width / 2.0 if x is None else x, self.height / 2.0 if y is None else y
        )
        steps, queue = {start: 0}, deque([start])
        while queue:
            i = queue.popleft()
            for j in self.neighbours[i]:
                if j not in steps:
                    steps[j] = steps[i] + 1
                    queue.append(j)
        # A cell that is reached only through cells without a pixel counts as the farthest.
        last = max(steps.values())
        return tuple(steps.get(i, last) for i in range(len(self.cells)))

    def corners(self, index: int) -> list[tuple[float, float]]:
        """The corners (x, y) of a cell in px; x may leave the map at the antimeridian."""
        outline = h3.cell_to_boundary(self.cells[index].id)
        points: list[tuple[float, float]] = []
        for lat, lng in outline:
            x, y = (lng / 360.0 + 0.5) * self.width, (0.5 - lat / 180.0) * self.height
            away = x - (points[0][0] if points else self.cells[index].x)
            points.append((x - round(away / self.width) * self.width, y))
        return points

    def to_json(self) -> dict[str, Any]:
        """The grid as plain data; ids as strings, since JSON numbers round 64 bits."""
        return {
            "width": self.width, "height": self.height, "res": self.res,
            "projection": "equirectangular", "ids": [h3.int_to_str(c.id) for c in self.cells],
        }  # fmt: skip

    @staticmethod
    def from_json(data: dict[str, Any]) -> GlobeGrid:
        """The grid that `to_json` wrote. Refuses data whose ids do not belong to its size."""
        grid = globe_grid(data["width"], data["height"], data["res"])
        if [h3.str_to_int(s) for s in data["ids"]] != [c.id for c in grid.cells]:
            raise UsageError(
                f"the {len(data['ids'])} cell ids do not belong to a {grid.width}x{grid.height} "
                f"map at hex_res {grid.res}; write the grid again"
            )
        return grid

    @staticmethod
    def finest_res(height: int) -> int:
        """The finest resolution that is legal on a map of this height (0 at least)."""
        return max((r for r in range(16) if edge_px(height, r) >= MIN_EDGE_PX), default=0)

    def signed_distance(self, index: int, x: Any, y: Any) -> Any:
        """Distance on the sphere of points (px) to a cell's outline, inside positive, in px."""
        import numpy as np

        p = _vectors(*_latlng(x, y, self.width, self.height))  # [..., 3]
        outline = np.array(h3.cell_to_boundary(self.cells[index].id))
        corners = _vectors(np.radians(outline[:, 0]), np.radians(outline[:, 1]))
        nearest = np.full(p.shape[:-1], np.inf)
        inside = np.ones(p.shape[:-1], bool)
        for a, b in zip(corners, np.roll(corners, -1, axis=0)):
            normal = np.cross(a, b)
            normal = normal / np.linalg.norm(normal)
            height = np.arcsin(np.clip(p @ normal, -1.0, 1.0))
            inside &= height > 0.0
            # The foot of the perpendicular lies on the side, or a corner is nearest.
            on_side = (p @ np.cross(normal, a) > 0.0) & (p @ np.cross(normal, b) < 0.0)
            corner = np.arccos(np.clip(np.maximum(p @ a, p @ b), -1.0, 1.0))
            nearest = np.minimum(nearest, np.where(on_side, np.abs(height), corner))
        return np.where(inside, nearest, -nearest) * self.px_per_radian

    def sample_weights(
        self, columns: int, rows: int, step: float, overlap: float,
        x0: float = 0.0, y0: float = 0.0,
    ) -> tuple[Any, Any]:  # fmt: skip
        """Weights at a raster of sample points, as HexGrid.sample_weights gives them."""
        import numpy as np

        if not 0.0 <= overlap <= self.max_overlap():
            raise UsageError(
                f"overlap {overlap:g} is out of range 0..{self.max_overlap():.1f} px on this map"
            )
        x, y = np.meshgrid(
            x0 + (np.arange(columns) + 0.5) * step, y0 + (np.arange(rows) + 0.5) * step
        )
        lat, lng = _latlng(x, y, self.width, self.height)
        ids = h3.latlngs_to_cells(np.degrees(lat).ravel(), np.degrees(lng).ravel(), self.res)
        owner = np.array([self.by_id.get(int(i), -1) for i in ids]).reshape(rows, columns)
        weight = np.zeros((rows, columns, 4), np.float32)
        index = np.full((rows, columns, 4), -1, np.int32)
        if overlap == 0.0:
            index[..., 0], weight[..., 0] = owner, 1.0
            return index, weight
        dense: dict[int, tuple[Any, Any]] = {}
        present = {int(i) for i in np.unique(owner)} - {-1}
        reaching = present.union(*(self.neighbours[i] for i in present))
        for cell in (self.cells[i] for i in sorted(reaching)):
            near = np.isin(owner, [cell.index, *self.neighbours[cell.index]])
            t = np.clip(self.signed_distance(cell.index, x[near], y[near]) / overlap + 0.5, 0, 1)
            dense[cell.index] = (near, t * t * (3.0 - 2.0 * t))
        total = np.zeros((rows, columns))
        for near, w in dense.values():
            total[near] += w
        for number, (near, w) in dense.items():
            cell_index: Any = number
            value = np.zeros((rows, columns), np.float32)
            value[near] = w / np.maximum(total[near], 1e-300)
            for slot in range(4):  # keep slots sorted, largest first
                larger = value > weight[..., slot]
                old_w, old_i = weight[..., slot].copy(), index[..., slot].copy()
                weight[..., slot] = np.where(larger, value, old_w)
                index[..., slot] = np.where(larger, cell_index, old_i)
                value = np.where(larger, old_w, value)
                cell_index = np.where(larger, old_i, cell_index)
        return index, weight


def edge_px(height: int, res: int) -> float:
    """Length of a cell's edge near the equator on a map `height` px tall."""
    return spacing(res) / math.sqrt(3.0) * height / math.pi


def _latlng(x: Any, y: Any, width: int, height: int) -> tuple[Any, Any]:
    """Radians of points in px: the map's middle is (0, 0), north is up."""
    return math.pi * (0.5 - y / height), 2.0 * math.pi * (x / width - 0.5)


def _vectors(lat: Any, lng: Any) -> Any:
    import numpy as np

    return np.stack([np.cos(lat) * np.cos(lng), np.cos(lat) * np.sin(lng), np.sin(lat)], -1)


def check_globe_grid(width: int, height: int, res: int) -> None:
    """Raise what `globe_grid` raises, without making the grid."""
    for name, side in (("width", width), ("height", height)):
        if not 1 <= side <= MAX_FRAME:
            raise UsageError(f"{name} {side} is out of range 1..{MAX_FRAME} px")
    if not 0 <= res <= 15:
        raise UsageError(f"hex_res {res} is out of range 0..15")
    if edge_px(height, res) < MIN_EDGE_PX:
        needed = math.ceil(height * MIN_EDGE_PX / edge_px(height, res))
        coarser = [r for r in range(res) if edge_px(height, r) >= MIN_EDGE_PX]
        remedy = f"use hex_res {max(coarser)} or less" if coarser else f"use height {needed} px"
        raise UsageError(
            f"hex_res {res} on an equirectangular {width}x{height} map gives cells of "
            f"{edge_px(height, res):.1f} px edge, at least {MIN_EDGE_PX:g} px are needed; "
            f"{remedy}, or the face projection"
        )
    if width * height > MAX_MAP:
        raise UsageError(
            f"an equirectangular map of {width}x{height} has {width * height:,} pixels, the limit "
            f"is {MAX_MAP:,}; make it smaller, or use the face projection"
        )


@lru_cache(maxsize=4)
def globe_grid(width: int, height: int, res: int) -> GlobeGrid:
    """The H3 cells of a frame read as a map of the globe, 360 x 180 degrees.

    Raises UsageError, with the numbers, when a cell's edge comes out under 8 px.
    """
    import numpy as np

    check_globe_grid(width, height, res)
    x, y = np.meshgrid(np.arange(width) + 0.5, np.arange(height) + 0.5)
    lat, lng = _latlng(x, y, width, height)
    ids = h3.latlngs_to_cells(np.degrees(lat).ravel(), np.degrees(lng).ravel(), res)
    found, counts = np.unique(ids, return_counts=True)
    cells = []
    for i, (cell, pixels) in enumerate(zip(found.tolist(), counts.tolist())):
        a, b = h3.cell_to_latlng(cell)
        cells.append(
            Cell(i, cell, i, 0, (b / 360.0 + 0.5) * width, (0.5 - a / 180.0) * height, pixels)
        )
    return GlobeGrid(width, height, res, tuple(cells), ids.reshape(height, width))
