"""What is drawn with the embedded model: canvases, ways of tiling them, and in which order.

Every way is settings of `apply_hex_tiling`. Rectangles are planned with the hexagons' settings, or
have the area of their cells. A changed planner gives other plans, and so other fingerprints: what
was drawn with an older plan is drawn again.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from h3video.models.wan import WAN
from h3video.tiling.settings import HexSettings
from h3video.tiling.shift import Schedule, clip_schedule
from h3video.tiling.tokens import TokenPlan

from .tilings import ALIGNED, span_of

Settings = dict[str, Any]

PATHS = ("noise", "upscaled")
"""Text to video in tiles from the first step; or a small render, enlarged, of whose steps the last
few are sampled again in tiles (h3video's advice)."""

UNTILED, HEXAGONS, RECTANGLES = "untiled", "hexagons", "rectangles"


@dataclass(frozen=True)
class Canvas:
    """What is drawn.

    width, height   the small size in px;  factor   to the large one
    frames, steps   of the large clip
    budget          the largest tile's share of the frame, at most
    strength        share of the steps that are sampled again after enlarging
    first_frames, first_steps   of the small render, of which the middle frames are enlarged
    """

    width: int = 160
    height: int = 96
    factor: int = 4
    frames: int = 5
    steps: int = 8
    budget: float = 0.35
    strength: float = 0.375
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
        steps = "" if self.strength == Canvas.strength else f", {self.strength:g} of the steps"
        return f"{self.factor}x: {width}x{height}{steps}"

    @property
    def key(self) -> str:
        """Everything that decides a render, but not how it is tiled."""
        return "-".join(str(v) for v in asdict(self).values())


CANVASES = {
    "2x": Canvas(factor=2, budget=0.4),
    "3x": Canvas(factor=3),
    "4x": Canvas(factor=4),
    "3x, half": Canvas(factor=3, strength=0.5),
    "3x, noise": Canvas(factor=3, steps=6),
    "2x, noise": Canvas(factor=2, budget=0.4, steps=6),
}
"""Two thirds of the model's training clips were 160x96, a twentieth larger than 240x144. Three of
eight steps are sampled again, as the docs advise; half of them to show what that does."""


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
    return clip_schedule(*canvas.large, canvas.frames, WAN, HexSettings(**settings))


def plan(canvas: Canvas, settings: Mapping[str, Any]) -> TokenPlan:
    """The plan of the first step."""
    return schedule(canvas, settings).at(0)


SAMPLING = ("exchange", "start_step", "end_step", "guide_steps", "kernel")
"""Settings that decide more than the plans."""


def fingerprint(canvas: Canvas, settings: Mapping[str, Any] | None) -> str:
    """Ten letters for what is run: equal for settings that lead to the same plans and sampling."""
    if settings is None:
        return UNTILED
    whole = HexSettings(**settings)
    plans = [
        [[t.cells, t.tokens] for t in p.tiles] + [p.overlap, p.halo, p.grid.to_json()]
        for p in schedule(canvas, settings).plans
    ]
    text = json.dumps([[getattr(whole, name) for name in SAMPLING], plans], default=str)
    return hashlib.sha256(text.encode()).hexdigest()[:10]


# ---- what is drawn ----


def main(canvas: Canvas) -> tuple[Variant, ...]:
    """The package's plans within one budget: they run as many tokens, within 4 %."""
    return (
        Variant(HEXAGONS, "main", dict(budget=canvas.budget)),
        Variant(RECTANGLES, "main", dict(budget=canvas.budget, shape="rect")),
    )


PREVIOUS = "shift=none, halo 48, smoothstep"
"""The default until this lab: what a moving grid's overlap was to be compared with."""

STAYS, RECTANGLES_STAY = "shift=none", "rectangles, shift=none"

SQUARES, SAME = "squares", "hexagons of their area"
PAIR_SIDE, PAIR_HALO, PAIR_TURN = 96.0, 48.0, 15.0


def pairs(canvas: Canvas) -> tuple[Variant, ...]:
    """Many tiles that stay, some of which touch no edge of the frame: squares of about six tokens
    that fill it, and hexagons of exactly their area, overlap and halo."""
    longer = max(canvas.large)
    shared = dict(hex_res=ALIGNED, halo=PAIR_HALO, shift="none")
    rects = dict(shared, shape="rect", span=span_of(PAIR_SIDE, longer, ALIGNED))
    side = float(np.sqrt(plan(canvas, rects).grid.cell_area))
    hexes = dict(shared, span=span_of(side, longer, ALIGNED), rotation=PAIR_TURN)
    return Variant(SQUARES, "pairs", rects), Variant(SAME, "pairs", hexes)


def methods(canvas: Canvas, group: str) -> tuple[Variant, ...]:
    """The package's hexagons with one thing changed; still: rectangles that stay."""
    changed: dict[str, dict[str, Settings]] = {
        "grid": {
            PREVIOUS: dict(shift="none", halo=48.0, kernel="smoothstep"),
            "halo 8": dict(halo=8.0),
        },
        "options": {
            STAYS: dict(shift="none"),
            "overlap 0": dict(overlap=0.0),
            "kernel=smoothstep": dict(kernel="smoothstep"),
        },
        "noise": {
            STAYS: dict(shift="none"),
            "guide_steps=2": dict(guide_steps=2),
            "start_step=2": dict(start_step=2),
        },
    }
    if group == "still":
        still = dict(budget=canvas.budget, shift="none", shape="rect")
        return (Variant(RECTANGLES_STAY, "main", still),)
    base = dict(budget=canvas.budget)
    return tuple(Variant(n, "methods", {**base, **made}) for n, made in changed[group].items())


@dataclass(frozen=True)
class Stage:
    """Variants that are drawn with all seeds before the next stage begins.

    groups   of variants: main, default (its hexagons only), pairs, or one of methods()
    """

    canvas: Canvas
    path: str
    groups: tuple[str, ...]

    @cached_property
    def variants(self) -> tuple[Variant, ...]:
        """In the order in which they are drawn, the untiled one first."""
        made = [Variant(UNTILED, "main")]
        for group in self.groups:
            if group in ("main", "default"):
                made += main(self.canvas)[: 1 if group == "default" else None]
            elif group == "pairs":
                made += pairs(self.canvas)
            else:
                made += methods(self.canvas, group)
        return tuple(made)


STAGES = (
    Stage(CANVASES["3x"], "upscaled", ("main", "grid")),
    Stage(CANVASES["3x, noise"], "noise", ("main", "noise", "still")),
    Stage(CANVASES["4x"], "upscaled", ("main", "pairs", "grid")),
    Stage(CANVASES["2x"], "upscaled", ("main",)),
    Stage(CANVASES["2x, noise"], "noise", ("main",)),
    Stage(CANVASES["3x, half"], "upscaled", ("default",)),
    Stage(CANVASES["3x"], "upscaled", ("options", "still")),
)
"""What matters most comes first: a run that is stopped has whole stages."""
