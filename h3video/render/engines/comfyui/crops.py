"""Crop tiles inside ComfyUI's sampler: one prediction per crop, blended over the frame.

A CALC_COND_BATCH wrapper: the sampler and the guider keep their full-size latent, and every
prediction that they ask for is made crop by crop. Three more wrappers refuse what cannot be
cropped before the first step, tell ComfyUI that its memory estimate is for a crop, and clean up.
"""

from __future__ import annotations

import logging
from typing import Any

import torch
from torch import Tensor

from ....blend.accumulate import mix, share_of_weight
from ....blend.variance import Placed, raise_detail
from ....errors import UsageError
from ....tiling.budget import parse_budget
from ....tiling.latent_crops import LatentBox, LatentCrops
from ....tiling.settings import HexSettings
from ....tiling.shift import Schedule, crop_schedule
from .conds import CondCrops, Conds
from .geometry import latent_patch, latent_unit
from .latents import LatentLayout, find_layout, latent_shapes
from .patches import refuse_caches, refuse_pictures
from .positions import crop_options, reference_tokens, takes_offset
from .steps import model_sampling_of, steps_before

log = logging.getLogger("h3video")

KEY = "h3video_crops"

SMALL_SHARE = 0.5
"""Crops under this share of the frame draw a subject each when they start from pure noise."""


def attach_crops(model_patcher: Any, settings: HexSettings) -> Any:
    """A clone of a ComfyUI model that predicts in crop tiles.

    settings   hex_res, overlap, halo, budget, shape, span, rotation, origin, kernel, blend, shift,
               shift_seed, start_step and end_step are read

    Raises UsageError during sampling, before its first step, for what cannot be cropped.
    """
    from comfy.patcher_extension import WrappersMP

    tiles = CropTiles(settings)
    clone = model_patcher.clone()
    for kind, wrapper in (
        (WrappersMP.OUTER_SAMPLE, tiles.outer_sample),
        (WrappersMP.PREPARE_SAMPLING, tiles.prepare_sampling),
        (WrappersMP.SAMPLER_SAMPLE, tiles.sampler_sample),
        (WrappersMP.CALC_COND_BATCH, tiles.calc_cond_batch),
    ):
        clone.remove_wrappers_with_key(kind, KEY)
        clone.add_wrapper_with_key(kind, KEY, wrapper)
    return clone


class CropTiles:
    """The wrappers of one attached model; what belongs to one sampling is in a `CropRun`."""

    def __init__(self, settings: HexSettings) -> None:
        self.settings = settings

    def outer_sample(self, executor: Any, *args: Any, **kwargs: Any) -> Any:
        """Around a whole sampling: make its run, and clean up whatever happens."""
        guider = executor.class_obj
        run = CropRun(self.settings, kwargs.get("latent_shapes"))
        guider.model_options[KEY] = run
        try:
            return executor(*args, **kwargs)
        finally:
            run.close()
            guider.model_options.pop(KEY, None)

    def prepare_sampling(
        self, executor: Any, model: Any, noise_shape: Any, conds: Any, *args: Any, **kwargs: Any
    ) -> Any:
        """Before models are loaded: the latent that memory is needed for is a crop."""
        options = kwargs.get("model_options") or (args[0] if args else None) or {}
        run = options.get(KEY)
        if run is not None and run.all_steps:
            noise_shape = run.estimate_shape(model.model, noise_shape)
        return executor(model, noise_shape, conds, *args, **kwargs)

    def sampler_sample(self, executor: Any, *args: Any, **kwargs: Any) -> Any:
        """Before the first step, with all conditioning in its final form: refuse or go."""
        guider, sigmas, extra_args, _, noise = args[:5]
        options = extra_args.get("model_options", {})
        run = options.get(KEY)
        if run is not None:
            run.begin(guider, sigmas, noise, options)
        return executor(*args, **kwargs)

    def calc_cond_batch(
        self, executor: Any, model: Any, conds: Conds, x: Tensor, timestep: Tensor,
        model_options: dict[str, Any],
    ) -> list[Tensor]:  # fmt: skip
        """One prediction for every list of conditionings."""
        run = model_options.get(KEY)
        if run is not None:
            return run.predict(executor, model, conds, x, timestep, model_options)
        # A guider that goes its own way past outer_sample: nothing is kept from call to call.
        run = CropRun(self.settings, None)
        try:
            return run.predict(executor, model, conds, x, timestep, model_options)
        finally:
            run.close()


