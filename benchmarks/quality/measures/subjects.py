"""Subjects: how many there are where the prompt asked for one, and whether a region got its own.

For pictures of the embedded model and of its training data, whose prompts name one shape over one
ground of two tones (h3video/nano). No model is asked. What is not the ground is a subject, whatever
its colour: a second shape in a wrong colour is a second shape.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from h3video.nano.judge import measure, to_lab
from h3video.nano.words import GROUNDS

Array = Any

FAR = 15.0
"""Distance in L*a*b* from the ground's tones from which a pixel is not ground. Nano's grounds stay
within 3 in 9 of 10 pixels, its subjects are 25 and more away."""

LEAST_AREA = 0.2
"""A part is a subject when it has at least this share of the clip's largest one's area ..."""

LEAST_SHARE = 0.002
"""... and of the frame: the smallest that is trained has 0.03 there, and nano draws it a quarter
as large on a canvas of twice the size."""

LEAST_TIME = 0.25
"""Share of the frames in which something must be seen at least."""

_TRIM = 0.75
"""Share of the pixels that are taken for ground, at least: the largest shape covers 0.14."""


def ground_distance(clip: Array, ground: str) -> Array:
    """Distance in L*a*b* of every pixel [f, h, w] of a clip from its ground's tones.

    clip     [f, h, w, 3], uint8 or 0..1
    ground   a key of nano.words.GROUNDS, where the search starts: a ground that came out in
             another colour is found as well

    A ground mixes a dark and a light tone: a line in L*a*b*, fitted to the nearest pixels.
    """
    lab = to_lab(_bytes(clip))
    step = max(2, lab.shape[1] // 72)  # enough pixels to fit a line to
    pixels = lab[:, ::step, ::step].reshape(-1, 3)
    base = np.array(GROUNDS[ground], np.float32)
    dark, light = to_lab(base * 0.72), to_lab(base + 0.22 * (255.0 - base))
    half = float(np.linalg.norm(light - dark)) / 2.0
    axis, middle, ends = (light - dark) / (2.0 * half), np.median(pixels, 0), (-half, half)
    for _ in range(8):
        far = _from_line(pixels, middle, axis, ends)
        near = pixels[far <= np.quantile(far, _TRIM)]
        middle = near.mean(0)
        axis = np.linalg.eigh(np.cov((near - middle).T))[1][:, -1].astype(np.float32)
        low, high = np.percentile((near - middle) @ axis, (1, 99))
        ends = (float(low), float(high))
    return _from_line(lab, middle, axis, ends)


def _from_line(lab: Array, middle: Array, axis: Array, ends: tuple[float, float]) -> Array:
    """Distance from the part of a line that lies between two ends."""
    along = (lab - middle) @ axis
    nearest = np.clip(along, *ends)[..., None] * axis
    return np.linalg.norm(lab - middle - nearest, axis=-1)


def subject_blobs(clip: Array, ground: str) -> list[list[Array]]:
    """Masks [h, w] of the subjects of every frame of a clip [f, h, w, 3], largest first.

    ground   a key of nano.words.GROUNDS, see ground_distance

    A subject is a connected part that is not ground and neither a speck nor small against the
    largest of the clip. Gaps of a fiftieth of the frame's shorter side are closed first.
    """
    from scipy.ndimage import binary_closing, binary_opening, generate_binary_structure, label

    square = generate_binary_structure(2, 2)
    gap = max(1, round(min(clip.shape[1:3]) / 100))
    frames = []
    for far in ground_distance(clip, ground):
        mask = np.pad(binary_opening(far > FAR, square), gap)
        number, count = label(binary_closing(mask, square, iterations=gap), square)
        number = number[gap:-gap, gap:-gap]
        frames.append((number, np.bincount(number.ravel(), minlength=count + 1)[1:]))
    largest = max((int(sizes.max()) for _, sizes in frames if len(sizes)), default=0)
    least = max(LEAST_AREA * largest, LEAST_SHARE * frames[0][0].size)
    return [
        [number == i + 1 for i in np.argsort(-sizes, kind="stable") if sizes[i] >= least]
        for number, sizes in frames
    ]


def count_subjects(clip: Array, ground: str) -> int:
    """Subjects of a clip [f, h, w, 3]; 0 when fewer than a quarter of the frames show any.

    A second one counts when at least half of the frames that show any show it.
    """
    counts = [len(found) for found in subject_blobs(clip, ground)]
    shown = [n for n in counts if n]
    if len(shown) < LEAST_TIME * len(counts):
        return 0
    return int(np.ceil(np.median(shown)))


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
