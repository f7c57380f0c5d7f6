"""Synthetic clips with captions: one shape that moves over a textured ground.

Everything is drawn from signed distances and smooth functions, so any frame
size works and edges are anti-aliased. Lengths are relative to the frame's
shorter side. A clip is decided by a `Scene` alone.
"""

from __future__ import annotations

import math
import zlib
from dataclasses import dataclass
from typing import Any

import numpy as np

from .words import (
    CLASH,
    COLOURS,
    DIRECTIONS,
    GROUNDS,
    JOINS,
    SHAPES,
    SIZES,
    TEXTURES,
    VERBS,
)

Field = Any  # float32 numpy array

HELD_OUT_SHARE = 8
"""One combination in this many is never trained on."""


@dataclass(frozen=True)
class Scene:
    """What is in a clip. `seed` decides what the caption does not say (place, phase, drift)."""

    colour: str
    shape: str
    size: str
    direction: str
    ground: str
    texture: str
    seed: int

    @property
    def held_out(self) -> bool:
        """Whether this combination is kept from training."""
        key = f"{self.colour} {self.shape} {self.direction} {self.ground} {self.texture}"
        return zlib.crc32(key.encode()) % HELD_OUT_SHARE == 0

    def caption(self, rng: np.random.Generator | None = None) -> str:
        """The plain caption, or a random wording of it."""
        verb, join, size = VERBS[0], JOINS[0], self.size
        if rng is not None:
            verb, join = str(rng.choice(VERBS)), str(rng.choice(JOINS))
            if size and rng.random() < 0.15:
                size = ""
        words = ["a", size, self.colour, self.shape, verb, self.direction, join, self.ground,
                 self.texture]  # fmt: skip
        return " ".join(w for w in words if w)


def random_scene(rng: np.random.Generator, held_out: bool | None = False) -> Scene:
    """A random scene: one to train on (False), one never trained on (True), or any (None)."""
    while True:
        ground = str(rng.choice(list(GROUNDS)))
        colour = str(rng.choice([c for c in COLOURS if c not in CLASH[ground]]))
        scene = Scene(
            colour, str(rng.choice(SHAPES)), str(rng.choice(list(SIZES))),
            str(rng.choice(list(DIRECTIONS))), ground, str(rng.choice(TEXTURES)),
            int(rng.integers(2**31)),
        )  # fmt: skip
        if held_out is None or scene.held_out == held_out:
            return scene


def render(scene: Scene, width: int, height: int, frames: int) -> Field:
    """The clip: float32 [frames, height, width, 3], sRGB in 0..1.

    The whole movement is always shown, whatever the number of frames.
    """
    rng = np.random.default_rng(scene.seed)
    short = min(width, height)
    y, x = np.meshgrid(
        (np.arange(height, dtype=np.float32) + 0.5) / short,
        (np.arange(width, dtype=np.float32) + 0.5) / short,
        indexing="ij",
    )
    t = np.linspace(0.0, 1.0, frames) if frames > 1 else np.full(1, 0.5)
    t = t.astype(np.float32)[:, None, None]
    tone = _texture(scene.texture, x, y, t, rng)  # [F, H, W]
    base = np.array(GROUNDS[scene.ground], np.float32) / 255.0
    dark, light = base * 0.72, base + (1.0 - base) * 0.22
    ground = dark + (light - dark) * tone[..., None]

    radius = SIZES[scene.size] * rng.uniform(0.92, 1.08)
    px, py = _path(scene.direction, radius, x, y, t, width / short, height / short, rng)
    distance = shape_distance(scene.shape, px / radius, py / radius) * radius * short  # in px
    cover = np.clip(0.5 - distance, 0.0, 1.0)[..., None]
    shade = 1.0 - 0.12 * np.clip((px + py) / radius, -1.0, 1.0)  # light from the upper left
    rim = np.clip(1.0 + distance / (0.10 * radius * short), 0.0, 1.0)  # a darker edge
    colour = np.array(COLOURS[scene.colour], np.float32) / 255.0
    body = np.clip(colour * (shade * (1.0 - 0.28 * rim))[..., None], 0.0, 1.0)
    return np.clip(ground * (1.0 - cover) + body * cover, 0.0, 1.0).astype(np.float32)


