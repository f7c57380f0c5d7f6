"""Token tiles: which tokens of the frame each tile runs, and what that costs.

A tile owns the weights of one cell or a few joined ones and runs the tokens
within the halo of those that it owns, and the nearest ones until it has one of
a few sizes: a size is a graph, and a compile. It keeps the full frame's token
indices, so positions are the full frame's by construction. Plans are plain
integers; nothing here needs torch.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from typing import Any

from ..blend.kernels import DEFAULT_KERNEL, check_kernel
from ..blend.weights import Grid, TileWeights, tile_weights
from ..errors import UsageError
from ..grid import (
    DEFAULT_SPAN,
    NO_ORIGIN,
    HexGrid,
    Point,
    finest_res,
    hex_grid,
    origin_fits,
    rect_grid,
    rectangles,
)
from ..models.family import DenoiserShape, VideoFamily
from .budget import DEFAULT_SHARE, parse_budget
from .cover import SLIVER, Cost, Cover, as_array, cover, joined, together
from .search import Fixed, Frame, Goal, best_grids
from .settings import check_origin, check_tile_sizes
from .sizes import TILE_SIZES, fitting, size_classes, tokens_run
from .windows import TimeWindow, plan_windows

log = logging.getLogger("h3video")

MAX_PRICE = 1.6
"""Tokens run against the frame's up to which less memory is preferred to less work."""

ENOUGH = 0.3
"""Estimated peak against the full frame's that is small enough: from here on less work counts."""

MAX_TILES = 1024
MOST_SEARCHED = 256
"""Tiles of a grid that a resolution names, and cells of one that is looked for."""

MAX_ELEMENTS = 2**31
"""Tensors of this many elements break kernels on Metal and some on CUDA."""

_USUAL = DenoiserShape(hidden=1, ffn=3, heads=1, layers=1)
"""Proportions that stand for an unknown transformer."""


def fade_tokens(token_px: int) -> int:
    """Tokens that a fade must cover at least.

    A narrower one is a hard step on the token grid: over 2 tokens the largest step of the weight
    is 0.69, over 3 it is 0.43, over 4 it is 0.37. Tokens of 32 px get 3 of them: 96 px is wider
    than the 64 px of everyone else, and a fourth would cost a fifth more work.
    """
    return 4 if token_px < 32 else 3


def usual_overlap(token_px: int) -> float:
    """Px of the default overlap where the grid stays, and of the least one that is no hard edge."""
    return float(fade_tokens(token_px) * token_px)


class NothingFits(UsageError):
    """No tile fits the budget."""


@dataclass(frozen=True)
class TokenTile:
    """One tile.

    cells    indices of the cells that it owns
    ids      their H3 ids
    tokens   spatial token indices (row * columns + column) that it runs, ascending
    owned    tokens whose centres lie in its cells
    """

    cells: tuple[int, ...]
    ids: tuple[int, ...]
    tokens: tuple[int, ...]
    owned: int


