"""Which grid a frame is tiled with, where nothing names one: cell size, rotation, origin.

Hexagons may be of any size and lie anywhere, so a plan is searched for. A cell's tokens are an
interval in every row of tokens, which makes counting cheap: all sizes, rotations and origins are
ranked by an estimate, the best of each size are counted with their cells joined, and the best of
those are what the caller plans in earnest. Rectangles are searched the same way over columns x
rows. Every number that decides is rounded, so each machine finds the same grid.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from ..blend.weights import Grid
from ..grid import DEFAULT_SPAN, MAX_SPAN, Point, hex_grid, origin_fits, rectangles
from ..grid.hexgrid import MIN_EDGE
from ..grid.lattice import NEIGHBOUR_STEPS, Lattice, spacing
from .cover import Cost, Cover, as_bits, disc, joined, together

TURNS = (10.0, 15.0, 20.0)
"""Degrees from upright that are tried. From 10 to 20 a seam leaves the fewest lines along columns
and rows (docs/quality.md); 40 to 50 are the same mirrored."""

PLACES = 4
"""Origins that are tried along each side of a lattice cell; half of them are point reflections."""

STEP = 1.08
"""Cell sizes that are tried are this far apart."""

LARGEST, SMALLEST = 1.35, 0.55
"""Sizes that are tried, against the one whose inner cell just fits: cells at the frame's edge run
less, and small cells may be joined."""

RASTER = 48
"""Rows of tokens that an estimate looks at; finer rasters are coarsened."""

KEPT = 2
"""Candidates of each size that are counted with their cells joined."""

STARTS, REFINED = 2, (1 / 8, 1 / 16)
"""Best candidates from which to walk downhill, and the steps, in cells."""

FINAL = 3
"""Grids that are handed back."""

KEPT_RECTANGLES = 30
"""Rectangles that are counted with some of them joined."""

FAR = 10_000
"""Beyond every frame, in tokens, and small enough for int16."""

MOST_CELLS = 160
LONGEST = 2.5
"""Cells of a grid that is tried; longer against shorter side of a rectangle."""


@dataclass(frozen=True)
class Frame:
    """columns x rows tokens of `token_px` px; overlap and halo in px."""

    columns: int
    rows: int
    token_px: int
    overlap: float
    halo: float

    @property
    def width(self) -> int:
        """Px."""
        return self.columns * self.token_px

    @property
    def height(self) -> int:
        """Px."""
        return self.rows * self.token_px


@dataclass(frozen=True)
class Goal:
    """What a plan should be.

    limit       most tokens of a tile, of one latent frame
    smallest    cells that run less than this need not be tried
    cost        what a plan costs whose tiles need so many tokens each
    ways        orders of joining cells that are tried, see h3video.tiling.cover.joined
    """

    limit: int
    smallest: int
    cost: Cost
    ways: tuple[bool, ...] = (False, True)


@dataclass(frozen=True)
class Fixed:
    """What is not to be searched for; None is free."""

    span: float | None = None
    rotation: float | None = None
    origin: Point | None = None


def best_grids(frame: Frame, shape: str, goal: Goal, fixed: Fixed) -> list[Grid]:
    """The grids whose plans cost least by count, best first; none where no tile fits."""
    counted = _rectangles(frame, goal) if shape == "rect" else _hexagons(frame, goal, fixed)
    ranked = sorted(counted, key=lambda found: (found[0], found[1]))
    return [make() for _, _, make in ranked[:FINAL]]


# ---- hexagons ----


Key = tuple[int, float, float, Point]
"""Resolution, span, rotation and origin of a grid."""


def _hexagons(frame: Frame, goal: Goal, fixed: Fixed) -> Iterator[tuple[Any, Any, Any]]:
    costs: dict[Key, Any] = {}
    for res, span in _sizes(frame, goal, fixed):
        best = sorted(
            found
            for rotation in _turns(res, fixed)
            for found in _estimates(frame, goal, res, span, rotation, fixed)
        )
        for _, rotation, origin in best[:KEPT]:
            costs[res, span, rotation, origin] = _cost(
                frame, goal, (res, span, rotation, origin)
            )
    _refine(frame, goal, fixed, costs)
    for key, cost in costs.items():
        if cost is not None:
            yield cost, key, lambda key=key: hex_grid(frame.width, frame.height, *key)


def _cost(frame: Frame, goal: Goal, key: Key) -> Any:
    """What the plan of a grid costs by count; None where it cannot be."""
    if not _legal(frame, key[0], key[1]) or not origin_fits(
        frame.width, frame.height, key[0], key[1], key[3]
    ):
        return None
    lattice = Lattice.over_frame(frame.width, frame.height, *key)
    return _count(*_hex_cover(frame, lattice), goal)


def _refine(frame: Frame, goal: Goal, fixed: Fixed, costs: dict[Key, Any]) -> None:
    """Walk downhill from the best grids, in ever smaller steps; adds what it meets to `costs`."""
    known = sorted((cost, key) for key, cost in costs.items() if cost is not None)
    for best, at in known[:STARTS]:
        for part in REFINED:
            for key in _around(frame, at, part, fixed):
                if key not in costs:
                    costs[key] = _cost(frame, goal, key)
                cost = costs[key]
                if cost is not None and cost < best:
                    best, at = cost, key


def _around(frame: Frame, key: Key, part: float, fixed: Fixed) -> Iterator[Key]:
    """Grids near one: larger and smaller cells, and moved by a part of a cell six ways."""
    res, span, rotation, (x, y) = key
    if fixed.span is None:
        for factor in (1.0 + part / 3.0, 1.0 - part / 3.0):
            # The origin keeps its place in the cell.
            at = round(x / factor, 1), round(y / factor, 1)
            yield res, float(f"{span * factor:.4g}"), rotation, at
    if fixed.origin is None:
        lattice = Lattice.over_frame(frame.width, frame.height, res, span, rotation)
        for dq, dr in NEIGHBOUR_STEPS:
            dx, dy = lattice.centre(dq, dr)
            moved = x + part * (dx - lattice.x0), y + part * (dy - lattice.y0)
            yield res, span, rotation, _nearest(lattice, *moved)


def _sizes(frame: Frame, goal: Goal, fixed: Fixed) -> Iterator[tuple[int, float]]:
    """Resolution and span of every cell size that is tried."""
    longer = max(frame.width, frame.height)
    if fixed.span is not None:
        yield from ((res, fixed.span) for res in range(16) if _legal(frame, res, fixed.span))
        return
    fit = 2.0 * _inradius(goal.limit, frame)
    pitch = min(LARGEST * fit, 2.0 * longer)
    least = max(SMALLEST * 2.0 * _inradius(goal.smallest, frame), 2.0 * frame.token_px)
    while pitch >= least:
        # Even resolutions have one orientation; the one whose span is nearest to the usual.
        res = min(
            range(0, 16, 2),
            key=lambda r: abs(math.log(spacing(r) * longer / pitch / DEFAULT_SPAN)),
        )
        span = float(f"{spacing(res) * longer / pitch:.4g}")
        if _legal(frame, res, span):
            yield res, span
        pitch /= STEP


def _legal(frame: Frame, res: int, span: float) -> bool:
    lattice = Lattice.over_frame(frame.width, frame.height, res, span, 0.0)
    cells = frame.width * frame.height / (lattice.pitch**2 * math.sqrt(0.75))
    return span <= MAX_SPAN and cells <= MOST_CELLS and lattice.edge >= MIN_EDGE


def _inradius(tokens: int, frame: Frame) -> float:
    """Px from centre to edge of a hexagon that runs so many tokens with its halo."""
    area, h = tokens * frame.token_px**2, frame.halo
    a, b, c = 2.0 * math.sqrt(3.0), 4.0 * math.sqrt(3.0) * h, math.pi * h * h - area
    return max((math.sqrt(max(b * b - 4.0 * a * c, 0.0)) - b) / (2.0 * a), frame.token_px / 2.0)


def _turns(res: int, fixed: Fixed) -> Sequence[float]:
    if fixed.rotation is not None:
        return (fixed.rotation,)
    return TURNS if res % 2 == 0 else tuple(round(t + 19.107, 3) for t in TURNS)


def _origins(frame: Frame, res: int, span: float, rotation: float, fixed: Fixed) -> list[Point]:
    if fixed.origin is not None:
        return [fixed.origin]
    lattice = Lattice.over_frame(frame.width, frame.height, res, span, rotation)
    found = []
    for i, j in itertools.product(range(PLACES), repeat=2):
        if (i, j) > (-i % PLACES, -j % PLACES):
            continue  # the same grid, turned by half a turn
        x, y = _along(lattice, i / PLACES, j / PLACES)
        found.append(_nearest(lattice, x - lattice.x0, y - lattice.y0))
    return [o for o in found if origin_fits(frame.width, frame.height, res, span, o)]


def _nearest(lattice: Lattice, x: float, y: float) -> Point:
    """An origin less whole cells, in tenths of a px."""
    near_x, near_y = lattice.centre(*lattice.locate(lattice.x0 + x, lattice.y0 + y))
    return round(lattice.x0 + x - near_x, 1), round(lattice.y0 + y - near_y, 1)


def _along(lattice: Lattice, u: float, v: float) -> Point:
    """The point u and v steps along the lattice's two directions."""
    (ax, ay), (bx, by) = lattice.centre(1, 0), lattice.centre(0, 1)
    x0, y0 = lattice.x0, lattice.y0
    return x0 + u * (ax - x0) + v * (bx - x0), y0 + u * (ay - y0) + v * (by - y0)


