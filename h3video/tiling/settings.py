"""What a user decides about hexagonal tiling, in one object that every host is given."""

from __future__ import annotations

import math
from dataclasses import dataclass

from ..blend.kernels import DEFAULT_KERNEL, check_kernel
from ..errors import UsageError
from ..grid import DEFAULT_SPAN, NO_ORIGIN, Point
from .budget import parse_budget

TILES = ("auto", "tokens", "crop")
SHAPES = ("hex", "rect", "none")
ORDERS = ("block-major", "tile-major")
EXCHANGES = ("step", "block")
WINDOW_MODES = ("fused", "frozen")
ACCUMULATE = ("device", "cpu")
POSITIONS = ("full", "local")
BLENDS = ("mean", "variance")
SHIFTS = ("auto", "none", "step")

NO_VARIANCE = (
    "blend=variance is for crops (tiles=crop in ComfyUI): token tiles blend hidden states, whose "
    "detail the blend keeps by 99 % and the model's last norm makes good; use blend=mean with them"
)


@dataclass(frozen=True)
class HexSettings:
    """Settings of a tiling; the defaults are what most people should use.

    hex_res          H3 resolution 0..15, or "auto": searched for with all that is not given
    overlap          px shared along every cell edge; None: 4 tokens (3 of 32 px), or 2 where the
                     grid moves; 0: hard
    halo             px around an owned token in which its tile sees all; None: half the default
                     overlap (crops: px beyond a cell's edge, 4 latents)
    budget           share of the frame's tokens in a tile, or bytes; None: see plan_latent_tiles
    shape            hex | rect (the baseline) | none (one tile)
    span, rotation   of the grid over the frame, see plan_latent_tiles
    origin           px by which the grid's centre lies right of and below the frame's centre;
                     None: 0, 0, or with "auto" whichever is best
    tile_sizes       at most so many different token counts among a plan's tiles, each a graph or
                     compile of its own; 1: all tiles are equal. None: 3, or 8 over all places of
                     a grid that moves
    tiles            tokens | crop | auto (tokens where the model's family has an adapter)
    order            block-major: every block on all tiles, weights are read once per step
                     tile-major: every tile through all blocks; less memory, weights read per tile
    exchange         step | block, see h3video.tiling.fuse
    window           latent frames that a tile takes at a time; None or 0: all of them
    window_overlap   latent frames that neighbouring windows share
    window_mode      fused: both windows are blended there; frozen: the earlier one rules
    start_step, end_step   sampling steps that run in tiles, counted from 0, end excluded;
                     None: to the last. Other steps see the full frame
    guide_steps      first sampling steps in which a prediction of the whole frame, shrunk to the
                     size of a tile, leads the large forms of the tiles', see h3video.tiling.guide
    positions        full: the full frame's; local: each crop's own, to compare with. Token tiles
                     have the full frame's by construction
    accumulate       device | cpu: where the tiles' hidden states wait
    kernel           linear | smoothstep | cosine | gaussian: the fade's curve across the overlap
    blend            mean | variance: give detail that crops draw apart the strength that it has
                     in each, see h3video.blend.variance. Crops only
    shift            none | step: the grid lies elsewhere at every sampling step, see
                     h3video.tiling.shift | auto: step for token tiles where the sampler tells its
                     steps, none for crops and for a walk
    shift_seed       0 or more: where it lies
    """

    hex_res: int | str = "auto"
    overlap: float | None = None
    halo: float | None = None
    budget: float | int | str | None = None
    shape: str = "hex"
    span: float = DEFAULT_SPAN
    rotation: float | None = None
    tiles: str = "auto"
    order: str = "block-major"
    exchange: str = "step"
    window: int | None = None
    window_overlap: int = 2
    window_mode: str = "fused"
    start_step: int = 0
    end_step: int | None = None
    positions: str = "full"
    accumulate: str = "device"
    origin: tuple[float, float] | None = None
    tile_sizes: int | None = None
    guide_steps: int = 0
    kernel: str = DEFAULT_KERNEL
    blend: str = "mean"
    shift: str = "auto"
    shift_seed: int = 0

    @property
    def turn(self) -> float:
        """The rotation where nothing chooses one."""
        return self.rotation or 0.0

    @property
    def place(self) -> Point:
        """The origin where nothing chooses one."""
        return self.origin or NO_ORIGIN

    def __post_init__(self) -> None:
        """Raise UsageError for a value that no frame could make right."""
        choices = (
            ("tiles", TILES), ("shape", SHAPES), ("order", ORDERS), ("exchange", EXCHANGES),
            ("window_mode", WINDOW_MODES), ("accumulate", ACCUMULATE),
            ("positions", POSITIONS), ("blend", BLENDS), ("shift", SHIFTS),
        )  # fmt: skip
        for name, allowed in choices:
            value = getattr(self, name)
            if value not in allowed:
                raise UsageError(f"{name} {value!r} is unknown; use {', '.join(allowed)}")
        if self.hex_res != "auto" and not (
            isinstance(self.hex_res, int) and 0 <= self.hex_res <= 15
        ):
            raise UsageError(f"hex_res {self.hex_res} is out of range 0..15 (or auto)")
        parse_budget(self.budget)
        check_origin(self.origin)
        check_kernel(self.kernel)
        _check_whole("shift_seed", self.shift_seed)
        if self.tile_sizes is not None:
            check_tile_sizes(self.tile_sizes)
        if self.window is not None and self.window < 0:
            raise UsageError(f"window {self.window} is negative; use 0 for all frames")
        if self.window_overlap < 0:
            raise UsageError(f"window_overlap {self.window_overlap} is negative; use 0 or more")
        if self.window and self.window_overlap > self.window // 2:
            raise UsageError(
                f"window_overlap {self.window_overlap} is more than half of the window of "
                f"{self.window} latent frames; use at most {self.window // 2}"
            )
        if self.start_step < 0 or (self.end_step is not None and self.end_step <= self.start_step):
            raise UsageError(
                f"steps {self.start_step} to {self.end_step} are none; end_step is excluded and "
                "must be above start_step"
            )
        if self.guide_steps < 0:
            raise UsageError(f"guide_steps {self.guide_steps} is negative; use 0 for none")
        if self.guide_steps and self.tiles == "crop":
            raise UsageError(
                f"guide_steps {self.guide_steps} is for token tiles; use tiles=tokens or "
                "guide_steps 0"
            )
        if self.blend == "variance" and self.tiles == "tokens":
            raise UsageError(NO_VARIANCE)
        if self.positions == "local" and self.tiles != "crop":
            raise UsageError(
                "positions=local is for crops; token tiles always have the full frame's "
                "positions. Use tiles=crop with it"
            )
        if self.order == "tile-major" and self.exchange == "block":
            raise UsageError(
                "exchange=block blends the tiles after every block, which order=tile-major cannot; "
                "use block-major"
            )


def check_origin(origin: object) -> None:
    """Raise UsageError unless it is None or two numbers; how far it may be depends on the grid."""
    if origin is None:
        return
    if not (
        isinstance(origin, tuple) and len(origin) == 2
        and all(isinstance(v, (int, float)) and math.isfinite(v) for v in origin)
    ):  # fmt: skip
        raise UsageError(f"origin {origin!r} is not two numbers of px such as (24.0, -8.0)")


def check_tile_sizes(tile_sizes: object) -> None:
    """Raise UsageError unless it is a whole number of 1 or more."""
    if not isinstance(tile_sizes, int) or isinstance(tile_sizes, bool) or tile_sizes < 1:
        raise UsageError(f"tile_sizes {tile_sizes!r} is not a number of 1 or more; use 3, or 1")


def _check_whole(name: str, value: object) -> None:
    """Raise UsageError unless it is an int from 0 to 2^63 - 1."""
    if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value < 2**63:
        raise UsageError(f"{name} {value!r} is not a whole number from 0 to 2^63 - 1")
