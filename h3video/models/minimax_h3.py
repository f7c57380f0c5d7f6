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
    """The shape of diffusers' MiniMax-H3 transformer from its configuration."""
    return shape(
        config["hidden_size"], config["ffn_dim"], config["num_attention_heads"],
        config["attention_head_dim"], config["num_layers"], dtype_bytes, text_tokens,
    )  # fmt: skip


def shape(
    hidden: int, ffn: int, heads: int, head_dim: int, layers: int, dtype_bytes: int = 2,
    along: int = 512,
) -> DenoiserShape:  # fmt: skip
    """The sizes of a MiniMax-H3.

    ffn      of the second layer: the feed-forward is gated, its first layer twice as wide
    along    tokens of text, conditions and sound
    Attention may be wider than the hidden states (7168 of 5376); text is in the sequence.
    """
    inner = heads * head_dim
    return DenoiserShape(
        hidden, 2 * ffn, heads, layers, 0, dtype_bytes, inner=inner,
        linear=hidden * (4 * inner + 3 * ffn), along=along,
    )  # fmt: skip
