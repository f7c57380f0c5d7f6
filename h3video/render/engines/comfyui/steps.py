"""Which sampling step a forward pass belongs to, from what ComfyUI tells every pass."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Mapping
from typing import Any


def step_of(options: Mapping[str, Any]) -> int | None:
    """The step, counted from 0; None when ComfyUI does not say.

    Samplers of higher order also ask between two steps; that belongs to the earlier one.
    """
    now, all_sigmas = options.get("sigmas"), options.get("sample_sigmas")
    if now is None or all_sigmas is None or len(all_sigmas) < 2:
        return None
    sigma = float(now.flatten()[0])
    steps = all_sigmas.tolist()  # one wait for the device, not one a step
    slack = 1e-6 * max(abs(steps[0]), 1e-6)
    passed = [i for i, s in enumerate(steps[:-1]) if s >= sigma - slack]
    return passed[-1] if passed else 0


def model_sampling_of(guider: Any) -> Any:
    """The model_sampling that a guider samples with, with the patches of its model; or None."""
    patcher = getattr(guider, "model_patcher", None)
    return None if patcher is None else patcher.get_model_object("model_sampling")


def steps_before(sampling: Any, all_sigmas: Any) -> int:
    """How many steps of the whole schedule lie before the first of these sigmas.

    sampling   ComfyUI's model_sampling, whose table of sigmas is even in the model's time
    A sampling that begins later (denoise under 1, the second of two samplers) is told its own
    sigmas only; how far apart they begin says how many came before. Exact for schedules that are
    even in the model's time (simple, normal, sgm_uniform), else an estimate, always the same.
    """
    table = getattr(sampling, "sigmas", None)
    if table is None or all_sigmas is None or len(all_sigmas) < 2:
        return 0
    known = [0.0, *table.tolist()]
    first, second = (_time(known, float(s)) for s in all_sigmas[:2])
    return round((1.0 - first) / (first - second)) if first > second else 0


def _time(known: list[float], sigma: float) -> float:
    """A sigma's place in an ascending table that begins with 0: 0 to 1, linear in between."""
    i = min(max(bisect_left(known, sigma), 1), len(known) - 1)
    low, high = known[i - 1], known[i]
    part = (sigma - low) / (high - low) if high > low else 1.0
    return min(max((i - 1 + part) / (len(known) - 1), 0.0), 1.0)