class CropRun:
    """One sampling in crops: plans, crops of conditioning, progress.

    shapes   ComfyUI's latent_shapes, if it said them
    """

    def __init__(self, settings: HexSettings, shapes: Any) -> None:
        self.settings = settings
        self.shapes = shapes
        self._frames: dict[Any, _Frame] = {}
        self._schedules: dict[Any, Schedule[LatentCrops]] = {}
        self._before = 0
        self._progress: _Progress | None = None

    @property
    def all_steps(self) -> bool:
        """Whether no step sees the full frame."""
        return self.settings.start_step == 0 and self.settings.end_step is None

    def estimate_shape(self, model: Any, noise_shape: Any) -> list[int]:
        """The shape of what the model will be given, for ComfyUI's estimate."""
        layout = find_layout(noise_shape, self.shapes)
        plan = self._schedule(model, layout).largest
        return [noise_shape[0], *layout.cropped(plan.box(0)).flat_shape()[1:]]

    def begin(self, guider: Any, sigmas: Tensor, noise: Tensor, options: dict[str, Any]) -> None:
        """Check everything and say what will be done."""
        model = guider.inner_model
        groups = list(guider.conds.values())
        if self.settings.shift != "none":
            self._before = steps_before(model_sampling_of(guider), sigmas)
        layout = find_layout(noise.shape, latent_shapes(groups, model, self.shapes))
        schedule = self._schedule(model, layout)
        plan = schedule.largest
        steps = len(sigmas) - 1
        self._progress = _Progress(steps, max(len(p.tiles) for p in schedule.plans))
        if all(len(p.tiles) == 1 for p in schedule.plans):
            log.info("crop tiles: %s", plan.summary())
            return
        for place in range(len(schedule.plans)):
            frame = self._frame(model, groups, noise, place)
            frame.conds.check(groups, [frame.plan.box(i) for i in range(len(frame.plan.tiles))])
        refuse_pictures(options, layout)
        refuse_caches(options, ("EasyCacheHolder",))
        full = takes_offset(model) and self.settings.positions == "full"
        where = "the full frame's" if full else "each crop's own"
        audio = "; other streams whole, their mean by owned area" if layout.packed else ""
        moves = f"; {schedule.moves_text()}" if schedule.moves else ""
        log.info("crop tiles: %s; positions are %s%s%s", plan.summary(), where, audio, moves)
        start = float(model.model_sampling.sigma_max)
        if steps > 0 and float(sigmas[0]) >= 0.99 * start and plan.share < SMALL_SHARE:
            log.warning(
                "crop tiles from pure noise, each %.0f %% of the frame, tend to draw the subject "
                "in every tile; start from a small frame that was upscaled, or tile late steps "
                "only (start_step)", 100 * plan.share,
            )  # fmt: skip

    def predict(
        self, executor: Any, model: Any, conds: Conds, x: Tensor, timestep: Tensor,
        model_options: dict[str, Any],
    ) -> list[Tensor]:  # fmt: skip
        """The prediction of the full frame for every list of conditionings, made crop by crop."""
        step = step_of(timestep, model_options)
        if not _tiled(self.settings, step):
            return executor(model, conds, x, timestep, model_options)
        frame = self._frame(model, conds, x, self._place(step))
        if len(frame.plan.tiles) == 1:
            return executor(model, conds, x, timestep, model_options)
        return self._blend(executor, frame, model, conds, x, timestep, model_options, step)

    def _blend(
        self, executor: Any, frame: _Frame, model: Any, conds: Conds, x: Tensor,
        timestep: Tensor, model_options: dict[str, Any], step: int | None,
    ) -> list[Tensor]:  # fmt: skip
        from comfy.model_management import throw_exception_if_processing_interrupted

        layout, plan = frame.layout, frame.plan
        keep = self.settings.blend == "variance"
        sums = [None if c is None else _Blend(layout, x, keep) for c in conds]
        held = reference_tokens(conds, plan.patch)
        for tile in range(len(plan.tiles)):
            throw_exception_if_processing_interrupted()
            box = plan.box(tile)
            local = frame.conds.crop(conds, box, frame.seen[tile])
            own_places = self.settings.positions == "local"
            options = crop_options(model, box, model_options, held, own_places)
            found = executor(model, local, layout.crop(x, box), timestep, options)
            streams = layout.cropped(box)
            for total, out in zip(sums, found):
                if total is not None:
                    total.add(streams.split(out), box, *frame.alphas(tile, x.device))
            if self._progress is not None:
                self._progress.tile(step, tile)
        if keep:
            _raise_detail(frame.places(x.device), [s for s in sums if s is not None])
        return [torch.zeros_like(x) if s is None else s.result(x.dtype) for s in sums]

    def close(self) -> None:
        """Drop what was made for crops."""
        for frame in self._frames.values():
            frame.conds.close()
        self._frames.clear()

    def _place(self, step: int | None) -> int:
        """The step counted from the start of the whole schedule, where it matters."""
        if self.settings.shift == "none":
            return 0
        if step is None:
            raise UsageError(
                "shift=step needs a sampler that tells its sigmas; use another, or shift=none"
            )
        return step + self._before

    def _frame(self, model: Any, conds: Conds, x: Tensor, step: int) -> _Frame:
        layout = find_layout(x.shape, latent_shapes(conds, model, self.shapes))
        schedule = self._schedule(model, layout)
        plan = schedule.at(step)
        key = _key(layout), step % len(schedule.plans)
        if key not in self._frames:
            self._frames[key] = _Frame(plan, model, layout, x.device)
        return self._frames[key]

    def _schedule(self, model: Any, layout: LatentLayout) -> Schedule[LatentCrops]:
        def fits(columns: int, rows: int) -> bool:
            box = LatentBox(0, 0, columns, rows, layout.columns, layout.rows)
            shape = [2, *layout.cropped(box).flat_shape()[1:]]
            return bool(model.memory_required(shape) <= parse_budget(self.settings.budget))

        key = _key(layout)
        if key not in self._schedules:
            self._schedules[key] = crop_schedule(
                layout.columns, layout.rows, latent_unit(model), latent_patch(model),
                self.settings, fits,
            )  # fmt: skip
        return self._schedules[key]


