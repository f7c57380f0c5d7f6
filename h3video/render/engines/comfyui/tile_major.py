"""Tile by tile through all blocks, for when even the tiles' hidden states are too much.

Every tile is a forward pass of its own whose output is kept where the tile has weight. Weights of
the model are read once per tile: slow where they are streamed, which is why it is not the default.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch import Tensor

from ....tiling.tokens import TokenPlan
from .families.base import Family


class TileMajor:
    """The passes of one step.

    active   tiles of the plan that run with their shares, see TileRunner; None: all
    """

    def __init__(
        self, plan: TokenPlan, active: Mapping[int, float] | None, family: Family
    ) -> None:
        self.plan = plan
        self.active = active
        self.numbers = sorted(range(len(plan.tiles)) if active is None else active)
        self.patch = family.video.patch

    def run(self, call: Callable[[int, float], Any]) -> Any:
        """call(tile number, share of the step) -> the model's output; returns the blend."""
        weights, total = self.plan.weights(), 0.0
        tokens = sum(len(self.plan.tiles[number].tokens) for number in self.numbers)
        picture: Tensor | None = None
        others: list[Tensor] = []
        dtype, listed = torch.float32, False
        for number in self.numbers:
            result = call(number, len(self.plan.tiles[number].tokens) / tokens)
            listed = isinstance(result, (list, tuple))
            parts = list(result) if listed else [result]
            dtype = parts[0].dtype
            w = weights[number]
            area = float(w.weight.sum()) if self.active is None else self.active[number]
            total += area
            part = parts[0].float() * self._map(w, parts[0])
            picture = part if picture is None else picture.add_(part)
            for i, other in enumerate(parts[1:]):
                if i == len(others):
                    others.append(other.float())
                else:  # the running mean by area; equal sounds stay as they are
                    others[i] += (area / total) * (other.float() - others[i])
        assert picture is not None
        out = [picture.to(dtype), *(o.to(dtype) for o in others)]
        return out if listed else out[0]

    def _map(self, weights: Any, like: Tensor) -> Tensor:
        import numpy as np

        flat = np.zeros(self.plan.columns * self.plan.rows, np.float32)
        flat[weights.points] = weights.weight
        tokens = torch.from_numpy(flat).view(self.plan.rows, self.plan.columns)
        latents = tokens.repeat_interleave(self.patch, 0).repeat_interleave(self.patch, 1)
        return latents[: like.shape[-2], : like.shape[-1]].to(like.device)
