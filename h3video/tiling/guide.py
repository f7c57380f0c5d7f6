"""A small prediction of the whole frame that leads what tiles predict: large forms from the one,
detail from the other.

A tile that starts from noise sees a part of the frame and draws the subject for itself. So in the
first steps the frame is predicted a second time, shrunk until it has no more tokens than a tile,
and the tiles' prediction is moved to it where both can be compared: in the shrunk frame's pixels.

Noise makes shrinking a matter of arithmetic. Models of flow matching (all that have tiles here)
see x = (1 - s) x0 + s n, with unit noise n. The mean of k x k latents keeps x0 but divides the
noise by k, so the mean over c = (1 - s) + s / k is what the model would see of the small frame at
the noise level s' = (s / k) / c.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn import functional

from ..errors import UsageError
from .tokens import TokenPlan

MAX_FACTOR = 4
"""A frame shrunk further shows a model nothing that it knows."""


def shrink_factor(plan: TokenPlan) -> int:
    """The least factor at which the whole frame has no more tokens than the plan's largest tile.

    Raises UsageError where a frame would be shrunk beyond 4 times.
    """
    frame, tile = plan.frame_tokens, plan.tile_tokens
    factor = max(2, math.isqrt(max(frame - 1, 0) // tile) + 1)
    while factor > 2 and frame <= tile * (factor - 1) ** 2:
        factor -= 1
    if factor > MAX_FACTOR:
        raise UsageError(
            f"guide_steps would shrink the frame {factor} times to the size of a tile "
            f"({plan.share:.1%} of the frame), the limit is {MAX_FACTOR}; use a budget of "
            f"{1 / MAX_FACTOR**2:.0%} or more, or guide_steps 0"
        )
    return factor


@dataclass(frozen=True)
class Shrink:
    """A frame's latents made small, and a small prediction's difference made large again.

    factor          latents that become one, each way
    patch           the small frame is whole patches of this many latents
    columns, rows   of the frame in latents
    """

    factor: int
    patch: int
    columns: int
    rows: int

    def level(self, sigma: Tensor) -> tuple[Tensor, Tensor]:
        """What to divide a shrunk x by, and the noise level that it then has; s in 0..1."""
        divisor = (1.0 - sigma) + sigma / self.factor
        return divisor, (sigma / self.factor) / divisor

    def small(self, frame: Tensor) -> Tensor:
        """The mean of factor x factor latents: [..., rows, columns] to the small frame's.

        Frames that do not divide go on beyond their edge as in a mirror.
        """
        step = self.factor * self.patch
        right, below = -self.columns % step, -self.rows % step
        flat = frame.flatten(0, -4) if frame.ndim > 3 else frame
        flat = flat.float()
        if right or below:
            flat = _mirror(flat, right, below)
        return functional.avg_pool2d(flat, self.factor).reshape(
            *frame.shape[:-2], (self.rows + below) // self.factor,
            (self.columns + right) // self.factor,
        )  # fmt: skip

    def large(self, frame: Tensor) -> Tensor:
        """The small frame's numbers over the large one, smooth: [..., rows, columns]."""
        tall, wide = frame.shape[-2:]
        flat = frame.reshape(-1, 1, tall, wide)
        size = (tall * self.factor, wide * self.factor)
        out = functional.interpolate(flat, size=size, mode="bicubic", align_corners=False)
        out = out[..., : self.rows, : self.columns]
        return out.reshape(*frame.shape[:-2], self.rows, self.columns)


def _mirror(frame: Tensor, right: int, below: int) -> Tensor:
    """Columns and rows added at the right and below, mirrored at the last one."""
    tall, wide = frame.shape[-2:]
    columns = _folded(wide, right, frame.device)
    rows = _folded(tall, below, frame.device)
    return frame.index_select(-1, columns).index_select(-2, rows)


def _folded(length: int, more: int, device: torch.device) -> Tensor:
    at = torch.arange(length + more, device=device) % (2 * length)
    return torch.where(at < length, at, 2 * length - 1 - at)


class Guide:
    """One guided prediction: what the model is asked about the small frame, and what follows.

    x       what the model sees of the frame, [B, C, (T,) rows, columns]
    sigma   its noise level 0..1, one number for the batch or one each
    """

    def __init__(self, x: Tensor, sigma: Tensor, shrink: Shrink) -> None:
        self.shrink = shrink
        self.x = x
        self.sigma = _upright(sigma, x)
        self.divisor, self.small_sigma = shrink.level(self.sigma)
        self.small_x = shrink.small(x) / self.divisor

    @property
    def ratio(self) -> Tensor:
        """By how much the noise level falls, [B or 1]: times go with it."""
        return (self.small_sigma / self.sigma.clamp(min=1e-9)).flatten()

    def frame(self, latent: Tensor) -> Tensor:
        """The small frame as the model takes it: x first, then what is concatenated to it.

        latent   [B, channels, ..., rows, columns], of which x are the first
        """
        small = self.shrink.small(latent).to(latent.dtype)
        small[:, : self.x.shape[1]] = self.small_x.to(latent.dtype)
        return small

    def time(self, time: Tensor) -> Tensor:
        """The small frame's timestep for the frame's; times are proportional to noise levels."""
        return (time * self.ratio.to(time.device)).to(time.dtype)

    def lead(self, predicted: Tensor, small: Tensor) -> Tensor:
        """The tiles' velocity (noise - clean), moved until their clean frame agrees with the small
        one's where both are small."""
        sigma = self.sigma.clamp(min=1e-4)
        clean = self.x.float() - self.sigma * predicted.float()
        small_clean = self.small_x - self.small_sigma * small.float()
        away = self.shrink.large(small_clean - self.shrink.small(clean))
        return (predicted.float() - away / sigma).to(predicted.dtype)


def _upright(sigma: Tensor, x: Tensor) -> Tensor:
    values = sigma.detach().float().flatten()
    if values.numel() not in (1, x.shape[0]):
        raise UsageError(
            f"guide_steps needs one noise level for a frame, this model was given "
            f"{values.numel()} (tokens with their own); use guide_steps 0"
        )
    if not bool(((values >= 0.0) & (values <= 1.0 + 1e-6)).all()):
        raise UsageError(
            f"guide_steps needs noise levels of flow matching, 0 to 1, and found "
            f"{float(values.max()):g}; use guide_steps 0"
        )
    return values.to(x.device).reshape(-1, *(1,) * (x.ndim - 1))
