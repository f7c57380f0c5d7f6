"""LTX-Video and LTX-2 (the latter with sound in a stream of its own).

Sizes: Lightricks' configuration files. Latents are 32 px and 8 frames, a token is one latent.
Text comes in through cross attention; guide frames are appended as further latent frames; LTX-2's
blocks run sound beside the picture and let each attend to the other.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

from .family import DenoiserShape, VideoFamily

LTX = VideoFamily(
    name="ltx-video",
    transformer_classes=("LTXVideoTransformer3DModel",),
    size_multiple=32,
    frame_step=8,
    vae_space=32,
    vae_time=8,
    patch=1,
    fps=25,
)

LTX2 = dataclasses.replace(
    LTX, name="ltx-2", transformer_classes=("LTX2VideoTransformer3DModel",), sound=True
)


def denoiser_shape(
    config: Mapping[str, Any], dtype_bytes: int = 2, text_tokens: int = 256
) -> DenoiserShape:
    """The shape of diffusers' LTX or LTX-2 transformer from its configuration.

    LTX-2's sound stream, a few per cent of the tokens, is not counted.
    """
    hidden = config["num_attention_heads"] * config["attention_head_dim"]
    return DenoiserShape(
        hidden=hidden,
        ffn=4 * hidden,
        heads=config["num_attention_heads"],
        layers=config["num_layers"],
        text_tokens=text_tokens,
        dtype_bytes=dtype_bytes,
    )
