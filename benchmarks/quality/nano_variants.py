"""What is drawn with the embedded model: canvases, ways of tiling them, and in which order.

Every way is settings of `apply_hex_tiling`, and rectangles are fitted to hexagons: to their tokens,
or to the area of their cells. A changed planner gives other plans, and so other fingerprints: what
was drawn with an older plan is drawn again.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from functools import cached_property, lru_cache
from typing import Any

import numpy as np

from h3video.grid import rect_grid
from h3video.models.wan import WAN
from h3video.tiling.settings import HexSettings
from h3video.tiling.shift import Schedule, token_schedule
from h3video.tiling.tokens import TokenPlan

from .tilings import ALIGNED, span_of

Settings = dict[str, Any]

PATHS = ("noise", "upscaled")
"""Text to video in tiles from the first step; or a small render, enlarged, of whose steps the
second half is sampled again in tiles (h3video's advice)."""

UNTILED, HEXAGONS, RECTANGLES = "untiled", "hexagons", "rectangles"


@dataclass(frozen=True)
class Canvas:
    """What is drawn.

    width, height   the small size in px;  factor   to the large one
    frames, steps   of the large clip
    budget          the largest tile's share of the frame, at most
    first_frames, first_steps   of the small render, of which the middle frames are enlarged
    """

    width: int = 160
    height: int = 96
    factor: int = 4
    frames: int = 5
    steps: int = 6
    budget: float = 0.35
    first_frames: int = 17
    first_steps: int = 8

    @property
    def large(self) -> tuple[int, int]:
        """The large size in px, down to the model's multiple."""
        m = WAN.size_multiple
        return self.width * self.factor // m * m, self.height * self.factor // m * m

    @property
    def name(self) -> str:
        """For people and as part of keys."""
        width, height = self.large
        return f"{self.factor}x: {width}x{height}"

    @property
    def key(self) -> str:
        """Everything that decides a render, but not how it is tiled."""
        return "-".join(str(v) for v in asdict(self).values())


CANVASES = {
    "2x": Canvas(factor=2, budget=0.5),
    "3x": Canvas(factor=3, budget=0.35),
    "4x": Canvas(factor=4, budget=0.35),
}
"""Two thirds of the model's training clips were 160x96, a twentieth larger than 240x144."""


@dataclass(frozen=True)
class Variant:
    """A way of drawing.

    group     which table it is for: main | pairs | methods
    settings  of apply_hex_tiling; None: untiled
    """

    name: str
    group: str
    settings: Settings | None = field(default=None, hash=False)


def schedule(canvas: Canvas, settings: Mapping[str, Any]) -> Schedule[TokenPlan]:
    """The plans of a sampling at the large size."""
    width, height = canvas.large
    return token_schedule(
        *WAN.token_grid(width, height), WAN.latent_frames(canvas.frames), WAN,
        HexSettings(**settings),
    )  # fmt: skip


def plan(canvas: Canvas, settings: Mapping[str, Any]) -> TokenPlan:
    """The plan of the first step."""
    return schedule(canvas, settings).at(0)


def fingerprint(canvas: Canvas, settings: Mapping[str, Any] | None) -> str:
    """Ten letters that change when what a variant runs does."""
    if settings is None:
        return UNTILED
    tiles = [
        [[t.cells, t.tokens] for t in p.tiles] + [p.overlap, p.halo, p.grid.to_json()]
        for p in schedule(canvas, settings).plans
    ]
    text = json.dumps([sorted(settings.items()), tiles], default=str)
    return hashlib.sha256(text.encode()).hexdigest()[:10]


# ---- rectangles that may be compared ----


def equal_tokens(canvas: Canvas, hexes: TokenPlan) -> Settings:
    """Rectangles that run as many tokens as hexagons (within 3 %), with tiles about as large and
    about as many: the nearest of all columns x rows and halos."""
    found: list[tuple[float, float, Settings]] = []
    for span in _rectangles(canvas):
        for halo in range(32, 113, 4):
            settings = dict(shape="rect", hex_res=ALIGNED, span=span, halo=float(halo))
            made = plan(canvas, settings)
            apart = abs(len(made.tiles) - len(hexes.tiles)) / len(hexes.tiles)
            apart += abs(made.share / hexes.share - 1.0)
            found.append((abs(made.tokens_run / hexes.tokens_run - 1.0), apart, settings))
    near = [(apart, off, s) for off, apart, s in found if off <= 0.03]
    return min(near or found, key=lambda f: f[:2])[2]


@lru_cache(maxsize=8)
def _rectangles(canvas: Canvas) -> tuple[float, ...]:
    """A span for every grid of rectangles that differs."""
    width, height = canvas.large
    spans: dict[tuple[int, int], float] = {}
    for side in np.geomspace(64, min(width, height), 60):
        span = span_of(float(side), max(width, height), ALIGNED)
        grid = rect_grid(width, height, ALIGNED, span)
        spans.setdefault((grid.columns, grid.rows), span)
    return tuple(spans.values())


def squares(canvas: Canvas, side: float, halo: float) -> Settings:
    """Squares of about `side` px that fill the frame, none of them joined."""
    return dict(
        shape="rect", hex_res=ALIGNED, span=span_of(side, max(canvas.large), ALIGNED), halo=halo
    )  # fmt: skip


def same_area(canvas: Canvas, rects: Settings, rotation: float) -> Settings:
    """Hexagons of exactly the area of rectangles, with their halo."""
    side = float(np.sqrt(plan(canvas, rects).grid.cell_area))
    span = span_of(side, max(canvas.large), ALIGNED)
    return dict(hex_res=ALIGNED, span=span, rotation=rotation, halo=rects["halo"])


def halo_for(canvas: Canvas, settings: Settings, tokens: int) -> Settings:
    """The same with the halo at which the plan's tokens come closest to `tokens`."""
    tried = [{**settings, "halo": float(halo)} for halo in np.arange(32.0, 128.0, 2.0)]
    return min(tried, key=lambda s: abs(plan(canvas, s).tokens_run - tokens))


# ---- what is drawn ----


def main(canvas: Canvas) -> tuple[Variant, ...]:
    """The package's hexagons, and rectangles of as many tokens."""
    hexes = dict(budget=canvas.budget)
    return (
        Variant(HEXAGONS, "main", hexes),
        Variant(RECTANGLES, "main", equal_tokens(canvas, plan(canvas, hexes))),
    )


PAIR_SIDE, PAIR_HALO, PAIR_TURN = 96.0, 48.0, 15.0


def pairs(canvas: Canvas) -> tuple[Variant, ...]:
    """Squares of six tokens, and hexagons of their area: once with the same halo, once with the
    halo that makes the tokens equal. Many tiles, some of which touch no edge of the frame."""
    rects = squares(canvas, PAIR_SIDE, PAIR_HALO)
    hexes = same_area(canvas, rects, PAIR_TURN)
    tokens = plan(canvas, rects).tokens_run
    return (
        Variant("squares", "pairs", rects),
        Variant("hexagons, equal halo", "pairs", hexes),
        Variant("hexagons, equal tokens", "pairs", halo_for(canvas, hexes, tokens)),
    )


def methods(canvas: Canvas, path: str) -> tuple[Variant, ...]:
    """The package's hexagons with one thing changed; from noise only what matters there."""
    base = dict(budget=canvas.budget)
    changed: dict[str, dict[str, Settings]] = {
        "noise": {
            "guide_steps=2": dict(base, guide_steps=2),
            "start_step=2": dict(base, start_step=2),
            "exchange=block": dict(base, exchange="block"),
        },
        "upscaled": {
            "shift=step, halo 0": dict(moving(canvas), halo=0.0),
            "shift=step, halo 16": dict(moving(canvas), halo=16.0),
            "shift=step, halo 32": dict(moving(canvas), halo=32.0),
            "exchange=block": dict(base, exchange="block"),
            "halo 32": dict(base, halo=32.0),
            "overlap 96": dict(base, overlap=96.0),
            "rotation 10": dict(base, rotation=10.0),
            "rotation 19.1 (native)": dict(base, rotation=19.107),
            "kernel=cosine": dict(base, kernel="cosine"),
            "kernel=gaussian": dict(base, kernel="gaussian"),
            "kernel=linear": dict(base, kernel="linear"),
            "end_step=2": dict(base, end_step=2),
        },
    }
    return tuple(Variant(name, "methods", made) for name, made in changed[path].items())


def moving(canvas: Canvas) -> Settings:
    """A grid that moves each step, with cells of a quarter of the frame: without a halo they make
    tiles about as large as the default's."""
    side = float(np.sqrt(canvas.large[0] * canvas.large[1] / 4.0))
    span = span_of(side, max(canvas.large), ALIGNED)
    return dict(shift="step", hex_res=ALIGNED, span=span)


@dataclass(frozen=True)
class Stage:
    """Variants that are drawn with all seeds before the next stage begins.

    groups   of variants: main, pairs, methods
    """

    canvas: Canvas
    path: str
    groups: tuple[str, ...]

    @cached_property
    def variants(self) -> tuple[Variant, ...]:
        """In the order in which they are drawn, the untiled one first."""
        made = {"main": main, "pairs": pairs, "methods": lambda c: methods(c, self.path)}
        return (Variant(UNTILED, "main"), *(v for g in self.groups for v in made[g](self.canvas)))


STAGES = (
    Stage(CANVASES["3x"], "upscaled", ("main",)), Stage(CANVASES["3x"], "noise", ("main",)),
    Stage(CANVASES["2x"], "upscaled", ("main",)), Stage(CANVASES["2x"], "noise", ("main",)),
    Stage(CANVASES["4x"], "upscaled", ("main", "pairs")),
    Stage(CANVASES["3x"], "upscaled", ("methods",)), Stage(CANVASES["3x"], "noise", ("methods",)),
)  # fmt: skip
"""What matters most comes first: a run that is stopped has whole stages."""
