"""A MiniMax-H3 transformer with random weights, some megabytes, under ComfyUI's key names.

    python tests/comfy/tiny_h3.py COMFYUI/models

ComfyUI reads every size but the latents' channels from the shapes in the file. The width of the
text, 64, must differ from `hidden`: rows as wide as `hidden` would skip the text's own layers.
"""

from __future__ import annotations

import sys
import zlib
from pathlib import Path
from typing import Any

FILE = "diffusion_models/h3video_tiny_minimax_h3.safetensors"

HIDDEN, FFN, HEADS, HEAD, LAYERS, TEXT, TIME = 256, 256, 2, 128, 2, 64, 64
ROTARY = 16
"""Frequencies of an axis; the rotated part, 6 times that, must fit into a head."""

PICTURE, SOUND = 24 * 2 * 2, 32
"""Values of a picture's and a sound's token."""


def weights() -> dict[str, Any]:
    """Key -> float32 numpy array; each depends on its key alone."""
    import numpy as np

    found: dict[str, Any] = {}

    def linear(key: str, outputs: int, inputs: int, bias: bool = False, gain: float = 1.0) -> None:
        random = np.random.default_rng(zlib.crc32(key.encode()))
        values = random.standard_normal((outputs, inputs), dtype=np.float32)
        found[f"{key}.weight"] = values * np.float32(gain / inputs**0.5)
        if bias:
            found[f"{key}.bias"] = random.standard_normal(outputs, dtype=np.float32) * 0.02

    def ones(key: str, size: int) -> None:
        found[f"{key}.weight"] = np.ones(size, np.float32)

    def block(key: str) -> None:
        wide = HEADS * HEAD
        ones(f"{key}.norm1", HIDDEN)
        ones(f"{key}.norm2", HIDDEN)
        linear(f"{key}.attn.qkv_proj", 3 * wide, HIDDEN)
        ones(f"{key}.attn.q_norm", HEAD)
        ones(f"{key}.attn.k_norm", HEAD)
        linear(f"{key}.attn.out_proj", HIDDEN, wide)
        linear(f"{key}.mlp.fc1", 2 * FFN, HIDDEN)
        linear(f"{key}.mlp.fc2", HIDDEN, FFN)

    linear("video_patch_proj", HIDDEN, PICTURE, bias=True)
    linear("audio_patch_proj", HIDDEN, SOUND, bias=True)
    linear("condition_proj", HIDDEN, TEXT, bias=True)
    linear("time_embedder.proj_in", TIME, 256, bias=True)
    linear("time_embedder.proj_out", TIME, TIME, bias=True)
    steps = np.arange(ROTARY, dtype=np.float32) / ROTARY
    found["rope.inv_freq"] = np.float32(10000.0) ** -steps
    block("token_refiner.blocks.0")
    ones("token_refiner.final_norm", HIDDEN)
    for i in range(LAYERS):
        block(f"blocks.{i}")
        linear(f"blocks.{i}.adaln_proj.linear", 18 * HIDDEN, TIME, bias=True, gain=0.5)
    ones("final_layer.norm", HIDDEN)
    linear("final_layer.adaln_proj.linear", 2 * HIDDEN, TIME, bias=True, gain=0.5)
    linear("final_layer.video_out", PICTURE, HIDDEN, bias=True)
    linear("final_layer.audio_out", SOUND, HIDDEN, bias=True)
    return found


def export(models: Path) -> Path:
    """Write the model into a ComfyUI `models` folder; returns the file."""
    from safetensors.numpy import save_file

    path = models / FILE
    path.parent.mkdir(parents=True, exist_ok=True)
    save_file(weights(), str(path))
    return path


if __name__ == "__main__":
    print(export(Path(sys.argv[1])))