def _key(layout: LatentLayout) -> Any:
    """What plans differ by. Not the batch: guiders put several latents into one call."""
    return tuple(s[1:] for s in layout.shapes), layout.packed


class _Frame:
    """What is worked out once for a latent's shape: plan, weights, crops of conditioning."""

    def __init__(self, plan: LatentCrops, model: Any, layout: LatentLayout, device: Any) -> None:
        import numpy as np

        self.plan = plan
        self.layout = layout
        self.conds = CondCrops(model, layout, device)
        self.seen: list[LatentBox] = []
        self._alphas: list[tuple[Any, float]] = []
        self._on_device: dict[Any, list[tuple[Tensor, Tensor]]] = {}
        self._places: dict[Any, list[Placed]] = {}
        if len(plan.tiles) == 1:
            return
        before = np.zeros((plan.rows, plan.columns), np.float32)
        area = 0.0
        self._weights = plan.crop_weights()
        for i, (weight, own) in enumerate(zip(self._weights, plan.areas())):
            box = plan.box(i)
            part = before[box.top : box.top + box.rows, box.left : box.left + box.columns]
            self._alphas.append((share_of_weight(weight, part), own / (area + own)))
            part += weight
            area += own
            self.seen.append(_around(weight, box))

    def alphas(self, tile: int, device: Any) -> tuple[Tensor, Tensor]:
        """How far a tile moves the blend: [rows, columns] for the frame, a number for the rest."""
        if device not in self._on_device:
            self._on_device[device] = [
                (
                    torch.from_numpy(a).to(device),
                    torch.tensor(b, dtype=torch.float32, device=device),
                )
                for a, b in self._alphas
            ]
        return self._on_device[device][tile]


    def places(self, device: Any) -> list[Placed]:
        """Where every tile lies, and its weights."""
        if device not in self._places:
            self._places[device] = [
                Placed(tile.top, tile.left, torch.from_numpy(weight).to(device))
                for tile, weight in zip(self.plan.tiles, self._weights)
            ]
        return self._places[device]


