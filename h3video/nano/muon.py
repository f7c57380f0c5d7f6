"""Muon for matrices and convolution kernels: momentum, then an orthogonalised step.

Keller Jordan, https://kellerjordan.github.io/posts/muon (2024). The narrow VAE
reached 30 dB with it in the time in which AdamW reached 17.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import torch
from torch import Tensor


class Muon(torch.optim.Optimizer):
    """Kernels are seen as matrices [out, rest]; the step has AdamW's size (0.2 RMS x lr)."""

    def __init__(self, parameters: Iterable[Tensor], lr: float, momentum: float = 0.95) -> None:
        super().__init__(parameters, {"lr": lr, "momentum": momentum})

    @torch.no_grad()
    def step(self, closure: Any = None) -> None:  # type: ignore[override]
        """One step."""
        for group in self.param_groups:
            for p in group["params"]:
                if p.grad is None:
                    continue
                average = self.state[p].setdefault("average", torch.zeros_like(p))
                average.lerp_(p.grad, 1 - group["momentum"])
                update = p.grad.lerp(average, group["momentum"]).reshape(p.shape[0], -1)
                size = 0.2 * max(update.shape) ** 0.5
                step = orthogonalise(update).reshape(p.shape)
                p.add_(step, alpha=-group["lr"] * size)


def orthogonalise(matrix: Tensor, steps: int = 5) -> Tensor:
    """The nearest semi-orthogonal matrix, roughly: five Newton-Schulz steps in bfloat16."""
    x = matrix.bfloat16()
    tall = x.shape[0] > x.shape[1]
    if tall:
        x = x.T
    x = x / (x.norm() + 1e-7)
    for _ in range(steps):
        a = x @ x.T
        x = 3.4445 * x + (-4.7750 * a + 2.0315 * a @ a) @ x
    return (x.T if tall else x).float()
