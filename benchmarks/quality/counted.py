"""Tokens that tiles run at one guaranteed context, counted on plans.

Every owned token must see all tokens within `radius` px of it (or the frame's edge), and no tile
may have more than a share of the frame's tokens. Ways of tiling:

hexagons   token tiles of hexagonal cells, as h3video plans them
rounded    token tiles of rectangular cells that keep only the tokens within the radius of the
           cell: rectangles with round corners, the best that they can do
rectangles token tiles of rectangular cells that grow as rectangles: h3video's shape="rect"
shifted    hexagons whose grid does not start in the frame's middle: what a plan could run if the
           grid's origin were free, which h3video does not offer today (few, large cells only)
crops      rectangles cut from the frame, all of one size: a tiler without token tiles

All tiles of a plan run as many tokens as the largest needs. What a plan would run if every tile
ran only what it needs itself is counted, too (`needed`).
"""

from __future__ import annotations

import contextlib
import itertools
import math
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cache
from typing import Any

import numpy as np

from h3video.blend.weights import Grid
from h3video.grid import hex_grid
from h3video.grid.hexgrid import MAX_SPAN, Cell, HexGrid
from h3video.grid.rectgrid import RectGrid
from h3video.models.ltx import LTX2
from h3video.models.minimax_h3 import MINIMAX_H3
from h3video.models.wan import WAN
from h3video.tiling.crops import crop_boxes
from h3video.tiling.tokens import _tiles, fade_tokens

from .tilings import ALIGNED, span_of

CASES = (
    (WAN, 832, 480), (WAN, 1280, 704), (MINIMAX_H3, 1344, 768), (MINIMAX_H3, 1920, 1088),
    (LTX2, 3840, 2176), (WAN, 1920, 1088),
)  # fmt: skip
"""Families and canvases."""

RADII = (64.0, 128.0)
SHARES = (1 / 4, 1 / 8, 1 / 16)
"""Most tokens that a tile may have, of the frame's: the memory that all ways are given."""

TURNS = (0.0, 10.0, 19.107)
"""Hexagons' rotations that are tried, degrees from upright; the rest mirror these."""

STEP = 1.15
"""Cell sizes that are tried are this far apart."""

MOST_CELLS = 80
LONGEST = 2.0
"""Sides of a rectangle against each other, at most."""

WAYS = ("hexagons", "rounded", "rectangles", "crops", "shifted")

ORIGINS = ((0.5, 0.0), (0.25, 0.433), (0.5, 0.289), (0.0, 0.433))
"""Origins that are tried, in cells' distances: edges' middles, a corner, and half a row down."""

MOST_SHIFTED = 30
"""Cells that a shifted grid may have."""


class RoundedGrid(RectGrid):
    """Rectangles whose tiles see what is within a radius, not what is within a larger rectangle."""

    def reach_distance(self, index: int, x: Any, y: Any) -> Any:
        """The true distance, as for hexagons."""
        return self.signed_distance(index, x, y)


@dataclass(frozen=True)
class Count:
    """The plan that runs the fewest tokens of one way of tiling.

    tokens       of all tiles, a latent frame;  price: against the frame's
    share        a tile's tokens against the frame's
    own_sizes    every tile runs what it needs itself
    grid         how to get it: the plan's settings, or columns x rows
    """

    family: str
    width: int
    height: int
    radius: float
    limit: float
    way: str
    own_sizes: bool
    tiles: int
    tokens: int
    price: float
    share: float
    grid: str

    def to_json(self) -> dict[str, Any]:
        """The count as plain data."""
        return asdict(self)


def rectangles(width: int, height: int, columns: int, rows: int, kind: type = RectGrid) -> RectGrid:
    """A frame as columns x rows rectangles."""
    w, h = width / columns, height / rows
    cells = tuple(
        Cell(r * columns + q, r * columns + q, q, r, (q + 0.5) * w, (r + 0.5) * h, round(w * h))
        for r in range(rows) for q in range(columns)
    )  # fmt: skip
    return kind(width, height, 0, columns, rows, cells)


def sides(width: int, height: int, token_px: int) -> list[float]:
    """Cell sizes that are tried, from six tokens to the frame's shorter side."""
    largest = float(min(width, height))
    smallest = max(6.0 * token_px, math.sqrt(width * height / MOST_CELLS))
    count = max(2, round(math.log(largest / smallest) / math.log(STEP)) + 1)
    return [float(s) for s in np.geomspace(smallest, largest, count)]


