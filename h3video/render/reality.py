"""A render against the ledger: what every phase was predicted to take, and what it took.

The comparison is part of every bill; `h3video plan --calibrate bill.json` learns from it.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from ..errors import UsageError
from ..memory import Phase, format_bytes
from ..memory.ask import Ask
from ..memory.machine import Machine
from .forecast import find_source, tiles_of

if TYPE_CHECKING:
    from ..memory.ledger import Ledger
    from ..tiling import CropPlan, TokenPlan
    from .job import RenderJob

QUANTS = {"float32": "F32", "bfloat16": "BF16", "float16": "F16"}


def predicted(
    job: RenderJob, folder: str, plan: TokenPlan, crops: CropPlan | None = None
) -> Ledger | None:
    """The ledger of a job as `h3video render` runs it; None for a model that is not in the catalog.

    folder   the model's local folder (the embedded model is known by name)
    """
    from ..memory.ledger import plan as plan_memory

    try:
        spec, _, _, _ = find_source("nano" if job.model == "nano" else folder)
    except (UsageError, ImportError):
        return None
    quant = QUANTS.get(job.dtype, "BF16")
    tile = None
    if crops is not None and len(crops.tiles) > 1:
        tile = math.ceil(math.sqrt(crops.crop_columns * crops.crop_rows) * crops.unit)
    try:
        ask = Ask(
            spec, quant, job.width, job.height, job.frames, _machine(job.device), "h3video",
            encoder_quant=quant, vae_dtype=quant, passes=2 if job.cfg > 1.0 else 1,
            tiles=tiles_of(plan), decode_tile=tile, offload=job.offload,
        )  # fmt: skip
        return plan_memory(ask)
    except UsageError:
        return None


def _machine(device: str) -> Machine:
    from ..memory.machine import find_machine

    found = find_machine()
    if device == "cpu" and found.gpu != "cpu":
        return replace(found, gpu="cpu", vram=0, metal=None)
    return found


def comparison(ledger: Ledger, phases: Sequence[Phase]) -> dict[str, Any]:
    """Predicted and measured peaks of the phases that both know, as plain data.

    On a device its peak is compared, else the process's.
    """
    where = "host" if ledger.ask.machine.gpu == "cpu" else "device"
    rows = []
    for phase in phases:
        name = {"sample": "denoise"}.get(phase.name.split()[0], phase.name.split()[0])
        try:
            guess = ledger.phase(name)
        except StopIteration:
            continue
        measured = phase.host_peak if where == "host" else phase.device_peak
        rows.append({
            "name": name, "predicted_bytes": guess.total(where), "measured_bytes": measured,
            "program_bytes": guess.total(where, "runtime"),
            "weight_bytes": guess.total(where, "weights"),
            "activation_bytes": guess.total(where, "activations"),
        })  # fmt: skip
    return {
        "runtime": ledger.ask.runtime, "gpu": ledger.ask.machine.gpu, "memory": where,
        "phases": rows,
    }  # fmt: skip


def comparison_text(found: Mapping[str, Any]) -> str:
    """The comparison for people: a line for every phase."""
    memory = "memory" if found["memory"] == "host" else "on device"
    lines = [f"{'phase':<12} {'predicted':>12} {'measured':>12} {'ratio':>7}   ({memory})"]
    for row in found["phases"]:
        measured = row["measured_bytes"]
        ratio = f"{measured / row['predicted_bytes']:.2f}" if measured else "-"
        lines.append(
            f"{row['name']:<12} {format_bytes(row['predicted_bytes']):>12} "
            f"{format_bytes(measured):>12} {ratio:>7}"
        )
    return "\n".join(lines)
