"""Subjects: how many there are where the prompt asked for one, and whether a region got its own.

For pictures of the embedded model and of its training data, whose prompts name one shape of one
colour over one ground (h3video/nano). No model is asked.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache, lru_cache
from typing import Any

import numpy as np

from h3video.nano.judge import measure, to_lab
from h3video.nano.words import COLOURS, GROUNDS

Array = Any

LEAST_AREA = 0.2
"""A blob is a subject when it has at least this share of the largest one's area ..."""

LEAST_SHARE = 0.003
"""... and at least this share of the frame: the smallest shape that is trained has 0.03 x 0.6."""

LIGHTNESS = 0.5
"""Lightness counts half, as in the judge: bodies are shaded."""


def subject_blobs(frame: Array, colour: str, ground: str) -> list[Array]:
    """Masks [h, w] of the connected parts of a frame that have the colour, largest first.

    frame    [h, w, 3], uint8 or 0..1
    colour   a key of nano.words.COLOURS;  ground   a key of GROUNDS

    A pixel has the colour when it is nearer to the colour's shades than to the ground's and to
    every other colour's.
    """
    from scipy.ndimage import binary_closing, binary_opening, generate_binary_structure, label

    coarse = _bytes(frame) // _STEP
    nearest, behind = _nearest_colour(), _ground_distance(ground)
    at = (coarse[..., 0], coarse[..., 1], coarse[..., 2])
    name, distance = nearest[0][at], nearest[1][at]
    mask = (name == list(COLOURS).index(colour)) & (distance < behind[at])
    square = generate_binary_structure(2, 2)
    mask = binary_closing(binary_opening(mask, square), square, iterations=2)
    number, count = label(mask, square)
    sizes = np.bincount(number.ravel(), minlength=count + 1)[1:]
    order = np.argsort(-sizes, kind="stable")
    if not count:
        return []
    least = max(LEAST_AREA * sizes.max(), LEAST_SHARE * mask.size)
    return [number == i + 1 for i in order if sizes[i] >= least]


def count_subjects(clip: Array, colour: str, ground: str) -> int:
    """Subjects of a clip [f, h, w, 3]: the median over frames of the blobs of the colour.

    A second subject counts when at least half of the frames show it.
    """
    counts = [len(subject_blobs(frame, colour, ground)) for frame in clip]
    return int(np.ceil(np.median(counts)))


@dataclass(frozen=True)
class Adherence:
    """What a region shows is what its prompt said."""

    colour: bool
    ground: bool


def region_adherence(clip: Array, mask: Array, colour: str, ground: str) -> Adherence:
    """Whether a region [h, w] of a clip [f, h, w, 3] shows its colour over its ground.

    Outside the region the judge is shown the region's own median colour of each frame, so nothing
    there can be mistaken for a subject.
    """
    mask = np.asarray(mask, bool)
    if not mask.any():
        raise ValueError("the region has no pixel")
    alone = _bytes(clip).copy()
    for frame in alone:
        frame[~mask] = np.median(frame[mask], axis=0).astype(np.uint8)
    rows, columns = np.nonzero(mask.any(1))[0], np.nonzero(mask.any(0))[0]
    seen = measure(alone[:, rows[0] : rows[-1] + 1, columns[0] : columns[-1] + 1])
    return Adherence(seen.colour == colour, seen.ground == ground)


def _bytes(picture: Array) -> Array:
    picture = np.asarray(picture)
    if picture.dtype == np.uint8:
        return picture
    return (np.clip(picture, 0.0, 1.0) * 255.0).round().astype(np.uint8)


def _body(rgb: tuple[int, int, int]) -> list[Array]:
    """Shades of a body, from its dark rim to its lit side (nano/data.py)."""
    return [np.array(rgb, np.float32) * s for s in (0.65, 0.8, 0.95, 1.1)]


def _distance(shades: list[Array]) -> Array:
    """Distance of every colour of the table to the nearest of the shades, [n, n, n]."""
    half = np.array([LIGHTNESS, 1.0, 1.0], np.float32)
    axis = np.arange(_STEP / 2, 256, _STEP)
    table = to_lab(np.stack(np.meshgrid(axis, axis, axis, indexing="ij"), -1)) * half
    tones = [to_lab(np.clip(s, 0, 255)) * half for s in shades]
    return np.minimum.reduce([np.linalg.norm(table - t, axis=-1) for t in tones])


_STEP = 4
"""Colours are looked up on a table of every fourth level."""


@lru_cache(maxsize=1)
def _nearest_colour() -> tuple[Array, Array]:
    """For every colour of the table the index of the nearest in COLOURS, and how far it is."""
    each = np.stack([_distance(_body(rgb)) for rgb in COLOURS.values()])
    return each.argmin(0), each.min(0)


@cache
def _ground_distance(ground: str) -> Array:
    base = np.array(GROUNDS[ground], np.float32)
    return _distance([base * 0.72, base * 0.86, base, base + 0.22 * (255 - base)])
