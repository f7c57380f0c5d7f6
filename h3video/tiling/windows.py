"""Windows over time: which latent frames a tile takes together, and how windows share them.

All windows of a clip have one length and start on the family's own frame grid, so each is a clip
that the model could make alone. At every latent frame the weights of all windows sum to 1.
"""

from __future__ import annotations

from dataclasses import dataclass

from ..errors import UsageError
from ..models.family import VideoFamily


@dataclass(frozen=True)
class TimeWindow:
    """Latent frames `start` to `start + length`, with a weight for each: [length] floats."""

    start: int
    length: int
    weights: tuple[float, ...]


def plan_windows(
    latent_frames: int, length: int | None, overlap: int, mode: str, family: VideoFamily
) -> tuple[TimeWindow, ...]:
    """Windows over a clip.

    latent_frames   of the clip
    length          latent frames of a window; None, 0 or more than the clip: one window. Taken
                    down to the family's grid (5k + 2 for MiniMax-H3)
    overlap         latent frames that neighbours share at least
    mode            fused: a smooth ramp across what is shared
                    frozen: the earlier window rules there, the later one only sees it

    Raises UsageError when no legal window advances.
    """
    if not length or length >= latent_frames:
        return (TimeWindow(0, latent_frames, (1.0,) * latent_frames),)
    step, first = family.latent_step, family.latent_first
    size = (length - first) // step * step + first
    if size < first + (step if step > 1 else 0):  # such a window could not advance
        raise UsageError(
            f"window {length} is too short for {family.name}, whose clips have "
            f"{family.latent_grid()} latent frames; use at least {first + step}"
        )
    stride = (size - overlap) // step * step
    if stride < 1:
        raise UsageError(
            f"windows of {size} latent frames with {overlap} shared do not advance on "
            f"{family.name}'s grid of {step}; use a window_overlap of at most {size - step}"
        )
    starts = list(range(0, latent_frames - size, stride))
    last = -(-(latent_frames - size) // step) * step if step > 1 else latent_frames - size
    starts.append(last)
    return _weigh(sorted(set(starts)), size, latent_frames, mode)


def _weigh(starts: list[int], size: int, total: int, mode: str) -> tuple[TimeWindow, ...]:
    ends = [min(start + size, total) for start in starts]
    raw: list[list[float]] = []
    for i, (start, end) in enumerate(zip(starts, ends)):
        row = []
        for frame in range(start, end):
            weight = 1.0
            if i and frame < ends[i - 1]:  # shared with the one before
                weight = _ramp(frame - start, ends[i - 1] - start) if mode == "fused" else 0.0
            if i + 1 < len(starts) and frame >= starts[i + 1] and mode == "fused":
                weight *= _ramp(end - 1 - frame, end - starts[i + 1])
            row.append(weight)
        raw.append(row)
    sums = [0.0] * total
    for start, row in zip(starts, raw):
        for j, weight in enumerate(row):
            sums[start + j] += weight
    return tuple(
        TimeWindow(start, len(row), tuple(w / sums[start + j] for j, w in enumerate(row)))
        for start, row in zip(starts, raw)
    )


def _ramp(place: int, width: int) -> float:
    """Smoothstep over `width` frames, sampled at their middles."""
    x = (place + 0.5) / width
    return x * x * (3.0 - 2.0 * x)
