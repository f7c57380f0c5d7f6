"""MiniMax-H3: 33B, picture and sound in one packed sequence.

Sizes: the official configuration files; how clips map to latents: docs/models.md. Latents are
16 px, tokens 2 x 2 latents. Frames come in groups of 17 that are 5 latent frames, after 5 frames
that are 2: a clip has 17k + 5 frames. The sequence is text, conditions, sound (two rows a latent
frame, left and right), then the frame's tokens, which every block sees together.
"""

from __future__ import annotations

from .family import VideoFamily

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
