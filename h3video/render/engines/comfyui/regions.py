"""Conditionings with regions: one call per region, on the tiles that hold some of it.

A region's entry in a conditioning carries a Region under REGION; entries without one are the base
prompt. Each call runs the model with one region's prompt on that region's tiles, and the results
are weighed per token. A tile of one region runs once, as without regions.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from ....tiling.regions import Region, tiles_of, token_weights
from ....tiling.tokens import TokenPlan
from .families.base import Family, ceil_div

REGION = "h3_region"
"""Key of a Region in a conditioning's options, and of ActiveRegion in transformer_options."""

BASE = "base"
MASKS = ("mask", "mask_strength", "set_area_to_bounds")
"""What serves samplers without tiles; with tiles ComfyUI must not weigh a second time."""


@dataclass(frozen=True, eq=False)
class ActiveRegion:
    """The region of one call: its weight at every token, float32 [rows, columns]."""

    weight: Any

    def tiles(self, plan: TokenPlan) -> dict[int, float]:
        """The tiles that run, with the share of the frame that each owns of the region."""
        return tiles_of(plan, self.weight)


def hide_masks(guider: Any) -> bool:
    """Take regions' masks out of a guider's conditionings before ComfyUI resolves them; whether
    there were regions."""
    found = False
    for conds in (getattr(guider, "conds", None) or {}).values():
        for entry in conds or ():
            if REGION in entry:
                found = True
                for name in MASKS:
                    entry.pop(name, None)
    return found


class RegionCalls:
    """The calls that one evaluation of the model becomes.

    conds      lists of conditionings, one per guidance branch (None: not needed)
    x          the latent [B, C, ..., H, W], or packed [B, 1, N]
    """

    def __init__(
        self, model: Any, conds: list[Any], x: Tensor, timestep: Tensor, family: type[Family]
    ) -> None:
        self.model = model
        self.conds = conds
        self.x = x
        self.timestep = timestep
        self.family = family
        self.regional = [
            i for i, entries in enumerate(conds) if any(REGION in e for e in entries or ())
        ]

    @property
    def needed(self) -> bool:
        """Whether there are regions at all."""
        return bool(self.regional)

    def run(self, executor: Any, options: dict[str, Any]) -> list[Tensor]:
        """One prediction per guidance branch."""
        plain = [None if i in self.regional else c for i, c in enumerate(self.conds)]
        if any(c is not None for c in plain):
            out = list(executor(self.model, plain, self.x, self.timestep, options))
        else:
            out = [torch.zeros_like(self.x) for _ in self.conds]
        for i in self.regional:
            out[i] = self._branch(executor, options, i)
        return out

    def _branch(self, executor: Any, options: dict[str, Any], i: int) -> Tensor:
        entries = [e for e in self.conds[i] if self._in_time(e)]
        shapes = self._shapes(entries or self.conds[i])
        base = [e for e in entries if e.get(REGION, BASE) == BASE]
        groups: dict[int, tuple[Region, list[Any]]] = {}
        for entry in entries:
            region = entry.get(REGION, BASE)
            if isinstance(region, Region):
                groups.setdefault(id(region), (region, []))[1].append(entry)
        patch = self.family.patch_of(self.model.diffusion_model)
        columns, rows = ceil_div(shapes[0][-1], patch), ceil_div(shapes[0][-2], patch)
        weights = token_weights([region for region, _ in groups.values()], columns, rows)
        total: list[Tensor] | None = None
        for weight, own in zip(weights, [base, *(own for _, own in groups.values())]):
            if not weight.max() > 0.0 or not own:
                continue
            parts = self._call(executor, options, i, own, ActiveRegion(weight), shapes)
            scaled = self._weigh(parts, weight, patch)
            total = scaled if total is None else [a + b for a, b in zip(total, scaled)]
        if total is None:
            return torch.zeros_like(self.x)
        return self._pack(total, shapes).to(self.x.dtype)

    def _call(
        self, executor: Any, options: dict[str, Any], i: int, entries: list[Any],
        region: ActiveRegion, shapes: list[Any],
    ) -> list[Tensor]:  # fmt: skip
        conds = [entries if j == i else None for j in range(len(self.conds))]
        own = {**options, "transformer_options": {**options.get("transformer_options", {}),
                                                  REGION: region}}  # fmt: skip
        result = executor(self.model, conds, self.x, self.timestep, own)[i]
        if len(shapes) == 1:
            return [result]
        from comfy.utils import unpack_latents

        return list(unpack_latents(result, shapes))

    def _weigh(self, parts: list[Tensor], weight: Any, patch: int) -> list[Tensor]:
        """The picture by token; sound, which has no place, by the region's area."""
        tokens = torch.as_tensor(weight)
        latents = tokens.repeat_interleave(patch, 0).repeat_interleave(patch, 1)
        picture = parts[0]
        own = latents[: picture.shape[-2], : picture.shape[-1]].to(picture.device)
        area = float(tokens.mean())
        return [picture.float() * own, *(p.float() * area for p in parts[1:])]

    def _pack(self, parts: list[Tensor], shapes: list[Any]) -> Tensor:
        if len(shapes) == 1:
            return parts[0]
        from comfy.utils import pack_latents

        return pack_latents(parts)[0]

    def _shapes(self, entries: list[Any]) -> list[Any]:
        """Shapes of the streams of a packed latent; else the latent's own."""
        for entry in entries:
            packed = entry.get("model_conds", {}).get("latent_shapes")
            if packed is not None:
                return [tuple(s) for s in packed.cond]
        return [tuple(self.x.shape)]

    def _in_time(self, entry: dict[str, Any]) -> bool:
        """Whether a conditioning is in force at this sigma."""
        sigma = float(self.timestep.flatten()[0])
        start, end = entry.get("timestep_start"), entry.get("timestep_end")
        return not (start is not None and sigma > start) and not (end is not None and sigma < end)
