"""Wan 2.1 and 2.2 (and the embedded nano, which has Wan's architecture).

Sizes: Wan-AI's configuration files; see facts in docs/models.md. Latents are
8 px and 4 frames, tokens are 2 x 2 latents. The sequence that enters the first
block is the frame's tokens, latent frame by latent frame, row by row; text
comes in through cross attention and is never part of it.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

from .family import DenoiserShape, VideoFamily

WAN = VideoFamily(
    name="wan",
    transformer_classes=("WanTransformer3DModel", "WanVACETransformer3DModel"),
    size_multiple=16,
    frame_step=4,
    vae_space=8,
    vae_time=4,
    patch=2,
    fps=16,
)


def with_vae(family: VideoFamily, vae_space: int) -> VideoFamily:
    """The family with another VAE: Wan 2.2 TI2V-5B has latents of 16 px and runs at 24 fps."""
    if vae_space == family.vae_space:
        return family
    multiple = vae_space * family.patch
    return dataclasses.replace(
        family, name="wan2.2-5b", vae_space=vae_space, size_multiple=multiple, fps=24
    )


def denoiser_shape(config: Mapping[str, Any], dtype_bytes: int = 2) -> DenoiserShape:
    """The shape of diffusers' Wan transformer from its configuration."""
    return DenoiserShape(
        hidden=config["num_attention_heads"] * config["attention_head_dim"],
        ffn=config["ffn_dim"],
        heads=config["num_attention_heads"],
        layers=config["num_layers"],
        dtype_bytes=dtype_bytes,
    )
