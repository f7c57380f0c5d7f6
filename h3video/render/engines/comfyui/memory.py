"""What ComfyUI is told about memory: a tile's, not a frame's.

Its estimate grows with the latent, and by it models are kept, unloaded or run apart. For a frame
that never runs at once it would unload the model for nothing.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from typing import Any

from ....tiling.tokens import TokenPlan


def memory_share(plan: TokenPlan) -> float:
    """A step's activations on tiles against the full frame's, 0..1."""
    if plan.single:
        return 1.0
    mine, full = plan.activation_bytes(), plan.untiled_bytes()
    return plan.share if mine is None or not full else min(1.0, mine / full)


def scaled_shape(shape: Sequence[int], share: float) -> list[int]:
    """A latent shape with `share` of the elements, as the last side's length tells it."""
    return [*shape[:-1], max(1, round(shape[-1] * share))]


@contextlib.contextmanager
def scaled_estimate(model: Any, share: float) -> Iterator[None]:
    """ComfyUI's estimate for a batch of conditionings, taken down to `share` for one call."""
    before = getattr(model, "memory_usage_factor", None)
    if before is None or share >= 1.0:
        yield
        return
    model.memory_usage_factor = before * share
    try:
        yield
    finally:
        model.memory_usage_factor = before
