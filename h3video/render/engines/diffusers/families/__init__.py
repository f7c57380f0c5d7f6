"""One file per family of transformers: what diffusers hands to a block, and what a tile gets."""

from __future__ import annotations

from typing import Any

from .base import Family
from .hunyuan import HunyuanFamily
from .ltx import Ltx2Family, LtxFamily
from .minimax_h3 import MiniMaxH3Family
from .wan import WanFamily, WanVaceFamily

FAMILIES: tuple[type[Family], ...] = (
    WanFamily, WanVaceFamily, LtxFamily, Ltx2Family, HunyuanFamily, MiniMaxH3Family,
)  # fmt: skip


def family_class(transformer: Any) -> type[Family] | None:
    """The adapter of a diffusers transformer, or None.

    By the name of the class itself: a subclass may do other things between its blocks.
    """
    name = type(transformer).__name__
    return next((family for family in FAMILIES if name in family.classes), None)
