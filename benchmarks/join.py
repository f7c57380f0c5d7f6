"""Joins of two chunks that show the same moments a little differently: cell, fade and cut compared.

    python benchmarks/join.py [--size 832x480] [--frames 16] [--pictures FOLDER]

Scenes are drawn, so it is known what is right: a textured ground, and bodies that move across it.
The new chunk differs from the old one as a model's continuation does (bodies a few px elsewhere
until they meet, another grain, a level that is off). What is measured:

ghost     share of the picture's difference |A - B| that is shown as a mixture of both: per point
          the distance of the result from the nearer of A and B, over half of |A - B|. A dissolve
          shows two half-transparent bodies; 0 is a picture that one of the chunks made.
jump      the largest change from one frame to the next over the join, in units of the largest
          change within the chunks: above 1 something pops.
flicker   the largest step of the mean brightness from one frame to the next, of 255.
"""

from __future__ import annotations

import argparse
import itertools
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from h3video.tiling.join import JoinSettings, join_frames, plan_join

MARGIN = 4
"""Frames of each chunk before and after the overlap that are looked at, too."""


def ground(width: int, height: int, seed: int) -> Any:
    """A soft texture of many waves: float32 [height, width, 3] in 0.25..0.6."""
    random = np.random.default_rng(seed)
    y, x = np.mgrid[0:height, 0:width].astype(np.float32) / max(width, height)
    out = np.zeros((height, width, 3), np.float32)
    for _ in range(24):
        a, b = random.normal(0.0, 40.0, 2)
        out += np.sin(a * x + b * y + random.uniform(0.0, 6.3))[..., None] * random.normal(
            0.0, 1.0, 3
        ).astype(np.float32)
    return np.clip(0.42 + 0.03 * out, 0.25, 0.6)


def body(picture: Any, x: float, y: float, radius: float, colour: tuple[float, ...]) -> None:
    """Draw a soft-edged disc, in place."""
    height, width = picture.shape[:2]
    yy, xx = np.mgrid[0:height, 0:width].astype(np.float32)
    cover = np.clip(radius - np.hypot(xx - x, yy - y) + 0.5, 0.0, 1.0)[..., None]
    picture += cover * (np.array(colour, np.float32) - picture)


Track = Callable[[float], tuple[float, float]]


def scene(
    name: str, width: int, height: int, frames: int, seed: int = 0
) -> tuple[Any, Any]:  # fmt: skip
    """Two chunks over MARGIN + frames + MARGIN moments: float32 [n, height, width, 3] each.

    meeting   bodies go their way a few px apart, and meet once in the overlap at their own times
    parting   bodies are together at first and drift apart
    lost      one body is in another place all the time: nothing matches there
    drift     nothing moves; the new chunk is 3/255 brighter and its grain is another
    """
    n = frames + 2 * MARGIN
    under, size = ground(width, height, seed), max(width, height)
    bodies = [
        (0.22, 0.30, 0.50, 0.055, (0.95, 0.25, 0.15), 0.35),
        (0.30, 0.72, -0.40, 0.07, (0.10, 0.25, 0.90), 0.65),
        (0.75, 0.45, 0.30, 0.045, (0.95, 0.90, 0.30), 0.50),
    ]
    chunks = []
    for which in (0, 1):
        grain = np.random.default_rng(seed * 2 + which + 100)
        clip = []
        for f in range(n):
            t = (f - MARGIN) / max(frames - 1, 1)  # 0..1 in the overlap
            picture = under.copy()
            for k, (x, y, speed, radius, colour, meets) in enumerate(bodies):
                off = 0.0
                if which and name == "meeting":
                    off = 0.09 * (t - meets)
                elif which and name == "parting":
                    off = 0.08 * max(t - 0.25 * meets, 0.0)
                elif which and name == "lost" and k == 0:
                    off = 0.16
                still = name == "drift"
                body(
                    picture, (x + (0.0 if still else 0.25 * speed * t) + off) * size,
                    y * height + off * size * 0.4, radius * size, colour,
                )  # fmt: skip
            picture += grain.normal(0.0, 0.006, picture.shape)
            if name == "drift" and which:
                picture += 3.0 / 255.0
            clip.append(picture.astype(np.float32))
        chunks.append(np.stack(clip))
    return chunks[0], chunks[1]


def joined(old: Any, new: Any, settings: JoinSettings) -> tuple[Any, Any, float]:
    """The whole clip, the join's plan, and the seconds that the join took."""
    n = len(old) - 2 * MARGIN
    over = slice(MARGIN, MARGIN + n)
    started = time.perf_counter()
    plan = plan_join(old[over], new[over], settings)
    middle = np.stack(list(join_frames(plan, old[over], new[over])))
    took = time.perf_counter() - started
    rest = new[MARGIN + n :] - np.array(plan.hold, np.float32)
    return np.concatenate([old[:MARGIN], middle, rest]), plan, took


def ghost(old: Any, new: Any, out: Any) -> float:
    """See the module's text."""
    n = len(old) - 2 * MARGIN
    over = slice(MARGIN, MARGIN + n)
    a, b, c = old[over], new[over], out[over]
    nearer = np.minimum(np.abs(c - a), np.abs(c - b)).mean(dtype=np.float64)
    return float(2.0 * nearer / np.abs(a - b).mean(dtype=np.float64))


def change(clip: Any) -> Any:
    """Change from each frame to the next, the largest root mean square of 16 x 16 px."""
    out = []
    for before, now in itertools.pairwise(clip):
        square = ((now - before) ** 2).mean(2)
        rows, columns = (s // 16 * 16 for s in square.shape)
        areas = square[:rows, :columns].reshape(rows // 16, 16, columns // 16, 16).mean((1, 3))
        out.append(float(np.sqrt(areas).max()))
    return np.array(out)


def jump(old: Any, new: Any, out: Any) -> float:
    """See the module's text."""
    return float(change(out).max() / max(change(old).max(), change(new).max()))


def flicker(out: Any) -> float:
    """See the module's text."""
    return float(np.abs(np.diff(out.mean((1, 2, 3), dtype=np.float64))).max() * 255.0)


SCENES = ("meeting", "parting", "lost", "drift")


def main() -> None:
    """Print a table, and write pictures if asked."""
    p = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    p.add_argument("--size", default="832x480")
    p.add_argument("--frames", type=int, default=16)
    p.add_argument("--pictures", type=Path)
    a = p.parse_args()
    width, height = map(int, a.size.split("x"))
    print(f"{width}x{height}, overlap of {a.frames} frames")
    print(f"{'scene':8} {'join':5} {'ghost':>6} {'jump':>6} {'flicker/255':>11} {'seconds':>8}")
    for name in SCENES:
        old, new = scene(name, width, height, a.frames)
        for mode in ("fade", "cut", "cell"):
            out, plan, took = joined(old, new, JoinSettings(mode))
            print(
                f"{name:8} {mode:5} {ghost(old, new, out):6.2f} {jump(old, new, out):6.2f} "
                f"{flicker(out):11.2f} {took:8.2f}   {plan.summary()}"
            )
            if a.pictures:
                from PIL import Image

                a.pictures.mkdir(parents=True, exist_ok=True)
                shown = out[MARGIN : MARGIN + a.frames : max(1, a.frames // 5)]
                strip = np.concatenate(list(shown[:6]), 1).clip(0.0, 1.0)
                Image.fromarray((strip * 255.0).astype(np.uint8)).save(
                    a.pictures / f"{name}-{mode}.png"
                )


if __name__ == "__main__":
    main()
