"""Hexagonal tiling of a diffusers pipeline: two calls, no other change to the caller's code.

    h3video.apply_hex_tiling(pipe, hex_res="auto")
    pipe(prompt, ...)                               # as before, at the peak of a tile
    h3video.remove_hex_tiling(pipe)

Methods are wrapped through instance attributes, below the host's own hooks; nothing of diffusers
is patched.
"""

from ..describe import describe
from .attach import HexTiling, apply_hex_tiling, remove_hex_tiling
from .vae import wrap_vae

__all__ = ["HexTiling", "apply_hex_tiling", "describe", "remove_hex_tiling", "wrap_vae"]
