"""One file per family of transformers: what ComfyUI hands to a block, and what a tile gets."""

from __future__ import annotations

from typing import Any

from .base import Family
from .flux import FluxFamily
from .hunyuan import HunyuanFamily
from .ltx import LtxAvFamily, LtxFamily
from .minimax_h3 import MiniMaxH3Family
from .wan import WanFamily

FAMILIES: tuple[type[Family], ...] = (
    MiniMaxH3Family, LtxAvFamily, LtxFamily, HunyuanFamily, WanFamily, FluxFamily,
)  # fmt: skip


def family_class(diffusion_model: Any) -> type[Family] | None:
    """The adapter of a ComfyUI diffusion model, or None; the class's own name comes first."""
    for cls in type(diffusion_model).__mro__:
        for family in FAMILIES:
            if cls.__name__ in family.classes and cls.__module__.startswith("comfy."):
                return family
    return None
