"""The walk inside ComfyUI: a SAMPLER that finishes a frame cell by cell, around any other one.

Every cell is one ordinary sampling of the wrapped sampler on the crop of noise, latent and mask.
The guider keeps its full-size conditioning; a CALC_COND_BATCH wrapper crops it for each call.
Latents that earlier cells finished are 0 in the crop's denoise mask, so the sampler itself puts
them back at every step, with the noise of that step, and the network sees them as context.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from ....errors import UsageError
from ....tiling.budget import parse_budget
from ....tiling.latent_crops import LatentBox
from ....tiling.settings import HexSettings
from ....tiling.walk import WalkPlan, plan_walk
from .cellstore import CellStore
from .conds import CondCrops
from .fingerprint import Fingerprint
from .frozen import frozen_guider, mask_conds
from .geometry import latent_patch, latent_unit
from .latents import LatentLayout, crop, find_layout, latent_shapes
from .patches import refuse_caches, refuse_pictures
from .positions import crop_options, reference_tokens

log = logging.getLogger("h3video")

KEY = "h3video_walk"


@dataclass(frozen=True)
class WalkOptions:
    """How to walk.

    order, focus   see plan_walk
    importance     [rows, columns] of any size, for order importance
    folder         where finished cells are kept; a folder of the run's own is made in it.
                   None: nothing is kept
    keep           whether the cells stay when the walk is done
    """

    order: str = "spiral"
    focus: tuple[float, float] = (0.5, 0.5)
    importance: Tensor | None = None
    folder: Path | None = None
    keep: bool = True


class WalkSampler:
    """A ComfyUI SAMPLER.

    sampler    the one that samples each cell
    settings   hex_res, overlap, halo, budget, shape, span, rotation are read; kernel, blend and
               shift are refused, as nothing is blended
    """

    def __init__(self, sampler: Any, settings: HexSettings, options: WalkOptions) -> None:
        _refuse_blends(settings)
        self.sampler = sampler
        self.settings = settings
        self.options = options

    def max_denoise(self, model_wrap: Any, sigmas: Tensor) -> bool:
        """Whether sampling begins at pure noise, as the wrapped sampler sees it."""
        return bool(self.sampler.max_denoise(model_wrap, sigmas))

    def sample(
        self, model_wrap: Any, sigmas: Tensor, extra_args: dict[str, Any], callback: Any,
        noise: Tensor, latent_image: Tensor | None = None, denoise_mask: Tensor | None = None,
        disable_pbar: bool = False,
    ) -> Tensor:  # fmt: skip
        """Sample the frame; what KSAMPLER.sample takes and gives.

        Raises UsageError before the first step for what cannot be cropped, and for sigmas that
        do not end at 0: a cell must be finished to be frozen.
        """
        model = model_wrap.inner_model
        groups = list(model_wrap.conds.values())
        layout = find_layout(noise.shape, latent_shapes(groups, model))
        plan = self._plan(model, layout)
        log.info("walk: %s", plan.summary())
        if plan.single or len(sigmas) < 2:
            return self.sampler.sample(
                model_wrap, sigmas, extra_args, callback, noise, latent_image, denoise_mask,
                disable_pbar,
            )  # fmt: skip
        if float(sigmas[-1]) != 0.0:
            raise UsageError(
                f"the sigmas end at {float(sigmas[-1]):.4g}; a walk finishes every cell, so they "
                "must end at 0: do not split them, or walk with the last part only"
            )
        if latent_image is None:
            latent_image = torch.zeros_like(noise)
        walk = _Walk(self, plan, layout, model_wrap, sigmas, extra_args, noise, denoise_mask)
        try:
            return walk.run(latent_image, callback, disable_pbar)
        finally:
            walk.crops.close()

    def _plan(self, model: Any, layout: LatentLayout) -> WalkPlan:
        def fits(columns: int, rows: int) -> bool:
            box = LatentBox(0, 0, columns, rows, layout.columns, layout.rows)
            shape = [2, *layout.cropped(box).flat_shape()[1:]]
            return bool(model.memory_required(shape) <= parse_budget(self.settings.budget))

        importance = self.options.importance
        if importance is not None:
            importance = torch.nn.functional.interpolate(
                importance.reshape(-1, 1, *importance.shape[-2:]).float().mean(0, keepdim=True),
                size=(layout.rows, layout.columns), mode="area",
            )[0, 0].cpu().numpy()  # fmt: skip
        return plan_walk(
            layout.columns, layout.rows, latent_unit(model), latent_patch(model), self.settings,
            order=self.options.order, focus=self.options.focus, importance=importance, fits=fits,
        )  # fmt: skip


def _refuse_blends(settings: HexSettings) -> None:
    """Raise UsageError for what a walk, which blends nothing and finishes every cell, lacks."""
    for name in ("kernel", "blend", "shift"):
        usual, value = getattr(HexSettings, name), getattr(settings, name)
        if value not in (usual, "none"):
            raise UsageError(
                f"{name}={value} is for tiles that are blended at every step; a walk finishes one "
                f"cell after the other where it lies: use {name}={usual} with it"
            )


class _Walk:
    """One walk over one latent."""

    def __init__(
        self, owner: WalkSampler, plan: WalkPlan, layout: LatentLayout, guider: Any,
        sigmas: Tensor, extra_args: dict[str, Any], noise: Tensor, denoise_mask: Tensor | None,
    ) -> None:  # fmt: skip
        self.owner, self.plan, self.layout, self.guider = owner, plan, layout, guider
        self.sigmas, self.extra_args, self.noise = sigmas, extra_args, noise
        self.mask = None if denoise_mask is None else denoise_mask.expand(noise.shape)
        self.crops = CondCrops(guider.inner_model, layout, noise.device)
        groups = list(guider.conds.values())
        self.crops.check(groups, [plan.box(i) for i in plan.sampled])
        options = extra_args.get("model_options", {})
        refuse_pictures(options, layout)
        refuse_caches(options, ("EasyCacheHolder", "LazyCacheHolder"))
        self.finished_by = torch.from_numpy(plan.finished_by).to(noise.device)
        self.finished = torch.zeros_like(self.finished_by, dtype=torch.bool)
        self.others_done = False

    def run(self, latent_image: Tensor, callback: Any, disable_pbar: bool) -> Tensor:
        """Every cell in turn."""
        store = self._store(latent_image)
        latent = latent_image.clone()
        bar = _Bar(len(self.plan.sampled), len(self.sigmas) - 1, callback, disable_pbar)
        loaded = 0
        try:
            for turn, step in enumerate(self.plan.sampled):
                cell = self.plan.steps[step]
                values = store.load(cell.id) if store is not None else None
                loaded += values is not None
                if values is None:
                    values = self._cell(step, latent, bar.of(turn, latent, self._shown(step)))
                    self.crops.release()
                    if store is not None:
                        store.save(cell.id, values)
                self._take(step, latent, values)
                bar.finished(turn, latent)
        finally:
            bar.close()
        if store is not None:
            log.info(
                "walk: %d cells done, %d of them found in %s", len(self.plan.sampled), loaded,
                store.folder,
            )  # fmt: skip
            if not self.owner.options.keep:
                store.delete()
        return latent

    def _cell(self, step: int, latent: Tensor, callback: Any) -> dict[str, Tensor]:
        """Sample one cell; the values of the latents that it finishes."""
        box = self.plan.box(step)
        mine = self.finished_by == step
        mask = self._crop_mask(box)
        if mask is not None and self._untouched(mine):
            return self._values(latent, mine)  # the user's mask leaves this cell as it is
        # Samplers that draw from the global generator must not depend on earlier cells.
        torch.manual_seed(self._seed(step))
        found = self.owner.sampler.sample(
            frozen_guider(self.guider, self._user_mask(box)), self.sigmas,
            {**self.extra_args, "seed": self._seed(step),
             "model_options": self._options(step, box, mask)},
            callback, self.layout.crop(self.noise, box), self.layout.crop(latent, box), mask, True,
        )  # fmt: skip
        if not bool(torch.isfinite(found).all()):
            raise ValueError(
                f"walk: cell {self.plan.steps[step].id:x} came out as NaN or infinite; it was not "
                "saved. Put H3 Finite Guard on the model to see the step"
            )
        return self._values(self._pasted(latent, found, box), mine)

    def _options(self, step: int, box: LatentBox, mask: Tensor | None) -> dict[str, Any]:
        """The sampling's model options with a wrapper that crops what the guider passes on."""
        import comfy.model_patcher
        from comfy.model_management import throw_exception_if_processing_interrupted
        from comfy.patcher_extension import WrappersMP

        def calc(
            executor: Any, model: Any, conds: Any, x: Tensor, timestep: Tensor, options: Any
        ) -> Any:
            throw_exception_if_processing_interrupted()
            held = reference_tokens(conds, self.plan.patch)
            local = mask_conds(model, self.crops.crop(conds, box), mask, self.layout.cropped(box))
            return executor(model, local, x, timestep, crop_options(model, box, options, held))

        options = comfy.model_patcher.create_model_options_clone(
            self.extra_args.get("model_options", {})
        )
        inner = options.setdefault("transformer_options", {})
        inner["h3video_cell"] = self.plan.steps[step].id
        wrappers = inner.setdefault("wrappers", {})
        kind = WrappersMP.CALC_COND_BATCH
        # First of all: wrappers after it see a small latent with conditioning that fits.
        wrappers[kind] = {KEY: [calc], **wrappers.get(kind, {})}
        return options

    def _crop_mask(self, box: LatentBox) -> Tensor | None:
        """What may change in a crop, in the latent's own shape; None: everything."""
        frozen = bool(crop(self.finished, box).any()) or self.others_done
        if self.mask is None and not frozen:
            return None
        shape = self.layout.crop(self.noise, box)
        mask = torch.ones_like(shape) if self.mask is None else self.layout.crop(self.mask, box)
        first, *rest = self.layout.cropped(box).split(mask)
        first = first * (~crop(self.finished, box)).to(mask.dtype)
        rest = [r * 0.0 for r in rest] if self.others_done else rest
        return self.layout.join([first, *rest])

    def _user_mask(self, box: LatentBox) -> Tensor | None:
        return None if self.mask is None else self.layout.crop(self.mask, box)

    def _untouched(self, mine: Tensor) -> bool:
        """Whether the user's mask keeps every latent of a cell (and other streams are done)."""
        if self.mask is None:
            return False
        first, *rest = self.layout.split(self.mask)
        return not bool((first * mine).any()) and (self.others_done or not rest)

    def _seed(self, step: int) -> int:
        """A seed of the cell's own: equal noise in all cells would draw a pattern."""
        return ((self.extra_args.get("seed") or 0) + self.plan.steps[step].id) % 2**63

    def _values(self, latent: Tensor, mine: Tensor) -> dict[str, Tensor]:
        """What a cell finishes: the frame's values [..., n], and whole streams once."""
        first, *rest = self.layout.split(latent)
        values = {"frame": first[..., mine]}
        if not self.others_done:
            values |= {f"stream{i}": r for i, r in enumerate(rest, 1)}
        return values

    def _take(self, step: int, latent: Tensor, values: dict[str, Tensor]) -> None:
        """Put a finished cell into the latent and freeze it."""
        mine = self.finished_by == step
        first, *rest = self.layout.split(latent)
        first[..., mine] = values["frame"].to(first)
        if not self.others_done:
            for i, r in enumerate(rest, 1):
                r.copy_(values[f"stream{i}"].to(r))
        self.others_done = True
        self.finished |= mine

    def _pasted(self, latent: Tensor, found: Tensor, box: LatentBox) -> Tensor:
        """The frame's latent with a crop put where nothing is finished."""
        shown = latent.clone()
        first, *rest = self.layout.split(shown)
        new, *others = self.layout.cropped(box).split(found)
        keep = crop(self.finished, box)
        part = crop(first, box)
        part.copy_(torch.where(keep, part, new.to(part)))
        if not self.others_done:
            for r, o in zip(rest, others):
                r.copy_(o.to(r))
        return shown

    def _shown(self, step: int) -> Callable[[Tensor, Tensor], Tensor]:
        box = self.plan.box(step)
        return lambda latent, found: self._pasted(latent, found, box)

    def _store(self, latent_image: Tensor) -> CellStore | None:
        folder = self.owner.options.folder
        if folder is None:
            return None
        mark = self._fingerprint(latent_image)
        store = CellStore(folder / mark[:16], mark)
        store.save_plan(self.plan.to_json())
        log.info("walk: finished cells are kept in %s", store.folder)
        return store

    def _fingerprint(self, latent_image: Tensor) -> str:
        """Of everything that decides the result."""
        own = frozenset(
            {"sample_sigmas", "multigpu_clones", "multigpu_thread_pool", "to_load_options",
             "callbacks", "h3video_crops"}
        )  # fmt: skip
        guider = {
            k: v for k, v in vars(self.guider).items()
            if isinstance(v, (bool, int, float, str, type(None)))
        }  # fmt: skip
        found = Fingerprint(own).add("format", 1).add("plan", self.plan.to_json())
        found.add("guider", [type(self.guider).__qualname__, guider])
        found.add_model(self.guider.model_patcher)
        found.add("conds", self.guider.conds).add("seed", self.extra_args.get("seed"))
        found.add("options", self.extra_args.get("model_options"))
        found.add("sampler", self.owner.sampler).add("sigmas", self.sigmas)
        found.add("noise", self.noise).add("latent", latent_image).add("mask", self.mask)
        return found.hexdigest()


