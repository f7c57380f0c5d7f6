"""Tile plans in plain integers, and running a denoiser or a decoder on them."""

from .budget import parse_budget
from .clip import ClipLayout, ClipTile, clip_layout
from .crops import CropPlan, CropTile, plan_crop_tiles
from .tokens import TokenPlan, TokenTile, plan_token_tiles

__all__ = [
    "ClipLayout",
    "ClipTile",
    "CropPlan",
    "CropTile",
    "TokenPlan",
    "TokenTile",
    "clip_layout",
    "parse_budget",
    "plan_crop_tiles",
    "plan_token_tiles",
]
