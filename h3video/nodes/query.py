"""The cells that H3GridEncode's inputs ask for, whether they come from the node or a URL."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from ..errors import UsageError
from ..grid import DEFAULT_SPAN, GridCells, check_frame_grid, frame_grid, grid_cells

DEFAULTS: dict[str, Any] = {
    "width": 1024, "height": 576, "hex_res": "4", "overlap": 32.0, "span": DEFAULT_SPAN,
    "rotation": 0.0, "projection": "face", "focus_x": 0.5, "focus_y": 0.5, "falloff": 0.75,
}  # fmt: skip

PARAMETERS = tuple(DEFAULTS)


def read_query(query: Mapping[str, str]) -> tuple[Any, ...]:
    """The arguments of `encode`, in its order. Raises UsageError for what is no number."""
    return tuple(_value(name, query.get(name, default)) for name, default in DEFAULTS.items())


def _value(name: str, given: Any) -> Any:
    if name in ("hex_res", "projection"):
        return str(given)
    try:
        number = float(given)
    except ValueError:
        raise UsageError(f"{name} {str(given)[:40]!r} is not a number") from None
    if not math.isfinite(number):
        raise UsageError(f"{name} {number} is not a finite number")
    if name not in ("width", "height"):
        return number
    if number != int(number):
        raise UsageError(f"{name} {number:g} is not a whole number of px")
    return int(number)


RANGES = {
    "width": (16, 16384), "height": (16, 16384), "overlap": (0, 256), "span": (0.001, 0.33),
    "rotation": (-180, 180), "focus_x": (0, 1), "focus_y": (0, 1), "falloff": (0, 1),
}  # fmt: skip
"""The ranges of H3GridEncode's inputs."""


def check(**given: Any) -> None:
    """Raise UsageError for inputs of `encode` that are out of range or give no grid; quick."""
    for name, value in given.items():
        low, high = RANGES.get(name, (None, None))
        if low is not None and not low <= value <= high:
            raise UsageError(f"{name} {value:g} is out of range {low:g}..{high:g}")
    names = ("width", "height", "hex_res", "span", "rotation", "projection")
    check_frame_grid(**{name: given.get(name, DEFAULTS[name]) for name in names})


def encode(
    width: int, height: int, hex_res: str | int, overlap: float, span: float, rotation: float,
    projection: str, focus_x: float, focus_y: float, falloff: float,
) -> GridCells:  # fmt: skip
    """The cells that the inputs ask for; raises UsageError."""
    check(
        width=width, height=height, hex_res=hex_res, overlap=overlap, span=span,
        rotation=rotation, projection=projection, focus_x=focus_x, focus_y=focus_y,
        falloff=falloff,
    )  # fmt: skip
    grid = frame_grid(int(width), int(height), hex_res, float(span), float(rotation), projection)
    return grid_cells(grid, overlap, (focus_x * width, focus_y * height), falloff)
