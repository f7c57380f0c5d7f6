"""A grid together with how it is to be weighed: what the H3_CELLS socket of the nodes carries.

Everything is plain data; `to_json` and `from_json` carry it out of ComfyUI and back.
"""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from ..errors import UsageError
from .globe import GlobeGrid, check_globe_grid, globe_grid
from .hexgrid import (
    DEFAULT_SPAN,
    NO_ORIGIN,
    HexGrid,
    Point,
    check_hex_grid,
    finest_res,
    hex_grid,
)
from .lattice import Lattice

FORMAT = "h3video-cells/1"

COMFORTABLE_EDGE = 30.0
"""`hex_res="auto"` gives cells with an edge of 30 to 79 px: one resolution always does."""

_BAND_ROWS = 128
"""Rows that are weighed at a time: a frame's weights take 32 bytes a pixel."""


@dataclass(frozen=True)
class GridCells:
    """A grid, the band that its cells share, and a focus.

    overlap   width in px of the band along every cell edge, 0..grid.max_overlap()
    focus     the point (x, y) px that rings are counted from
    falloff   0..1: how much less the farthest ring weighs than the focus
    """

    grid: HexGrid | GlobeGrid
    overlap: float
    focus: tuple[float, float]
    falloff: float

    @property
    def projection(self) -> str:
        """face or equirectangular."""
        return "equirectangular" if isinstance(self.grid, GlobeGrid) else "face"

    def rings(self) -> tuple[int, ...]:
        """Ring distance of every cell from the focus."""
        return self.grid.rings(*self.focus)

    def attention(self) -> list[float]:
        """A weight for every cell: 1 at the focus, falling by ring to 1 - falloff."""
        rings = self.rings()
        farthest = max(rings) or 1
        return [1.0 - self.falloff * ring / farthest for ring in rings]

    def mask(self, values: Sequence[float], overlap: float | None = None) -> Any:
        """A value for every cell, feathered over the shared bands: float32 [height, width].

        overlap   px, None: the grid's own
        """
        import numpy as np

        grid = self.grid
        band = self.overlap if overlap is None else min(overlap, grid.max_overlap())
        table = np.asarray([*values, 0.0], np.float32)  # the last entry is "no cell"
        out = np.empty((grid.height, grid.width), np.float32)
        for top in range(0, grid.height, _BAND_ROWS):
            rows = min(_BAND_ROWS, grid.height - top)
            index, weight = grid.sample_weights(grid.width, rows, 1.0, band, 0.0, float(top))
            out[top : top + rows] = (table[index] * weight).sum(-1)
        # Weights sum to 1 only within a millionth; a mask of ones must be exactly ones.
        return np.clip(out, table[:-1].min(), table[:-1].max(), out=out)

    def to_json(self) -> str:
        """One JSON object; ids are strings, since JSON numbers round 64 bits."""
        data = {
            "format": FORMAT, **self.grid.to_json(), "overlap": self.overlap,
            "focus": list(self.focus), "falloff": self.falloff,
        }  # fmt: skip
        return json.dumps(data, indent=None)

    @staticmethod
    def from_json(text: str) -> GridCells:
        """What `to_json` wrote. Raises UsageError when it is not that, or ids and size differ."""
        try:
            data = json.loads(text)
            if data["format"] != FORMAT:
                raise UsageError(f"the text has format {data['format']!r}, expected {FORMAT}")
            kind = GlobeGrid if data["projection"] == "equirectangular" else HexGrid
            grid = kind.from_json(data)
            x, y = map(float, data["focus"])
            return grid_cells(grid, float(data["overlap"]), (x, y), float(data["falloff"]))
        except UsageError:
            raise
        except (KeyError, TypeError, ValueError, AttributeError) as e:
            reason = f"{e} is missing" if isinstance(e, KeyError) else str(e)
            raise UsageError(
                f"the text is no grid of cells ({reason}); use what H3CellsToText wrote"
            ) from None


def grid_cells(
    grid: HexGrid | GlobeGrid, overlap: float = 32.0,
    focus: tuple[float, float] | None = None, falloff: float = 0.75,
) -> GridCells:  # fmt: skip
    """A grid with its settings checked; an overlap wider than a cell becomes a cell's width."""
    x, y = focus or (grid.width / 2.0, grid.height / 2.0)
    if not (0.0 <= x <= grid.width and 0.0 <= y <= grid.height):
        raise UsageError(
            f"focus ({x:g}, {y:g}) is outside the frame of {grid.width}x{grid.height} px"
        )
    if not (math.isfinite(overlap) and overlap >= 0.0):
        raise UsageError(f"overlap {overlap:g} is out of range 0..4096 px")
    if not 0.0 <= falloff <= 1.0:
        raise UsageError(f"falloff {falloff:g} is out of range 0..1")
    return GridCells(grid, min(overlap, grid.max_overlap()), (x, y), falloff)


def comfortable_res(width: int, height: int, span: float = DEFAULT_SPAN) -> int:
    """The resolution whose cells have an edge of 30 to 79 px on this frame (0 at least)."""
    if not (span > 0.0 and min(width, height) >= 1):
        return 0  # left to the grid to refuse
    finest = finest_res(width, height, span)
    for res in range(finest + 1):
        if Lattice.over_frame(width, height, res, span, 0.0).edge < COMFORTABLE_EDGE * 7.0**0.5:
            return res
    return finest


def frame_grid(
    width: int, height: int, hex_res: int | str, span: float = DEFAULT_SPAN,
    rotation: float = 0.0, projection: str = "face", origin: Point = NO_ORIGIN,
) -> HexGrid | GlobeGrid:  # fmt: skip
    """A frame's grid as a person asks for it: `hex_res` may be "auto", either projection.

    On the globe "auto" is the finest resolution that is legal there; span, rotation
    and origin have no meaning there and are refused.
    """
    res = check_frame_grid(width, height, hex_res, span, rotation, projection, origin)
    if projection == "face":
        return hex_grid(width, height, res, span, rotation, origin)
    return globe_grid(width, height, res)


def check_frame_grid(
    width: int, height: int, hex_res: int | str, span: float = DEFAULT_SPAN,
    rotation: float = 0.0, projection: str = "face", origin: Point = NO_ORIGIN,
) -> int:  # fmt: skip
    """The resolution that `frame_grid` would use; raises what it raises, without the work."""
    if projection == "face":
        res = comfortable_res(width, height, span) if hex_res == "auto" else _number(hex_res)
        check_hex_grid(width, height, res, span, rotation, origin)
        return res
    if projection != "equirectangular":
        raise UsageError(f"projection {projection!r} is unknown; use face or equirectangular")
    if span != DEFAULT_SPAN or rotation != 0.0 or origin != NO_ORIGIN:
        raise UsageError(
            f"span {span:g}, rotation {rotation:g} and an origin have no meaning on the "
            f"equirectangular map; use {DEFAULT_SPAN:g}, 0 and none, or the face projection"
        )
    res = GlobeGrid.finest_res(height) if hex_res == "auto" else _number(hex_res)
    check_globe_grid(width, height, res)
    return res


def _number(hex_res: int | str) -> int:
    try:
        return int(hex_res)
    except ValueError:
        raise UsageError(f"hex_res {hex_res!r} is not auto or a number 0..15") from None
