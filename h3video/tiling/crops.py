"""Crop tiles: rectangles around cells, for decoders (and later UNets) that need rectangles.

All crops of a plan have one shape, sides a multiple of one latent, clamped
inside the frame. The decoded crops are blended with the cells' weights, so the
seams are hexagonal although the crops are not.
"""

from __future__ import annotations

import math
from collections.abc import Collection
from dataclasses import dataclass
from functools import lru_cache, reduce
from typing import Any

from ..blend.weights import Grid, TileWeights, tile_weights
from ..grid import (
    DEFAULT_SPAN,
    NO_ORIGIN,
    Point,
    finest_res,
    hex_grid,
    origin_fits,
    rect_grid,
)
from ..models.family import VideoFamily
from .budget import parse_budget
from .groups import group_cells

HALO_LATENTS = 4
"""Latents decoded beyond the shared band and thrown away: a decoder's edge is not its middle."""

OVERLAP_PX = 32.0

DEFAULT_SHARE = 0.5
"""Largest crop without a budget: on small frames context is most of a crop, and smaller ones
would decode the frame many times over."""

SLIVER = 1.15
"""A joined box without a share may be this much larger than the largest of a single cell."""

MAX_CROPS = 256


@dataclass(frozen=True)
class CropTile:
    """One crop: it owns `cells`, its corner is at (left, top) in latents."""

    cells: tuple[int, ...]
    ids: tuple[int, ...]
    left: int
    top: int


@dataclass(frozen=True)
class CropPlan:
    """How a frame's latents are cut into crops.

    columns, rows              the frame in latents
    crop_columns, crop_rows    every crop in latents
    unit                       px of the frame that one latent covers
    overlap                    px of the shared band
    """

    grid: Grid
    width: int
    height: int
    unit: int
    columns: int
    rows: int
    crop_columns: int
    crop_rows: int
    overlap: float
    tiles: tuple[CropTile, ...]

    @property
    def share(self) -> float:
        """A crop's area against the frame's."""
        return self.crop_columns * self.crop_rows / (self.columns * self.rows)

    @property
    def price(self) -> float:
        """Area of all crops against the frame's."""
        return self.share * len(self.tiles)

    def weights(self) -> list[TileWeights]:
        """Every tile's weights over the frame's pixels (flat indices of the whole frame)."""
        return tile_weights(
            self.grid, [t.cells for t in self.tiles], self.width, self.height, 1.0, self.overlap
        )

    def to_json(self) -> dict[str, Any]:
        """The plan as plain data."""
        return {
            "kind": "crop", "shape": self.grid.shape, "grid": self.grid.to_json(),
            "columns": self.columns, "rows": self.rows,
            "crop_columns": self.crop_columns, "crop_rows": self.crop_rows,
            "overlap_px": self.overlap, "price": self.price,
            "tiles": [
                {"cells": list(t.cells), "ids": [f"{i:x}" for i in t.ids],
                 "left": t.left, "top": t.top}
                for t in self.tiles
            ],
        }  # fmt: skip