@dataclass(frozen=True)
class TokenPlan:
    """How a frame's tokens are run in tiles.

    width, height    the frame in px;  columns, rows   the frame in tokens
    latent_frames    of the clip
    windows          every tile runs once in each, with its spatial tokens in the window's frames
    overlap, halo    px: width of the shared band; context of every token that a tile owns
    shape            hex | rect | none
    exchange         step: tiles stay apart through all blocks of a step
                     block: tiles are blended after every block
    kernel           the fade's curve across the shared band, see h3video.blend.kernels
    """

    grid: Grid
    family: VideoFamily
    width: int
    height: int
    columns: int
    rows: int
    latent_frames: int
    overlap: float
    halo: float
    shape: str
    exchange: str
    denoiser: DenoiserShape | None
    tiles: tuple[TokenTile, ...]
    windows: tuple[TimeWindow, ...]
    kernel: str = DEFAULT_KERNEL

    @property
    def single(self) -> bool:
        """One tile that holds every token: no tiling at all."""
        return len(self.tiles) == 1 and len(self.windows) == 1

    @property
    def runs(self) -> int:
        """Tiles times windows: how often a block is called in a step."""
        return len(self.tiles) * len(self.windows)

    @property
    def frame_tokens(self) -> int:
        """Tokens of the full frame, over all latent frames."""
        return self.columns * self.rows * self.latent_frames

    @cached_property
    def tile_sizes(self) -> dict[int, int]:
        """Tiles by how many tokens each runs over all latent frames of a window, largest first."""
        length = self.windows[0].length
        count = Counter(len(t.tokens) * length for t in self.tiles)
        return dict(sorted(count.items(), reverse=True))

    def sizes_text(self) -> str:
        """How many tiles run how many tokens, such as "4 x 18480, 3 x 15918"."""
        return ", ".join(f"{tiles} x {tokens}" for tokens, tiles in self.tile_sizes.items())

    @property
    def tile_tokens(self) -> int:
        """Tokens of the largest tile, over all latent frames of a window."""
        return next(iter(self.tile_sizes))

    @property
    def tokens_run(self) -> int:
        """Tokens of all tiles in all windows."""
        return len(self.windows) * sum(n * tiles for n, tiles in self.tile_sizes.items())

    @property
    def share(self) -> float:
        """The largest tile's tokens against the frame's."""
        return self.tile_tokens / self.frame_tokens

    @property
    def price(self) -> float:
        """Tokens run against the frame's; 1 is no tiling."""
        return self.tokens_run / self.frame_tokens

    @property
    def expected_time(self) -> float | None:
        """Expected time of a step against the untiled one, from the work of each; None if unknown.

        Linear layers cost price, attention price x share (the tiles' mean, by their tokens).
        """
        if self.denoiser is None:
            return None
        d = self.denoiser
        full = d.linear_flops(self.frame_tokens) + d.attention_flops(self.frame_tokens)
        tiles = sum(
            count * (d.linear_flops(n) + d.attention_flops(n))
            for n, count in self.tile_sizes.items()
        )
        return len(self.windows) * tiles / full

    @property
    def largest_tensor(self) -> int | None:
        """Elements of the largest tensor of a step; None if the model's shape is unknown."""
        if self.denoiser is None:
            return None
        whole = self.frame_tokens * self.denoiser.hidden
        return max(whole, self.denoiser.largest_tensor(self.tile_tokens))

    def activation_bytes(self) -> int | None:
        """Estimated peak of a step's activations in bytes; None if the model's shape is unknown."""
        if self.denoiser is None:
            return None
        return _activation_bytes(
            self.denoiser, self.frame_tokens, self.tile_tokens, self.tokens_run, self.runs,
            self.exchange,
        )  # fmt: skip

    def untiled_bytes(self) -> int | None:
        """The same for the full frame at once."""
        if self.denoiser is None:
            return None
        d = self.denoiser
        return d.hidden_bytes(self.frame_tokens) + d.block_bytes(self.frame_tokens)

    def weights(self) -> list[TileWeights]:
        """Every tile's weights over the token grid."""
        return tile_weights(
            self.grid, [t.cells for t in self.tiles], self.columns, self.rows,
            float(self.family.token_px), self.overlap, self.kernel,
        )  # fmt: skip

    def to_json(self) -> dict[str, Any]:
        """The plan as plain data."""
        return {
            "kind": "tokens", "shape": self.shape, "exchange": self.exchange,
            "family": self.family.name,
            "grid": self.grid.to_json(),
            "columns": self.columns, "rows": self.rows, "latent_frames": self.latent_frames,
            "overlap_px": self.overlap, "halo_px": self.halo,
            "kernel": self.kernel,
            "windows": [{"start": w.start, "length": w.length} for w in self.windows],
            "tokens_per_tile": self.tile_tokens, "tokens_run": self.tokens_run,
            "tile_sizes": [{"tokens": n, "tiles": t} for n, t in self.tile_sizes.items()],
            "frame_tokens": self.frame_tokens, "price": self.price,
            "expected_time": self.expected_time, "largest_tensor": self.largest_tensor,
            "activation_bytes": self.activation_bytes(),
            "tiles": [
                {"cells": list(t.cells), "ids": [f"{i:x}" for i in t.ids],
                 "tokens": list(t.tokens), "owned": t.owned}
                for t in self.tiles
            ],
        }  # fmt: skip


def _activation_bytes(
    d: DenoiserShape, frame_tokens: int, tile_tokens: int, tokens: int, tiles: int, exchange: str
) -> int:
    """Peak of a step in bytes: `tokens` of all tiles, `tile_tokens` of the largest."""
    frame = d.hidden_bytes(frame_tokens)
    if tiles == 1:
        return frame + d.block_bytes(frame_tokens)
    tile = d.hidden_bytes(tile_tokens) + d.block_bytes(tile_tokens)
    if exchange == "block":
        return frame + 4 * d.hidden * frame_tokens + tile  # and the float32 sum
    # The blend goes in pieces: the frame's result, and little beside the tiles' states.
    return d.hidden_bytes(tokens) + max(d.block_bytes(tile_tokens), frame)


