"""Hexagonal tiling on a ComfyUI MODEL: `attach(model, settings)` gives a clone that samples so.

Four wrappers of ComfyUI do it: around the whole sampling (start, progress, the log), around what
it reserves memory for, around the conditionings (regions) and around the diffusion model (tiles).
"""

from __future__ import annotations

import logging
from typing import Any

import torch

from ....errors import UsageError
from ....tiling.guide import shrink_factor
from ....tiling.settings import NO_VARIANCE, HexSettings
from ....tiling.shift import Schedule, token_schedule
from ....tiling.table import Tables
from ....tiling.tokens import TokenPlan
from ..describe import describe, describe_schedule
from .blocks import BlockPass
from .families import family_class
from .families.base import Family
from .forward import Forward
from .memory import memory_share, scaled_estimate, scaled_shape
from .progress import Progress
from .regions import REGION, RegionCalls, hide_masks
from .steps import model_sampling_of, step_of, steps_before

log = logging.getLogger("h3video")

KEY = "h3video"
KEYS = (KEY, "h3video_crops")
"""Of our wrappers on a model: token tiles, and crops (crops.py)."""
SMALL_TILE = 0.5
"""A tile that sees less of the frame than this draws its own subject when it starts from noise."""


def attach(model: Any, settings: HexSettings) -> Any:
    """A clone of a ComfyUI ModelPatcher that samples in hexagonal tiles.

    Tiling that is attached already is replaced. Raises UsageError for a model that has neither
    a family adapter nor latents that crops could cut, naming what was found.
    """
    from comfy.patcher_extension import WrappersMP

    clone = detach(model)
    transformer = getattr(clone.model, "diffusion_model", None)
    family = family_class(transformer)
    if settings.tiles == "crop" or (family is None and settings.tiles == "auto"):
        from .crops import attach_crops

        if settings.guide_steps:
            raise UsageError(
                f"guide_steps {settings.guide_steps} is for token tiles, which "
                f"{type(transformer).__name__} does not have; use guide_steps 0"
            )
        return attach_crops(clone, settings)
    if family is None:
        raise UsageError(
            f"{type(transformer).__name__} ({type(transformer).__module__}) has no token tiles; "
            "use tiles=crop, or a model of Wan, MiniMax-H3, LTX, HunyuanVideo or Flux"
        )
    if settings.blend == "variance":
        raise UsageError(NO_VARIANCE)
    tiling = TokenTiling(settings, family)
    for kind, wrapper in (
        (WrappersMP.OUTER_SAMPLE, tiling.outer_sample),
        (WrappersMP.PREPARE_SAMPLING, tiling.prepare_sampling),
        (WrappersMP.CALC_COND_BATCH, tiling.calc_cond_batch),
        (WrappersMP.DIFFUSION_MODEL, tiling.diffusion_model),
    ):
        clone.add_wrapper_with_key(kind, KEY, wrapper)
    clone.h3video_tiling = tiling
    return clone


def detach(model: Any) -> Any:
    """A clone without tiling, of tokens or crops."""
    clone = model.clone()
    places = [clone.wrappers]
    places.append(clone.model_options.get("transformer_options", {}).get("wrappers", {}))
    for wrappers in (w for place in places for w in place.values()):
        for key in KEYS:
            wrappers.pop(key, None)
    return clone


