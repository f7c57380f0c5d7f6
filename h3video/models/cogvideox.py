"""CogVideoX 2B and 5B, and 1.5 5B.

Sizes: THUDM's configuration files. Latents are 8 px and 4 frames, tokens 2 x 2 latents; 1.5's
tokens span two latent frames, too. Text comes first in the sequence that every block sees.
Clips have 8k+1 frames (1.0) or 16k+1 (1.5), of which 2k+1 or 4k+1 latent frames are made.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

from .family import DenoiserShape, VideoFamily

COGVIDEOX = VideoFamily(
    name="cogvideox",
    transformer_classes=("CogVideoXTransformer3DModel",),
    size_multiple=16,
    frame_step=8,
    vae_space=8,
    vae_time=4,
    patch=2,
    fps=8,
    latent_step=2,
)

COGVIDEOX_15 = dataclasses.replace(
    COGVIDEOX,
    name="cogvideox-1.5",
    transformer_classes=(),  # the same class: told apart by patch_size_t in its configuration
    frame_step=16,
    fps=16,
    latent_step=4,
    patch_time=2,
)


def denoiser_shape(
    config: Mapping[str, Any], dtype_bytes: int = 2, text_tokens: int = 226
) -> DenoiserShape:
    """The shape of diffusers' CogVideoX transformer from its configuration."""
    hidden = config["num_attention_heads"] * config["attention_head_dim"]
    return DenoiserShape(
        hidden=hidden,
        ffn=4 * hidden,
        heads=config["num_attention_heads"],
        layers=config["num_layers"],
        text_tokens=0,
        dtype_bytes=dtype_bytes,
        linear=12 * hidden * hidden,
        along=text_tokens,
    )
