"""The next smaller plan when memory has run out: smaller tiles, or smaller crops to decode."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from ...errors import UsageError
from ..job import RenderJob
from ..source import ModelSource

SHARES = (0.75, 0.5, 0.35, 0.25, 0.18, 0.12)
"""Parts of the present tile that are tried as the next budget, the largest first."""

ENOUGH = 0.85
"""A plan that is not at least this much smaller would fail, too."""


def smaller_tiles(job: RenderJob, source: ModelSource) -> tuple[dict[str, Any], str] | None:
    """Tiling settings that need less, and a sentence about them; None if there are none."""
    now = job.token_plan(source.family, source.denoiser(job.dtype))
    shape = "hex" if job.shape == "none" else job.shape
    for part in SHARES:
        wish: dict[str, Any] = {"hex_res": "auto", "budget": now.share * part, "shape": shape}
        try:
            plan = replace(job, **wish).token_plan(source.family, source.denoiser(job.dtype))
        except UsageError:
            return None
        if plan.tile_tokens <= ENOUGH * now.tile_tokens:
            return wish, (
                f"tiles of {plan.tile_tokens} instead of {now.tile_tokens} tokens "
                f"({len(plan.tiles)} instead of {len(now.tiles)} tiles)"
            )
    return None


def smaller_crops(job: RenderJob, source: ModelSource) -> tuple[dict[str, Any], str] | None:
    """A decoder's budget that needs less, and a sentence about it; None if there is none."""
    if job.shape == "none":
        job = replace(job, shape="hex", decode_budget=1.0)
    now = job.crop_plan(source.family)
    area = now.crop_columns * now.crop_rows
    for part in SHARES:
        wish = {"decode_budget": now.share * part, "shape": job.shape}
        plan = replace(job, decode_budget=now.share * part).crop_plan(source.family)
        if plan.crop_columns * plan.crop_rows <= ENOUGH * area:
            return wish, (
                f"crops of {plan.crop_columns * plan.unit}x{plan.crop_rows * plan.unit} instead of "
                f"{now.crop_columns * now.unit}x{now.crop_rows * now.unit} px"
            )
    return None


def smaller(document: dict[str, Any], phase: str, now: dict[str, Any]) -> (
    tuple[dict[str, Any], str] | None
):  # fmt: skip
    """The next smaller plan of a job for "sample" or "decode", or None.

    now   what earlier steps down have set already
    """
    if document["engine"]["name"] != "diffusers":
        return None
    from ..source import find_model
    from .diffusers_engine import job_of

    job = replace(job_of(document), **now)
    source = find_model(job.model)
    return (smaller_tiles if phase == "sample" else smaller_crops)(job, source)
