"""apply_hex_tiling and remove_hex_tiling: settings, plans, and what was wrapped."""

from __future__ import annotations

import logging
import weakref
from collections.abc import Callable
from typing import Any

from ....blend.kernels import DEFAULT_KERNEL
from ....errors import UsageError
from ....grid import DEFAULT_SPAN
from ....models import DenoiserShape, VideoFamily
from ....tiling.crops import CropPlan, plan_crop_tiles
from ....tiling.settings import NO_VARIANCE, HexSettings
from ....tiling.shift import Schedule, token_schedule
from ....tiling.tokens import TokenPlan, plan_latent_tiles
from ..describe import describe_schedule
from .steps import schedule_step
from .wrappers import Wrappers

log = logging.getLogger("h3video")

_ATTRIBUTE = "_h3video_tiling"

TRANSFORMERS = ("transformer", "transformer_2", "transformer_ref")
"""Where pipelines keep them: Wan 2.2 has two, MiniMax-H3's modular pipeline one per workflow."""

OnTile = Callable[[str, float], None]


class HexTiling:
    """The tiling of one pipeline.

    family     of its (first) transformer
    plans      the last few that were used, newest last
    largest    of the plans of the sampling under way: the one that needs the most memory
    measure    whether to count the seconds of our own work in own_seconds
    """

    def __init__(
        self, family: VideoFamily, settings: HexSettings, on_tile: OnTile | None = None,
        pipe: Any = None,
    ) -> None:  # fmt: skip
        self.family = family
        self.settings = settings
        self.on_tile = on_tile
        self.measure = False
        self.own_seconds = 0.0
        self.plans: list[TokenPlan] = []
        self.largest: TokenPlan | None = None
        self.wrappers = Wrappers()
        self.transformers: list[Any] = []
        self._pipe = (lambda: None) if pipe is None else weakref.ref(pipe)
        self._said: set[str] = set()

    def token_plan(
        self, width: int, height: int, frames: int, denoiser: DenoiserShape | None = None
    ) -> TokenPlan:
        """The plan for a clip in px and frames; with a grid that moves, the largest of its plans.

        The same for the same settings.
        """
        self.family.check(width, height, frames)
        columns, rows = self.family.token_grid(width, height)
        return self.schedule(columns, rows, self.family.latent_frames(frames), denoiser).largest

    def plan(
        self, columns: int, rows: int, latent_frames: int, denoiser: DenoiserShape,
        timestep: Any = None,
    ) -> TokenPlan:  # fmt: skip
        """The plan of a pass, logged the first time and kept in `plans`."""
        schedule = self.schedule(columns, rows, latent_frames, denoiser)
        self.largest = schedule.largest
        plan = schedule.at(schedule_step(self._scheduler(), timestep) if schedule.moves else 0)
        if not self.plans or self.plans[-1] is not plan:
            self.say_once(describe_schedule(schedule))
            kept = max(3, len(schedule.plans) - 1)
            self.plans[:] = [*(p for p in self.plans[-kept:] if p is not plan), plan]
        return plan

    def schedule(
        self, columns: int, rows: int, latent_frames: int, denoiser: DenoiserShape | None
    ) -> Schedule[TokenPlan]:
        """The plans of a sampling: one, or with shift one for every place of the grid."""
        pipe = self._pipe()
        return token_schedule(
            columns, rows, latent_frames, self.family, self.settings, denoiser,
            steps=pipe is None or _tells_steps(pipe),
        )  # fmt: skip

    def _scheduler(self) -> Any:
        return getattr(self._pipe(), "scheduler", None)

    def crop_plan(self, width: int, height: int) -> CropPlan:
        """The plan of the decoder for a frame of this size."""
        s = self.settings
        return plan_crop_tiles(
            width, height, self.family, budget=s.budget, shape=s.shape, span=s.span,
            rotation=s.turn,  # the decoder's cells have another size: the origin is not theirs
        )  # fmt: skip

    def in_range(self) -> bool:
        """Whether the step under way runs in tiles."""
        s = self.settings
        if s.start_step == 0 and s.end_step is None:
            return True
        step = _step(self._pipe())
        return s.start_step <= step and (s.end_step is None or step < s.end_step)

    def guided(self) -> bool:
        """Whether a small prediction of the whole frame leads the step under way."""
        return bool(self.settings.guide_steps) and _step(self._pipe()) < self.settings.guide_steps

    @property
    def train_steps(self) -> float:
        """The timestep of pure noise."""
        config = getattr(getattr(self._pipe(), "scheduler", None), "config", None)
        return float(getattr(config, "num_train_timesteps", 1000))

    def report(self, phase: str, share: float) -> None:
        """Tell the caller what was done."""
        if self.on_tile is not None:
            self.on_tile(phase, share)

    def undo(self) -> None:
        """Take every wrapper off again."""
        self.wrappers.undo()

    def say_once(self, text: str) -> None:
        """Log a line the first time that it comes up."""
        if text not in self._said:
            self._said.add(text)
            log.info("%s", text)


