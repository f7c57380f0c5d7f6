"""Pictures to damage: photographs that scikit-image carries, and frames of the embedded model."""

from __future__ import annotations

from functools import cache, lru_cache
from pathlib import Path
from typing import Any

import numpy as np

Array = Any

WIDTH, HEIGHT = 640, 384

PHOTOS = ("coffee", "astronaut", "rocket", "motorcycle_left", "hubble_deep_field", "retina")
"""Colour photographs in the package itself (free licences, see its README): no download."""

PROMPTS = (
    "a red circle moves left over blue waves",
    "a big yellow star moves up over purple dots",
    "a white ring moves right over green checks",
    "a small black square moves down over sand clouds",
)
"""What the embedded model is asked for."""


@cache
def photo(name: str) -> Array:
    """A photograph [HEIGHT, WIDTH, 3] in 0.06..0.94, the middle of it, scaled to cover the frame.

    Neither black nor white is full, so that a tile's tint is not cut off.
    """
    import skimage.data
    from PIL import Image

    folder = Path(skimage.data.__file__).parent
    with Image.open(next(folder.glob(f"{name}.*"))) as image:
        return _fit(image.convert("RGB"))


FRAMES = Path("build/quality/nano-frames.npy")
"""The embedded model's frames, drawn once."""


@lru_cache(maxsize=1)
def nano_frames() -> tuple[Array, ...]:
    """A frame of the embedded model for each of PROMPTS, drawn at WIDTH x HEIGHT; seconds each."""
    from PIL import Image

    from h3video.nano.follow import draw, pipeline

    if not FRAMES.exists():
        with pipeline() as pipe:
            clips = [draw(pipe, p, 7, WIDTH, HEIGHT, 5, 8) for p in PROMPTS]
        FRAMES.parent.mkdir(parents=True, exist_ok=True)
        part = FRAMES.with_suffix(".part.npy")
        np.save(part, np.stack([clip[2] for clip in clips]))
        part.replace(FRAMES)
    return tuple(_fit(Image.fromarray(frame)) for frame in np.load(FRAMES))


def _fit(image: Any) -> Array:
    from PIL import Image

    scale = max(WIDTH / image.width, HEIGHT / image.height)
    size = max(WIDTH, round(image.width * scale)), max(HEIGHT, round(image.height * scale))
    image = image.resize(size, Image.Resampling.LANCZOS)
    left, top = (size[0] - WIDTH) // 2, (size[1] - HEIGHT) // 2
    image = image.crop((left, top, left + WIDTH, top + HEIGHT))
    return 0.06 + 0.88 * np.asarray(image, np.float64) / 255.0
