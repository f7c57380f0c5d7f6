"""H3 cells inside one icosahedron face: an exact hexagonal lattice in the gnomonic plane.

In the plane of a face, H3 cells of a resolution are the Voronoi hexagons of a
lattice that has a point on the face centre. The spacing is `2 - golden ratio`
at resolution 0 and shrinks by sqrt(7) a level. Even resolutions have a
neighbour along the plane's first axis (pointy-top hexagons), odd ones are the
same lattice turned by asin(sqrt(3/28)) = 19.107 degrees.

Lattice points are named by axial integers (q, r). Image coordinates: x right,
y down, pixel centres at half-integers, lengths in pixels.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

SPACING_RES0 = (3.0 - math.sqrt(5.0)) / 2.0
"""Distance of neighbouring cell centres at resolution 0, in plane units."""

CLASS3_TURN = math.asin(math.sqrt(3.0 / 28.0))
"""Turn of the odd resolutions, in radians, counter-clockwise in the plane."""

NEIGHBOUR_STEPS = ((1, 0), (0, 1), (-1, 1), (-1, 0), (0, -1), (1, -1))
"""The six neighbours of a lattice point as (dq, dr), counter-clockwise in the plane."""


def spacing(res: int) -> float:
    """Distance of neighbouring cell centres at resolution `res`, in plane units."""
    return SPACING_RES0 / math.sqrt(7.0) ** res


def hex_distance(dq: int, dr: int) -> int:
    """Number of steps between two lattice points that differ by (dq, dr)."""
    return (abs(dq) + abs(dr) + abs(dq + dr)) // 2


@dataclass(frozen=True)
class Lattice:
    """The cells' lattice as it lies over a frame.

    x0, y0   the lattice point (0, 0) in px: the frame's centre, or what the grid's origin says
    pitch    distance of neighbouring centres in px
    theta    direction of the neighbour (1, 0) in radians, from +x towards +y (down)
    """

    x0: float
    y0: float
    pitch: float
    theta: float

    @classmethod
    def over_frame(
        cls, width: int, height: int, res: int, span: float, rotation: float,
        origin: tuple[float, float] = (0.0, 0.0),
    ) -> Lattice:  # fmt: skip
        """The lattice of resolution `res` over a frame whose longer side is `span` plane units.

        rotation   degrees by which the frame is turned in the plane, counter-clockwise
        origin     px by which the lattice's centre lies right of and below the frame's centre
        """
        px_per_unit = max(width, height) / span
        turn = CLASS3_TURN if res % 2 else 0.0
        return cls(
            width / 2.0 + origin[0], height / 2.0 + origin[1], spacing(res) * px_per_unit,
            math.radians(rotation) - turn,
        )  # fmt: skip

    @property
    def inradius(self) -> float:
        """Distance from a cell's centre to its edges, in px."""
        return self.pitch / 2.0

    @property
    def edge(self) -> float:
        """Length of a cell's edge (= its circumradius), in px."""
        return self.pitch / math.sqrt(3.0)

    def centre(self, q: int, r: int) -> tuple[float, float]:
        """Centre (x, y) of the cell (q, r), in px."""
        along = self.pitch * (q + r / 2.0)
        across = -self.pitch * (r * math.sqrt(3.0) / 2.0)
        cos, sin = math.cos(self.theta), math.sin(self.theta)
        return self.x0 + along * cos - across * sin, self.y0 + along * sin + across * cos

    def locate(self, x: float, y: float) -> tuple[int, int]:
        """The cell (q, r) that holds the point (x, y)."""
        dx, dy = x - self.x0, y - self.y0
        cos, sin = math.cos(self.theta), math.sin(self.theta)
        along, across = dx * cos + dy * sin, dy * cos - dx * sin
        r = -across / (self.pitch * math.sqrt(3.0) / 2.0)
        q = along / self.pitch - r / 2.0
        return _round_axial(q, r)

    def corners(self, q: int, r: int) -> list[tuple[float, float]]:
        """The six corners (x, y) of the cell (q, r), in px."""
        cx, cy = self.centre(q, r)
        turns = [self.theta + math.pi / 6.0 + k * math.pi / 3.0 for k in range(6)]
        return [(cx + self.edge * math.cos(t), cy + self.edge * math.sin(t)) for t in turns]

    def cells_near(self, width: int, height: int) -> Iterator[tuple[int, int]]:
        """Every (q, r) whose hexagon can reach into the frame; some may lie just outside."""
        far_x, far_y = max(self.x0, width - self.x0), max(self.y0, height - self.y0)
        reach = math.hypot(far_x, far_y) + self.edge
        row_pitch = self.pitch * math.sqrt(3.0) / 2.0
        rows = int(reach / row_pitch) + 1
        for r in range(-rows, rows + 1):
            columns = int(reach / self.pitch) + 1
            shift = -round(r / 2.0)
            for q in range(shift - columns - 1, shift + columns + 2):
                x, y = self.centre(q, r)
                if -self.edge <= x <= width + self.edge and -self.edge <= y <= height + self.edge:
                    yield q, r

    def pixel_count(self, q: int, r: int, width: int, height: int) -> int:
        """Pixels of the frame inside the cell: the sum of `pixel_rows`, in the same arithmetic.

        Making a grid is mostly this; every row costs three divisions of two numbers and no more.
        """
        cx, cy = self.centre(q, r)
        inradius, edge, right, total = self.inradius, self.edge, float(width), 0
        strips, flat = [], []
        for k in range(3):
            turn = self.theta + k * math.pi / 3.0
            nx, ny = math.cos(turn), math.sin(turn)
            # the pair of edges cuts a row at (+-inradius - ny dy) / nx; which is left: nx's sign
            if abs(nx) < 1e-12:
                flat.append(ny)
            else:
                strips.append((nx, ny, inradius) if nx > 0.0 else (nx, ny, -inradius))
        top, bottom = max(0, math.floor(cy - edge)), min(height - 1, math.ceil(cy + edge))
        for y in range(top, bottom + 1):
            dy = y + 0.5 - cy
            low, high = 0.0, right
            for nx, ny, reach in strips:
                across = ny * dy
                left = cx + (-reach - across) / nx
                if left > low:
                    low = left
                left = cx + (reach - across) / nx
                if left < high:
                    high = left
            if high - low < 0.0 or (flat and abs(flat[0] * dy) >= inradius):
                continue
            first, last = math.ceil(low - 0.5), math.floor(high - 0.5)
            if first <= last:
                total += last - first + 1
        return total

    def pixel_rows(self, q: int, r: int, width: int, height: int) -> Iterator[tuple[int, int, int]]:
        """Pixels of the frame inside the cell, as (y, first x, last x) a row."""
        cx, cy = self.centre(q, r)
        normals = [
            (math.cos(self.theta + k * math.pi / 3.0), math.sin(self.theta + k * math.pi / 3.0))
            for k in range(3)
        ]
        top = max(0, math.floor(cy - self.edge))
        bottom = min(height - 1, math.ceil(cy + self.edge))
        for y in range(top, bottom + 1):
            low, high = 0.0, float(width)
            dy = y + 0.5 - cy
            for nx, ny in normals:
                if abs(nx) < 1e-12:
                    if abs(ny * dy) >= self.inradius:
                        low, high = 1.0, 0.0
                    continue
                ends = ((self.inradius - ny * dy) / nx, (-self.inradius - ny * dy) / nx)
                low, high = max(low, cx + min(ends)), min(high, cx + max(ends))
            first, last = math.ceil(low - 0.5), math.floor(high - 0.5)
            first, last = max(first, 0), min(last, width - 1)
            if first <= last:
                yield y, first, last


def _round_axial(q: float, r: float) -> tuple[int, int]:
    """Nearest lattice point: round the three cube coordinates, mend the worst one."""
    s = -q - r
    rq, rr, rs = round(q), round(r), round(s)
    dq, dr, ds = abs(rq - q), abs(rr - r), abs(rs - s)
    if dq > dr and dq > ds:
        rq = -rr - rs
    elif dr > ds:
        rr = -rq - rs
    return rq, rr