class _Blend:
    """The running weighted mean of one prediction's crops, in float32.

    keep   whether the crops are kept: a blend that raises detail looks at them again
    """

    def __init__(self, layout: LatentLayout, x: Tensor, keep: bool) -> None:
        self.layout = layout
        self.kept: list[Tensor] | None = [] if keep else None
        self.streams = [torch.zeros_like(s, dtype=torch.float32) for s in layout.split(x)]

    def add(self, found: list[Tensor], box: LatentBox, alpha: Tensor, whole: Tensor) -> None:
        """Blend in a crop; streams after the first are whole."""
        frame = self.streams[0]
        part = frame[..., box.top : box.top + box.rows, box.left : box.left + box.columns]
        mix(part, found[0].float(), alpha)
        if self.kept is not None:
            self.kept.append(found[0])
        for out, stream in zip(self.streams[1:], found[1:]):
            mix(out, stream.float(), whole)

    def result(self, dtype: torch.dtype) -> Tensor:
        """The prediction of the frame."""
        return self.layout.join(self.streams).to(dtype)


def _raise_detail(places: list[Placed], blends: list[_Blend]) -> None:
    """Give the first stream of all blends the detail of its crops, in place.

    ComfyUI's predictions are denoised latents: the noise that all crops share is not among them.
    All prompts of a call get one gain, or guidance would amplify the difference of two gains.
    """
    means = [blend.streams[0] for blend in blends]
    tiles = [blend.kept or [] for blend in blends]
    for blend, raised in zip(blends, raise_detail(places, means, tiles)):
        blend.streams[0] = raised


class _Progress:
    """ComfyUI's bar over steps x tiles; the sampler's own calls show the same share."""

    def __init__(self, steps: int, tiles: int) -> None:
        from comfy.utils import ProgressBar

        self.tiles, self.done = tiles, 0
        self.bar = ProgressBar(max(steps, 1) * tiles) if tiles > 1 else None

    def tile(self, step: int | None, tile: int) -> None:
        """A tile of a step was predicted."""
        if self.bar is None or step is None:
            return
        # Samplers with several calls a step count it once.
        self.done = max(self.done, step * self.tiles + tile + 1)
        self.bar.update_absolute(self.done)


def step_of(timestep: Tensor, model_options: dict[str, Any]) -> int | None:
    """The step (from 0) that a prediction at this sigma belongs to; None if it is not known."""
    sigmas = model_options.get("transformer_options", {}).get("sample_sigmas")
    if sigmas is None or len(sigmas) < 2:
        return None
    sigma = float(timestep.flatten()[0])
    # A call between two sigmas belongs to the step that began at the higher one.
    begun = [i for i, s in enumerate(sigmas[:-1].tolist()) if s >= sigma * (1.0 - 1e-5)]
    return begun[-1] if begun else 0


def _tiled(settings: HexSettings, step: int | None) -> bool:
    if settings.start_step == 0 and settings.end_step is None:
        return True
    if step is None:
        raise UsageError(
            f"start_step {settings.start_step} and end_step {settings.end_step} need a sampler "
            "that tells its sigmas; use 0 and none"
        )
    return step >= settings.start_step and (settings.end_step is None or step < settings.end_step)


def _around(weight: Any, box: LatentBox) -> LatentBox:
    """The smallest box in the frame that holds all weight of a crop."""
    rows, columns = weight.any(1).nonzero()[0], weight.any(0).nonzero()[0]
    return LatentBox(
        box.left + int(columns[0]), box.top + int(rows[0]),
        int(columns[-1] - columns[0]) + 1, int(rows[-1] - rows[0]) + 1,
        box.frame_columns, box.frame_rows,
    )  # fmt: skip
