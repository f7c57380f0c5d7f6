"""A grid that lies elsewhere at every sampling step, so that its seams never stay.

A seam shows because every step puts it in the same place. Moved by part of a cell each step it
falls on tokens that the step before saw from within a tile, and the model mends what is left. So
a fade of two tokens and a halo of one do: they are the default, and the default of token tiles is
to move (docs/quality.md). The fade is there for samplings of few steps, whose last one leaves what
no other mends.

The grid takes PLACES origins in turn. They lie at the first points of the R2 sequence (M. Roberts,
"The unreasonable effectiveness of quasirandom sequences", 2018) in the lattice's own coordinates,
from a seeded start: any few that follow each other cover a cell evenly. Of four points an eighth
of a cell apart the one is taken whose plan runs the fewest tokens. All other settings are those of
the plan that does not move; how many tiles and tokens a place has may differ, so what is said of
memory is said of the largest, and of work of the mean.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from typing import Any, Generic, TypeVar

from ..blend.weights import Grid
from ..grid import HexGrid, Point
from ..models.family import DenoiserShape, VideoFamily
from .budget import DEFAULT_SHARE, parse_budget
from .crops import DEFAULT_SHARE as CROP_SHARE
from .latent_crops import Fits, LatentCrops, moved_crops, plan_latent_crops
from .settings import HexSettings
from .sizes import TILE_SIZES
from .tokens import NothingFits, TokenPlan, in_sizes, moved_plan, plan_latent_tiles

PLACES = 8
"""Origins that are taken in turn: tables of index are kept for each, and shapes are few."""

FADE, HALO = 2.0, 1.0
"""Tokens of a moving grid's default overlap and halo."""

MOVING_SIZES = 8
"""Sizes of tile over all places by default. Counted on the plans of benchmarks/expected_times.py:
they run 1 to 2 % more tokens than if each of the 50 to 60 tiles had a size of its own, 3 sizes 5 to
9 % more."""

NEARBY = ((0.0, 0.0), (0.125, 0.0), (0.0, 0.125), (0.125, 0.125))
"""Points of a place, in cells from its first: less than the 0.35 cells between two places."""

TRIES = 5
"""Sizes of cells that are tried until the tiles of all places keep to the budget."""

_PLASTIC = 1.32471795724474602596
"""The real root of x^3 = x + 1; its inverse powers are the steps of the R2 sequence."""

Plan = TypeVar("Plan", TokenPlan, LatentCrops)


@dataclass(frozen=True)
class Schedule(Generic[Plan]):
    """The plans of a sampling: one that stays, or one for every place of the grid in turn."""

    plans: tuple[Plan, ...]

    @property
    def moves(self) -> bool:
        """Whether the grid lies elsewhere at every step."""
        return len(self.plans) > 1

    def at(self, step: int) -> Plan:
        """The plan of a sampling step, counted from 0."""
        return self.plans[step % len(self.plans)]

    @cached_property
    def largest(self) -> Plan:
        """The plan that needs the most memory."""
        return max(self.plans, key=_size)

    def moves_text(self) -> str:
        """How a grid moves, for people who are shown its largest plan."""
        return (
            f"the grid moves every step, through {len(self.plans)} places of which this is the "
            f"largest; mean price {self.price:.2f}"
        )

    @property
    def price(self) -> float:
        """What a step runs against the full frame, the mean over all places."""
        return sum(plan.price for plan in self.plans) / len(self.plans)


def _size(plan: TokenPlan | LatentCrops) -> tuple[float, float]:
    if isinstance(plan, LatentCrops):
        return plan.share, plan.price
    return float(plan.activation_bytes() or 0), plan.share


def places(seed: int, count: int = PLACES) -> tuple[Point, ...]:
    """Points of a cell that cover it evenly, in the lattice's coordinates, 0 to 1 each way.

    seed   0 or more; where the sequence starts
    """
    start = random.Random(seed)
    u, v = start.random(), start.random()
    return tuple(((u + k / _PLASTIC) % 1.0, (v + k / _PLASTIC**2) % 1.0) for k in range(count))


