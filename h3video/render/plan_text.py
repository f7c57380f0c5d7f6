"""A tile plan for people to read."""

from __future__ import annotations

from typing import Any

from ..memory import format_bytes
from ..tiling import CropPlan, TokenPlan
from ..tiling.shift import Schedule
from .job import RenderJob


def plan_json(schedule: Schedule[TokenPlan], crops: CropPlan) -> dict[str, Any]:
    """The plan as plain data; of a grid that moves the largest, and how many there are."""
    moves = {"places": len(schedule.plans), "mean_price": schedule.price} if schedule.moves else {}
    return {"denoise": {**schedule.largest.to_json(), **moves}, "decode": crops.to_json()}


def plan_text(job: RenderJob, schedule: Schedule[TokenPlan], crops: CropPlan) -> str:
    """The plan, one fact a line; of a grid that moves the largest, which needs the most memory."""
    plan = schedule.largest
    grid = plan.grid
    cells = f"{len(grid.cells)} cells" if plan.shape == "hex" else f"{len(grid.cells)} rectangles"
    largest = plan.largest_tensor
    memory = plan.activation_bytes()
    lines = [
        f"canvas      {job.width}x{job.height} px, {job.frames} frames = "
        f"{plan.columns}x{plan.rows} tokens x {plan.latent_frames} latent frames "
        f"= {plan.frame_tokens} tokens",
    ]
    if plan.single:
        lines.append("tiles       1: no tiling, the result is bit-identical to the untiled model")
    else:
        lines += [
            f"grid        {plan.shape} hex_res {grid.res}: {cells}, edge {grid.edge:.0f} px, "
            f"overlap {plan.overlap:.0f} px, halo {plan.halo:.0f} px",
            f"tiles       {plan.sizes_text()} tokens "
            f"({plan.share:.0%} of the frame at most), exchange every {plan.exchange}",
            *([f"moves       {schedule.moves_text()}"] if schedule.moves else []),
            *_windows(plan),
            f"price       {plan.price:.2f} x the frame's tokens ({plan.tokens_run} run a pass)",
        ]
        if plan.expected_time is not None:
            lines.append(f"step time   x{plan.expected_time:.2f} of the untiled step, expected")
    if memory is not None:
        lines.append(f"activations about {format_bytes(memory)} at the peak of a step")
    if largest is not None:
        lines.append(f"largest     tensor {largest:,} elements ({largest / 2**31:.1%} of 2^31)")
    lines.append(
        f"decoder     {len(crops.tiles)} crops of {crops.crop_columns * crops.unit}x"
        f"{crops.crop_rows * crops.unit} px, overlap {crops.overlap:.0f} px"
    )
    if len(plan.tiles) > 1 and plan.shape == "hex":
        lines += ["", "tile  owned tokens  cells"]
        for i, tile in enumerate(plan.tiles):
            lines.append(f"{i:>4}  {tile.owned:>12}  {' '.join(f'{c:x}' for c in tile.ids)}")
    return "\n".join(lines)


def _windows(plan: TokenPlan) -> list[str]:
    count, length = len(plan.windows), plan.windows[0].length
    return [f"windows     {count} of {length} latent frames"] if count > 1 else []
