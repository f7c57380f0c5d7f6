"""Hexagonally tiled video diffusion: what fits, tiles, regions, chunks.

Importing this package loads neither torch nor numpy nor diffusers; the names
below are looked up when they are first used.
"""

from importlib import import_module
from typing import Any

__version__ = "0.1.0"

_LAZY = {
    "apply_hex_tiling": ".render.engines.diffusers",
    "remove_hex_tiling": ".render.engines.diffusers",
    "hex_grid": ".grid",
    "plan_token_tiles": ".tiling",
    "plan_crop_tiles": ".tiling",
    "clip_layout": ".tiling",
    "merge_clip": ".tiling.merge",
}

__all__ = ["__version__", *_LAZY]


def __getattr__(name: str) -> Any:
    if name in _LAZY:
        return getattr(import_module(_LAZY[name], __name__), name)
    raise AttributeError(f"module 'h3video' has no attribute {name!r}")