class _Bar:
    """One bar over cells x steps, in ComfyUI and in the shell, with previews of the whole."""

    def __init__(self, cells: int, steps: int, callback: Any, disabled: bool) -> None:
        from tqdm.auto import tqdm

        self.steps, self.total, self.callback = steps, cells * steps, callback
        self.shell = tqdm(total=self.total, disable=disabled, desc="walk")

    def of(
        self, turn: int, latent: Tensor, shown: Callable[[Tensor, Tensor], Tensor]
    ) -> Callable[..., None]:
        """The callback for one cell's sampling."""

        def callback(i: int, denoised: Tensor, x: Tensor, _: int) -> None:
            # The cell's last step is told when the cell is finished.
            done = turn * self.steps + min(i, self.steps - 2)
            if i < self.steps - 1:
                self._tell(done, shown(latent, denoised))

        return callback

    def finished(self, turn: int, latent: Tensor) -> None:
        """A cell is finished (or was found)."""
        self._tell((turn + 1) * self.steps - 1, latent)

    def close(self) -> None:
        """End the shell's bar."""
        self.shell.close()

    def _tell(self, done: int, latent: Tensor) -> None:
        self.shell.update(done + 1 - self.shell.n)
        if self.callback is not None:
            self.callback(done, latent.clone(), latent.clone(), self.total)
