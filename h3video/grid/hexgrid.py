"""A frame as H3 cells: ids, centres, neighbours, rings, orders, colours.

The frame lies in one icosahedron face, its centre on the face centre, its
longer side `span` plane units wide. There the cells are exact regular hexagons
and far from every pentagon and face edge; see lattice.py and docs/geometry.md.
With an `origin` the face centre lies elsewhere in the frame, by a cell at most.
Standard library only.
"""

from __future__ import annotations

import math
from collections import deque
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any

from .. import h3
from ..errors import UsageError
from .lattice import NEIGHBOUR_STEPS, Lattice, hex_distance

DEFAULT_SPAN = 0.075
"""Plane units that the frame's longer side spans: a cell edge is 6.0 % of it at resolution 4."""

MAX_SPAN = 0.33
"""Up to here a frame lies in one base cell, so planar and H3 grid distance agree."""

FACE = 4
"""The icosahedron face that frames are mapped into. Any of the 20 gives the same hexagons."""

Point = tuple[float, float]
"""(x, y) in px; as an origin: how far the lattice's centre lies right of and below the frame's."""

NO_ORIGIN: Point = (0.0, 0.0)

MAX_FRAME = 16384
"""Longest side of a frame in px."""

MIN_EDGE = 2.0
"""Shortest cell edge in px that is worth a cell."""

MAX_CELLS = 50_000
"""Most cells of a grid; a second or two of work in Python."""


@dataclass(frozen=True)
class Cell:
    """One hexagonal cell of a grid.

    index   position in `HexGrid.cells`
    id      the H3 index, 64 bit
    q, r    axial lattice coordinates, (0, 0) at the frame's centre (or the grid's origin)
    x, y    centre in px (may lie outside the frame)
    pixels  pixels of the frame whose centre is in the cell, at least 1. One exactly on an edge may
            count for both cells or for neither; `pixel_ids` gives it to one
    """

    index: int
    id: int
    q: int
    r: int
    x: float
    y: float
    pixels: int