def plan_token_tiles(
    width: int, height: int, frames: int, family: VideoFamily, **settings: Any
) -> TokenPlan:
    """Plan the token tiles of a clip in px and frames, legal for `family`.

    settings   see plan_latent_tiles
    Raises UsageError when a value is out of range or nothing fits the budget.
    """
    family.check(width, height, frames)
    return plan_latent_tiles(
        *family.token_grid(width, height), family.latent_frames(frames), family, **settings
    )


@lru_cache(maxsize=64)
def plan_latent_tiles(
    columns: int,
    rows: int,
    latent_frames: int,
    family: VideoFamily,
    *,
    hex_res: int | str = "auto",
    overlap: float | None = None,
    halo: float | None = None,
    budget: float | int | str | None = None,
    shape: str = "hex",
    span: float = DEFAULT_SPAN,
    rotation: float | None = None,
    origin: Point | None = None,
    tile_sizes: int = TILE_SIZES,
    exchange: str = "step",
    denoiser: DenoiserShape | None = None,
    window: int | None = None,
    window_overlap: int = 2,
    window_mode: str = "fused",
    kernel: str = DEFAULT_KERNEL,
    narrow: bool = False,
) -> TokenPlan:
    """Plan the token tiles of a clip whose frame is columns x rows tokens.

    hex_res    H3 resolution 0..15, or "auto": the grid is searched for, see search.py. What is
               given of span, rotation and origin is kept (the default span is free)
    overlap    px shared along every cell edge; None: 4 tokens (3 where they are 32 px
               wide). 0 is a hard partition. Narrower than that is widened with a warning
    halo       px: a token sees all tokens that are so near in the tile that owns it; None: 32, or
               48 where tokens are 32 px wide. At least overlap / 2
    budget     see parse_budget: the fewest tokens within it. None with "auto": no tile of more
               than a third of the frame; the fewest tokens at 0.3 of the untiled memory, or, where
               that is over the price of 1.6, the least memory, or else the least price (a frame so
               small that nothing fits is not tiled). None with a hex_res: no limit
    shape      hex | rect (with a hex_res: of the same area) | none (one tile)
    denoiser   the transformer's sizes: needed for a budget in bytes and for times
    rotation   of the grid in degrees; None: 0, or with "auto" whichever of a few is best
    origin     px by which the grid's centre lies right of and below the frame's; None: 0, 0
    tile_sizes at most so many different token counts among the tiles; 1: all tiles are equal
    window, window_overlap, window_mode   latent frames a tile takes at a time, see plan_windows
    kernel     the fade's curve, see h3video.blend.kernels
    narrow     whether an overlap is taken as it is, however narrow; None is then 0

    Raises UsageError when a value is out of range or nothing fits the budget.
    """
    width, height = columns * family.token_px, rows * family.token_px
    if min(columns, rows, latent_frames) < 1:
        raise UsageError(f"a clip of {columns}x{rows} tokens x {latent_frames} frames is empty")
    if shape not in ("hex", "rect", "none"):
        raise UsageError(f"shape {shape!r} is unknown; use hex, rect or none")
    if exchange not in ("step", "block"):
        raise UsageError(f"exchange {exchange!r} is unknown; use step or block")
    if hex_res != "auto" and not (isinstance(hex_res, int) and 0 <= hex_res <= 15):
        raise UsageError(f"hex_res {hex_res} is out of range 0..15 (or auto)")
    for name, value in (("overlap", overlap), ("halo", halo)):
        if value is not None and not 0.0 <= value <= 4096.0:
            raise UsageError(f"{name} {value:g} is out of range 0..4096 px")
    check_origin(origin)
    check_tile_sizes(tile_sizes)
    check_kernel(kernel)
    windows = plan_windows(latent_frames, window, window_overlap, window_mode, family)
    limit = _limit(parse_budget(budget), denoiser)
    template = TokenPlan(
        hex_grid(width, height, 0), family, width, height, columns, rows, latent_frames,
        0.0, 0.0, shape, exchange, denoiser, (), windows, kernel,
    )  # fmt: skip
    if hex_res == "auto" and shape != "none":
        fixed = Fixed(None if span == DEFAULT_SPAN else span, rotation, origin)
        found = _searched(template, limit, fixed, overlap, halo, tile_sizes, narrow)
        if found is not None:
            _check_elements(found)
            _warn_overlap(found, overlap)
            return found
        if limit is None:  # the frame is so small that every tile would be most of it
            shape = "none"
            template = replace(template, shape=shape)
    rotation, place = rotation or 0.0, NO_ORIGIN if shape == "none" else origin or NO_ORIGIN

    make_grid = rect_grid if shape == "rect" else hex_grid
    finest = finest_res(width, height, span, rotation)
    candidates = [0] if shape == "none" else range(finest + 1) if hex_res == "auto" else [hex_res]
    smallest = None
    for res in candidates:
        if hex_res == "auto" and not origin_fits(width, height, int(res), span, place):
            break
        grid = make_grid(width, height, int(res), span, rotation, place)
        if hex_res == "auto" and smallest is not None and len(grid.cells) > MOST_SEARCHED:
            break
        plan = None
        for join in _join_shares(limit, hex_res):
            tiles, used_overlap, used_halo = _tiles(
                grid, columns, rows, family.token_px, overlap, halo, shape, join, tile_sizes,
                narrow=narrow,
            )  # fmt: skip
            plan = replace(
                template, grid=grid, overlap=used_overlap, halo=used_halo, tiles=tiles
            )
            if _fits(plan, limit, shape, hex_res):
                _check_elements(plan)
                _warn_overlap(plan, overlap)
                return plan
        assert plan is not None
        if smallest is None or plan.tile_tokens < smallest.tile_tokens:
            smallest = plan
        elif smallest.tile_tokens < smallest.frame_tokens or len(grid.cells) > MOST_SEARCHED // 4:
            break  # finer cells no longer make smaller tiles: overlap and halo rule
    if smallest is None:
        raise UsageError(f"origin {place[0]:g}, {place[1]:g} is farther off than cells are apart")
    raise NothingFits(
        f"no tile of {width}x{height} with {latent_frames} latent frames fits the budget "
        f"{budget}: the smallest has {smallest.share:.0%} of the frame's tokens (hex_res "
        f"{smallest.grid.res}, overlap {smallest.overlap:g}, halo {smallest.halo:g} px); raise "
        "the budget, or lower overlap or halo"
    )