def _estimates(
    frame: Frame, goal: Goal, res: int, span: float, rotation: float, fixed: Fixed
) -> list[tuple[int, float, Point]]:
    """(tokens that are run about, rotation, origin) for every origin, on a coarse raster.

    Every cell is taken to be joined with the neighbour with which that saves most, if at all.
    """
    import numpy as np

    coarse = max(1, -(-frame.rows // RASTER))
    px = float(frame.token_px * coarse)
    columns, rows = -(-frame.columns // coarse), -(-frame.rows // coarse)
    origins = _origins(frame, res, span, rotation, fixed)
    if not origins:
        return []
    lattice = Lattice.over_frame(frame.width, frame.height, res, span, rotation)
    axial, pairs = _window(lattice, frame)
    centres = np.array([lattice.centre(q, r) for q, r in axial])
    cx = centres[:, 0] + np.array([o[0] for o in origins])[:, None]
    cy = centres[:, 1] + np.array([o[1] for o in origins])[:, None]
    first, last, _ = _rows(lattice, cx, cy, px, columns, rows, frame)
    alone = _lengths(first, last).sum(-1)
    limit = goal.limit / coarse**2
    a, b = pairs
    both = _lengths(
        np.minimum(first[:, a], first[:, b]), np.maximum(last[:, a], last[:, b])
    ).sum(-1)  # fmt: skip
    fine = (alone[:, a] > 0) & (alone[:, b] > 0) & (both <= limit)
    won = np.where(fine, alone[:, a] + alone[:, b] - both, 0)
    saving = np.zeros_like(alone)
    for part in (a, b):
        np.maximum.at(saving, (slice(None), part), won)  # type: ignore[arg-type]
    total = alone.sum(-1) - np.maximum(saving, 0).sum(-1) / 2.0
    fits = alone.max(-1) <= limit * 1.02
    return [
        (round(float(t) * coarse**2), rotation, o)
        for t, o, fit in zip(total, origins, fits) if fit
    ]  # fmt: skip


def _window(lattice: Lattice, frame: Frame) -> tuple[list[tuple[int, int]], tuple[Any, Any]]:
    """All (q, r) that lie in the frame with some origin, and the places of those that touch."""
    import numpy as np

    reach = lattice.edge + lattice.pitch / math.sqrt(3.0)  # origins are reduced to a cell
    axial = []
    wide = int((math.hypot(frame.width, frame.height) / 2.0 + reach) / lattice.pitch * 1.2) + 1
    for q, r in itertools.product(range(-wide, wide + 1), repeat=2):
        x, y = lattice.centre(q, r)
        if -reach <= x <= frame.width + reach and -reach <= y <= frame.height + reach:
            axial.append((q, r))
    place = {at: i for i, at in enumerate(axial)}
    pairs = [
        (i, place[q + dq, r + dr])
        for i, (q, r) in enumerate(axial)
        for dq, dr in NEIGHBOUR_STEPS[:3] if (q + dq, r + dr) in place
    ]  # fmt: skip
    return axial, (np.array([a for a, _ in pairs], int), np.array([b for _, b in pairs], int))


def _rows(
    lattice: Lattice, cx: Any, cy: Any, px: float, columns: int, rows: int, frame: Frame
) -> tuple[Any, Any, Any]:
    """First and last token that cells run in every row, and whether a cell owns a token.

    cx, cy   centres in px, any shape; what is returned has a last axis of rows. Cells that own
             no token run nothing: first is `columns` there and last is -1
    """
    import numpy as np

    y = (np.arange(rows) + 0.5) * px - cy[..., None]
    own = _between(lattice, 0.0, y, cx[..., None], px, columns)
    owns = (own[0] <= own[1]).any(-1)
    first, last = grown(*own, frame.halo / px, columns)
    if frame.overlap / 2.0 + px > frame.halo:  # else what it weighs is seen anyway
        reach = _between(lattice, frame.overlap / 2.0, y, cx[..., None], px, columns)
        first, last = np.minimum(first, reach[0]), np.maximum(last, reach[1])
    first[~owns], last[~owns] = columns, -1
    return first, last, owns


def _between(
    lattice: Lattice, margin: float, y: Any, cx: Any, px: float, columns: int
) -> tuple[Any, Any]:
    """First and last token of rows y px below the centres, in hexagons grown by `margin` px."""
    import numpy as np

    ys, xs = _outline(lattice, margin)
    ys, xs, at = ys / px, xs / px, cx / px - 0.5
    right = np.interp(y / px, ys, xs, -FAR, -FAR)
    left = np.interp(y / -px, ys, xs, -FAR, -FAR)
    # A millionth less, so that no machine's last bit decides over a token on an edge.
    return _clipped(np.ceil(at - left + 1e-6), np.floor(at + right - 1e-6), columns)


def _clipped(first: Any, last: Any, columns: int) -> tuple[Any, Any]:
    """Intervals inside the frame as int16; empty ones are (FAR, -FAR)."""
    import numpy as np

    first, last = np.maximum(first, 0.0), np.minimum(last, columns - 1.0)
    none = first > last
    first[none], last[none] = FAR, -FAR
    return first.astype(np.int16), last.astype(np.int16)


def _outline(lattice: Lattice, margin: float) -> tuple[Any, Any]:
    """(y, x) of the right half of a hexagon around 0, 0 grown by a disc of `margin` px."""
    import numpy as np

    ys, xs = [], []
    for k in range(-6, 7):
        begin = lattice.theta + k * math.pi / 3.0
        low, high = max(begin, -math.pi / 2.0), min(begin + math.pi / 3.0, math.pi / 2.0)
        if low > high:
            continue
        corner = begin + math.pi / 6.0
        turn = np.linspace(low, high, 12 if margin > 0.0 else 1)
        xs.append(lattice.edge * math.cos(corner) + margin * np.cos(turn))
        ys.append(lattice.edge * math.sin(corner) + margin * np.sin(turn))
    return np.concatenate(ys), np.concatenate(xs)


def grown(first: Any, last: Any, radius: float, columns: int) -> tuple[Any, Any]:
    """Intervals grown by a disc of `radius` tokens, as the hull of each row."""
    import numpy as np

    rows = first.shape[-1]
    out_first, out_last = first.copy(), last.copy()
    for dy, reach in enumerate(disc(radius + 1e-6, rows)):
        low, high = first - np.int16(reach), last + np.int16(reach)
        down, up = slice(dy, None), slice(0, rows - dy)
        for to, of in ((down, up), (up, down)):
            np.minimum(out_first[..., to], low[..., of], out=out_first[..., to])
            np.maximum(out_last[..., to], high[..., of], out=out_last[..., to])
    np.maximum(out_first, 0, out=out_first)
    np.minimum(out_last, columns - 1, out=out_last)
    return out_first, out_last


def _lengths(first: Any, last: Any) -> Any:
    import numpy as np

    return np.maximum(last - first + 1, 0).astype(np.int32)


def _hex_cover(frame: Frame, lattice: Lattice) -> tuple[Any, Any, list[tuple[int, ...]]]:
    """Rows of every cell that owns a token, and the cells' neighbours."""
    import numpy as np

    axial = list(lattice.cells_near(frame.width, frame.height))
    centres = np.array([lattice.centre(q, r) for q, r in axial])
    first, last, owns = _rows(
        lattice, centres[:, 0], centres[:, 1], float(frame.token_px), frame.columns, frame.rows,
        frame,
    )  # fmt: skip
    kept = [at for at, own in zip(axial, owns) if own]
    place = {at: i for i, at in enumerate(kept)}
    near = [
        tuple(place[q + dq, r + dr] for dq, dr in NEIGHBOUR_STEPS if (q + dq, r + dr) in place)
        for q, r in kept
    ]
    return first[owns], last[owns], near


def _count(first: Any, last: Any, near: Sequence[tuple[int, ...]], goal: Goal) -> Any:
    """What the best joining of some cells costs; None where a cell alone is too large."""
    import numpy as np

    if _lengths(first, last).sum(-1).max() > goal.limit:
        return None
    x = np.arange(int(last.max()) + 1)
    sets = (x >= first[..., None]) & (x <= last[..., None])
    found = Cover(tuple(range(len(first))), tuple(near), tuple(as_bits(s) for s in sets))
    groups = joined(found, goal.limit, goal.cost, goal.ways)
    return goal.cost([together(found, group)[1] for group in groups])


# ---- rectangles ----


def _rectangles(frame: Frame, goal: Goal) -> Iterator[tuple[Any, Any, Any]]:
    found = []
    for columns in range(1, frame.columns // 2 + 1):
        for rows in range(1, frame.rows // 2 + 1):
            ratio = (frame.width / columns) / (frame.height / rows)
            if 1 < columns * rows <= MOST_CELLS and 1 / LONGEST <= ratio <= LONGEST:
                first, last = _rect_rows(frame, columns, rows)
                alone = _lengths(first, last).sum(-1)
                if alone.max() <= goal.limit:
                    found.append((goal.cost(alone.tolist()), columns, rows, first, last))
    found.sort(key=lambda f: f[:3])
    for _, columns, rows, first, last in found[:KEPT_RECTANGLES]:
        cost = _count(first, last, _rect_neighbours(columns, rows), goal)
        key = columns, rows
        yield cost, key, lambda key=key: rectangles(frame.width, frame.height, *key)


def _rect_rows(frame: Frame, columns: int, rows: int) -> tuple[Any, Any]:
    """First and last token that every rectangle runs in every row: int16 [cells, rows]."""
    import numpy as np

    left, right = _owned(frame.columns, columns, frame.overlap)
    top, bottom = _owned(frame.rows, rows, frame.overlap)
    y = np.arange(frame.rows)
    below = np.maximum(np.maximum(top[:, None] - y, y - bottom[:, None]), 0)
    half = np.full(frame.rows + 1, -FAR, np.int16)
    rounded = disc(frame.halo / frame.token_px + 1e-6, frame.rows)
    half[: len(rounded)] = rounded
    reach = half[below][:, None]
    first, last = left[:, None] - reach, right[:, None] + reach
    margin, px = frame.overlap / 2.0, frame.token_px
    if margin + px > frame.halo:
        wide, tall, at = frame.width / columns, frame.height / rows, (y + 0.5) * px
        edge = np.arange(rows)[:, None] * tall
        away = np.maximum(np.maximum(edge - at, at - edge - tall), 0.0)
        over = np.sqrt(np.maximum(margin**2 - away**2, 0.0))
        over = np.where(away < margin, over, -FAR * px)[:, None]
        edge = np.arange(columns)[:, None] * wide
        first = np.minimum(first, np.ceil((edge - over) / px - 0.5 + 1e-6))
        last = np.maximum(last, np.floor((edge + wide + over) / px - 0.5 - 1e-6))
    shape = columns * rows, frame.rows
    return _clipped(
        first.reshape(shape).astype(float), last.reshape(shape).astype(float), frame.columns
    )


def _owned(tokens: int, count: int, overlap: float) -> tuple[Any, Any]:
    """First and last token of `count` equal parts of a side; of one without a token, none.

    A token on an edge is the earlier part's where they fade, as RectGrid weighs it.
    """
    import numpy as np

    part = np.round((np.arange(tokens) + 0.5) * count / tokens, 6)
    part = (np.ceil(part) - 1.0 if overlap > 0.0 else np.floor(part)).clip(0, count - 1)
    first = np.searchsorted(part, np.arange(count), "left")
    last = np.searchsorted(part, np.arange(count), "right") - 1
    return first, last


def _rect_neighbours(columns: int, rows: int) -> list[tuple[int, ...]]:
    return [
        tuple(
            rr * columns + qq
            for qq, rr in ((q + 1, r), (q, r + 1), (q - 1, r), (q, r - 1))
            if 0 <= qq < columns and 0 <= rr < rows
        )
        for r in range(rows)
        for q in range(columns)
    ]