@lru_cache(maxsize=64)
def plan_crop_tiles(
    width: int,
    height: int,
    family: VideoFamily,
    *,
    hex_res: int | str = "auto",
    overlap: float | None = None,
    budget: float | int | str | None = None,
    shape: str = "hex",
    span: float = DEFAULT_SPAN,
    rotation: float = 0.0,
    origin: Point = NO_ORIGIN,
) -> CropPlan:
    """Plan the crops that decode a frame.

    hex_res    H3 resolution, or "auto": the coarsest whose crop fits the budget
    overlap    px of the shared band; None: 32 px
    budget     share of the frame's area that a crop may have; None: a half. (Bytes are a
               matter of the denoiser and are taken as None here)
    shape      hex | rect | none (one crop)

    A frame so small that crops would be mostly context is decoded whole without a budget, and in
    the smallest crops with one.
    Raises UsageError when a value is out of range.
    """
    family.check(width, height, 1)
    unit = family.vae_space
    columns, rows = width // unit, height // unit
    wanted = parse_budget(budget)
    share = wanted if isinstance(wanted, float) else DEFAULT_SHARE
    if shape == "none":
        grid: Grid = hex_grid(width, height, 0, span, rotation)
        cells = tuple(c.index for c in grid.cells)
        one = CropTile(cells, tuple(c.id for c in grid.cells), 0, 0)
        return CropPlan(grid, width, height, unit, columns, rows, columns, rows, 0.0, (one,))
    make_grid = rect_grid if shape == "rect" else hex_grid
    smallest = None
    finest = finest_res(width, height, span, rotation)
    for res in range(finest + 1) if hex_res == "auto" else [int(hex_res)]:
        if smallest is not None and not origin_fits(width, height, res, span, origin):
            break
        grid = make_grid(width, height, res, span, rotation, origin)
        if smallest is not None and len(grid.cells) > MAX_CROPS:
            break
        used = min(OVERLAP_PX if overlap is None else overlap, grid.max_overlap())
        plan = _crops(grid, unit, columns, rows, used, share)
        if hex_res != "auto" or plan.share <= share:
            return plan
        if smallest is None or plan.share < smallest.share:
            smallest = plan
        elif smallest.share < 1.0:
            break  # finer cells no longer make smaller crops: overlap and halo rule
    assert smallest is not None
    if isinstance(wanted, float):
        return smallest
    return plan_crop_tiles(width, height, family, shape="none", span=span, rotation=rotation)


Box = tuple[int, int, int, int]


def _around(a: Box, b: Box) -> Box:
    """The box (left, top, right, bottom) that holds two boxes."""
    return min(a[0], b[0]), min(a[1], b[1]), max(a[2], b[2]), max(a[3], b[3])


def _area(box: Box) -> int:
    return (box[2] - box[0]) * (box[3] - box[1])


def _work(boxes: Collection[Box]) -> int:
    """Latents that all crops decode; all are as wide as the widest, as tall as the tallest."""
    widest = max(right - left for left, _, right, _ in boxes)
    tallest = max(bottom - top for _, top, _, bottom in boxes)
    return len(boxes) * widest * tallest


def _crops(
    grid: Grid, unit: int, columns: int, rows: int, overlap: float, share: float
) -> CropPlan:
    """Crops of a grid for a decoder whose latents are `unit` px."""
    margin = overlap / 2.0 + HALO_LATENTS * unit
    boxes = crop_boxes(grid, unit, columns, rows, margin, share)
    tiles = tuple(
        CropTile(group, tuple(grid.cells[i].id for i in group), x, y)
        for group, x, y in boxes.places
    )
    return CropPlan(
        grid, grid.width, grid.height, unit, columns, rows, boxes.columns, boxes.rows,
        overlap, tiles,
    )  # fmt: skip


@dataclass(frozen=True)
class CropBoxes:
    """Boxes of one size, columns x rows units, each around a group of cells: (group, left, top)."""

    columns: int
    rows: int
    places: tuple[tuple[tuple[int, ...], int, int], ...]


def crop_boxes(
    grid: Grid, unit: float, columns: int, rows: int, margin: float, share: float | None
) -> CropBoxes:
    """Boxes around cells and `margin` px more, on a raster of columns x rows units of `unit` px.

    Neighbours are joined while a box's area times their number falls and the box takes at most
    `share` of the raster; with None only slivers at the frame's edge are joined.
    """
    boxes = []
    for cell in grid.cells:
        left, top, right, bottom = grid.bounds(cell.index)
        boxes.append(
            (
                max(0, math.floor((left - margin) / unit)),
                max(0, math.floor((top - margin) / unit)),
                min(columns, math.ceil((right + margin) / unit)),
                min(rows, math.ceil((bottom + margin) / unit)),
            )
        )
    limit = int(SLIVER * max(map(_area, boxes)) if share is None else share * columns * rows)
    groups = group_cells(boxes, grid.neighbours, limit, _around, _area, _work)
    spans = [reduce(_around, (boxes[i] for i in group)) for group in groups]
    wide = max(right - left for left, _, right, _ in spans)
    tall = max(bottom - top for _, top, _, bottom in spans)
    places = []
    for group, (left, top, right, bottom) in zip(groups, spans):
        x = min(max(0, (left + right - wide) // 2), columns - wide)
        y = min(max(0, (top + bottom - tall) // 2), rows - tall)
        places.append((group, x, y))
    return CropBoxes(wide, tall, tuple(places))
