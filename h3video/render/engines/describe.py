"""A tile plan in words, for logs."""

from __future__ import annotations

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
        f"{plan.tile_tokens} of {plan.frame_tokens} tokens a tile ({plan.share:.0%}), "
        f"price {plan.price:.2f}{expected}"
    )
