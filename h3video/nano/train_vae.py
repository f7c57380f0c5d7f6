"""Train the VAE: single frames first, then clips, with a little latent noise at the end."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from .data import random_scene, render
from .muon import Muon
from .vae import decode, encode, fast_convolutions, make_vae, psnr

POOL = ((240, 144, 190), (480, 288, 50))  # width, height, clips


class Clips:
    """A pool of rendered clips, and random crops of them."""

    def __init__(self, seed: int) -> None:
        rng = np.random.default_rng(seed)
        self.clips = [
            self._pixels(render(random_scene(rng), w, h, 17)) for w, h, n in POOL for _ in range(n)
        ]
        held = np.random.default_rng(seed + 99)
        self.held_out = [render(random_scene(held, True), 240, 144, 17) for _ in range(8)]
        self.rng = np.random.default_rng(seed + 5)

    @staticmethod
    def _pixels(clip: Any) -> Tensor:
        return torch.from_numpy((clip * 255).astype(np.uint8))

    def batch(self, count: int, frames: int, side: int) -> Tensor:
        """[count, 3, frames, side, side] in -1..1."""
        out = []
        for _ in range(count):
            clip = self.clips[self.rng.integers(len(self.clips))]
            f, y, x = (
                self.rng.integers(0, n - m + 1)
                for n, m in zip(clip.shape[:3], (frames, side, side))
            )
            out.append(clip[f : f + frames, y : y + side, x : x + side])
        return torch.stack(out).permute(0, 4, 1, 2, 3).float() / 127.5 - 1


def loss_of(vae: Any, x: Tensor, noise: float) -> Tensor:
    """Charbonnier plus gradients; `noise` in standard deviations of the latents."""
    with torch.autocast("cpu", torch.bfloat16):
        z = encode(vae, x).float()
        if noise:
            spread = z.detach().std((0, 2, 3, 4), keepdim=True)
            z = z + noise * torch.randn_like(z) * spread
        y = decode(vae, z).float()
    e = y - x
    steps = (e[..., 1:] - e[..., :-1]).abs().mean() + (e[..., 1:, :] - e[..., :-1, :]).abs().mean()
    return torch.sqrt(e * e + 1e-4).mean() + 0.25 * steps + 1e-4 * (z**2).mean()


def train(folder: Path, seed: int, minutes: tuple[float, float]) -> Path:
    """Train for the given minutes on frames and on clips; returns the checkpoint.

    A stage that is finished is not run again, one that is not starts over.
    """
    folder.mkdir(parents=True, exist_ok=True)
    torch.manual_seed(seed)
    vae = make_vae()
    clips = Clips(seed)
    stages: list[tuple[str, float, float, Callable[[int], Tensor], tuple[float, float, float]]] = [
        ("frames", minutes[0], 3e-3,
         lambda i: clips.batch(14, 1, 64) if i % 4 else clips.batch(6, 1, 96), (0.0, 0.05, 0.4)),
        ("clips", minutes[1], 1.5e-3,
         lambda i: clips.batch(4, 5, 64) if i % 3 else clips.batch(2, 9, 64), (0.05, 0.1, 0.5)),
    ]  # fmt: skip
    for name, budget, rate, make, (early, late, change) in stages:
        path = folder / f"vae-{name}.pt"
        if path.exists():
            vae.load_state_dict(torch.load(path))
            continue
        with fast_convolutions():
            _stage(vae, name, budget * 60, rate, make, (early, late, change))
            with torch.autocast("cpu", torch.bfloat16):
                found = [psnr(vae, c) for c in clips.held_out]
        print(f"vae {name}: held out {np.mean(found):.1f} dB", flush=True)
        torch.save(vae.state_dict(), path)
    return folder / "vae-clips.pt"


def _stage(
    vae: Any, name: str, seconds: float, rate: float, make: Callable[[int], Tensor],
    noise: tuple[float, float, float],
) -> None:  # fmt: skip
    early, late, change = noise  # latent noise before and after this share of the time
    kernels = [p for p in vae.parameters() if p.ndim >= 4 and p.shape[0] > 3]
    known = {id(p) for p in kernels}
    rest = [p for p in vae.parameters() if id(p) not in known]
    optimisers: list[torch.optim.Optimizer] = [
        Muon(kernels, rate), torch.optim.AdamW(rest, rate, betas=(0.9, 0.95), weight_decay=0.0)
    ]  # fmt: skip
    started, step = time.time(), 0
    while (done := (time.time() - started) / seconds) < 1.0:
        scale = min(1.0, (step + 1) / 80) * (0.49 * (1 + math.cos(math.pi * done)) + 0.02)
        loss = loss_of(vae, make(step), early if done < change else late)
        for o in optimisers:
            o.zero_grad(set_to_none=True)
            for group in o.param_groups:
                group["lr"] = rate * scale
        loss.backward()
        torch.nn.utils.clip_grad_norm_(vae.parameters(), 1.0)
        for o in optimisers:
            o.step()
        step += 1
        if step % 50 == 0:
            print(f"vae {name} {done:.0%} step {step} loss {loss.item():.4f}", flush=True)
