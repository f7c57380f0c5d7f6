"""Token tiles: which tokens of the frame each tile runs, and what that costs.

A tile owns the weights of one cell or a few joined ones and sees the tokens
nearest to it, the same number for every tile: one shape, one graph, one
compile. It keeps the full frame's token indices, so positions are the full
frame's by construction. Plans are plain integers; nothing here needs torch.
"""

from __future__ import annotations

import itertools
import logging
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from ..blend.weights import Grid, TileWeights, tile_weights
from ..errors import UsageError
from ..grid import DEFAULT_SPAN, NO_ORIGIN, Point, finest_res, hex_grid, rect_grid
from ..models.family import DenoiserShape, VideoFamily
from .budget import DEFAULT_SHARE, parse_budget
from .groups import group_cells
from .settings import check_origin
from .windows import TimeWindow, plan_windows

log = logging.getLogger("h3video")

HALO_PX = 48.0
"""Px seen beyond a cell's edge by default, or half the fade where that is wider."""

DEFAULT_SHARES = (DEFAULT_SHARE, 1.0 / 4.0)
"""Shares of the frame that are tried without a budget."""

MAX_PRICE = 1.6
"""Tokens run against the frame's up to which less memory is preferred to less work."""

TURNS = ((0.0, 30.0), (10.0, 20.0))
"""Degrees that are tried without a rotation: the second pair where the first is not good enough."""

ENOUGH = 0.3
"""Estimated peak against the full frame's at which no other rotation is tried."""

MAX_TILES = 1024
MAX_ELEMENTS = 2**31
"""Tensors of this many elements break kernels on Metal and some on CUDA."""


def fade_tokens(token_px: int) -> int:
    """Tokens that a fade must cover at least.

    A narrower one is a hard step on the token grid: over 2 tokens the largest step of the weight
    is 0.69, over 3 it is 0.43, over 4 it is 0.37. Tokens of 32 px get 3 of them: 96 px is wider
    than the 64 px of everyone else, and a fourth would cost a fifth more work.
    """
    return 4 if token_px < 32 else 3


class NothingFits(UsageError):
    """No tile fits the budget."""