def apply_hex_tiling(
    pipe: Any,
    hex_res: int | str = "auto",
    overlap: float | None = None,
    halo: float | None = None,
    budget: float | int | str | None = None,
    *,
    shape: str = "hex",
    span: float = DEFAULT_SPAN,
    rotation: float | None = None,
    origin: tuple[float, float] | None = None,
    tile_sizes: int | None = None,
    exchange: str = "step",
    order: str = "block-major",
    window: int | None = None,
    window_overlap: int = 2,
    window_mode: str = "fused",
    start_step: int = 0,
    end_step: int | None = None,
    accumulate: str = "device",
    guide_steps: int = 0,
    kernel: str = DEFAULT_KERNEL,
    blend: str = "mean",
    shift: str = "auto",
    shift_seed: int = 0,
    tile_vae: bool = True,
    on_tile: OnTile | None = None,
) -> HexTiling:
    """Run a diffusers video pipeline in hexagonal token tiles.

    pipe       a pipeline of Wan (VACE too), LTX-Video, LTX-2, HunyuanVideo or HunyuanVideo 1.5,
               or MiniMax-H3's modular pipeline with its components loaded
    hex_res    H3 resolution 0..15, or "auto": the coarsest grid whose tile fits the budget
    overlap    px shared along every cell edge (None: 2 tokens, or 4, 3 of 32 px, where the grid
               stays; 0: hard)
    halo       px of context that a tile sees beyond its cell (None: half the default overlap)
    budget     share of the frame's tokens ("25%"), or bytes for a step's activations ("2GiB")
    shape      hex | rect (the baseline) | none (one tile: bit-identical to no tiling)
    span, rotation, origin   of the grid over the frame, see h3video.tiling.tokens
    tile_sizes at most so many different token counts among the tiles (1: one shape, one compile;
               None: 3, or 8 over all places of a grid that moves)
    exchange   step | block, see h3video.tiling.fuse
    order      block-major only: weights are read once per step
    window, window_overlap   latent frames that a tile takes at a time (None: all of them), and
               how many of them neighbouring windows share
    window_mode   fused: both windows are blended there; frozen: the earlier one rules
    start_step, end_step     steps of the scheduler that run in tiles, end excluded
    accumulate device | cpu: where the tiles' hidden states wait between blocks
    guide_steps  first steps in which a prediction of the whole frame, shrunk to the size of a tile,
               leads the large forms of the tiles': against subjects that repeat when clips start
               from noise. Wan and HunyuanVideo; such a step reads the weights twice
    kernel     linear | smoothstep | cosine | gaussian: the fade's curve across the overlap
    blend      mean only here: variance is for crops (ComfyUI), see h3video.blend.variance
    shift      step: the grid lies elsewhere at every step, so that seams never stay, and any
               overlap is taken as it is, see h3video.tiling.shift | none | auto: step where the
               scheduler tells its steps
    shift_seed 0 or more: where it lies
    tile_vae   decode in crops with hexagonal seams, too, where the VAE can
    on_tile    called with ("denoise" | "decode", share of a forward pass or of the frame)

    Every later call of `pipe` is tiled, whatever its size. Calling this again replaces
    the settings. Raises UsageError for a bad value or an unknown transformer.
    """
    if order != "block-major":
        raise UsageError(
            f"order {order!r} is not offered for diffusers; use block-major (tile-major is in "
            "ComfyUI's H3HexTiles)"
        )
    settings = HexSettings(
        hex_res=hex_res, overlap=overlap, halo=halo, budget=budget, shape=shape, span=span,
        rotation=rotation, origin=origin, tile_sizes=tile_sizes, exchange=exchange, window=window,
        window_overlap=window_overlap, window_mode=window_mode, start_step=start_step,
        end_step=end_step, accumulate=accumulate,
        guide_steps=guide_steps, kernel=kernel, blend=blend, shift=shift, shift_seed=shift_seed,
    )  # fmt: skip
    found = _transformers(pipe)
    if blend == "variance":
        raise UsageError(NO_VARIANCE)
    by_step = start_step or end_step is not None or guide_steps or shift == "step"
    if by_step and not _tells_steps(pipe):
        scheduler = type(getattr(pipe, "scheduler", None)).__name__
        raise UsageError(
            f"the scheduler {scheduler} does not tell its step (step_index), so start_step, "
            "end_step, guide_steps and shift=step cannot be kept; use another scheduler, or leave "
            "them out"
        )
    if guide_steps:
        _check_guide(pipe, found, guide_steps)
    remove_hex_tiling(pipe)
    family = found[0][1].video_of(found[0][0], pipe)
    tiling = HexTiling(family, settings, on_tile, pipe)
    _probe(tiling)
    _wrap(tiling, pipe, found, tile_vae)
    object.__setattr__(pipe, _ATTRIBUTE, tiling)
    return tiling