Tried = tuple[int, int, int, str]
"""Tiles, tokens of the largest, tokens that all need together, how to get it."""


def token_tiles(grid: Grid, token_px: int, radius: float, join: float | None,
                how: str = "") -> Tried:  # fmt: skip
    """A plan with the family's narrowest fade and the radius as halo."""
    columns, rows = grid.width // token_px, grid.height // token_px
    tiles, _, halo = _tiles(
        grid, columns, rows, token_px, float(fade_tokens(token_px) * token_px), radius,
        grid.shape, join,
    )  # fmt: skip
    x, y = np.meshgrid((np.arange(columns) + 0.5) * token_px, (np.arange(rows) + 0.5) * token_px)
    sees = [grid.reach_distance(c.index, x, y) > -(halo + 1e-6) for c in grid.cells]
    needed = sum(int(np.logical_or.reduce([sees[i] for i in t.cells]).sum()) for t in tiles)
    return len(tiles), len(tiles[0].tokens), needed, how


def crops(grid: RectGrid, token_px: int, radius: float, how: str = "") -> Tried:
    """Crops, all as wide as the widest and as tall as the tallest needs to be."""

    def lengths(size: int, cells: int) -> list[int]:
        length, at = size / cells, (np.arange(size // token_px) + 0.5) * token_px
        return [
            int(((at >= i * length - radius) & (at <= (i + 1) * length + radius)).sum())
            for i in range(cells)
        ]

    wide, tall = lengths(grid.width, grid.columns), lengths(grid.height, grid.rows)
    return len(grid.cells), max(wide) * max(tall), sum(wide) * sum(tall), how


def joined_crops(grid: RectGrid, token_px: int, radius: float, join: float | None,
                 how: str = "") -> Tried:  # fmt: skip
    """Crops whose cells are joined where that saves work, as h3video plans them."""
    columns, rows = grid.width // token_px, grid.height // token_px
    boxes = crop_boxes(grid, token_px, columns, rows, radius, join)
    size = boxes.columns * boxes.rows
    return len(boxes.places), size, len(boxes.places) * size, how


@cache
def tried(family: Any, width: int, height: int, radius: float, way: str) -> tuple[Tried, ...]:
    """Everything that is tried of one way."""
    px = family.token_px
    if way in ("hexagons", "shifted"):
        return tuple(_hexagons(width, height, px, radius, ORIGINS if way == "shifted" else None))
    kind, out = (RoundedGrid if way == "rounded" else RectGrid), []
    for columns in range(1, width // (6 * px) + 1):
        for rows in range(1, height // (6 * px) + 1):
            ratio = (width / columns) / (height / rows)
            if 1 < columns * rows <= MOST_CELLS and 1 / LONGEST <= ratio <= LONGEST:
                grid, how = rectangles(width, height, columns, rows, kind), f"{columns}x{rows}"
                if way == "crops":
                    out.append(crops(grid, px, radius, how))
                for join in (None, *SHARES):
                    joined = how + (f", joined up to {join:.0%}" if join else "")
                    if way == "crops":
                        out.append(joined_crops(grid, px, radius, join, joined))
                    else:
                        out.append(token_tiles(grid, px, radius, join, joined))
    return tuple(out)


def _hexagons(width: int, height: int, token_px: int, radius: float,
              origins: Sequence[tuple[float, float]] | None) -> Iterator[Tried]:  # fmt: skip
    for side in sides(width, height, token_px):
        span = span_of(side, max(width, height), ALIGNED)
        if span > MAX_SPAN or (origins and width * height / side**2 > MOST_SHIFTED):
            continue
        for turn in TURNS if origins is None else (*TURNS, 30.0):
            centred = hex_grid(width, height, ALIGNED, span, turn)
            for origin in origins or [None]:
                grid = centred if origin is None else shifted(centred, *origin)
                for join in (None, *SHARES):
                    how = f"hex_res {ALIGNED}, span {span:.4f}, rotation {turn:g}"
                    how += f", origin {origin}" if origin else ""
                    how += f", joined up to {join:.0%}" if join else ""
                    yield token_tiles(grid, token_px, radius, join, how)


def shifted(grid: HexGrid, right: float, down: float) -> HexGrid:
    """A grid moved by parts of the distance of two cells; its ids are only numbers."""
    lattice = grid.lattice
    pitch = lattice.pitch
    moved = replace(lattice, x0=lattice.x0 + right * pitch, y0=lattice.y0 + down * pitch)
    cells: list[Cell] = []
    for q, r in moved.cells_near(grid.width, grid.height):
        rows = moved.pixel_rows(q, r, grid.width, grid.height)
        if pixels := sum(last - first + 1 for _, first, last in rows):
            cells.append(Cell(len(cells), len(cells), q, r, *moved.centre(q, r), pixels))
    return replace(grid, lattice=moved, cells=tuple(cells))


def best(family: Any, width: int, height: int, radius: float, limit: float, way: str,
         own_sizes: bool = False) -> Count:  # fmt: skip
    """The plan of fewest tokens whose tiles have at most `limit` of the frame's tokens.

    own_sizes   count what the tiles need instead of what they run
    """
    px = family.token_px
    frame = (width // px) * (height // px)
    found = [
        (needed if own_sizes else tiles * tokens, tiles, tokens, how)
        for tiles, tokens, needed, how in tried(family, width, height, radius, way)
        if tokens <= limit * frame
    ]
    if not found:
        raise ValueError(f"{way}: no tile of {width}x{height} at {radius:g} px within {limit:.0%}")
    total, tiles, tokens, how = min(found)
    return Count(
        family.name, width, height, radius, limit, way, own_sizes, tiles, total, total / frame,
        tokens / frame, how,
    )  # fmt: skip


def run(say: Any, cases: Sequence[Any] = CASES, radii: Sequence[float] = RADII,
        limits: Sequence[float] = SHARES,
        ways: Sequence[str] = WAYS) -> list[Count]:  # fmt: skip
    """The best plan of every way for every case; a way that nothing fits is left out."""
    out = []
    for family, width, height in cases:
        for radius in radii:
            for limit in limits:
                for way, own in itertools.product(ways, (False, True)):
                    with contextlib.suppress(ValueError):
                        out.append(best(family, width, height, radius, limit, way, own))
        say(f"counted {family.name} {width}x{height}")
    return out


# ---- one tile, away from the frame's edge ----

FINE_NATIVE = 5
"""A resolution at the native angle whose span is legal for many small cells."""

CELL_SIDES = (192.0, 256.0, 384.0)
CONTEXTS = (0.5, 1.0, 2.0)
"""Context radius against the hexagon's inradius."""


PHASES = 4
"""Places of the cells on the token raster that are tried each way: cells of 16 tokens that start
on one would be counted with luck."""


@dataclass(frozen=True)
class Interior:
    """Tokens of a tile whose cell touches no edge, cells of equal area: means over places."""

    side: float
    context: float
    radius: float
    hexagons: float
    rounded: float
    rectangles: float


def interior(side: float, context: float, token_px: int = 16) -> Interior:
    """Count the tokens of an inner tile of each way; hexagons at the native angle."""
    canvas = math.ceil(7 * side / token_px) * token_px
    hexes = hex_grid(canvas, canvas, FINE_NATIVE, span_of(side, canvas, FINE_NATIVE))
    radius = context * hexes.inradius
    half, middle = side / 2, canvas / 2
    centre = hexes.cells[hexes.cell_at(middle, middle)]
    counts: list[list[int]] = [[], [], []]
    for i, j in itertools.product(range(PHASES), repeat=2):
        at = (np.arange(canvas // token_px) + 0.5) * token_px
        x, y = np.meshgrid(at + i * token_px / PHASES, at + j * token_px / PHASES)
        dx, dy = np.abs(x - middle) - half, np.abs(y - middle) - half
        far = (
            -hexes.reach_distance(centre.index, x, y),
            np.hypot(np.maximum(dx, 0), np.maximum(dy, 0)),
            np.maximum(dx, dy),
        )
        for count, distance in zip(counts, far):
            count.append(int((distance <= radius).sum()))
    return Interior(side, context, radius, *(float(np.mean(c)) for c in counts))


def run_interior() -> list[Interior]:
    """Inner tiles over cell sizes and contexts."""
    return [interior(side, context) for side in CELL_SIDES for context in CONTEXTS]