@dataclass(frozen=True)
class TokenTile:
    """One tile.

    cells    indices of the cells that it owns
    ids      their H3 ids
    tokens   spatial token indices (row * columns + column) that it runs, ascending
    owned    tokens of which it has the largest weight
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
    overlap, halo    px: width of the shared band; context seen beyond a cell's edge
    shape            hex | rect | none
    exchange         step: tiles stay apart through all blocks of a step
                     block: tiles are blended after every block
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

    @property
    def tile_tokens(self) -> int:
        """Tokens of one tile, over all latent frames of a window."""
        return len(self.tiles[0].tokens) * self.windows[0].length

    @property
    def tokens_run(self) -> int:
        """Tokens of all tiles in all windows."""
        return self.tile_tokens * self.runs

    @property
    def share(self) -> float:
        """A tile's tokens against the frame's."""
        return self.tile_tokens / self.frame_tokens

    @property
    def price(self) -> float:
        """Tokens run against the frame's; 1 is no tiling."""
        return self.tokens_run / self.frame_tokens

    @property
    def expected_time(self) -> float | None:
        """Expected time of a step against the untiled one, from the work of each; None if unknown.

        Linear layers cost price, attention price x share.
        """
        if self.denoiser is None:
            return None
        d = self.denoiser
        full = d.linear_flops(self.frame_tokens) + d.attention_flops(self.frame_tokens)
        tile = d.linear_flops(self.tile_tokens) + d.attention_flops(self.tile_tokens)
        return self.runs * tile / full

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
            self.denoiser, self.frame_tokens, self.tile_tokens, self.runs, self.exchange
        )

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
            float(self.family.token_px), self.overlap,
        )  # fmt: skip

    def to_json(self) -> dict[str, Any]:
        """The plan as plain data."""
        return {
            "kind": "tokens", "shape": self.shape, "exchange": self.exchange,
            "family": self.family.name,
            "grid": self.grid.to_json(),
            "columns": self.columns, "rows": self.rows, "latent_frames": self.latent_frames,
            "overlap_px": self.overlap, "halo_px": self.halo,
            "windows": [{"start": w.start, "length": w.length} for w in self.windows],
            "tokens_per_tile": self.tile_tokens, "tokens_run": self.tokens_run,
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
    d: DenoiserShape, frame_tokens: int, tile_tokens: int, tiles: int, exchange: str
) -> int:
    frame = d.hidden_bytes(frame_tokens)
    if tiles == 1:
        return frame + d.block_bytes(frame_tokens)
    tile = d.hidden_bytes(tile_tokens) + d.block_bytes(tile_tokens)
    if exchange == "block":
        return frame + 4 * d.hidden * frame_tokens + tile  # and the float32 sum
    # The blend goes in pieces: the frame's result, and little beside the tiles' states.
    return tiles * d.hidden_bytes(tile_tokens) + max(d.block_bytes(tile_tokens), frame)


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
    exchange: str = "step",
    denoiser: DenoiserShape | None = None,
    window: int | None = None,
    window_overlap: int = 2,
    window_mode: str = "fused",
) -> TokenPlan:
    """Plan the token tiles of a clip whose frame is columns x rows tokens.

    hex_res    H3 resolution 0..15, or "auto": the coarsest whose tile fits the budget
    overlap    px shared along every cell edge; None: 4 tokens (3 where they are 32 px
               wide). 0 is a hard partition. Narrower than that is widened with a warning
    halo       px of context seen beyond a cell's edge; None: 48, at least overlap / 2
    budget     see parse_budget; None with "auto": at most a third of the frame's tokens, and the
               least memory at a price up to 1.6, or else the least price (a frame so small that
               nothing fits is not tiled); None with a hex_res: no limit
    shape      hex | rect (same area) | none (one tile)
    denoiser   the transformer's sizes: needed for a budget in bytes and for times
    rotation   of the grid in degrees; None: 0, or with "auto" whichever of a few is best
    origin     px by which the grid's centre lies right of and below the frame's; None: 0, 0
    window, window_overlap, window_mode   latent frames a tile takes at a time, see plan_windows

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
    windows = plan_windows(latent_frames, window, window_overlap, window_mode, family)
    limit = _limit(parse_budget(budget), denoiser)
    if hex_res == "auto" and limit is None and shape != "none":
        return _best(
            columns, rows, latent_frames, family, rotation, overlap=overlap, halo=halo,
            origin=origin,
            shape=shape, span=span, exchange=exchange, denoiser=denoiser, window=window,
            window_overlap=window_overlap, window_mode=window_mode,
        )  # fmt: skip
    rotation, place = rotation or 0.0, NO_ORIGIN if shape == "none" else origin or NO_ORIGIN

    make_grid = rect_grid if shape == "rect" else hex_grid
    finest = finest_res(width, height, span, rotation)
    candidates = [0] if shape == "none" else range(finest + 1) if hex_res == "auto" else [hex_res]
    smallest = None
    for res in candidates:
        grid = make_grid(width, height, int(res), span, rotation, place)
        if hex_res == "auto" and smallest is not None and len(grid.cells) > MAX_TILES:
            break
        plan = None
        for join in _join_shares(limit, hex_res):
            tiles, used_overlap, used_halo = _tiles(
                grid, columns, rows, family.token_px, overlap, halo, shape, join
            )
            plan = TokenPlan(
                grid, family, width, height, columns, rows, latent_frames,
                used_overlap, used_halo, shape, exchange, denoiser, tiles, windows,
            )  # fmt: skip
            if _fits(plan, limit, shape, hex_res):
                _check_elements(plan)
                _warn_overlap(plan, overlap)
                return plan
        assert plan is not None
        if smallest is None or plan.tile_tokens < smallest.tile_tokens:
            smallest = plan
        elif smallest.tile_tokens < smallest.frame_tokens or len(grid.cells) > MAX_TILES // 8:
            break  # finer cells no longer make smaller tiles: overlap and halo rule
    assert smallest is not None
    raise NothingFits(
        f"no tile of {width}x{height} with {latent_frames} latent frames fits the budget "
        f"{budget}: the smallest has {smallest.share:.0%} of the frame's tokens (hex_res "
        f"{smallest.grid.res}, overlap {smallest.overlap:g}, halo {smallest.halo:g} px); raise "
        "the budget, or lower overlap or halo"
    )


def _best(
    columns: int, rows: int, latent_frames: int, family: VideoFamily, rotation: float | None,
    **settings: Any,
) -> TokenPlan:  # fmt: skip
    """The plan that most people should use, see plan_latent_tiles."""
    free = rotation is None and settings["shape"] == "hex"
    found: list[TokenPlan] = []
    for turns in TURNS if free else ((rotation or 0.0,),):
        for share, turn in itertools.product(DEFAULT_SHARES, turns):
            try:
                plan = plan_latent_tiles(
                    columns, rows, latent_frames, family, budget=share, rotation=turn, **settings
                )
            except NothingFits:
                continue
            found.append(plan)
        if any(plan.price <= MAX_PRICE and _saving(plan) <= ENOUGH for plan in found):
            break
    cheap = [plan for plan in found if plan.price <= MAX_PRICE]
    if cheap:
        return min(cheap, key=lambda p: (p.activation_bytes() or 0, p.tile_tokens))
    if found:
        return min(found, key=lambda p: p.price)
    whole = {**settings, "shape": "none"}
    return plan_latent_tiles(
        columns, rows, latent_frames, family, rotation=rotation or 0.0, **whole
    )  # fmt: skip


def _saving(plan: TokenPlan) -> float:
    """The estimated peak against the full frame's; 0 where the model's shape is unknown."""
    return (plan.activation_bytes() or 0) / (plan.untiled_bytes() or 1)


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


Seen = tuple[Any, int]
"""Tokens as a bool array, and how many they are."""


def _both(a: Seen, b: Seen) -> Seen:
    union = a[0] | b[0]
    return union, int(union.sum())


def _tiles(
    grid: Grid, columns: int, rows: int, token_px: int, overlap: float | None,
    halo: float | None, shape: str, join: float | None,
) -> tuple[tuple[TokenTile, ...], float, float]:  # fmt: skip
    """Tiles of a grid with the overlap and halo that are really used."""
    import numpy as np

    narrowest = float(fade_tokens(token_px) * token_px)
    wanted = narrowest if overlap is None else (max(overlap, narrowest) if overlap > 0.0 else 0.0)
    used_overlap = min(wanted, grid.max_overlap())
    used_halo = max(HALO_PX if halo is None else halo, used_overlap / 2.0)
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
    xs, ys = np.meshgrid((np.arange(columns) + 0.5) * token_px, (np.arange(rows) + 0.5) * token_px)
    xs, ys = xs.ravel(), ys.ravel()
    distance = np.stack([grid.reach_distance(c.index, xs, ys) for c in grid.cells])
    # A millionth of a pixel of slack keeps a token on the border inside on every machine.
    sees = distance > -(used_halo + 1e-6)
    most = int(1.15 * sees.sum(1).max() if join is None else join * spatial)
    index, _ = grid.sample_weights(columns, rows, float(token_px), used_overlap)
    owners = sorted({int(i) for i in np.unique(index[..., 0])})  # slot 0 has the largest weight
    place = {cell: i for i, cell in enumerate(owners)}
    near = [[place[j] for j in grid.neighbours[i] if j in place] for i in owners]
    joined = group_cells(
        [(sees[i], int(sees[i].sum())) for i in owners], near, most, _both, lambda seen: seen[1]
    )
    groups = tuple(tuple(owners[i] for i in group) for group in joined)
    seen = [np.logical_or.reduce(sees[list(g)]) for g in groups]
    count = max(int(s.sum()) for s in seen)
    tiles = []
    weights = tile_weights(grid, groups, columns, rows, float(token_px), used_overlap)
    owner = np.zeros(spatial, np.int64)
    largest = np.zeros(spatial, np.float32)
    for tile, w in enumerate(weights):
        better = w.weight > largest[w.points]
        owner[w.points[better]] = tile
        largest[w.points[better]] = w.weight[better]
    for tile, group in enumerate(groups):
        nearest = distance[list(group)].max(0)
        # Stable on equal distances, and rounded so that no machine's last bit decides.
        order = np.argsort(-np.round(nearest, 6), kind="stable")[:count]
        tiles.append(
            TokenTile(
                group,
                tuple(grid.cells[i].id for i in group),
                tuple(sorted(int(i) for i in order)),
                int((owner == tile).sum()),
            )
        )
    return tuple(tiles), used_overlap, used_halo
