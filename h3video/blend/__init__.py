"""Weights that sum to one, and the accumulation of tiles with them."""

from .kernels import DEFAULT_KERNEL, KERNELS
from .weights import TileWeights, tile_weights

__all__ = ["DEFAULT_KERNEL", "KERNELS", "TileWeights", "tile_weights"]
