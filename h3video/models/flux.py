"""Flux and models built like it: pictures, text and frame in double and single blocks."""

from __future__ import annotations

from .family import VideoFamily

FLUX = VideoFamily(
    name="flux",
    transformer_classes=("FluxTransformer2DModel",),
    size_multiple=16,
    frame_step=1,
    vae_space=8,
    vae_time=1,
    patch=2,
    fps=1,
)
