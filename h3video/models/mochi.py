"""Mochi 1: picture and text side by side, text half as wide.

Sizes: Genmo's configuration files. Latents are 8 px and 6 frames, tokens 2 x 2 latents; a clip has
6k+1 frames. Every block's attention sees the frame's tokens and the text's as one sequence.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from .family import DenoiserShape, VideoFamily

MOCHI = VideoFamily(
    name="mochi",
    transformer_classes=("MochiTransformer3DModel",),
    size_multiple=16,
    frame_step=6,
    vae_space=8,
    vae_time=6,
    patch=2,
    fps=30,
)


def denoiser_shape(
    config: Mapping[str, Any], dtype_bytes: int = 2, text_tokens: int = 256
) -> DenoiserShape:
    """The shape of diffusers' Mochi transformer from its configuration.

    The feed-forward is gated: its first layer makes two tensors of 8/3 of the width. Text tokens
    are counted as wide as the picture's.
    """
    hidden = config["num_attention_heads"] * config["attention_head_dim"]
    inner = 4 * hidden * 2 // 3
    return DenoiserShape(
        hidden=hidden,
        ffn=2 * inner,
        heads=config["num_attention_heads"],
        layers=config["num_layers"],
        text_tokens=0,
        dtype_bytes=dtype_bytes,
        linear=hidden * (4 * hidden + 3 * inner),
        along=text_tokens,
    )
