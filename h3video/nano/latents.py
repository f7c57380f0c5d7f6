"""Training clips as latents, made once by the trained VAE and kept on disk."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from .data import random_scene, render
from .vae import encode, fast_convolutions

Size = tuple[int, int, int]
"""Width, height in px and frames of a clip."""

CLIPS: dict[Size, int] = {
    (160, 96, 17): 1760, (240, 144, 17): 770, (320, 192, 25): 104, (480, 288, 33): 52,
}  # fmt: skip
"""How many clips of each size are made."""

WORDINGS = 6
PART = 20


def statistics(vae: Any, seed: int = 0) -> tuple[Tensor, Tensor]:
    """Mean and standard deviation of every latent channel over a few dozen clips: [16] each."""
    rng = np.random.default_rng(seed)
    sizes: list[Size] = [(240, 144, 17)] * 30 + [(480, 288, 17)] * 6
    with fast_convolutions():
        flat = [latents_of(vae, render(random_scene(rng), *s)).reshape(16, -1) for s in sizes]
    both = torch.cat(flat, 1)
    return both.mean(1), both.std(1)


@torch.no_grad()
def latents_of(vae: Any, clip: Any) -> Tensor:
    """Latent means [16, T, h, w], float32, of a clip float32 [F, H, W, 3] in 0..1."""
    x = torch.from_numpy(clip).permute(3, 0, 1, 2)[None].to(vae.dtype) * 2 - 1
    return encode(vae, x).float()[0]


def make(vae: Any, folder: Path, mean: Tensor, std: Tensor, seed: int) -> None:
    """Write parts of PART clips until CLIPS are there; goes on where it stopped."""
    folder.mkdir(parents=True, exist_ok=True)
    shape = (16, 1, 1, 1)
    for size, count in CLIPS.items():
        for part in range(-(-count // PART)):
            path = folder / f"{'x'.join(map(str, size))}-{part:04d}.pt"
            if path.exists():
                continue
            rng = np.random.default_rng([seed, *size, part])
            captions, latents = [], []
            with fast_convolutions():
                for _ in range(PART):
                    scene = random_scene(rng)
                    z = latents_of(vae, render(scene, *size))
                    latents.append(((z - mean.view(shape)) / std.view(shape)).bfloat16())
                    wordings = [scene.caption(rng) for _ in range(WORDINGS - 1)]
                    captions.append([scene.caption(), *wordings])
            partial = path.with_suffix(".partial")
            torch.save({"size": size, "z": torch.stack(latents), "c": captions}, partial)
            os.replace(partial, path)
            print(f"latents {path.name}", flush=True)


def load(folder: Path) -> dict[Size, tuple[list[Tensor], list[list[str]]]]:
    """Latents [16, T, h, w] and wordings by size."""
    out: dict[Size, tuple[list[Tensor], list[list[str]]]] = {}
    for path in sorted(folder.glob("*.pt")):
        part = torch.load(path)
        latents, captions = out.setdefault(tuple(part["size"]), ([], []))
        latents += list(part["z"])
        captions += part["c"]
    return out
