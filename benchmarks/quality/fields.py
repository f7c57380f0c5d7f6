"""Fields: what tiles of a video model do to a picture, each in its pure form and known strength.

Every tile damages its part of the picture in its own way; the damaged parts are blended with the
tiling's weights, as predictions are. A seed decides the damages, whatever the tiling: tile k of two
tilings has the same one, and the number of tiles is all that differs.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from .tilings import Tiling

Array = Any
Damage = Callable[[Array, np.random.Generator], Array]

TINT = 6 / 255
"""Standard deviation of a tile's tint, each channel."""

GAMMA = 0.05
"""Standard deviation of the logarithm of a tile's gamma."""

SHIFT = (1.0, 4.0)
"""Px by which a tile's picture is off, in a random direction."""

TEXTURE, GRAIN = 6 / 255, 1.2
"""Strength of a tile's own texture, and the size of its grain in px."""


def tint(picture: Array, rng: np.random.Generator) -> Array:
    """The picture in a colour cast."""
    return picture + rng.normal(0.0, TINT, 3)


def gamma(picture: Array, rng: np.random.Generator) -> Array:
    """The picture with another contrast: darker or brighter in the middle tones."""
    return np.clip(picture, 0.0, 1.0) ** np.exp(rng.normal(0.0, GAMMA))


def misalignment(picture: Array, rng: np.random.Generator) -> Array:
    """The picture moved by a few px, with parts of a pixel; mirrored at its edge."""
    from scipy.ndimage import shift

    length, angle = rng.uniform(*SHIFT), rng.uniform(0.0, 2.0 * np.pi)
    by = (length * np.sin(angle), length * np.cos(angle), 0.0)
    return shift(picture, by, order=1, mode="mirror")


def texture(picture: Array, rng: np.random.Generator) -> Array:
    """The picture with a grain of its own, alike in all channels."""
    from scipy.ndimage import gaussian_filter

    grain = gaussian_filter(rng.normal(size=picture.shape[:2]), GRAIN, mode="wrap")
    return picture + (TEXTURE / grain.std() * grain)[..., None]


FIELDS: dict[str, Damage] = {
    "tint": tint, "gamma": gamma, "misalignment": misalignment, "texture": texture,
}  # fmt: skip


MARGIN = 8
"""Px around a tile that are damaged with it: more than a shift moves or a grain is wide."""


def damaged(picture: Array, tiling: Tiling, damage: Damage, seed: int) -> Array:
    """The picture [h, w, 3] as a tiling whose tiles are damaged shows it."""
    height, width, _ = picture.shape
    if tiling.owner.shape != (height, width):
        raise ValueError(f"the tiling is for {tiling.owner.shape}, the picture is {picture.shape}")
    out = np.zeros(picture.shape)
    for number, weights in enumerate(tiling.weights):
        if not len(weights.points):
            continue
        rng = np.random.default_rng((seed, number))
        y, x = np.divmod(weights.points, width)
        top, left = max(0, y.min() - MARGIN), max(0, x.min() - MARGIN)
        tile = damage(picture[top : y.max() + 1 + MARGIN, left : x.max() + 1 + MARGIN], rng)
        out[y, x] += weights.weight[:, None] * tile[y - top, x - left]
    return out
