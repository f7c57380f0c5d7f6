"""Does the embedded model do what its prompts say? Held-out prompts, drawn and measured.

    python -m h3video.nano.follow [--prompts 60] [--weights FOLDER] [--sheet FILE.png]

The limits that the tests hold are here and nowhere else, so that a longer
training can raise them.
"""

from __future__ import annotations

import argparse
import contextlib
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from .data import Scene, random_scene, render
from .judge import Seen, measure

LIMITS = {"colour": 0.85, "ground": 0.85, "direction": 0.85}
"""Least share of held-out prompts that must come out right, of each kind."""

JUDGE_LIMIT = 0.98
"""Least share of true clips that the measurement must read right, of each kind."""

PSNR_LIMIT = 26.0
"""Least mean PSNR of the VAE on held-out clips, dB."""

WIDTH, HEIGHT, FRAMES, STEPS, GUIDANCE = 240, 144, 17, 12, 4.0
"""What the prompts are drawn with: px, px, frames, steps, guidance scale."""


@dataclass
class Report:
    """What was asked for and what was seen, by prompt."""

    scenes: list[Scene] = field(default_factory=list)
    seen: list[Seen] = field(default_factory=list)

    def add(self, scene: Scene, seen: Seen) -> None:
        """One more result."""
        self.scenes.append(scene)
        self.seen.append(seen)

    def shares(self) -> dict[str, float]:
        """Share of right answers by kind, 0..1."""
        return {
            kind: float(np.mean([getattr(a, kind) == getattr(b, kind)
                                 for a, b in zip(self.scenes, self.seen)]))
            for kind in LIMITS
        }  # fmt: skip

    def misses(self) -> list[str]:
        """A line for every wrong answer."""
        return [
            f"{scene.caption()}: {kind} {getattr(seen, kind)}"
            for scene, seen in zip(self.scenes, self.seen)
            for kind in LIMITS
            if getattr(scene, kind) != getattr(seen, kind)
        ]


def held_out_scenes(count: int, seed: int = 2026) -> list[Scene]:
    """Scenes of combinations that were never trained on, all directions equally often."""
    rng = np.random.default_rng(seed)
    by_direction: dict[str, list[Scene]] = {}
    while min((len(v) for v in by_direction.values()), default=0) * 4 < count + 3 or (
        len(by_direction) < 4
    ):
        scene = random_scene(rng, held_out=True)
        by_direction.setdefault(scene.direction, []).append(scene)
    turns = zip(*by_direction.values())
    return [scene for turn in turns for scene in turn][:count]


def true_clips(scenes: Sequence[Scene]) -> Report:
    """The measurement on the clips themselves: how far it can be trusted."""
    report = Report()
    for scene in scenes:
        clip = render(scene, WIDTH, HEIGHT, FRAMES)
        report.add(scene, measure((clip * 255).round().astype(np.uint8)))
    return report


def best_dtype() -> Any:
    """bfloat16 on a CPU that multiplies it in hardware, else float32."""
    import torch

    checks = ("_is_amx_tile_supported", "_is_avx512_bf16_supported")
    quick = any(getattr(torch.cpu, name, lambda: False)() for name in checks)
    return torch.bfloat16 if quick else torch.float32


@contextlib.contextmanager
def pipeline(weights: str | os.PathLike[str] | None = None) -> Iterator[Any]:
    """The embedded pipeline on the CPU, its VAE in the memory layout that is quick there."""
    from diffusers import WanPipeline

    from . import path
    from .vae import fast_convolutions

    with fast_convolutions():
        pipe = WanPipeline.from_pretrained(str(weights or path()), torch_dtype=best_dtype())
        pipe.set_progress_bar_config(disable=True)
        yield pipe


def draw(
    pipe: Any, prompt: str, seed: int, width: int = WIDTH, height: int = HEIGHT,
    frames: int = FRAMES, steps: int = STEPS, guidance: float = GUIDANCE,
) -> Any:  # fmt: skip
    """A clip, uint8 [F, H, W, 3]."""
    import torch

    made = pipe(
        prompt, negative_prompt="", width=width, height=height, num_frames=frames,
        num_inference_steps=steps, guidance_scale=guidance, output_type="np",
        generator=torch.Generator().manual_seed(seed), max_sequence_length=512,
    )  # fmt: skip
    return (made.frames[0] * 255).round().astype(np.uint8)


def follow(pipe: Any, scenes: Sequence[Scene], keep: list[Any] | None = None) -> Report:
    """Draw every scene's caption and measure it; clips are appended to `keep` when given."""
    report = Report()
    for number, scene in enumerate(scenes):
        clip = draw(pipe, scene.caption(), seed=number)
        report.add(scene, measure(clip))
        if keep is not None:
            keep.append(clip)
    return report


def main(argv: list[str] | None = None) -> int:
    """The command line; the exit status is 1 when a limit is missed."""
    parser = argparse.ArgumentParser(prog="python -m h3video.nano.follow")
    parser.add_argument("--prompts", type=int, default=60)
    parser.add_argument("--weights", help="folder in diffusers format (default: the embedded one)")
    parser.add_argument("--sheet", help="write five frames of every clip to this PNG")
    args = parser.parse_args(argv)
    clips: list[Any] = []
    with pipeline(args.weights) as pipe:
        report = follow(pipe, held_out_scenes(args.prompts), clips)
    print("\n".join(report.misses()))
    if args.sheet:
        from PIL import Image

        picks = np.linspace(0, FRAMES - 1, 5).round().astype(int)
        rows = [np.concatenate([clip[i] for i in picks], 1) for clip in clips]
        Image.fromarray(np.concatenate(rows)).save(args.sheet)
    shares = report.shares()
    for kind, share in shares.items():
        print(f"{kind}: {share:.0%} of {args.prompts} prompts, limit {LIMITS[kind]:.0%}")
    return int(any(share < LIMITS[kind] for kind, share in shares.items()))


if __name__ == "__main__":
    raise SystemExit(main())
