"""Train the transformer and the text encoder together: flow matching on stored latents.

Small clips first, so that words are learnt cheaply, then larger ones. In the
last stretch some steps see only part of a frame's tokens, as tiles do.
"""

from __future__ import annotations

import copy
import math
import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from .latents import Size, load
from .muon import Muon
from .place import UNTIL, WEIGHT, PlaceProbes
from .text import make_encoder, make_tokenizer
from .transformer import compiled_block, forward, make_transformer, patches_of

BATCH: dict[Size, int] = {
    (160, 96, 17): 16, (240, 144, 17): 7, (320, 192, 25): 2, (480, 288, 33): 2,
}  # fmt: skip
"""About 4,800 tokens a step, twice that for the largest (compiled code wants a batch over 1)."""

MIX: tuple[tuple[float, tuple[float, float, float, float]], ...] = (
    (0.40, (0.80, 0.20, 0.00, 0.00)),
    (0.72, (0.30, 0.50, 0.20, 0.00)),
    (1.00, (0.15, 0.50, 0.20, 0.15)),
)
"""Until which share of the time, and how often each size of BATCH is drawn."""

HIGH_SHIFT, HIGH_SHARE = 7.0, 0.85
DROP_CAPTION = 0.1
PARTS_FROM, PARTS_SHARE = 0.6, 0.3
MOVING_UNTIL, MOVING_WEIGHT, MOVING_FROM = 0.75, 5.0, 0.6
"""What moves takes 5 % of the tokens and has two thirds of the words: until three quarters of the
time its tokens count five times. A token moves when in the mean it is this far from the clip's
median."""

RATE = 3e-3
EMA = 0.998


def noise_levels(count: int) -> Tensor:
    """Random noise levels in 0..1, [count], mostly high.

    A frame of 300 tokens shows its ground's colour through the noise at 0.95 already, so only
    above that must the model ask the prompt. The usual logit-normal draw spends 3 % of the
    steps there and learns to ignore prompts; this one spends 27 %.
    """
    u = torch.rand(count).clamp(1e-3, 1.0)
    shift = torch.where(torch.rand(count) < HIGH_SHARE, HIGH_SHIFT, 1.0)
    return shift * u / (1 + (shift - 1) * u)


