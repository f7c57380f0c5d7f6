"""Crop tiles for denoisers: rectangles of latents around cells, for models that need rectangles.

All crops of a plan have one shape, sides and corners on the model's patch where the frame allows,
clamped inside the frame. Predictions are blended with the cells' weights at the latents.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from ..blend.kernels import DEFAULT_KERNEL
from ..blend.weights import Grid, TileWeights, tile_weights
from ..errors import UsageError
from ..grid import HexGrid, Point, finest_res, hex_grid, rect_grid, rectangles
from .budget import parse_budget
from .crops import DEFAULT_SHARE, HALO_LATENTS, MAX_CROPS, OVERLAP_PX, CropTile, crop_boxes
from .settings import HexSettings

log = logging.getLogger("h3video")

MIN_OVERLAP_LATENTS = 4
"""A narrower fade is a hard step for what a latent covers."""


@dataclass(frozen=True)
class LatentBox:
    """A rectangle of a frame's latents.

    left, top                    its corner
    columns, rows                its size
    frame_columns, frame_rows    the frame it lies in; all in latents
    """

    left: int
    top: int
    columns: int
    rows: int
    frame_columns: int
    frame_rows: int

    @property
    def whole(self) -> bool:
        """Whether it is the frame."""
        return (self.columns, self.rows) == (self.frame_columns, self.frame_rows)

    def scaled(self, factor: float) -> tuple[int, int, int, int]:
        """(left, top, columns, rows) on a raster `factor` as fine; factor is n or 1/n.

        Raises UsageError when an edge falls between two of its points.
        """
        found = tuple(round(v * factor) for v in (self.left, self.top, self.columns, self.rows))
        if any(
            abs(a - b * factor) > 1e-6
            for a, b in zip(found, (self.left, self.top, self.columns, self.rows))
        ):
            raise UsageError(
                f"a crop at {self.left},{self.top} of {self.columns}x{self.rows} latents has its "
                f"edge between the points of a raster {factor:g} as fine"
            )
        return found  # type: ignore[return-value]


@dataclass(frozen=True)
class LatentCrops:
    """How a frame's latents are cut into crops for a denoiser. Make one with `plan_latent_crops`.

    unit                       px of the frame that one latent covers
    patch                      latents that one token covers, each way
    columns, rows              the frame in latents
    crop_columns, crop_rows    every crop in latents
    overlap, halo              px: width of the shared band; context beyond it
    kernel                     the fade's curve, see h3video.blend.kernels
    """

    grid: Grid
    unit: int
    patch: int
    columns: int
    rows: int
    crop_columns: int
    crop_rows: int
    overlap: float
    halo: float
    tiles: tuple[CropTile, ...]
    kernel: str = DEFAULT_KERNEL

    @property
    def share(self) -> float:
        """A crop's area against the frame's."""
        return self.crop_columns * self.crop_rows / (self.columns * self.rows)

    @property
    def price(self) -> float:
        """Area of all crops against the frame's; 1 is no tiling."""
        return self.share * len(self.tiles)

    def box(self, tile: int) -> LatentBox:
        """Where a tile's crop lies."""
        t = self.tiles[tile]
        return LatentBox(t.left, t.top, self.crop_columns, self.crop_rows, self.columns, self.rows)

    def weights(self) -> list[TileWeights]:
        """Every tile's weights over the frame's latents."""
        return tile_weights(
            self.grid, [t.cells for t in self.tiles], self.columns, self.rows, float(self.unit),
            self.overlap, self.kernel,
        )  # fmt: skip

    def crop_weights(self) -> list[Any]:
        """Every tile's weights over its own crop: float32 numpy [crop_rows, crop_columns]."""
        import numpy as np

        found = []
        for tile, weights in zip(self.tiles, self.weights()):
            frame = np.zeros(self.columns * self.rows, np.float32)
            frame[weights.points] = weights.weight
            crop = frame.reshape(self.rows, self.columns)[
                tile.top : tile.top + self.crop_rows, tile.left : tile.left + self.crop_columns
            ]
            if np.count_nonzero(crop) != len(weights.points):
                raise RuntimeError("a tile has weight on a latent outside its crop")
            found.append(crop)
        return found

    def areas(self) -> list[float]:
        """The share of the frame that every tile owns; they sum to 1."""
        owned = [float(w.weight.sum(dtype="float64")) for w in self.weights()]
        return [a / sum(owned) for a in owned]

    def summary(self) -> str:
        """One line for the log."""
        if len(self.tiles) == 1:
            return f"1 crop of {self.columns}x{self.rows} latents: no tiling"
        return (
            f"{len(self.tiles)} crops of {self.crop_columns}x{self.crop_rows} from "
            f"{self.columns}x{self.rows} latents ({self.grid.shape}, res {self.grid.res}), "
            f"{self.price:.2f} x the frame's work, overlap {self.overlap:.0f} px, "
            f"halo {self.halo:.0f} px"
        )

    def to_json(self) -> dict[str, Any]:
        """The plan as plain data."""
        return {
            "kind": "latent-crop", "shape": self.grid.shape, "grid": self.grid.to_json(),
            "unit_px": self.unit, "patch": self.patch, "columns": self.columns, "rows": self.rows,
            "crop_columns": self.crop_columns, "crop_rows": self.crop_rows,
            "overlap_px": self.overlap, "halo_px": self.halo, "price": self.price,
            "kernel": self.kernel,
            "tiles": [
                {"cells": list(t.cells), "ids": [f"{i:x}" for i in t.ids],
                 "left": t.left, "top": t.top}
                for t in self.tiles
            ],
        }  # fmt: skip