def moved_plan(plan: TokenPlan, origin: Point, join: float | None) -> TokenPlan:
    """A plan with its grid elsewhere: everything else stays, tiles are cut anew. They run what
    they need and no more, so each may have a size of its own: see in_sizes.

    origin   see plan_latent_tiles
    join     share of the frame up to which cells are joined; None: slivers only
    """
    old = plan.grid
    assert not plan.single
    if isinstance(old, HexGrid):
        grid: Grid = hex_grid(old.width, old.height, old.res, old.span, old.rotation, origin)
    else:
        grid = rectangles(old.width, old.height, old.columns, old.rows, old.res, origin)
    tiles, _, _ = _tiles(
        grid, plan.columns, plan.rows, plan.family.token_px, plan.overlap, plan.halo, plan.shape,
        join, len(grid.cells), narrow=True,
    )  # fmt: skip
    return replace(plan, grid=grid, tiles=tiles)


def in_sizes(plans: Sequence[TokenPlan], most: int) -> tuple[TokenPlan, ...]:
    """Plans of one frame whose tiles have at most `most` sizes in all, each filled up to its own
    with the tokens nearest to it."""
    sizes = size_classes([len(t.tokens) for p in plans for t in p.tiles], most)
    return tuple(replace(p, tiles=tuple(_grown(p, t, sizes) for t in p.tiles)) for p in plans)


def _grown(plan: TokenPlan, tile: TokenTile, sizes: Sequence[int]) -> TokenTile:
    import numpy as np

    inside = np.zeros(plan.columns * plan.rows, bool)
    inside[list(tile.tokens)] = True
    spare = fitting(len(tile.tokens), sizes) - len(tile.tokens)
    _take_nearest(inside, spare, plan.grid, tile.cells, plan.columns, plan.family.token_px)
    return replace(tile, tokens=tuple(np.flatnonzero(inside).tolist()))