def remove_hex_tiling(pipe: Any) -> bool:
    """Undo `apply_hex_tiling`. True if there was something to undo."""
    tiling = pipe.__dict__.pop(_ATTRIBUTE, None)
    if tiling is None:
        return False
    tiling.undo()
    return True


def _transformers(pipe: Any) -> list[tuple[Any, Any]]:
    """(transformer, adapter) of all that a pipeline has; raises UsageError for unknown ones."""
    from .families import FAMILIES, family_class

    present = [getattr(pipe, name, None) for name in TRANSFORMERS]
    transformers = [t for t in present if t is not None]
    if not transformers:
        raise UsageError(
            f"{type(pipe).__name__} has no transformer to tile; use a video pipeline, and load a "
            "modular one's components first (pipe.load_components())"
        )
    found = [(t, family_class(t)) for t in transformers]
    for transformer, family in found:
        if family is None:
            known = ", ".join(name for f in FAMILIES for name in f.classes)
            raise UsageError(
                f"{type(transformer).__name__} has no tiling adapter yet; "
                f"use a pipeline with one of {known}"
            )
    return found


def _wrap(tiling: HexTiling, pipe: Any, found: list[tuple[Any, Any]], tile_vae: bool) -> None:
    from .passes import TiledTransformer
    from .vae import wrap_vae

    try:
        for transformer, family in found:
            tiling.transformers.append(TiledTransformer(tiling, transformer, family))
        if tile_vae and getattr(pipe, "vae", None) is not None:
            wrap_vae(tiling, pipe.vae)
    except BaseException:
        tiling.undo()
        raise


def _probe(tiling: HexTiling) -> None:
    """Out-of-range settings must show now and not after the text encoder has run.

    What depends on the frame's size (whether anything fits the budget) is not tried: one tile.
    """
    s, family = tiling.settings, tiling.family
    latent_frames = family.latent_first + ((s.window or 0) // family.latent_step + 2) * (
        family.latent_step
    )
    plan_latent_tiles(
        32, 32, latent_frames, family, overlap=s.overlap, halo=s.halo, shape="none", span=s.span,
        rotation=s.rotation, window=s.window or None, window_overlap=s.window_overlap,
        window_mode=s.window_mode,
    )  # fmt: skip


def _tells_steps(pipe: Any) -> bool:
    return hasattr(getattr(pipe, "scheduler", None), "step_index")


def _check_guide(pipe: Any, found: list[tuple[Any, Any]], steps: int) -> None:
    """Refuse guided steps for models whose frame cannot be made small here."""
    for transformer, adapter in found:
        if not adapter.on_grid:
            raise UsageError(
                f"guide_steps {steps} is not offered for {type(transformer).__name__} in "
                "diffusers; use Wan or HunyuanVideo, ComfyUI's H3HexTiles, or guide_steps 0"
            )
    scheduler = pipe.scheduler
    kind = getattr(scheduler.config, "prediction_type", None)
    if kind != "flow_prediction" and not type(scheduler).__name__.startswith("FlowMatch"):
        raise UsageError(
            f"guide_steps {steps} needs a scheduler of flow matching; {type(scheduler).__name__} "
            "is not one as it is set up: use guide_steps 0"
        )


def _step(pipe: Any) -> int:
    """The sampling step under way, counted from 0: schedulers know it once they have stepped."""
    scheduler = getattr(pipe, "scheduler", None)
    index = getattr(scheduler, "step_index", None)
    if index is None:
        return 0
    return int(index) - int(getattr(scheduler, "begin_index", None) or 0)
