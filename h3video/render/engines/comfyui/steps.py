"""Which sampling step a forward pass belongs to, from what ComfyUI tells every pass."""

from __future__ import annotations

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
    steps = [float(s) for s in all_sigmas]
    slack = 1e-6 * max(abs(steps[0]), 1e-6)
    passed = [i for i, s in enumerate(steps[:-1]) if s >= sigma - slack]
    return passed[-1] if passed else 0