def origins(grid: Grid, seed: int, count: int = PLACES) -> tuple[tuple[Point, ...], ...]:
    """For every place the origins that are near it, in px as grids take them, at most a cell away.

    The grid's own origin is a place like any other.
    """
    return tuple(
        tuple(_nearest(grid, u + du, v + dv) for du, dv in NEARBY) for u, v in places(seed, count)
    )


def _nearest(grid: Grid, u: float, v: float) -> Point:
    """The grid's origin moved by u and v of the lattice's two steps, less whole steps."""
    if not isinstance(grid, HexGrid):
        wide, tall = 2.0 * grid.half_sides[0], 2.0 * grid.half_sides[1]
        x, y = grid.origin[0] + u * wide, grid.origin[1] + v * tall
        return (x + wide / 2.0) % wide - wide / 2.0, (y + tall / 2.0) % tall - tall / 2.0
    own = grid.lattice
    still = replace(own, x0=grid.width / 2.0, y0=grid.height / 2.0)
    (ax, ay), (bx, by) = own.centre(1, 0), own.centre(0, 1)
    x = own.x0 + u * (ax - own.x0) + v * (bx - own.x0)
    y = own.y0 + u * (ay - own.y0) + v * (by - own.y0)
    near_x, near_y = still.centre(*still.locate(x, y))
    return x - near_x, y - near_y


def token_schedule(
    columns: int, rows: int, latent_frames: int, family: VideoFamily, settings: HexSettings,
    denoiser: DenoiserShape | None = None, exchange: str | None = None, steps: bool = True,
) -> Schedule[TokenPlan]:  # fmt: skip
    """The token plans of a sampling, see plan_latent_tiles.

    exchange   the one that is used; None: that of the settings
    steps      whether the host knows which step a pass is of; without it shift auto is none
    With a grid that moves an overlap is taken as it is, and None is 2 tokens (at most twice the
    halo); a halo of None is one. One tile that holds all tokens stays where it is.
    """
    s = settings
    named = dict(
        hex_res=s.hex_res, overlap=s.overlap, halo=s.halo, budget=s.budget, shape=s.shape,
        span=s.span, rotation=s.rotation, origin=s.origin, tile_sizes=s.tile_sizes or TILE_SIZES,
        exchange=exchange or s.exchange, denoiser=denoiser, window=s.window or None,
        window_overlap=s.window_overlap, window_mode=s.window_mode, kernel=s.kernel,
    )  # fmt: skip
    if s.shift == "none" or not (steps or s.shift == "step"):
        return Schedule((plan_latent_tiles(columns, rows, latent_frames, family, **named),))  # type: ignore[arg-type]
    halo = HALO * family.token_px if s.halo is None else s.halo
    overlap = min(2.0 * halo, FADE * family.token_px) if s.overlap is None else s.overlap
    named.update(halo=halo, overlap=overlap, tile_sizes=s.tile_sizes or MOVING_SIZES)
    return _moving(columns, rows, latent_frames, family, s.shift_seed, **named)


def clip_schedule(
    width: int, height: int, frames: int, family: VideoFamily, settings: HexSettings,
    denoiser: DenoiserShape | None = None,
) -> Schedule[TokenPlan]:  # fmt: skip
    """The token plans of a clip in px and frames, legal for `family`; see token_schedule."""
    family.check(width, height, frames)
    return token_schedule(
        *family.token_grid(width, height), family.latent_frames(frames), family, settings, denoiser
    )


@lru_cache(maxsize=12)
def _moving(
    columns: int, rows: int, latent_frames: int, family: VideoFamily, seed: int, **settings: Any
) -> Schedule[TokenPlan]:
    auto = settings["hex_res"] == "auto"
    asked = settings.pop("budget")
    budget = parse_budget(asked)
    limit = DEFAULT_SHARE if budget is None and auto else budget
    sizes: int = settings.pop("tile_sizes")

    def attempt(part: float) -> Schedule[TokenPlan]:
        # As it was asked for, so that an error names what was typed.
        own = asked if part == 1.0 or limit is None else _scaled(limit, part)
        still = plan_latent_tiles(
            columns, rows, latent_frames, family, narrow=True, budget=own,
            tile_sizes=min(sizes, TILE_SIZES), **settings,
        )  # fmt: skip
        share = max(len(t.tokens) for t in still.tiles) / (columns * rows)
        if isinstance(budget, float):
            share = min(1.0, budget * latent_frames / still.windows[0].length)
        found = _moved(
            still, seed, lambda origin: moved_plan(still, origin, share if auto else None), need
        )
        return Schedule(in_sizes(found.plans, sizes)) if found.moves else found

    def need(plan: TokenPlan) -> float:
        if limit is None:
            return 0.0
        if isinstance(limit, int):
            return (plan.activation_bytes() or 0) / limit
        return plan.share / limit

    return _within(attempt, need, asked, auto)


