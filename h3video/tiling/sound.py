"""Sound tracks of chunks joined sample by sample: exact lengths, short fades without a click.

Where two chunks overlap they fade with constant power: sounds that have nothing to do with each
other keep their loudness with cosine and sine, equal ones with weights that sum to 1, anything
between with weights for how alike they are there.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..errors import UsageError

FADE_SECONDS = 0.02
CUT_SECONDS = 0.004


def sample_at(frame: int, rate: int, fps: float) -> int:
    """The sample that a frame begins at; halves round up, so that neighbours agree."""
    return int((2 * frame * rate + fps) // (2 * fps))


def join_sound(
    chunks: Sequence[tuple[int, Any]], frames: int, fps: float, rate: int,
    fade: float = FADE_SECONDS,
) -> Any:  # fmt: skip
    """The sound of a clip: float32 numpy [channels, exactly the samples of `frames` frames].

    chunks   (first frame, float32 numpy [channels, samples]) in order; neighbours may overlap
    fps      frames a second, rate samples a second
    fade     seconds of a fade, in the middle of what two chunks share; shorter if they share less.
             Chunks that share nothing go down and up again in 4 ms instead

    A chunk that ends too early (codecs round) is held at silence. Raises UsageError.
    """
    import numpy as np

    if not chunks:
        raise UsageError("there is no sound to join; give at least one chunk")
    channels = chunks[0][1].shape[0]
    total = sample_at(frames, rate, fps)
    out = np.zeros((channels, total), np.float32)
    end = 0
    for i, (frame, samples) in enumerate(chunks):
        if samples.ndim != 2 or samples.shape[0] != channels:
            raise UsageError(
                f"the sound of chunk {i} has the shape {tuple(samples.shape)}, the first has "
                f"{channels} channels; all must be [channels, samples] alike"
            )
        start = sample_at(frame, rate, fps)
        new = np.asarray(samples, np.float32)[:, : max(0, total - start)]
        if i and start < end:
            _fade_over(out, new, start, end, round(fade * rate))
        else:
            _cut_to(out, new, start, end if i else 0, round(CUT_SECONDS * rate) if i else 0)
        end = max(end, start + new.shape[1])
    return out


def _fade_over(out: Any, new: Any, start: int, end: int, length: int) -> None:
    """Take over from what is in `out` in the middle of start..end, and write the rest."""
    import numpy as np

    shared = min(end - start, new.shape[1])
    length = min(max(length, 1), shared)
    low = start + (shared - length) // 2
    a, b = out[:, low : low + length], new[:, low - start : low - start + length]
    angle = (np.arange(length) + 0.5) / length * (np.pi / 2.0)
    down, up = np.cos(angle), np.sin(angle)
    power = np.sqrt(down**2 + up**2 + 2.0 * _alike(a, b) * down * up)
    mixed = a * (down / power) + b * (up / power)
    out[:, low : low + length] = mixed.astype(np.float32)
    out[:, low + length : start + new.shape[1]] = new[:, low + length - start :]


def _alike(a: Any, b: Any) -> float:
    """Correlation of two pieces of sound, 0..1; sounds in opposite phase count as unrelated."""
    import numpy as np

    x, y = a.astype(np.float64), b.astype(np.float64)
    power = float(np.sqrt((x * x).sum() * (y * y).sum()))
    return min(1.0, max(0.0, float((x * y).sum()) / power)) if power > 1e-12 else 1.0


def _cut_to(out: Any, new: Any, start: int, end: int, ramp: int) -> None:
    """Write a chunk that shares nothing with the one before: both sides go to silence."""
    import numpy as np

    out[:, start : start + new.shape[1]] = new
    if not ramp or not new.shape[1]:
        return
    rise = np.sin((np.arange(ramp) + 0.5) / ramp * (np.pi / 2.0)).astype(np.float32) ** 2
    count = min(ramp, new.shape[1])
    out[:, start : start + count] *= rise[:count]
    count = min(ramp, end)
    if count:
        out[:, end - count : end] *= rise[::-1][ramp - count :]
