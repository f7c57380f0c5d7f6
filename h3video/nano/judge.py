"""What a clip shows, by simple measurements: colour of the moving thing, ground, direction.

No model is asked. The thing is the largest blob of pixels that differ clearly
from the clip's median colour; its direction is the slope of its centroid. The
measure is itself tested on true clips (tests/nano/test_judge.py).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from .words import COLOURS, GROUNDS, RGB

Array = Any


@dataclass(frozen=True)
class Seen:
    """What was measured; None where nothing could be seen. `area` is the thing's share."""

    colour: str | None
    ground: str
    direction: str | None
    area: float


def measure(clip: Array) -> Seen:
    """Measure a clip, uint8 [F, H, W, 3], sRGB."""
    frames, height, width, _ = clip.shape
    lab = to_lab(clip)
    middle = np.median(lab.reshape(-1, 3), axis=0)
    # Two-toned grounds: the median is one of the tones, so lightness takes the middle of both.
    middle[0] = np.percentile(lab[..., 0], (15, 85)).mean()
    chroma = np.linalg.norm((lab - middle)[..., 1:], axis=-1)
    light = np.abs(lab[..., 0] - middle[0])
    # The ground's own texture varies in lightness, little in hue: thresholds follow it.
    score = np.maximum(
        chroma / (3.0 * np.median(chroma) + 9.0),
        light / min(1.6 * np.percentile(light, 75) + 14.0, 30.0),
    )
    differs = score > 1.0
    blobs = [largest_blob(m) for m in differs]
    where = [(i, np.nonzero(b)) for i, b in enumerate(blobs) if b.any()]
    ground = nearest(np.median(clip[~differs], axis=0), _GROUND_TONES)
    if not where:
        return Seen(None, ground, None, 0.0)
    pixels = [clip[i][core] for i, _ in where if (core := _core(blobs[i])).any()]
    colour = nearest(np.median(np.concatenate(pixels), axis=0), _BODY_TONES)
    t = np.array([i for i, _ in where], float)
    x = np.array([columns.mean() for _, (_, columns) in where])
    y = np.array([rows.mean() for _, (rows, _) in where])
    area = float(np.mean([b.mean() for b in blobs]))
    direction = None
    if len(where) > 2:
        dx, dy = np.polyfit(t, x, 1)[0] * frames, np.polyfit(t, y, 1)[0] * frames
        if max(abs(dx), abs(dy)) > 0.08 * min(height, width):
            if abs(dx) > abs(dy):
                direction = "left" if dx < 0 else "right"
            else:
                direction = "up" if dy < 0 else "down"
    return Seen(colour, ground, direction, area)


def _grow(mask: Array) -> Array:
    """The mask and its four neighbours."""
    out = mask.copy()
    out[1:] |= mask[:-1]
    out[:-1] |= mask[1:]
    out[:, 1:] |= mask[:, :-1]
    out[:, :-1] |= mask[:, 1:]
    return out


def _shrink(mask: Array) -> Array:
    return ~_grow(~mask)


def _core(mask: Array) -> Array:
    """A blob without its anti-aliased rim, or all of it when it is thin."""
    core = _shrink(_shrink(mask))
    return core if core.sum() > 8 else mask


def largest_blob(mask: Array) -> Array:
    """The largest connected part of a mask [H, W], specks removed first."""
    rest = _grow(_shrink(mask)) & mask
    best = np.zeros_like(mask)
    while rest.sum() > best.sum():
        row, column = np.argwhere(rest)[0]
        part = np.zeros_like(mask)
        part[row, column] = True
        size = 0
        while size != (size := int(part.sum())):
            for _ in range(8):
                part = _grow(part) & rest
        rest &= ~part
        if size > best.sum():
            best = part
    return best


def to_lab(rgb: Array) -> Array:
    """CIE L*a*b* (D65) of sRGB 0..255, [..., 3]."""
    a = np.asarray(rgb, np.float32) / 255.0
    a = np.where(a > 0.04045, ((a + 0.055) / 1.055) ** 2.4, a / 12.92)
    to_xyz = np.array(
        [[0.4124, 0.3576, 0.1805], [0.2126, 0.7152, 0.0722], [0.0193, 0.1192, 0.9505]], np.float32
    )
    xyz = a @ to_xyz.T / np.array([0.9505, 1.0, 1.089], np.float32)
    f = np.where(xyz > 0.008856, np.cbrt(xyz), 7.787 * xyz + 16 / 116)
    return np.stack(
        [116 * f[..., 1] - 16, 500 * (f[..., 0] - f[..., 1]), 200 * (f[..., 1] - f[..., 2])], -1
    )


def nearest(rgb: Array, tones: dict[str, Array]) -> str:
    """The name of the nearest tone; lightness counts half."""
    lab = to_lab(np.asarray(rgb, np.float32))
    return min(tones, key=lambda n: float(np.sum(((tones[n] - lab) * _HALF_LIGHT) ** 2)))


def _tones(palette: dict[str, RGB], make: Any) -> dict[str, Array]:
    return {name: to_lab(make(np.array(rgb, np.float32))) for name, rgb in palette.items()}


_HALF_LIGHT = np.array([0.5, 1.0, 1.0], np.float32)
# What data.render makes of the palette: the body is shaded, the ground has two tones.
_BODY_TONES = _tones(COLOURS, lambda rgb: 0.80 * rgb)
_GROUND_TONES = _tones(GROUNDS, lambda rgb: (0.72 * rgb + rgb + 0.22 * (255 - rgb)) / 2)
