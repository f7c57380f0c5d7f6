"""A tile plan in words, for logs."""

from __future__ import annotations

from ...tiling.shift import Schedule
from ...tiling.tokens import TokenPlan


def describe(plan: TokenPlan) -> str:
    """A plan in one line for the log."""
    if plan.single:
        return f"no tiling: one tile holds all {plan.frame_tokens} tokens"
    time = plan.expected_time
    expected = "" if time is None else f", step time x{time:.2f} expected"
    windows = ""
    if len(plan.windows) > 1:
        windows = f" in {len(plan.windows)} windows of {plan.windows[0].length} latent frames"
    return (
        f"{len(plan.tiles)} {plan.shape} tiles{windows} at hex_res {plan.grid.res} "
        f"(edge {plan.grid.edge:.0f} px, overlap {plan.overlap:.0f} px, halo {plan.halo:.0f} px): "
        f"{plan.sizes_text()} of {plan.frame_tokens} tokens ({plan.share:.0%} at most), "
        f"price {plan.price:.2f}{expected}"
    )


def describe_schedule(schedule: Schedule[TokenPlan]) -> str:
    """The plans of a sampling in one line: the one that stays, or the largest and the mean."""
    text = describe(schedule.largest)
    return f"{text}; {schedule.moves_text()}" if schedule.moves else text