def crop_schedule(
    columns: int, rows: int, unit: int, patch: int, settings: HexSettings,
    fits: Fits | None = None,
) -> Schedule[LatentCrops]:  # fmt: skip
    """The crops of a sampling, see plan_latent_crops."""
    if settings.shift != "step":
        return Schedule((plan_latent_crops(columns, rows, unit, patch, settings, fits),))
    auto = settings.hex_res == "auto"
    budget = parse_budget(settings.budget)
    limit = (CROP_SHARE if auto else None) if budget is None else budget

    def attempt(part: float) -> Schedule[LatentCrops]:
        own = settings
        if part < 1.0 and isinstance(limit, float):
            own = replace(settings, budget=limit * part)
        still = plan_latent_crops(columns, rows, unit, patch, own, fits)
        share = limit if isinstance(limit, float) else still.share
        # All crops are as wide as the widest and as tall as the tallest: joined up to the limit
        # they may be above it.
        joins = [share, 0.75 * share, 0.5 * share, None] if auto else [None]

        def moved(origin: Point) -> LatentCrops:
            plans = [moved_crops(still, origin, settings, join) for join in joins]
            return min(plans, key=lambda p: _worth(p, need))

        return _moved(still, settings.shift_seed, moved, need)

    def need(plan: LatentCrops) -> float:
        if isinstance(limit, float):
            return plan.share / limit
        good = limit is None or fits is None or fits(plan.crop_columns, plan.crop_rows)
        return 0.0 if good else 1.01

    return _within(attempt, need, settings.budget, auto)


def _moved(
    still: Plan, seed: int, plan: Callable[[Point], Plan], need: Callable[[Plan], float]
) -> Schedule[Plan]:
    """A plan at all its places: of the origins of each the one that fits and runs least."""
    if len(still.tiles) == 1:
        return Schedule((still,))
    return Schedule(
        tuple(
            min(map(plan, near), key=lambda p: _worth(p, need))
            for near in origins(still.grid, seed)
        )
    )


def _worth(found: Plan, need: Callable[[Plan], float]) -> tuple[float, float, float]:
    """Less is better: within the budget first, then the least work; the whole frame is the last."""
    whole = 2.0 if len(found.tiles) == 1 else 1.0
    return max(whole, round(need(found), 6)), round(found.price, 9), found.share


def _within(
    attempt: Callable[[float], Schedule[Plan]], need: Callable[[Plan], float],
    budget: float | int | str | None, auto: bool,
) -> Schedule[Plan]:  # fmt: skip
    """The plans that keep to a budget wherever the grid lies.

    attempt   plans for a part of the budget;  need   of a plan, 1 is the budget
    A grid that is planned where it fits best has larger tiles elsewhere.
    """
    part = worst = 1.0
    for _ in range(TRIES if auto else 1):
        try:
            found = attempt(part)
        except NothingFits:
            if part == 1.0:
                raise
            break
        worst = max(map(need, found.plans))
        if worst <= 1.0 + 1e-9 or not found.moves:
            return found
        part = min(part * 0.99 / worst, part * 0.95)
    raise NothingFits(
        f"a grid that moves (shift=step) has tiles of {worst:.2f} times the budget "
        f"{'of a third of the frame' if budget is None else budget} at some of its places; raise "
        "the budget or lower the halo, let hex_res be auto, or use shift=none"
    )


def _scaled(limit: float | int, part: float) -> float | int:
    return int(limit * part) if isinstance(limit, int) else limit * part