Fits = Callable[[int, int], bool]
"""Whether a crop of (columns, rows) latents keeps to a budget in bytes."""


def plan_latent_crops(
    columns: int, rows: int, unit: int, patch: int, settings: HexSettings,
    fits: Fits | None = None,
) -> LatentCrops:  # fmt: skip
    """Plan the crops in which a denoiser sees a frame of columns x rows latents.

    unit       px that one latent covers;  patch   latents that one token covers
    settings   hex_res, overlap, halo (None: 4 latents), budget, shape, span, rotation, origin,
               kernel are read; with shift step an overlap is taken as it is, and None is 0
    fits       what answers a budget in bytes; without it such a budget is refused

    "auto" takes the coarsest grid whose crop is at most the budget (None: half of the frame);
    a frame so small that nothing fits is not tiled without a budget, and cut smallest with one.
    Raises UsageError when a value is out of range or nothing fits a budget in bytes.
    """
    if columns < 1 or rows < 1 or unit < 1 or patch < 1:
        raise UsageError(f"a frame of {columns}x{rows} latents of {unit} px cannot be cut")
    budget = parse_budget(settings.budget)
    if isinstance(budget, int) and fits is None:
        raise UsageError(
            f"a budget of {budget} bytes needs the model's own estimate, which is unknown here; "
            "use a share of the frame such as 0.25"
        )
    limit = budget if isinstance(budget, float) else DEFAULT_SHARE
    if settings.shape == "none":
        return _whole(columns, rows, unit, patch, settings)
    make_grid = rect_grid if settings.shape == "rect" else hex_grid
    width, height = columns * unit, rows * unit
    auto = settings.hex_res == "auto"
    finest = finest_res(width, height, settings.span, settings.turn)
    smallest: LatentCrops | None = None
    for res in range(finest + 1) if auto else [int(settings.hex_res)]:
        grid = make_grid(width, height, res, settings.span, settings.turn, settings.place)
        if len(grid.cells) > MAX_CROPS:
            if auto:
                break
            raise UsageError(
                f"hex_res {res} gives {len(grid.cells)} cells at {width}x{height}; at most "
                f"{MAX_CROPS} can be crops: use hex_res {res - 1} or less"
            )
        best = None
        for join in _join_shares(budget, limit) if auto else (None,):
            plan = _cut(grid, columns, rows, unit, patch, settings, join)
            if not auto or _within(plan, budget, limit, fits):
                _warn(plan, settings)
                return plan
            if best is None or plan.share < best.share:
                best = plan
        assert best is not None
        if smallest is None or best.share < smallest.share:
            smallest = best
        elif smallest.share < 1.0:
            break  # finer cells no longer make smaller crops: overlap and halo rule
    if budget is None or smallest is None:
        return _whole(columns, rows, unit, patch, settings)
    if isinstance(budget, int):
        raise UsageError(
            f"no crop of {width}x{height} px fits the budget of {budget:,} bytes: the smallest has "
            f"{smallest.share:.0%} of the frame (hex_res {smallest.grid.res}); raise the budget, "
            "or lower overlap or halo"
        )
    return smallest


