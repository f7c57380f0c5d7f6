"""The bill at the end of a run: what it took, phase by phase."""

from __future__ import annotations

from typing import Any

from ..memory import PhaseMeter, format_bytes
from ..tiling import CropPlan, TokenPlan
from .job import RenderJob


def ledger_line(
    job: RenderJob, folder: str, plan: TokenPlan, crops: CropPlan | None, meter: PhaseMeter
) -> dict[str, Any] | None:
    """What the ledger predicted for every phase beside what was measured; None for a model that
    the ledger does not know. Never fails: the work is done, and a bill must not undo it."""
    from .reality import comparison, predicted

    try:
        ledger = predicted(job, folder, plan, crops)
        return None if ledger is None else comparison(ledger, meter.phases)
    except (ValueError, OSError, KeyError, ArithmeticError):
        return None


def bill_json(
    job: RenderJob, plan: TokenPlan, crops: CropPlan, meter: PhaseMeter, files: dict[str, str],
    folder: str = "",
) -> dict[str, Any]:  # fmt: skip
    """The bill as plain data. `folder` is the model's: with it the ledger is compared."""
    import dataclasses

    return {
        "ledger": ledger_line(job, folder, plan, crops, meter) if folder else None,
        "job": dataclasses.asdict(job),
        "phases": [p.to_json() for p in meter.phases],
        "tiles": len(plan.tiles),
        "tokens_per_tile": plan.tile_tokens,
        "tile_sizes": [{"tokens": n, "tiles": t} for n, t in plan.tile_sizes.items()],
        "tokens_per_pass": plan.tokens_run,
        "frame_tokens": plan.frame_tokens,
        "price": plan.price,
        "decoder_crops": len(crops.tiles),
        "files": files,
    }


def bill_text(
    job: RenderJob, plan: TokenPlan, crops: CropPlan, meter: PhaseMeter, files: dict[str, str],
    folder: str = "",
) -> str:  # fmt: skip
    """The bill for people."""
    passes = job.steps * (2 if job.cfg > 1.0 else 1)
    most = "" if job.grid_shift == "none" or plan.single else ", at most: the grid moves"
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
        f"tokens   tiles of {plan.sizes_text()} = {plan.tokens_run} a pass "
        f"({plan.price:.2f} x the frame's {plan.frame_tokens}{most}), {passes} passes",
        f"decoder  {len(crops.tiles)} crops of {crops.crop_columns * crops.unit}x"
        f"{crops.crop_rows * crops.unit} px",
        f"settings {job.width}x{job.height}x{job.frames}, {job.steps} steps, cfg {job.cfg:g}, "
        f"seed {job.seed}, {job.shape} hex_res {plan.grid.res}, {job.dtype} on {job.device}",
    ]
    lines += [f"{name:<8} {path}" for name, path in files.items()]
    found = ledger_line(job, folder, plan, crops, meter) if folder else None
    if found is not None and found["phases"]:
        from .reality import comparison_text

        lines += ["", comparison_text(found)]
    return "\n".join(lines)
