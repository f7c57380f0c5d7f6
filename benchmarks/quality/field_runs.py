"""The fields' part of the lab: every field, overlap and tiling over the seeds, measured."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from typing import Any

import numpy as np

from h3video.blend.kernels import KERNELS

from . import photos
from .fields import FIELDS, damaged
from .measures import colour_drift, flip, junction_error, junctions, seam_energy, variance_dip
from .measures.seams import ANGLES
from .tilings import HEXAGONS, RECTANGLES, Tiling, tiling
from .workers import pool as workers_pool

Say = Callable[[str], None]

SIDE, SMALL_SIDE = 128, 64
"""Square tiles of this many px; hexagons have their area. On tiles of 128 px the share of a 32 px
fade is that of a default plan's; with those of 64 px fewer lie at the frame's edge."""

OVERLAPS = (8, 32)
SEEDS = 20
TURNS = (0.0, 10.0, 15.0, 20.0, 30.0)
"""Degrees from upright that hexagons are turned by; they repeat after 60, mirrored after 30."""

RADIUS = 12.0
"""Px around a junction that are looked at."""


@dataclass(frozen=True)
class FieldRow:
    """What was measured of one damaged picture; NaN where a measure was left out."""

    source: str
    field: str
    overlap: int
    tiling: str
    side: int
    seed: int
    total: float
    axis: float
    line: float
    chance: float
    angle: float
    worst: float
    flip: float
    junction: float
    junctions: int
    drift: float
    dip: float

    def to_json(self) -> dict[str, Any]:
        """Plain data, rounded to what the measures hold."""
        return {
            k: (float(f"{v:.5g}") if np.isfinite(v) else None) if isinstance(v, float) else v
            for k, v in asdict(self).items()
        }


def measure(source: str, picture: Any, t: Tiling, field: str, seed: int,
            seams_only: bool = False, angles: int = ANGLES) -> FieldRow:  # fmt: skip
    """Damage a picture and measure it against itself.

    angles   directions that seams are looked for along; 1 leaves out what needs more
    """
    found = damaged(picture, t, FIELDS[field], seed)
    seams, points, nan = seam_energy(found, picture, angles), junctions(t.owner), float("nan")
    turned = (seams.chance, seams.angle, seams.worst) if angles > 1 else (nan, nan, nan)
    return FieldRow(
        source, field, round(t.overlap), t.name, t.side, seed, seams.total, seams.axis, seams.line,
        *turned, nan if seams_only else flip(found, picture),
        junction_error(found, picture, points, RADIUS), len(points),
        nan if seams_only else colour_drift(found, picture).part,
        variance_dip(found, picture, t.largest) if field == "texture" else nan,
    )  # fmt: skip


def run_seed(seed: int, fields: Sequence[str] = tuple(FIELDS),
             overlaps: Sequence[int] = OVERLAPS, nano: bool = False) -> list[FieldRow]:  # fmt: skip
    """Rectangles and hexagons on the seed's picture: photographs in turn, or nano frames."""
    names = photos.PROMPTS if nano else photos.PHOTOS
    name = names[seed % len(names)]
    picture = photos.nano_frames()[seed % len(names)] if nano else photos.photo(name)
    return [
        measure(name, picture, _tiling(kind, overlap), field, seed, angles=1)
        for field in fields for overlap in overlaps for kind in (RECTANGLES, HEXAGONS)
    ]  # fmt: skip


def run_turns(seed: int, overlaps: Sequence[int] = OVERLAPS,
              turns: Sequence[float] = TURNS) -> list[FieldRow]:  # fmt: skip
    """Seams of the tint field (whose picture does not matter) by orientation."""
    grey = np.full((photos.HEIGHT, photos.WIDTH, 3), 0.5)
    names = [RECTANGLES, HEXAGONS] + [f"{HEXAGONS} {turn:g}" for turn in turns]
    return [
        measure("grey", grey, _tiling(name, overlap, side), "tint", seed, seams_only=True)
        for side in (SIDE, SMALL_SIDE) for overlap in overlaps for name in names
    ]  # fmt: skip


def run_kernels(seed: int, overlap: int = OVERLAPS[-1]) -> list[FieldRow]:
    """Hexagons' fades of every curve: a tint and textures on the seed's photograph."""
    name = photos.PHOTOS[seed % len(photos.PHOTOS)]
    return [
        measure(name, photos.photo(name), _tiling(f"{HEXAGONS} {kernel}", overlap), field, seed)
        for field in ("tint", "texture") for kernel in KERNELS
    ]  # fmt: skip


def _tiling(name: str, overlap: int, side: int = SIDE) -> Tiling:
    return tiling(name, photos.WIDTH, photos.HEIGHT, side, float(overlap))


def run_all(seeds: Iterable[int], workers: int, say: Say, nano: bool) -> dict[str, list[FieldRow]]:
    """The rows of the tables: on photographs, on nano frames (when asked), by orientation and by
    the fade's curve."""
    seeds = list(seeds)
    parts: dict[str, Callable[[int], list[FieldRow]]] = {"photographs": run_seed}
    if nano:
        photos.nano_frames()  # drawn before the workers ask for them
        parts["nano"] = partial(run_seed, nano=True)
    parts |= {"turns": run_turns, "kernels": run_kernels}
    out: dict[str, list[FieldRow]] = {}
    with workers_pool(workers) as pool:
        for name, part in parts.items():
            out[name] = []
            for number, rows in enumerate(pool.map(part, seeds)):
                out[name] += rows
                say(f"fields, {name}: seed {number + 1} of {len(seeds)}")
    return out