@dataclass(frozen=True)
class HexGrid:
    """A frame of width x height px as H3 cells of one resolution. Make one with `hex_grid`."""

    width: int
    height: int
    res: int
    span: float
    rotation: float
    lattice: Lattice
    cells: tuple[Cell, ...]
    origin: Point = NO_ORIGIN

    shape = "hex"

    @property
    def inradius(self) -> float:
        """Distance from a cell's centre to its edges, in px."""
        return self.lattice.inradius

    @property
    def edge(self) -> float:
        """Length of a cell's edge, in px."""
        return self.lattice.edge

    @property
    def cell_area(self) -> float:
        """Area of a whole cell, in square px."""
        return 2.0 * math.sqrt(3.0) * self.inradius**2

    @cached_property
    def by_axial(self) -> dict[tuple[int, int], int]:
        """Cell index of each (q, r)."""
        return {(c.q, c.r): c.index for c in self.cells}

    @cached_property
    def by_id(self) -> dict[int, int]:
        """Cell index of each H3 id."""
        return {c.id: c.index for c in self.cells}

    @cached_property
    def neighbours(self) -> tuple[tuple[int, ...], ...]:
        """For every cell the indices of its neighbours inside the grid."""
        near = []
        for c in self.cells:
            keys = [(c.q + dq, c.r + dr) for dq, dr in NEIGHBOUR_STEPS]
            near.append(tuple(self.by_axial[k] for k in keys if k in self.by_axial))
        return tuple(near)

    @cached_property
    def colours(self) -> tuple[int, ...]:
        """A colour 0..2 for every cell; cells of one colour never touch."""
        return tuple((c.q - c.r) % 3 for c in self.cells)

    def parent(self, index: int, res: int | None = None) -> int:
        """H3 id of the cell's ancestor at `res` (default: one level coarser)."""
        return h3.cell_to_parent(self.cells[index].id, self.res - 1 if res is None else res)

    def corners(self, index: int) -> list[tuple[float, float]]:
        """The six corners (x, y) of a cell, in px."""
        return self.lattice.corners(self.cells[index].q, self.cells[index].r)

    def cell_at(self, x: float, y: float) -> int:
        """Index of the cell that holds the point (x, y) px of the frame."""
        if not (0 <= x <= self.width and 0 <= y <= self.height):
            raise UsageError(
                f"point ({x:g}, {y:g}) is outside the frame of {self.width}x{self.height} px"
            )
        found = self.by_axial.get(self.lattice.locate(x, y))
        if found is None:  # a cell that owns no pixel centre: the nearest one stands in
            found = min(
                range(len(self.cells)),
                key=lambda i: (self.cells[i].x - x) ** 2 + (self.cells[i].y - y) ** 2,
            )
        return found

    def distance(self, a: int, b: int) -> int:
        """Grid distance of two cells, in steps."""
        ca, cb = self.cells[a], self.cells[b]
        return hex_distance(ca.q - cb.q, ca.r - cb.r)

    def rings(self, x: float | None = None, y: float | None = None) -> tuple[int, ...]:
        """Ring distance of every cell from the focus (x, y) px (default: the frame's centre)."""
        focus = self.cell_at(
            self.width / 2.0 if x is None else x, self.height / 2.0 if y is None else y
        )
        return tuple(self.distance(focus, i) for i in range(len(self.cells)))

    def order(
        self, kind: str = "spiral", x: float | None = None, y: float | None = None
    ) -> tuple[int, ...]:
        """All cell indices in a walking order.

        spiral   ring by ring around the focus, each ring in angular order
        bfs      breadth-first along the neighbour graph from the focus
        scanline top to bottom, left to right
        """
        fx = self.width / 2.0 if x is None else x
        fy = self.height / 2.0 if y is None else y
        if kind == "spiral":
            rings = self.rings(fx, fy)
            centre = self.cells[self.cell_at(fx, fy)]

            def angle(i: int) -> float:
                c = self.cells[i]
                return math.atan2(c.y - centre.y, c.x - centre.x) % (2.0 * math.pi)

            return tuple(sorted(range(len(self.cells)), key=lambda i: (rings[i], angle(i))))
        if kind == "scanline":
            half_row = self.lattice.pitch / 2.0
            return tuple(
                sorted(
                    range(len(self.cells)),
                    key=lambda i: (round(self.cells[i].y / half_row), self.cells[i].x),
                )
            )
        if kind == "bfs":
            return self._breadth_first(self.cell_at(fx, fy))
        raise UsageError(f"order {kind!r} is unknown; use spiral, bfs or scanline")

    def _breadth_first(self, start: int) -> tuple[int, ...]:
        seen, queue, out = {start}, deque([start]), []
        while queue:
            i = queue.popleft()
            out.append(i)
            for j in self.neighbours[i]:
                if j not in seen:
                    seen.add(j)
                    queue.append(j)
        # A sliver may touch the rest only through a cell that owns no pixel; walk it last.
        return tuple(out + [i for i in range(len(self.cells)) if i not in seen])

    def pixel_ids(self) -> Any:
        """H3 id of every pixel: numpy uint64 [height, width]."""
        u, v = _plane(
            self.width / 2.0, self.height / 2.0, self.width, self.height, self.span,
            self.rotation, self.origin,
        )  # fmt: skip
        ids = h3.frame_cells(
            FACE, u, v, self.width, self.height, self.span, math.radians(self.rotation), self.res
        )
        return ids.reshape(self.height, self.width)

    def sample_weights(
        self, columns: int, rows: int, step: float, overlap: float,
        x0: float = 0.0, y0: float = 0.0,
    ) -> tuple[Any, Any]:  # fmt: skip
        """Partition-of-unity weights at a raster of sample points.

        Point (i, j) lies at (x0 + (i + 0.5) step, y0 + (j + 0.5) step) px. Returns
        (cell index int32, weight float32), both [rows, columns, 4]; unused slots
        are -1 and 0. A band `overlap` px wide is shared along every edge; 0 is a
        hard partition. Needs 0 <= overlap <= the cell's width.
        """
        index, weight = h3.hex_weights(
            columns, rows, x0, y0, step,
            [c.x for c in self.cells], [c.y for c in self.cells],
            self.inradius, self.lattice.theta, overlap,
        )  # fmt: skip
        return index.reshape(rows, columns, 4), weight.reshape(rows, columns, 4)

    def signed_distance(self, index: int, x: Any, y: Any) -> Any:
        """Euclidean distance of points to a cell's outline, inside positive: array like x, px."""
        import numpy as np

        cell, a, half_edge = self.cells[index], self.inradius, self.edge / 2.0
        best = None
        for k in range(3):
            t = self.lattice.theta + k * math.pi / 3.0
            cos, sin = math.cos(t), math.sin(t)
            dx, dy = x - cell.x, y - cell.y
            across, along = np.abs(dx * cos + dy * sin), np.abs(dy * cos - dx * sin)
            best = (across, along) if best is None else (
                np.maximum(best[0], across), np.where(across > best[0], along, best[1])
            )  # fmt: skip
        assert best is not None
        out, beyond = best[0] - a, np.maximum(best[1] - half_edge, 0.0)
        return np.where(out > 0.0, -np.hypot(out, beyond), -out)

    def reach_distance(self, index: int, x: Any, y: Any) -> Any:
        """The distance that decides what a tile sees beyond its cell: for hexagons the true one."""
        return self.signed_distance(index, x, y)

    def bounds(self, index: int) -> tuple[float, float, float, float]:
        """Left, top, right, bottom of the cell, in px."""
        xs, ys = zip(*self.corners(index))
        return min(xs), min(ys), max(xs), max(ys)

    def max_overlap(self) -> float:
        """Widest overlap in px: the width of a cell, where at most four cells share a point."""
        return 2.0 * self.inradius

    def to_json(self) -> dict[str, Any]:
        """The grid as plain data; ids as strings, since JSON numbers round 64 bits."""
        return {
            "width": self.width, "height": self.height, "res": self.res, "span": self.span,
            "rotation": self.rotation, "projection": "face", **origin_json(self.origin),
            "ids": [h3.int_to_str(c.id) for c in self.cells],
        }  # fmt: skip

    @staticmethod
    def from_json(data: dict[str, Any]) -> HexGrid:
        """The grid that `to_json` wrote. Refuses data whose ids do not belong to its geometry."""
        x, y = data.get("origin", NO_ORIGIN)
        grid = hex_grid(
            data["width"], data["height"], data["res"], data["span"], data["rotation"], (x, y)
        )
        ids = [h3.str_to_int(s) for s in data["ids"]]
        if ids != [c.id for c in grid.cells]:
            raise UsageError(
                f"the {len(ids)} cell ids do not belong to a {grid.width}x{grid.height} frame at "
                f"hex_res {grid.res}, span {grid.span:g}, rotation {grid.rotation:g}, origin "
                f"{grid.origin[0]:g}, {grid.origin[1]:g}; write the grid again"
            )
        return grid