class Trainer:
    """Weights in float32, the work in bfloat16 copies of them, an average for the result."""

    def __init__(self, seed: int) -> None:
        torch.manual_seed(seed)
        self.rng = np.random.default_rng(seed)
        self.tokenizer = make_tokenizer()
        self.masters = nn.ModuleDict({"text": make_encoder(), "dit": make_transformer()})
        self.work = copy.deepcopy(self.masters).to(torch.bfloat16)
        self.names = [n for n, _ in self.masters.named_parameters()]
        self.average = {n: p.detach().clone() for n, p in self.masters.named_parameters()}
        matrices, wide, rest = [], [], []
        for name, p in self.masters.named_parameters():
            if p.ndim == 2 and (name.startswith("dit.blocks") or "text_embedder" in name):
                matrices.append(p)
            elif p.ndim == 2 and name.startswith("text.encoder") and "bias" not in name:
                wide.append(p)
            else:
                rest.append(p)
        self.optimisers: list[torch.optim.Optimizer] = [
            Muon(matrices, lr=RATE, weight_decay=0.01),
            # A step of Adam changes every weight by about the rate. Summed over 4096 inputs
            # that is an earthquake: at 1e-3 the encoder soon said the same for every word.
            torch.optim.AdamW([{"params": rest, "lr": 8e-4}, {"params": wide, "lr": 6e-5}],
                              betas=(0.9, 0.98), weight_decay=0.0),
        ]  # fmt: skip
        self.rates = [g["lr"] for g in self._groups()]
        self.run_block = compiled_block()
        self.probes = PlaceProbes()
        self.step = 0

    def _groups(self) -> Iterator[dict[str, Any]]:
        for optimiser in self.optimisers:
            yield from optimiser.param_groups

    def text(self, captions: list[str], length: int) -> Tensor:
        """Prompt embeddings as the pipeline makes them: zeros after the prompt's end."""
        ids = self.tokenizer(captions, padding=True, return_tensors="pt")
        hidden = self.work["text"](ids.input_ids, ids.attention_mask).last_hidden_state
        hidden = (hidden * ids.attention_mask[..., None])[:, :length]
        return F.pad(hidden, (0, 0, 0, length - hidden.shape[1]))

    def part_of(self, columns: int, rows: int) -> Tensor:
        """Spatial tokens around a random point, 25 to 75 % of the frame."""
        y, x = np.divmod(np.arange(columns * rows), columns)
        cy, cx = self.rng.uniform(0, rows), self.rng.uniform(0, columns)
        count = int(self.rng.uniform(0.25, 0.75) * columns * rows)
        near = np.argsort((y - cy) ** 2 + (x - cx) ** 2, kind="stable")[:count]
        return torch.from_numpy(np.sort(near))

    def padded_length(self, done: float) -> int:
        """Rows of prompt embedding. The pipeline pads to 512, ComfyUI too: any number must do,
        but words are learnt sooner with few empty rows beside them."""
        if self.rng.random() < (0.02 if done < 0.3 else 0.10):
            return 512
        return int(self.rng.choice([16] * 4 + [32, 64] if done < 0.3 else [16, 16, 32, 64, 128]))

    def loss(
        self, latents: Tensor, captions: list[str], length: int, parts: bool, moving: float = 1.0,
        probe: bool = False,
    ) -> Tensor:  # fmt: skip
        """Mean squared error of the velocity at random noise levels; `moving` is the weight of
        tokens that move, `probe` whether to ask for places, too."""
        sigma = noise_levels(len(latents))
        s = sigma.view(-1, 1, 1, 1, 1)
        noise = torch.randn_like(latents)
        keep = None
        if parts and self.rng.random() < PARTS_SHARE:
            keep = self.part_of(latents.shape[-1] // 2, latents.shape[-2] // 2)
        hidden: list[Tensor] = []
        out, index = forward(
            self.work["dit"], (1 - s) * latents + s * noise, sigma * 1000,
            self.text(captions, length), keep, self.run_block, hidden,
        )  # fmt: skip
        want = patches_of(noise - latents)
        moves = patches_of((latents - latents.median(2, keepdim=True).values).abs()).mean(2)
        if index is not None:
            want, moves = want[:, index], moves[:, index]
        weight = 1.0 + (moving - 1.0) * (moves > MOVING_FROM).float()
        error = ((out.float() - want) ** 2).mean(2)
        loss = (error * weight).sum() / weight.sum()
        if probe and index is None:
            frames, rows, columns = latents.shape[2], latents.shape[3] // 2, latents.shape[4] // 2
            loss = loss + WEIGHT * self.probes.loss(hidden, frames, rows, columns)
        return loss

    def update(self, loss: Tensor, scale: float) -> None:
        """One optimiser step; the average follows."""
        for p in self.work.parameters():
            p.grad = None
        loss.backward()
        self.probes.update()
        masters = list(self.masters.parameters())
        for p, q in zip(masters, self.work.parameters()):
            p.grad = None if q.grad is None else q.grad.float()
        torch.nn.utils.clip_grad_norm_(masters, 1.0)
        for group, rate in zip(self._groups(), self.rates):
            group["lr"] = rate * scale
        for optimiser in self.optimisers:
            optimiser.step()
        self.step += 1
        keep = min(EMA, self.step / (self.step + 20))
        with torch.no_grad():
            torch._foreach_lerp_(list(self.average.values()), masters, 1 - keep)
            torch._foreach_copy_(list(self.work.parameters()), masters)

    def save(self, path: Path, done: float) -> None:
        """Checkpoint, written atomically."""
        state = {
            "masters": self.masters.state_dict(), "average": self.average, "step": self.step,
            "done": done, "optimisers": [o.state_dict() for o in self.optimisers],
        }  # fmt: skip
        partial = path.with_suffix(".partial")
        torch.save(state, partial)
        os.replace(partial, path)

    def resume(self, path: Path) -> float:
        """Go on from a checkpoint; returns the share of the time that is done."""
        state = torch.load(path)
        self.masters.load_state_dict(state["masters"])
        with torch.no_grad():
            for name, value in state["average"].items():
                self.average[name].copy_(value)
            for p, q in zip(self.work.parameters(), self.masters.parameters()):
                p.copy_(q)
        for optimiser, saved in zip(self.optimisers, state["optimisers"]):
            optimiser.load_state_dict(saved)
        self.step = state["step"]
        return float(state["done"])


def train(folder: Path, seed: int, minutes: float, resume: bool) -> Path:
    """Train on the latents in folder/latents for the given minutes; returns the checkpoint."""
    path = folder / "transformer.pt"
    # Averages of gradients that have died out become denormal, and slow a CPU by a third.
    torch.set_flush_denormal(True)
    trainer = Trainer(seed)
    begin = trainer.resume(path) if resume and path.exists() else 0.0
    clips = load(folder / "latents")
    started = saved = time.time()
    while (done := begin + (time.time() - started) / (minutes * 60)) < 1.0:
        mix = next(weights for until, weights in MIX if done <= until)
        size = list(BATCH)[trainer.rng.choice(len(BATCH), p=mix)]
        latents, wordings = clips[size]
        picks = trainer.rng.integers(len(latents), size=BATCH[size])
        captions = [
            "" if trainer.rng.random() < DROP_CAPTION
            else wordings[i][trainer.rng.integers(len(wordings[i]))]
            for i in picks
        ]  # fmt: skip
        batch = torch.stack([latents[i] for i in picks]).float()
        fall = max(0.03, 0.5 * (1 + math.cos(math.pi * (done - 0.5) / 0.5)))
        scale = min(1.0, (trainer.step + 1) / 150) * (1.0 if done < 0.5 else fall)
        moving = MOVING_WEIGHT if done < MOVING_UNTIL else 1.0
        loss = trainer.loss(batch, captions, trainer.padded_length(done), done > PARTS_FROM, moving,
                            probe=done < UNTIL)  # fmt: skip
        trainer.update(loss, scale)
        if trainer.step % 50 == 0:
            print(f"transformer {done:.0%} step {trainer.step} {size} loss {loss.item():.4f}",
                  flush=True)  # fmt: skip
        if time.time() - saved > 120:
            trainer.save(path, done)
            saved = time.time()
    trainer.save(path, 1.0)
    return path
