"""A frame as hexagonal H3 cells (and as rectangles, the baseline that claims are measured with)."""

from .hexgrid import DEFAULT_SPAN, MAX_SPAN, Cell, HexGrid, finest_res, hex_grid
from .rectgrid import RectGrid, rect_grid

__all__ = [
    "DEFAULT_SPAN",
    "MAX_SPAN",
    "Cell",
    "HexGrid",
    "RectGrid",
    "finest_res",
    "hex_grid",
    "rect_grid",
]
