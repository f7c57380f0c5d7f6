"""MiniMax-H3: 33B, picture and sound in one packed sequence.

Sizes: the official configuration files; how clips map to latents: docs/models.md. Latents are
16 px, tokens 2 x 2 latents. Frames come in groups of 17 that are 5 latent frames, after 5 frames
that are 2: a clip has 17k + 5 frames. The sequence is text, conditions, sound (two rows a latent
frame, left and right), then the frame's tokens, which every block sees together.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from .family import DenoiserShape, VideoFamily

MINIMAX_H3 = VideoFamily(
    name="minimax-h3",
    transformer_classes=("MiniMaxH3Transformer3DModel", "MiniMaxH3TransformerModel"),
    size_multiple=32,
    frame_step=17,
    vae_space=16,
    vae_time=4,
    patch=2,
    fps=24,
    frame_first=5,
    latent_first=2,
    latent_step=5,
    sound=True,
)


def denoiser_shape(
    config: Mapping[str, Any], dtype_bytes: int = 2, text_tokens: int = 512
) -> DenoiserShape:
    """The shape of diffusers' MiniMax-H3 transformer from its configuration.

    The feed-forward is gated: its first layer is twice `ffn_dim` wide, the largest tensor of a
    block. Attention is a third wider than the hidden states, which is not counted.
    """
    return DenoiserShape(
        hidden=config["hidden_size"],
        ffn=2 * config["ffn_dim"],
        heads=config["num_attention_heads"],
        layers=config["num_layers"],
        text_tokens=text_tokens,
        dtype_bytes=dtype_bytes,
    )
