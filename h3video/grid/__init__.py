"""A frame as hexagonal H3 cells (and as rectangles, the baseline that claims are measured with)."""

from .cells import GridCells, check_frame_grid, comfortable_res, frame_grid, grid_cells
from .globe import GlobeGrid, globe_grid
from .hexgrid import (
    DEFAULT_SPAN,
    MAX_SPAN,
    NO_ORIGIN,
    Cell,
    HexGrid,
    Point,
    finest_res,
    hex_grid,
    origin_fits,
)
from .rectgrid import RectGrid, rect_grid, rectangles
from .select import select_cells

__all__ = [
    "DEFAULT_SPAN",
    "MAX_SPAN",
    "NO_ORIGIN",
    "Cell",
    "GlobeGrid",
    "GridCells",
    "HexGrid",
    "Point",
    "RectGrid",
    "check_frame_grid",
    "comfortable_res",
    "finest_res",
    "frame_grid",
    "globe_grid",
    "grid_cells",
    "hex_grid",
    "origin_fits",
    "rect_grid",
    "rectangles",
    "select_cells",
]
