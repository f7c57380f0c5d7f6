"""The equirectangular projection, for the curious: a frame as a map of the whole globe.

Cells are stretched towards the poles (3 times at 75 degrees, 15 times beyond 85),
pentagons and the antimeridian are in the picture, and only resolutions 0 to 2 are
large enough to see. Use hex_grid for tiling; this shows why.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any

from .. import h3
from ..errors import UsageError
from .hexgrid import MAX_FRAME, Cell
from .lattice import spacing

MIN_EDGE_PX = 8.0


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
        for cell in self.cells:
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


@lru_cache(maxsize=4)
def globe_grid(width: int, height: int, res: int) -> GlobeGrid:
    """The H3 cells of a frame read as a map of the globe, 360 x 180 degrees.

    Raises UsageError, with the numbers, when a cell's edge comes out under 8 px.
    """
    import numpy as np

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
