"""The bill at the end of a run: what it took, phase by phase."""

from __future__ import annotations

from typing import Any

from ..memory import PhaseMeter, format_bytes
from ..tiling import CropPlan, TokenPlan
from .job import RenderJob


def bill_json(
    job: RenderJob, plan: TokenPlan, crops: CropPlan, meter: PhaseMeter, files: dict[str, str]
) -> dict[str, Any]:
    """The bill as plain data."""
    import dataclasses

    return {
        "job": dataclasses.asdict(job),
        "phases": [p.to_json() for p in meter.phases],
        "tiles": len(plan.tiles),
        "tokens_per_tile": plan.tile_tokens,
        "tokens_per_pass": plan.tokens_run,
        "frame_tokens": plan.frame_tokens,
        "price": plan.price,
        "decoder_crops": len(crops.tiles),
        "files": files,
    }


def bill_text(
    job: RenderJob, plan: TokenPlan, crops: CropPlan, meter: PhaseMeter, files: dict[str, str]
) -> str:
    """The bill for people."""
    passes = job.steps * (2 if job.cfg > 1.0 else 1)
    lines = ["", f"{'phase':<12} {'seconds':>8} {'peak memory':>12} {'on device':>12}"]
    for p in meter.phases:
        lines.append(
            f"{p.name:<12} {p.seconds:>8.1f} {format_bytes(p.host_peak):>12} "
            f"{format_bytes(p.device_peak):>12}"
        )
    total = sum(p.seconds for p in meter.phases)
    lines += [
        f"{'total':<12} {total:>8.1f}",
        "",
        f"tokens   {plan.tile_tokens} a tile x {len(plan.tiles)} tiles = {plan.tokens_run} a pass "
        f"({plan.price:.2f} x the frame's {plan.frame_tokens}), {passes} passes",
        f"decoder  {len(crops.tiles)} crops of {crops.crop_columns * crops.unit}x"
        f"{crops.crop_rows * crops.unit} px",
        f"settings {job.width}x{job.height}x{job.frames}, {job.steps} steps, cfg {job.cfg:g}, "
        f"seed {job.seed}, {job.shape} hex_res {plan.grid.res}, {job.dtype} on {job.device}",
    ]
    lines += [f"{name:<8} {path}" for name, path in files.items()]
    return "\n".join(lines)
