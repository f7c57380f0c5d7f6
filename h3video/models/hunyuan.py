"""HunyuanVideo and HunyuanVideo 1.5.

Sizes: Tencent's configuration files. The first blocks keep text and frame apart (attention sees
both), the later ones run them as one sequence, text first. 1.0 has latents of 8 px and tokens of
2 x 2 latents; 1.5 has latents of 16 px, one token each.
"""

from __future__ import annotations

from .family import VideoFamily

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