def origin_json(origin: Point) -> dict[str, Any]:
    """An origin as an entry of plain data; none at the frame's centre, as grids always wrote."""
    return {} if origin == NO_ORIGIN else {"origin": list(origin)}


def check_hex_grid(
    width: int, height: int, res: int, span: float = DEFAULT_SPAN, rotation: float = 0.0,
    origin: Point = NO_ORIGIN,
) -> Lattice:  # fmt: skip
    """The lattice of a grid that can be made, without making it; raises what `hex_grid` raises."""
    for name, side in (("width", width), ("height", height)):
        if not 1 <= side <= MAX_FRAME:
            raise UsageError(f"{name} {side} is out of range 1..{MAX_FRAME} px")
    if not 0 <= res <= 15:
        raise UsageError(f"hex_res {res} is out of range 0..15")
    if not 0.0 < span <= MAX_SPAN:
        raise UsageError(f"span {span:g} is out of range 0..{MAX_SPAN} (default {DEFAULT_SPAN})")
    if not math.isfinite(rotation):
        raise UsageError(f"rotation {rotation} is not a number of degrees")
    lattice = Lattice.over_frame(width, height, res, span, rotation, origin)
    _check_origin(lattice, width, height, span, origin)
    if res > 0 and lattice.edge < MIN_EDGE:
        finest = finest_res(width, height, span, rotation)
        raise UsageError(
            f"hex_res {res} gives cells of {lattice.edge:.2g} px edge at {width}x{height}; "
            f"at least {MIN_EDGE:g} px are needed: use hex_res {finest} or less"
        )
    if _about(lattice, width, height) > MAX_CELLS:
        finest = finest_res(width, height, span, rotation)
        raise UsageError(
            f"hex_res {res} gives about {_about(lattice, width, height):,.0f} cells at "
            f"{width}x{height}, the limit is {MAX_CELLS:,}: use hex_res {finest} or less"
        )
    return lattice


def origin_fits(width: int, height: int, res: int, span: float, origin: Point) -> bool:
    """Whether `hex_grid` takes an origin with these, however small the cells."""
    if origin == NO_ORIGIN:
        return True
    pitch = Lattice.over_frame(width, height, res, span, 0.0).pitch
    near = math.hypot(*origin) <= pitch * (1.0 + 1e-9)
    return near and _reach(width, height, span, origin) <= MAX_SPAN