def _join_shares(budget: float | int | None, limit: float) -> tuple[float | None, ...]:
    """Shares of the frame up to which cells are joined, to be tried in turn; None: slivers only."""
    if isinstance(budget, int):
        return (1 / 2, 1 / 3, 1 / 4, 1 / 6, 1 / 8, 1 / 12, 1 / 16, None)
    return (limit,)


def _within(plan: LatentCrops, budget: float | int | None, limit: float, fits: Fits | None) -> bool:
    if isinstance(budget, int):
        assert fits is not None
        return fits(plan.crop_columns, plan.crop_rows)
    return plan.share <= limit


def _whole(columns: int, rows: int, unit: int, patch: int, settings: HexSettings) -> LatentCrops:
    grid = hex_grid(columns * unit, rows * unit, 0, settings.span, settings.turn)
    cells = tuple(c.index for c in grid.cells)
    one = CropTile(cells, tuple(c.id for c in grid.cells), 0, 0)
    return LatentCrops(grid, unit, patch, columns, rows, columns, rows, 0.0, 0.0, (one,))


def _cut(
    grid: Grid, columns: int, rows: int, unit: int, patch: int, settings: HexSettings,
    share: float | None,
) -> LatentCrops:  # fmt: skip
    """Crops of a grid; `share` as in crop_boxes."""
    moves = settings.shift == "step"  # seams do not stay, so they need no fade
    narrowest = 0.0 if moves else float(MIN_OVERLAP_LATENTS * unit)
    usual = 0.0 if moves else OVERLAP_PX
    asked = usual if settings.overlap is None else settings.overlap
    overlap = min(max(asked, narrowest) if asked > 0.0 else 0.0, grid.max_overlap())
    halo = float(HALO_LATENTS * unit) if settings.halo is None else settings.halo
    # Half a latent more: a latent whose centre is inside the band must lie in the crop.
    margin = overlap / 2.0 + max(halo, unit / 2.0)
    # The raster is in tokens, so that crops begin and end on them; its last one may reach over.
    wide, tall = -(-columns // patch), -(-rows // patch)
    boxes = crop_boxes(grid, float(unit * patch), wide, tall, margin, share)
    crop_columns = min(columns, boxes.columns * patch)
    crop_rows = min(rows, boxes.rows * patch)
    tiles = [
        CropTile(
            group, tuple(grid.cells[i].id for i in group),
            min(x * patch, columns - crop_columns), min(y * patch, rows - crop_rows),
        )
        for group, x, y in boxes.places
    ]  # fmt: skip
    # A sliver may own no latent's centre; the others share what little weight it has.
    weights = tile_weights(grid, [t.cells for t in tiles], columns, rows, float(unit), overlap)
    tiles = [t for t, w in zip(tiles, weights) if len(w.points)]
    if len(tiles) == 1 or (crop_columns, crop_rows) == (columns, rows):
        return _whole(columns, rows, unit, patch, settings)
    return LatentCrops(
        grid, unit, patch, columns, rows, crop_columns, crop_rows, overlap, halo, tuple(tiles),
        settings.kernel,
    )


def moved_crops(
    plan: LatentCrops, origin: Point, settings: HexSettings, share: float | None
) -> LatentCrops:
    """A plan with its grid elsewhere: everything else stays, crops are cut anew.

    origin   px by which the grid's centre lies right of and below the frame's
    share    as in crop_boxes
    """
    old = plan.grid
    if isinstance(old, HexGrid):
        grid: Grid = hex_grid(old.width, old.height, old.res, old.span, old.rotation, origin)
    else:
        grid = rectangles(old.width, old.height, old.columns, old.rows, old.res, origin)
    return _cut(grid, plan.columns, plan.rows, plan.unit, plan.patch, settings, share)


def _warn(plan: LatentCrops, settings: HexSettings) -> None:
    asked = settings.overlap
    if asked is None or len(plan.tiles) == 1 or plan.overlap == asked:
        return
    why = (
        f"a fade under {MIN_OVERLAP_LATENTS} latents shows as a line"
        if plan.overlap > asked
        else f"a cell is only {plan.grid.max_overlap():.0f} px wide"
    )
    log.warning("overlap %g px is taken as %.0f px: %s", asked, plan.overlap, why)
