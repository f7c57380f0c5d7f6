"""HunyuanVideo and HunyuanVideo 1.5.

Sizes: Tencent's configuration files. The first blocks keep text and frame apart (attention sees
both), the later ones run them as one sequence, text first. 1.0 has latents of 8 px and tokens of
2 x 2 latents; 1.5 has latents of 16 px, one token each.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from .family import DenoiserShape, VideoFamily

HUNYUAN = VideoFamily(
    name="hunyuan-video",
    transformer_classes=("HunyuanVideoTransformer3DModel",),
    size_multiple=16,
    frame_step=4,
    vae_space=8,
    vae_time=4,
    patch=2,
    fps=24,
)

HUNYUAN_15 = VideoFamily(
    name="hunyuan-video-1.5",
    transformer_classes=("HunyuanVideo15Transformer3DModel",),
    size_multiple=16,
    frame_step=4,
    vae_space=16,
    vae_time=4,
    patch=1,
    fps=24,
)


def denoiser_shape(
    config: Mapping[str, Any], dtype_bytes: int = 2, text_tokens: int = 256
) -> DenoiserShape:
    """The shape of diffusers' HunyuanVideo transformers from their configuration.

    1.0 has double and single blocks, counted alike; 1.5 has double ones only.
    """
    hidden = config["num_attention_heads"] * config["attention_head_dim"]
    return DenoiserShape(
        hidden=hidden,
        ffn=int(hidden * config["mlp_ratio"]),
        heads=config["num_attention_heads"],
        layers=config["num_layers"] + config.get("num_single_layers", 0),
        text_tokens=0,
        dtype_bytes=dtype_bytes,
        linear=int(hidden * hidden * (4 + 2 * config["mlp_ratio"])),
        along=text_tokens,
    )