def _reach(width: int, height: int, span: float, origin: Point) -> float:
    """Side of the square around the face's centre that holds the frame, in plane units.

    With an origin as without one it may be MAX_SPAN.
    """
    x, y = origin
    return 2.0 * max(width / 2.0 + abs(x), height / 2.0 + abs(y)) * span / max(width, height)


def _check_origin(
    lattice: Lattice, width: int, height: int, span: float, origin: Point
) -> None:  # fmt: skip
    x, y = origin
    if not (math.isfinite(x) and math.isfinite(y)):
        raise UsageError(f"origin {x}, {y} is not a place in px")
    if math.hypot(x, y) > lattice.pitch * (1.0 + 1e-9):
        raise UsageError(
            f"origin {x:g}, {y:g} lies {math.hypot(x, y):.4g} px from the frame's centre; grids "
            f"repeat every cell, so at most {lattice.pitch:.4g} px (the distance of two cells) "
            "are taken"
        )
    reach = _reach(width, height, span, origin)
    if origin != NO_ORIGIN and reach > MAX_SPAN:
        raise UsageError(
            f"origin {x:g}, {y:g} moves a frame of span {span:g} to {reach:.3g} plane units, the "
            f"limit is {MAX_SPAN}; use a smaller span or an origin nearer to 0, 0"
        )


@lru_cache(maxsize=32)
def hex_grid(
    width: int, height: int, res: int, span: float = DEFAULT_SPAN, rotation: float = 0.0,
    origin: Point = NO_ORIGIN,
) -> HexGrid:  # fmt: skip
    """The H3 cells of a frame.

    width, height   the frame in px, 1..16384
    res             H3 resolution 0..15; an edge must come out at 2 px or more
    span            plane units that the longer side covers, at most 0.33
    rotation        degrees by which the frame is turned in the plane
    origin          px by which the lattice's centre lies right of and below the frame's centre,
                    at most the distance of two cells

    Raises UsageError with the value, the limit and a value that works.
    """
    lattice = check_hex_grid(width, height, res, span, rotation, origin)
    found = []
    for q, r in lattice.cells_near(width, height):
        pixels = lattice.pixel_count(q, r, width, height)
        if pixels:
            x, y = lattice.centre(q, r)
            found.append((q, r, x, y, pixels))
    # Row by row as the eye reads them; the order is part of a plan, so it must not change.
    found.sort(key=lambda f: (-f[1], f[0]))
    ids = [
        h3.latlng_to_cell(*unproject(x, y, width, height, span, rotation, origin), res)
        for _, _, x, y, _ in found
    ]
    cells = tuple(
        Cell(i, cell_id, q, r, x, y, pixels)
        for i, (cell_id, (q, r, x, y, pixels)) in enumerate(zip(ids, found))
    )
    return HexGrid(width, height, res, span, rotation, lattice, cells, origin)


def finest_res(width: int, height: int, span: float, rotation: float = 0.0) -> int:
    """The finest resolution with edges of MIN_EDGE px or more, and MAX_CELLS cells at most."""
    lattices = [Lattice.over_frame(width, height, r, span, rotation) for r in range(16)]
    fits = [
        r for r, lattice in enumerate(lattices)
        if lattice.edge >= MIN_EDGE and _about(lattice, width, height) <= MAX_CELLS
    ]  # fmt: skip
    return max(fits, default=0)


def _about(lattice: Lattice, width: int, height: int) -> float:
    """About how many cells a frame has."""
    return width * height / (lattice.pitch**2 * math.sqrt(3.0) / 2.0)


def unproject(
    x: float, y: float, width: int, height: int, span: float = DEFAULT_SPAN,
    rotation: float = 0.0, origin: Point = NO_ORIGIN,
) -> Point:  # fmt: skip
    """Latitude and longitude in degrees of the point (x, y) px of a frame."""
    return h3.plane_to_latlng(FACE, *_plane(x, y, width, height, span, rotation, origin))


def _plane(
    x: float, y: float, width: int, height: int, span: float, rotation: float, origin: Point
) -> Point:  # fmt: skip
    """Where the point (x, y) px of a frame lies in the face's plane."""
    scale = span / max(width, height)
    du = (x - (width / 2.0 + origin[0])) * scale
    dv = -(y - (height / 2.0 + origin[1])) * scale
    cos, sin = math.cos(math.radians(rotation)), math.sin(math.radians(rotation))
    return du * cos - dv * sin, du * sin + dv * cos