class TokenTiling:
    """The wrappers of one attached tiling."""

    def __init__(self, settings: HexSettings, family: type[Family]) -> None:
        self.settings = settings
        self.family = family
        self.tables = Tables()
        self.progress = Progress()
        self.measure = False
        self.own_seconds = 0.0
        self.plans: list[TokenPlan] = []
        self._said: set[str] = set()
        self._sampling: Any = None
        self._before: int | None = None
        self._largest: TokenPlan | None = None

    # -- the wrappers ------------------------------------------------------------------------

    def outer_sample(self, executor: Any, *args: Any, **kwargs: Any) -> Any:
        """One sampling: progress over steps x tiles, and masks of regions out of ComfyUI's way."""
        self._said.clear()
        if hide_masks(executor.class_obj) and self.settings.guide_steps:
            raise UsageError(
                f"guide_steps {self.settings.guide_steps} has one prompt for the whole frame; take "
                "the regional prompts away, or use guide_steps 0"
            )
        self._before = None
        if self.settings.shift != "none":
            self._sampling = model_sampling_of(executor.class_obj)
        args, kwargs = self.progress.begin(args, kwargs)
        try:
            return executor(*args, **kwargs)
        finally:
            self.progress.end()

    def prepare_sampling(self, executor: Any, model: Any, noise_shape: Any, *args: Any,
                         **kwargs: Any) -> Any:  # fmt: skip
        """Reserve memory for a tile: ComfyUI would unload the model for a frame that never runs."""
        share = self._share_before(model, noise_shape)
        return executor(model, scaled_shape(noise_shape, share), *args, **kwargs)

    def calc_cond_batch(
        self, executor: Any, model: Any, conds: Any, x_in: Any, timestep: Any, options: Any
    ) -> Any:
        """Conditionings with regions as one call per region; others as they are."""
        share = memory_share(self._largest) if self._largest is not None else 1.0
        with scaled_estimate(model, share):
            calls = RegionCalls(model, conds, x_in, timestep, self.family)
            if not calls.needed:
                return executor(model, conds, x_in, timestep, options)
            return calls.run(executor, options)

    def diffusion_model(self, executor: Any, *args: Any, **kwargs: Any) -> Any:
        """One forward pass in tiles."""
        forward = Forward(executor, args, kwargs)
        options = forward.options
        if not self._in_range(options):
            self._say("steps outside start_step..end_step see the full frame")
            return forward.call()
        family = self.family(forward.model, forward.arguments)
        family.check()
        # Reading the step waits for the device: once a pass, and not where the grid stays.
        step = None if self.settings.shift == "none" else step_of(options)
        schedule = self.schedule(family, steps=step is not None)
        plan = schedule.at(self._place(step, options) if schedule.moves else 0)
        self._keep(plan, len(schedule.plans))
        if plan.single:
            self._say(describe(plan))
            result = forward.call()
            self.progress.tile(1.0)
            return result
        self._announce(family, schedule, options)
        result = self._tiled(forward, family, plan, options)
        if self._guides(options):
            return self._guided(forward, family, schedule.largest, result)
        return result

    # -- the parts ---------------------------------------------------------------------------

    def schedule(self, family: Family, steps: bool = True) -> Schedule[TokenPlan]:
        """The plans for the frame of this pass: one, or with shift one for every place.

        steps   whether the sampler tells its steps
        """
        exchange = "block" if self._exchange(family) == "block" else "step"
        found = token_schedule(
            *family.frame(), family.video, self.settings, family.shape(), exchange, steps
        )
        self._largest = found.largest
        return found

    def _place(self, step: int | None, options: dict[str, Any]) -> int:
        """The step of this pass, counted from the start of the whole schedule."""
        if step is None:
            raise UsageError(
                "shift=step needs a sampler that tells its sigmas; use another, or shift=none"
            )
        if self._before is None:
            self._before = steps_before(self._sampling, options["sample_sigmas"])
        return step + self._before

    def _keep(self, plan: TokenPlan, most: int) -> None:
        """Remember the last few plans that ran, newest last."""
        if not self.plans or self.plans[-1] is not plan:
            kept = max(3, most - 1)
            self.plans[:] = [*(p for p in self.plans[-kept:] if p is not plan), plan]

    def _exchange(self, family: Family) -> str:
        return "block" if family.needs_exchange() else self.settings.exchange

    def _tiled(
        self, forward: Forward, family: Family, plan: TokenPlan, options: dict[str, Any]
    ) -> Any:
        region = options.get(REGION)
        active = None if region is None else region.tiles(plan)
        exchange = self._exchange(family)
        if self.settings.order == "tile-major":
            if exchange == "block":
                self._say(f"order=tile-major is not possible: {family.needs_exchange()}")
            else:
                return self._tile_major(forward, family, plan, options, active)
        block_pass = self._pass(family, plan, exchange, active)
        with family.overrides(lambda: block_pass.runner):
            result = forward.call(_with_blocks(options, block_pass))
        if block_pass.runner is not None:
            self.own_seconds += block_pass.runner.own_seconds
        return result

    def _guides(self, options: dict[str, Any]) -> bool:
        if not self.settings.guide_steps:
            return False
        step = step_of(options)
        if step is None:
            raise UsageError(
                f"guide_steps {self.settings.guide_steps} needs a sampler that tells its sigmas; "
                "use another, or guide_steps 0"
            )
        return step < self.settings.guide_steps

    def _guided(self, forward: Forward, family: Family, plan: TokenPlan, result: Any) -> Any:
        """The tiles' prediction, led by one of the whole frame at the size of a tile."""
        streams = isinstance(result, (list, tuple))
        velocity = result[0] if streams else result
        sigma = forward.options["sigmas"]
        guide = family.guide(velocity.shape[1], sigma, shrink_factor(plan))
        self._say(f"guided steps predict the frame again at 1/{guide.shrink.factor} of its size")
        small = forward.again(family.small_args(guide))
        led = guide.lead(velocity, small[0] if streams else small)
        return [led, *result[1:]] if streams else led

    def _tile_major(
        self, forward: Forward, family: Family, plan: TokenPlan, options: dict[str, Any],
        active: Any,
    ) -> Any:  # fmt: skip
        from .tile_major import TileMajor

        return TileMajor(plan, active, family).run(
            lambda number, share: self._one_tile(forward, family, plan, options, number, share)
        )

    def _one_tile(
        self, forward: Forward, family: Family, plan: TokenPlan, options: dict[str, Any],
        number: int, share: float,
    ) -> Any:  # fmt: skip
        block_pass = self._pass(family, plan, "step", {number: 1.0}, share, even=True)
        with family.overrides(lambda: block_pass.runner):
            return forward.call(_with_blocks(options, block_pass))

    def _pass(
        self, family: Family, plan: TokenPlan, exchange: str, active: Any, share: float = 1.0,
        even: bool = False,
    ) -> BlockPass:  # fmt: skip
        return BlockPass(
            family, plan, self.tables, exchange=exchange, accumulate=self.settings.accumulate,
            on_tile=lambda part: self.progress.tile(part * share), active=active,
            measure=self.measure, even=even,
        )  # fmt: skip

    def _in_range(self, options: dict[str, Any]) -> bool:
        s = self.settings
        if s.start_step == 0 and s.end_step is None:
            return True
        step = step_of(options)
        return step is None or (
            s.start_step <= step and (s.end_step is None or step < s.end_step)
        )  # fmt: skip

    def _share_before(self, model: Any, noise_shape: Any) -> float:
        """The share of a frame's memory that a step will need, before there is a frame to see."""
        s = self.settings
        if s.start_step or s.end_step is not None:
            return 1.0  # some steps see the full frame
        shape = self.progress.latent_shape or noise_shape
        if len(shape) < 4:
            return 1.0  # packed streams whose shapes this ComfyUI does not tell
        x = torch.empty(tuple(shape), dtype=torch.float16, device="meta")
        latent = [x, x] if len(noise_shape) < 4 else x
        family = self.family(model.model.diffusion_model, {"x": latent})
        return memory_share(self.schedule(family).largest)

    def _announce(
        self, family: Family, schedule: Schedule[TokenPlan], options: dict[str, Any]
    ) -> None:
        plan = schedule.largest
        self._say(describe_schedule(schedule))
        if family.audio:
            self._say(f"sound: {family.audio}")
        if reason := family.needs_exchange():
            self._say(f"tiles are blended after every block: {reason}")
        if step_of(options) == 0 and plan.share < SMALL_TILE and self.settings.start_step == 0:
            self._say(
                f"these tiles start from noise and each sees {plan.share:.0%} of the frame, so "
                "each may draw the subject for itself; sample small first and upscale (workflow "
                "H3 Hex Upscale), or start the tiles later (start_step)"
            )

    def _say(self, text: str) -> None:
        if text not in self._said:
            self._said.add(text)
            log.info("[h3video] %s", text)


def _with_blocks(options: dict[str, Any], block_pass: BlockPass) -> dict[str, Any]:
    """A copy of transformer_options in which every block runs in tiles."""
    replace = dict(options.get("patches_replace", {}))
    replace["dit"] = block_pass.replacements(replace.get("dit", {}))
    return {**options, "patches_replace": replace}
