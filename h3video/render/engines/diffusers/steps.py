"""Which place a forward pass has in its scheduler's whole schedule."""

from __future__ import annotations

from typing import Any


def schedule_step(scheduler: Any, timestep: Any = None) -> int:
    """The step under way, counted from the schedule's start even where sampling begins later.

    timestep   what the transformer is called with, a tensor, a number or None
    Calls at one noise level have one step, so those of a step of second order may have two: its
    second half looks from where the next step begins.
    """
    values = [float(t) for t in getattr(scheduler, "timesteps", ())]
    index = getattr(scheduler, "step_index", None)
    if index is None:  # before the first step; not every pipeline says where it begins
        index = _place(values, timestep)
    if index is None:
        index = getattr(scheduler, "begin_index", None) or 0
    index = int(index)
    return len(set(values[: index + 1])) - 1 if index < len(values) else index


def _place(values: list[float], timestep: Any) -> int | None:
    """Where a timestep stands in a schedule; None if it does not."""
    if timestep is None or not values:
        return None
    # Parts of a frame that are given have timestep 0; the rest has that of the step.
    now = float(timestep.max()) if hasattr(timestep, "max") else float(timestep)
    slack = 1e-3 * max(1.0, abs(values[0])) / 10.0
    found = min(range(len(values)), key=lambda i: abs(values[i] - now))
    return found if abs(values[found] - now) <= slack else None
