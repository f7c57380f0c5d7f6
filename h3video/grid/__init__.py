"""A frame as hexagonal H3 cells (and as rectangles, the baseline that claims are measured with)."""

from .globe import GlobeGrid, globe_grid
from .hexgrid import DEFAULT_SPAN, MAX_SPAN, Cell, HexGrid, finest_res, hex_grid
from .rectgrid import RectGrid, rect_grid

__all__ = [
    "DEFAULT_SPAN",
    "MAX_SPAN",
    "Cell",
    "GlobeGrid",
    "HexGrid",
    "RectGrid",
    "finest_res",
    "globe_grid",
    "hex_grid",
    "rect_grid",
]