def _searched(
    template: TokenPlan, limit: float | int | None, fixed: Fixed, overlap: float | None,
    halo: float | None, tile_sizes: int, narrow: bool,
) -> TokenPlan | None:  # fmt: skip
    """The plan that serves best of all sizes, rotations and origins; None where no tile fits."""
    columns, rows, px = template.columns, template.rows, template.family.token_px
    goal = _goal(template, limit, tile_sizes)
    frame = Frame(columns, rows, px, *wanted_px(px, overlap, halo, narrow))
    found: list[tuple[Any, int, TokenPlan]] = []
    for grid in best_grids(frame, template.shape, goal, fixed):
        tiles, used_overlap, used_halo = _tiles(
            grid, columns, rows, px, overlap, halo, template.shape, goal.limit / (columns * rows),
            tile_sizes, goal.cost, narrow,
        )  # fmt: skip
        plan = replace(template, grid=grid, overlap=used_overlap, halo=used_halo, tiles=tiles)
        if len(tiles) > 1 and _fits(plan, limit, template.shape, "auto"):
            found.append((goal.cost([len(t.tokens) for t in tiles]), len(found), plan))
    return min(found, key=lambda f: f[:2])[2] if found else None


def _goal(plan: TokenPlan, limit: float | int | None, tile_sizes: int) -> Goal:
    """What is asked of a plan like `plan`: see plan_latent_tiles."""
    spatial = plan.columns * plan.rows
    length, windows = plan.windows[0].length, len(plan.windows)
    d = plan.denoiser or _USUAL
    enough = ENOUGH * (d.hidden_bytes(plan.frame_tokens) + d.block_bytes(plan.frame_tokens))
    affordable = MAX_PRICE * plan.frame_tokens / (length * windows)

    def work(needed: Sequence[int]) -> int:
        return tokens_run(needed, tile_sizes)

    def memory(needed: Sequence[int], run: int) -> int:
        largest, every = max(needed) * length, run * length * windows
        return _activation_bytes(
            d, plan.frame_tokens, largest, every, len(needed) * windows, plan.exchange
        )

    def usual(needed: Sequence[int]) -> tuple[int, int]:
        run = work(needed)
        if run > affordable:
            return 2, run
        needs = memory(needed, run)
        return (0, run) if needs <= enough else (1, needs)

    def within(needed: Sequence[int]) -> tuple[int, int]:
        run = work(needed)
        needs = memory(needed, run)
        return (0, run) if needs <= int(limit or 0) else (1, needs)

    if isinstance(limit, int):
        return Goal(spatial // 2, spatial // 24, within)
    if limit is not None:
        # Where small tiles run less, joining what saves most is best.
        ways = (False, True) if tile_sizes == 1 else (True,)
        return Goal(int(limit * spatial), int(limit * spatial), work, ways)
    return Goal(int(DEFAULT_SHARE * spatial), spatial // 8, usual)


def _limit(budget: float | int | None, denoiser: DenoiserShape | None) -> float | int | None:
    if isinstance(budget, int) and denoiser is None:
        raise UsageError(
            f"a budget of {budget} bytes needs the model's shape, which is unknown here; "
            "use a share of the frame such as 0.25"
        )
    return budget


def _join_shares(limit: float | int | None, hex_res: int | str) -> tuple[float | None, ...]:
    """Shares of the frame up to which cells are joined, to be tried in turn; None: slivers only.

    How many bytes a plan takes depends on the number of tiles, too, so a budget in bytes
    is met by trying.
    """
    if hex_res != "auto":
        return (None,)
    if isinstance(limit, int):
        return (1 / 2, 1 / 3, 1 / 4, 1 / 6, 1 / 8, 1 / 12, 1 / 16, None)
    return (DEFAULT_SHARE if limit is None else limit,)


def _fits(plan: TokenPlan, limit: float | int | None, shape: str, hex_res: int | str) -> bool:
    if shape == "none":
        return True
    if isinstance(limit, int):
        needed = plan.activation_bytes()
        return needed is not None and needed <= limit
    if limit is None:
        return hex_res != "auto" or plan.share <= DEFAULT_SHARE
    return plan.share <= limit


def _check_elements(plan: TokenPlan) -> None:
    largest = plan.largest_tensor
    if largest is not None and largest >= MAX_ELEMENTS:
        raise UsageError(
            f"a tensor of {largest:,} elements is needed, the limit is 2^31 = {MAX_ELEMENTS:,}; "
            f"use a smaller frame, fewer frames or a finer hex_res than {plan.grid.res}"
        )


def _warn_overlap(plan: TokenPlan, asked: float | None) -> None:
    if asked is None or len(plan.tiles) == 1 or plan.overlap == asked:
        return
    why = (
        f"a fade under {fade_tokens(plan.family.token_px)} tokens shows as a line"
        if plan.overlap > asked
        else f"a cell is only {plan.grid.max_overlap():.0f} px wide"
    )
    log.warning("overlap %g px is taken as %.0f px: %s", asked, plan.overlap, why)


def _tiles(
    grid: Grid, columns: int, rows: int, token_px: int, overlap: float | None,
    halo: float | None, shape: str, join: float | None, tile_sizes: int = 1,
    cost: Cost | None = None, narrow: bool = False,
) -> tuple[tuple[TokenTile, ...], float, float]:  # fmt: skip
    """Tiles of a grid with the overlap and halo that are really used.

    join   share of the frame up to which cells are joined; None: slivers only
    cost   what joining is to lower; None: the tokens that are run
    """
    used_overlap = min(wanted_px(token_px, overlap, halo, narrow)[0], grid.max_overlap())
    used_halo = _used_halo(token_px, halo, used_overlap)
    spatial = columns * rows
    if shape == "none" or len(grid.cells) == 1:
        cells = tuple(range(len(grid.cells)))
        one = TokenTile(cells, tuple(c.id for c in grid.cells), tuple(range(spatial)), spatial)
        return (one,), used_overlap, used_halo
    if len(grid.cells) > MAX_TILES:
        raise UsageError(
            f"hex_res {grid.res} gives {len(grid.cells)} cells at {grid.width}x{grid.height}; "
            f"at most {MAX_TILES} can be tiles: use hex_res {grid.res - 1} or less"
        )
    found = cover(grid, columns, rows, token_px, used_overlap, used_halo)
    limit = int(SLIVER * found.largest if join is None else join * spatial)
    groups = joined(found, limit, cost or (lambda needed: tokens_run(needed, tile_sizes)))
    tiles = _filled(grid, found, groups, columns, rows, token_px, tile_sizes)
    return tiles, used_overlap, used_halo


def wanted_px(
    token_px: int, overlap: float | None, halo: float | None, narrow: bool = False
) -> tuple[float, float]:
    """The overlap and halo in px that are used where these are asked for and cells are large."""
    narrowest = 0.0 if narrow else usual_overlap(token_px)
    wanted = narrowest if overlap is None else (max(overlap, narrowest) if overlap > 0.0 else 0.0)
    return wanted, _used_halo(token_px, halo, wanted)


def _used_halo(token_px: int, halo: float | None, overlap: float) -> float:
    """Half the fade, also where there is none: a wider one buys less of what is near the untiled
    clip than larger tiles do for the same tokens (docs/quality.md)."""
    return max(usual_overlap(token_px) / 2.0 if halo is None else halo, overlap / 2.0)


def _filled(
    grid: Grid, found: Cover, groups: Sequence[Sequence[int]], columns: int, rows: int,
    token_px: int, tile_sizes: int,
) -> tuple[TokenTile, ...]:  # fmt: skip
    """Tiles of groups of cells, each filled up to its size with the tokens nearest to it."""
    import numpy as np

    spatial = columns * rows
    cells = [tuple(found.cells[i] for i in group) for group in groups]
    seen = [together(found, group) for group in groups]
    sizes = size_classes([count for _, count in seen], tile_sizes)
    tiles = []
    for group, mine, needs in zip(groups, cells, seen):
        inside = as_array(needs, spatial)
        _take_nearest(inside, fitting(needs[1], sizes) - needs[1], grid, mine, columns, token_px)
        tiles.append(
            TokenTile(
                mine,
                tuple(grid.cells[i].id for i in mine),
                tuple(np.flatnonzero(inside).tolist()),
                sum(found.owned[i] for i in group),
            )
        )
    return tuple(tiles)


def _take_nearest(
    inside: Any, count: int, grid: Grid, cells: Sequence[int], columns: int, token_px: int
) -> None:
    """Add the tokens to a tile (bool numpy [tokens]) that are nearest to its cells."""
    import numpy as np

    if not count:
        return
    away = np.flatnonzero(~inside)
    x, y = (away % columns + 0.5) * token_px, (away // columns + 0.5) * token_px
    distance = np.max([grid.signed_distance(c, x, y) for c in cells], axis=0)
    # Stable on equal distances, and rounded so that no machine's last bit decides.
    inside[away[np.argsort(-np.round(distance, 6), kind="stable")[:count]]] = True
