"""Weights that sum to one, and the accumulation of tiles with them."""

from .kernels import KERNELS
from .weights import TileWeights, tile_weights

__all__ = ["KERNELS", "TileWeights", "tile_weights"]
