"""Elements that a VAE holds a pixel while it decodes: the counts of h3video/memory/decoders.py.

    python benchmarks/vae_memory.py [wan2.1 wan2.2 ltx hunyuan cogvideox mochi nano]

The model classes of diffusers with real widths and random weights, on small frames: live tensors
are counted (a convolution's workspace is not seen), so the figures are a low end.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import Any

import torch
from tiling import LiveBytes  # beside this file


def _wan22() -> Any:
    from diffusers import AutoencoderKLWan

    return AutoencoderKLWan(
        base_dim=160, decoder_base_dim=256, z_dim=48, latents_mean=[0.0] * 48,
        latents_std=[1.0] * 48, in_channels=12, out_channels=12, is_residual=True, patch_size=2,
        scale_factor_spatial=16,
    )  # fmt: skip


def _cogvideox() -> Any:
    from diffusers import AutoencoderKLCogVideoX

    return AutoencoderKLCogVideoX(
        down_block_types=("CogVideoXDownBlock3D",) * 4,
        up_block_types=("CogVideoXUpBlock3D",) * 4,
        block_out_channels=(128, 256, 256, 512), layers_per_block=3,
    )  # fmt: skip


def _nano() -> Any:
    from diffusers import AutoencoderKLWan

    from h3video import nano

    return AutoencoderKLWan.from_pretrained(nano.path(), subfolder="vae")


def _default(name: str) -> Callable[[], Any]:
    def make() -> Any:
        import diffusers

        return getattr(diffusers, name)()

    return make


MODELS: dict[str, tuple[Callable[[], Any], int, int]] = {  # make, channels, latent side
    "wan2.1": (_default("AutoencoderKLWan"), 16, 8), "wan2.2": (_wan22, 48, 6),
    "ltx": (_default("AutoencoderKLLTXVideo"), 128, 4),
    "hunyuan": (_default("AutoencoderKLHunyuanVideo"), 16, 8), "cogvideox": (_cogvideox, 16, 8),
    "mochi": (_default("AutoencoderKLMochi"), 12, 8), "nano": (_nano, 16, 16),
}  # fmt: skip


def main() -> None:
    """Count two lengths each: what grows with the clip shows in the difference."""
    p = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    p.add_argument("models", nargs="*", default=[])
    names = p.parse_args().models or list(MODELS)
    print(f"{'VAE':<10} {'dtype':<9} {'frames':>6} {'elements a pixel':>17} {'and frame':>10}")
    for name in names:
        make, channels, side = MODELS[name]
        for dtype in (torch.bfloat16, torch.float32):
            vae = make().to(dtype).eval()
            for length in (2, 4):
                z = torch.zeros(1, channels, length, side, side, dtype=dtype)
                with torch.inference_mode(), LiveBytes() as live:
                    out = vae.decode(z, return_dict=False)[0]
                frames, height, width = out.shape[-3:]
                each = live.peak / dtype.itemsize / (height * width)
                print(f"{name:<10} {str(dtype)[6:]:<9} {frames:>6} {each:>17.0f} "
                      f"{each / frames:>10.0f}", flush=True)  # fmt: skip


if __name__ == "__main__":
    main()
