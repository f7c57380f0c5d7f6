"""Tokens that tiles run at one guaranteed context, counted on plans.

Every owned token must see all tokens within `radius` px of it (or the frame's edge), and no tile
may have more than a share of the frame's tokens. Ways of tiling:

hexagons     token tiles of hexagonal cells, as h3video plans them
rectangles   token tiles of rectangular cells, as h3video plans them with shape="rect": they keep
             only the tokens within the radius, so that their corners are round
crops        rectangles cut from the frame: a tiler without token tiles

All ways may use as many different tile sizes; crops of several sizes are counted as if only their
number of tokens had to agree, in their favour.
"""

from __future__ import annotations

import contextlib
import itertools
import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from functools import cache
from typing import Any

import numpy as np

from h3video.errors import UsageError
from h3video.grid import hex_grid, rectangles
from h3video.models.ltx import LTX2
from h3video.models.minimax_h3 import MINIMAX_H3
from h3video.models.wan import WAN
from h3video.tiling.crops import crop_boxes
from h3video.tiling.sizes import TILE_SIZES, tokens_run
from h3video.tiling.tokens import TokenPlan, plan_latent_tiles

from .tilings import span_of

CASES = (
    (WAN, 832, 480), (WAN, 1280, 704), (MINIMAX_H3, 1344, 768), (MINIMAX_H3, 1920, 1088),
    (LTX2, 3840, 2176), (WAN, 1920, 1088),
)  # fmt: skip
"""Families and canvases."""

RADII = (64.0, 128.0)
SHARES = (1 / 4, 1 / 8, 1 / 16)
"""Most tokens that a tile may have, of the frame's: the memory that all ways are given."""

SIZES = (TILE_SIZES, 1)
"""Different token counts that a plan's tiles may have."""

MOST_CROPS = 80
LONGEST = 2.0
"""Crops of a frame; sides of one against each other, at most."""

SHAPES = {"hexagons": "hex", "rectangles": "rect"}
WAYS = (*SHAPES, "crops")


@dataclass(frozen=True)
class Count:
    """The plan that runs the fewest tokens of one way of tiling.

    sizes    different token counts of its tiles, at most
    tokens   of all tiles, a latent frame;  price: against the frame's
    share    the largest tile's tokens against the frame's
    grid     what was planned
    """

    family: str
    width: int
    height: int
    radius: float
    limit: float
    way: str
    sizes: int
    tiles: int
    tokens: int
    price: float
    share: float
    grid: str

    def to_json(self) -> dict[str, Any]:
        """The count as plain data."""
        return asdict(self)


def best(family: Any, width: int, height: int, radius: float, limit: float, way: str,
         sizes: int = TILE_SIZES) -> Count:  # fmt: skip
    """The plan of fewest tokens whose tiles have at most `limit` of the frame's tokens.

    Raises UsageError where nothing fits.
    """
    columns, rows = family.token_grid(width, height)
    frame = columns * rows
    if way in SHAPES:
        p = token_plan(family, width, height, radius, limit, way, sizes)
        tiles, total, largest, how = len(p.tiles), p.tokens_run, p.tile_tokens, grid_of(p)
    else:
        fit = [c for c in crops(family, width, height, radius, sizes) if c[2] <= limit * frame]
        if not fit:
            raise UsageError(
                f"{way}: no tile of {width}x{height} at {radius:g} px within {limit:.0%}"
            )
        total, tiles, largest, how = min(fit)
    return Count(
        family.name, width, height, radius, limit, way, sizes, tiles, total, total / frame,
        largest / frame, how,
    )  # fmt: skip


def token_plan(family: Any, width: int, height: int, radius: float, limit: float, way: str,
               sizes: int) -> TokenPlan:  # fmt: skip
    """The package's plan of one latent frame."""
    return plan_latent_tiles(
        *family.token_grid(width, height), 1, family, budget=limit, halo=radius,
        shape=SHAPES[way], tile_sizes=sizes,
    )  # fmt: skip


def grid_of(p: TokenPlan) -> str:
    """The grid of a plan in words."""
    g = p.grid.to_json()
    if p.shape == "rect":
        return f"{p.grid.columns}x{p.grid.rows}"
    words = f"hex_res {g['res']}, span {g['span']:.4g}, rotation {g['rotation']:g}"
    return words + (f", origin {g['origin']}" if "origin" in g else "")


Crops = tuple[int, int, int, str]
"""Tokens of all, how many, tokens of the largest, how they lie."""


@cache
def crops(family: Any, width: int, height: int, radius: float, sizes: int) -> tuple[Crops, ...]:
    """Crops in every number of columns and rows."""
    px, found = family.token_px, []
    for across in range(1, width // (4 * px) + 1):
        for down in range(1, height // (4 * px) + 1):
            ratio = (width / across) / (height / down)
            if 1 < across * down <= MOST_CROPS and 1 / LONGEST <= ratio <= LONGEST:
                found.append(cropped(width, height, px, across, down, radius, sizes))
                if sizes == 1:
                    found += joined_crops(family, width, height, across, down, radius)
    return tuple(found)


def cropped(width: int, height: int, px: int, across: int, down: int, radius: float,
            sizes: int) -> Crops:  # fmt: skip
    """Crops of across x down cells that hold all within the radius of the cells' tokens."""

    def lengths(tokens: int, cells: int) -> list[int]:
        at = (np.arange(tokens) + 0.5) * cells / tokens
        out = []
        for i in range(cells):
            own = np.nonzero((at >= i) & (at < i + 1))[0]
            reach = int(radius / px + 1e-9)
            last, first = min(own[-1] + reach, tokens - 1), max(own[0] - reach, 0)
            out.append(int(last - first + 1))
        return out

    wide, tall = lengths(width // px, across), lengths(height // px, down)
    each = [w * t for w, t in itertools.product(wide, tall)]
    largest = max(wide) * max(tall)
    total = len(each) * largest if sizes == 1 else tokens_run(each, sizes)
    return total, len(each), largest, f"{across}x{down}"


def joined_crops(family: Any, width: int, height: int, across: int, down: int,
                 radius: float) -> list[Crops]:  # fmt: skip
    """Crops whose cells are joined where that saves work, as h3video plans them."""
    px, out = family.token_px, []
    grid = rectangles(width, height, across, down)
    for join in SHARES:
        boxes = crop_boxes(grid, px, width // px, height // px, radius, join)
        size = boxes.columns * boxes.rows
        out.append(
            (len(boxes.places) * size, len(boxes.places), size,
             f"{across}x{down}, joined up to {join:.0%}")
        )  # fmt: skip
    return out


def run(say: Any, cases: Sequence[Any] = CASES, radii: Sequence[float] = RADII,
        limits: Sequence[float] = SHARES, ways: Sequence[str] = WAYS) -> list[Count]:  # fmt: skip
    """The best plan of every way for every case; a way that nothing fits is left out."""
    out = []
    for family, width, height in cases:
        for radius, limit, way, sizes in itertools.product(radii, limits, ways, SIZES):
            with contextlib.suppress(UsageError):
                out.append(best(family, width, height, radius, limit, way, sizes))
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
