"""Is a latent or a picture sound: NaN and infinity, black, tinted, noise; and what causes that.

The causes are those that people ran into and reported (docs/troubleshooting.md lists them).
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

CAUSES_NAN = (
    "float16 overflow (MiniMax-H3 and Wan need bfloat16 or float32: drop --force-fp16, "
    "--fp16-unet, --fast)",
    "SageAttention or another attention patch (turn it off to compare)",
    "a damaged or wrongly converted GGUF file (try another quantization or file)",
    "on a Mac: an MPS operator bug (update PyTorch, or shorten the clip: tensors of 2^31 elements "
    "break)",
)
CAUSES_NOISE = (
    "a checkpoint whose q, k, v rows are ordered for another loader (an official file in a "
    "repackaged loader, or the reverse)",
    "too few steps, or a sigma shift of another model",
    "latents decoded with another family's VAE",
)
CAUSES_TINT = (
    "latents decoded with another family's VAE, or scaled twice",
    "a cfg far above the model's (try 3 to 7)",
    "a damaged or wrongly converted GGUF file",
)
CAUSES_BLACK = ("NaN latents that were turned into 0: put the guard before VAE Decode, too",)

BLACK = 1.0 / 255.0
"""A clip whose brightest value is below this is black."""

TINT = 0.5
"""A pixel is purple when its green is below this part of its red and blue; green the other way."""

TINT_SHARE = 0.8
"""... and that is so in this share of the pixels of every frame that is looked at."""

NOISE = 0.25
"""Neighbouring pixels of pictures correlate above 0.9, of white noise at 0."""


@dataclass(frozen=True)
class Health:
    """What was found. `broken` is NaN or infinity, `suspicious` the rest; both are one sentence."""

    broken: str
    suspicious: str
    report: str


def check_values(values: Tensor, channel_axis: int, what: str) -> Health:
    """Check any tensor for NaN and infinity.

    channel_axis   axis of the channels, whose statistics the report lists
    what           how messages call it ("the latent", "step 3 of 20")
    """
    channels = values.detach().movedim(channel_axis, 0).flatten(1)
    nan = torch.isnan(channels).sum().item()
    infinite = torch.isinf(channels).sum().item()
    report = f"{what}: {tuple(values.shape)}\n{_statistics(channels)}"
    if not nan and not infinite:
        return Health("", "", report)
    bad = ~torch.isfinite(channels).all(1)
    which = ", ".join(map(str, bad.nonzero().flatten().tolist()[:8]))
    share = (nan + infinite) / channels.numel()
    broken = (
        f"{what} is broken: {nan / channels.numel():.1%} NaN, "
        f"{infinite / channels.numel():.1%} infinite ({share:.1%} of {channels.numel():,} values, "
        f"in {int(bad.sum())} of {len(bad)} channels: {which}). {_causes(CAUSES_NAN)}"
    )
    return Health(broken, "", f"{report}\n{broken}")


def check_images(images: Tensor, what: str = "the images") -> Health:
    """Check an IMAGE batch [F, H, W, C] in 0..1, also for black, a tint and noise."""
    health = check_values(images, -1, what)
    if health.broken:
        return health
    found = _black(images) or _noise(images) or _tint(images)
    if not found:
        return health
    suspicious = f"{what} look wrong: {found}"
    return Health("", suspicious, f"{health.report}\n{suspicious}")


def _statistics(channels: Tensor) -> str:
    """Mean and spread of every channel over its finite values; float64 sums."""
    lines = []
    for i, c in enumerate(channels):
        good = c[torch.isfinite(c)].double()
        if not len(good):
            lines.append(f"channel {i}: no finite value")
            continue
        lines.append(
            f"channel {i}: mean {good.mean().item():+.4f}, std {good.std(False).item():.4f}, "
            f"min {good.min().item():+.4f}, max {good.max().item():+.4f}"
        )
    return "\n".join(lines)


def _black(images: Tensor) -> str:
    brightest = images[..., :3].max().item() if images.numel() else 1.0
    if brightest >= BLACK:
        return ""
    return f"black (brightest value {brightest:.4f}). {_causes(CAUSES_BLACK)}"


def _noise(images: Tensor) -> str:
    """White noise: neighbours do not correlate, in any of a few frames."""
    if min(images.shape[1:3]) < 16:
        return ""
    best = max(_correlation(images[f]) for f in _few(len(images)))
    if best >= NOISE:
        return ""
    return (
        f"noise (neighbouring pixels correlate at {best:.2f}, pictures at 0.9 and more). "
        f"{_causes(CAUSES_NOISE)}"
    )


def _tint(images: Tensor) -> str:
    """Purple or green all over: one of green and magenta is far below the other everywhere."""
    if images.shape[-1] < 3:
        return ""
    for name, sign in (("purple", 1.0), ("green", -1.0)):
        for f in _few(len(images)):
            red, green, blue = images[f, ..., :3].float().unbind(-1)
            magenta = torch.minimum(red, blue) if sign > 0 else torch.maximum(red, blue)
            low, high = (green, magenta) if sign > 0 else (magenta, green)
            if high.mean() < 0.15 or (low < TINT * high).float().mean() < TINT_SHARE:
                break
        else:
            means = images[..., :3].float().mean((0, 1, 2)).tolist()
            shown = ", ".join(f"{m:.2f}" for m in means)
            return f"{name} all over (means of red, green, blue: {shown}). {_causes(CAUSES_TINT)}"
    return ""


def _few(frames: int) -> list[int]:
    return sorted({0, frames // 2, frames - 1})


def _correlation(frame: Tensor) -> float:
    """The larger of the correlations with the right and the lower neighbour, over the channels'
    mean; 1 for a flat picture."""
    grey = frame[..., :3].double().mean(-1)
    grey = grey - grey.mean()
    power = (grey**2).mean().item()
    if power < 1e-6:
        return 1.0
    across = (grey[:, 1:] * grey[:, :-1]).mean().item()
    down = (grey[1:] * grey[:-1]).mean().item()
    return max(across, down) / power


def _causes(causes: tuple[str, ...]) -> str:
    return "Likely causes: " + "; ".join(causes)
