"""Tile plans in plain integers, and running a denoiser or a decoder on them."""

from .budget import parse_budget
from .crops import CropPlan, CropTile, plan_crop_tiles
from .tokens import TokenPlan, TokenTile, plan_token_tiles

__all__ = [
    "CropPlan",
    "CropTile",
    "TokenPlan",
    "TokenTile",
    "parse_budget",
    "plan_crop_tiles",
    "plan_token_tiles",
]