def _path(
    direction: str, radius: float, x: Field, y: Field, t: Field, wide: float, tall: float,
    rng: np.random.Generator,
) -> tuple[Field, Field]:  # fmt: skip
    """Coordinates relative to the moving centre, [F, H, W] each; the shape stays in the frame."""
    dx, dy = DIRECTIONS[direction]
    travel = (wide if dx else tall) - 2.0 * radius
    reach = travel * rng.uniform(0.62, 0.86) / 2.0
    cx = wide / 2.0 + (0.0 if dx else rng.uniform(-0.5, 0.5) * (wide - 2.4 * radius))
    cy = tall / 2.0 + (0.0 if dy else rng.uniform(-0.5, 0.5) * (tall - 2.4 * radius))
    slack = rng.uniform(-1, 1) * (travel / 2.0 - reach)
    cx, cy = cx + abs(dx) * slack, cy + abs(dy) * slack
    along = reach * (2.0 * t - 1.0)
    return x - (cx + dx * along), y - (cy + dy * along)


def _texture(kind: str, x: Field, y: Field, t: Field, rng: np.random.Generator) -> Field:
    """A smooth field [F, H, W] in 0..1 with periods of 0.13 to 0.22 of the shorter side."""
    turn = rng.uniform(-0.35, 0.35)
    u = x * math.cos(turn) + y * math.sin(turn)
    v = -x * math.sin(turn) + y * math.cos(turn)
    k = 2 * math.pi / rng.uniform(0.13, 0.22)
    phase = rng.uniform(0, 2 * math.pi, 4).astype(np.float32)
    drift = rng.uniform(-1, 1) * 2.0
    still = 0.0 * t
    if kind == "waves":
        bend = np.sin(2 * math.pi * u / rng.uniform(0.30, 0.45) + phase[0])
        return 0.5 + 0.5 * np.sin(k * v + phase[1] + 1.12 * bend + drift * t)
    if kind == "stripes":
        wave = np.sin(k * (u + v) / math.sqrt(2) + phase[0]) + still
        return 0.5 + 0.5 * np.tanh(2.2 * wave) / math.tanh(2.2)
    if kind == "checks":
        wave = np.sin(0.8 * k * u + phase[0]) * np.sin(0.8 * k * v + phase[1]) + still
        return 0.5 + 0.5 * np.tanh(3.0 * wave) / math.tanh(3.0)
    if kind == "dots":
        bump = 0.25 * (1 + np.cos(k * u + phase[0])) * (1 + np.cos(k * v + phase[1])) + still
        return 1.0 / (1.0 + np.exp(-10.0 * (bump - 0.5)))
    total = still  # clouds
    for i in range(5):
        a = rng.uniform(0, 2 * math.pi)
        f = 2 * math.pi / rng.uniform(0.35, 0.9)
        along = x * math.cos(a) + y * math.sin(a)
        total = total + np.sin(f * along + phase[i % 4] + i + 0.5 * drift * t)
    return 0.5 + 0.5 * np.tanh(0.55 * total)


def shape_distance(shape: str, px: Field, py: Field) -> Field:
    """Signed distance to a shape of about unit radius, inside negative."""
    if shape == "circle":
        return np.hypot(px, py) - 0.95
    if shape == "ring":
        return np.abs(np.hypot(px, py) - 0.72) - 0.26
    if shape == "square":
        ax, ay = np.abs(px) - 0.82, np.abs(py) - 0.82
        return np.hypot(np.maximum(ax, 0), np.maximum(ay, 0)) + np.minimum(np.maximum(ax, ay), 0)
    if shape == "diamond":
        return (np.abs(px) * 1.25 + np.abs(py) - 1.05) / math.hypot(1.25, 1.0)
    return _polygon(px, py, _TRIANGLE if shape == "triangle" else _STAR)


_TRIANGLE = ((0.0, -1.0), (0.98, 0.78), (-0.98, 0.78))
_STAR = tuple(
    (radius * math.sin(i * math.pi / 5), -radius * math.cos(i * math.pi / 5))
    for i, radius in enumerate([1.08, 0.46] * 5)
)


def _polygon(px: Field, py: Field, corners: tuple[tuple[float, float], ...]) -> Field:
    """Signed distance to a polygon, inside negative (even-odd rule)."""
    best = np.full(px.shape, np.inf, np.float32)
    inside = np.zeros(px.shape, bool)
    for (ax, ay), (bx, by) in zip(corners, corners[1:] + corners[:1]):
        ex, ey = bx - ax, by - ay
        wx, wy = px - ax, py - ay
        h = np.clip((wx * ex + wy * ey) / (ex * ex + ey * ey), 0.0, 1.0)
        best = np.minimum(best, np.hypot(wx - ex * h, wy - ey * h))
        between = (ay > py) != (by > py)
        inside ^= between & (px < ex * (py - ay) / (ey + 1e-12) + ax)
    return np.where(inside, -best, best)
