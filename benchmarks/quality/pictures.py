"""Pictures of the docs: what the seams look like, and where their energy lies."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from . import photos
from .field_runs import SIDE
from .fields import FIELDS, damaged
from .nano_variants import PREVIOUS, UNTILED
from .tilings import HEXAGONS, RECTANGLES, tiling

Array = Any

FOLDER = Path(__file__).parents[2] / "docs" / "img"
GAP = 8
GAIN = 6.0
"""The added picture is shown this many times stronger, around grey."""


def write_all(folder: Path = FOLDER) -> list[Path]:
    """Write every picture; the same bytes each time on one machine."""
    folder.mkdir(parents=True, exist_ok=True)
    return [seams(folder, 8), seams(folder, 32), junctions(folder), nano(folder)]


def seams(folder: Path, overlap: int, seed: int = 1) -> Path:
    """The tint field on a photograph: rectangles left, hexagons right, below what was added and
    the mean size of its gradient in every column."""
    picture, columns = photos.photo("coffee"), []
    profiles = {}
    for name in (RECTANGLES, HEXAGONS):
        t = tiling(name, photos.WIDTH, photos.HEIGHT, SIDE, float(overlap))
        found = damaged(picture, t, FIELDS["tint"], seed)
        added = found - picture
        profiles[name] = np.abs(np.diff(added, axis=1)).mean((0, 2))
        columns.append([found, 0.5 + GAIN * added])
    top = max(p.max() for p in profiles.values())
    for column, profile in zip(columns, profiles.values()):
        column.append(curve(profile / top, photos.WIDTH))
    return _save(sheet(columns), folder / f"quality-tint-{overlap}.jpg")


def junctions(folder: Path, seed: int = 4) -> Path:
    """Where four rectangles and three hexagons meet, four times enlarged, on grey."""
    picture, columns = np.full((photos.HEIGHT, photos.WIDTH, 3), 0.5), []
    for name in (RECTANGLES, HEXAGONS):
        t = tiling(name, photos.WIDTH, photos.HEIGHT, SIDE, 8.0)
        found = damaged(picture, t, FIELDS["tint"], seed)
        x, y = _corner(t.owner)
        part = found[y - 40 : y + 40, x - 64 : x + 64]
        columns.append([(0.5 + GAIN / 2 * (part - 0.5)).repeat(4, 0).repeat(4, 1)])
    return _save(sheet(columns), folder / "quality-junctions.jpg")


NANO_SEED = 0
NANO_WIDTH = 320
"""Px of one clip's frame in the picture of the embedded model."""

SHOWN = {
    "noise": (UNTILED, RECTANGLES, HEXAGONS, "guide_steps=2"),
    "upscaled": (UNTILED, RECTANGLES, HEXAGONS, PREVIOUS),
}  # fmt: skip

DRAWN = {"noise": ("3x, noise", "noise"), "upscaled": ("3x", "grid")}
"""The canvas, and where the options are defined: see nano_variants.methods."""


def nano(folder: Path, seed: int = NANO_SEED) -> Path:
    """A frame of the embedded model: from noise above, enlarged and sampled again below."""
    from .nano_paint import images
    from .nano_runs import FOLDER as WORK
    from .nano_runs import clip_of
    from .nano_variants import CANVASES, main, methods

    rows = []
    for path, names in SHOWN.items():
        canvas, group = CANVASES[DRAWN[path][0]], DRAWN[path][1]
        height = round(NANO_WIDTH * canvas.large[1] / canvas.large[0])
        settings = {v.name: v.settings for v in (*main(canvas), *methods(canvas, group))}
        clips = [clip_of(canvas, path, seed, settings.get(n), WORK) for n in names]
        frames = [images(clip)[len(clip) // 2].resize((NANO_WIDTH, height)) for clip in clips]
        rows.append([np.asarray(frame) / 255.0 for frame in frames])
    return _save(sheet([list(column) for column in zip(*rows)]), folder / "quality-nano.jpg")


def _corner(owner: Array) -> tuple[int, int]:
    """The junction nearest to the picture's middle."""
    from .measures import junctions as points

    found = points(owner)
    middle = np.array([owner.shape[1] / 2, owner.shape[0] / 2])
    x, y = found[np.linalg.norm(found - middle, axis=1).argmin()]
    return round(x), round(y)


def curve(profile: Array, width: int, height: int = 96) -> Array:
    """A curve of values 0..1 as a picture, dark on light."""
    filled = np.interp(np.arange(width), np.linspace(0, width - 1, len(profile)), profile)
    rows = np.arange(height)[:, None]
    dark = rows >= height - 2 - filled * (height - 8)
    return np.where(dark[..., None], np.array([0.16, 0.33, 0.55]), np.ones(3))


def sheet(columns: list[list[Array]]) -> Array:
    """Columns of pictures side by side with white gaps."""
    stacks = []
    for column in columns:
        gap = np.ones((GAP, column[0].shape[1], 3))
        parts = [p for picture in column for p in (picture, gap)][:-1]
        stacks.append(np.concatenate(parts))
    gap = np.ones((stacks[0].shape[0], GAP, 3))
    return np.concatenate([p for stack in stacks for p in (stack, gap)][:-1], axis=1)


def _save(picture: Array, path: Path) -> Path:
    from PIL import Image

    image = Image.fromarray((np.clip(picture, 0, 1) * 255).round().astype(np.uint8))
    part = path.with_suffix(".part")
    image.save(part, format="JPEG", quality=85, subsampling=0)
    part.replace(path)
    return path
