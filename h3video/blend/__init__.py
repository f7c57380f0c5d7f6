"""Weights that sum to one, and the accumulation of tiles with them."""

from .weights import TileWeights, tile_weights

__all__ = ["TileWeights", "tile_weights"]
