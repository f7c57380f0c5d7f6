"""Join the sound of chunks to the sample, with a short fade that keeps the loudness.

A chunk that starts at frame f of the clip starts at the sample nearest to f / fps, so the sum of
all lengths is that of the whole clip, whatever the rates are. Over the fade both chunks sound; the
gains keep the power as it is for the likeness that the two have there: sounds that have nothing to
do with each other fade with equal power (cosine and sine), equal ones come out as they are.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import Any

from ..errors import UsageError

FADE = 0.02
"""Seconds of a fade: longer than a click, shorter than a syllable."""

EDGE = 0.002
"""Seconds over which a sound that simply ends or begins goes to or from silence."""


def sample_at(frame: int, rate: int, fps: float) -> int:
    """The sample at which a frame begins: frame x rate / fps, rounded half up, exactly."""
    place = Fraction(frame * rate) / Fraction(fps).limit_denominator(100_000)
    return int((2 * place + 1) // 2)


def fit_sound(samples: Any, count: int, rate: int) -> Any:
    """A sound of exactly `count` samples: cut, or filled with silence, without a click.

    samples   float32 numpy [channels, n]
    """
    import numpy as np

    have = samples.shape[1]
    if have == count:
        return samples
    out = np.zeros((samples.shape[0], count), np.float32)
    out[:, : min(have, count)] = samples[:, :count]
    if have < count:
        edge = min(round(EDGE * rate), have)
        out[:, have - edge : have] *= np.cos(_ramp(edge) * np.pi / 2.0)
    return out


def join_sounds(
    chunks: Sequence[tuple[int, Any]], total: int, rate: int, fade: float = FADE
) -> Any:  # fmt: skip
    """The sound of a clip from the sounds of its chunks: float32 numpy [channels, total].

    chunks   (first sample in the clip, float32 numpy [channels, n]) in order of time
    total    samples of the clip
    fade     seconds that two neighbours fade over, in the middle of what they share (at most
             all of it); where they share nothing both go to silence within 2 ms

    Raises UsageError when a part of the clip has no sound, or channels differ.
    """
    import numpy as np

    if not chunks:
        raise UsageError("no chunk has a sound; render without sound")
    channels = chunks[0][1].shape[0]
    out = np.zeros((channels, total), np.float32)
    end = 0  # samples that are written
    for number, (start, samples) in enumerate(chunks):
        if samples.shape[0] != channels:
            raise UsageError(
                f"chunk {number} has {samples.shape[0]} channels of sound, the first {channels}"
            )
        if start > end or start < 0:
            raise UsageError(
                f"chunk {number} starts at sample {start}, the sound before it ends at {end}; "
                "nothing fills the gap"
            )
        stop = min(start + samples.shape[1], total)
        if stop <= end and number:
            continue  # all of it is heard already
        shared = end - start
        if number == 0:
            out[:, :stop] = samples[:, : stop - start]
        elif shared == 0:
            _edges(out, end, samples, round(EDGE * rate))
            out[:, end:stop] += samples[:, : stop - start]
        else:
            length = min(shared, max(1, round(fade * rate)))
            first = start + (shared - length) // 2
            over = slice(first, first + length)
            inside = slice(first - start, first - start + length)
            out[:, over] = crossfade(out[:, over], samples[:, inside])
            out[:, over.stop : stop] = samples[:, inside.stop : stop - start]
        end = max(end, stop)
    if end < total:
        raise UsageError(f"the chunks' sound ends at sample {end} of {total}")
    return out


def crossfade(old: Any, new: Any) -> Any:
    """From the one to the other with the power kept: float32 numpy [channels, n] each."""
    import numpy as np

    turn = _ramp(old.shape[1]) * np.pi / 2.0
    down, up = np.cos(turn), np.sin(turn)
    both = float((old.astype(np.float64) * new).sum())
    power = float(
        np.sqrt((old.astype(np.float64) ** 2).sum() * (new.astype(np.float64) ** 2).sum())
    )
    alike = min(1.0, max(0.0, both / power)) if power > 0.0 else 0.0
    gain = 1.0 / np.sqrt(down**2 + up**2 + 2.0 * alike * down * up)
    mixed = (old * (down * gain) + new * (up * gain)).astype(np.float32)
    return np.where(old == new, old, mixed) if alike > 0.999 else mixed


def _edges(out: Any, at: int, samples: Any, length: int) -> None:
    """Take the end of what is written to silence; the new sound's beginning is added to that."""
    import numpy as np

    length = min(length, at, samples.shape[1])
    if not length:
        return
    out[:, at - length : at] *= np.cos(_ramp(length) * np.pi / 2.0).astype(np.float32)
    # `samples` belongs to the caller: what its fade takes away is taken from the sum.
    rise = np.sin(_ramp(length) * np.pi / 2.0).astype(np.float32)
    out[:, at : at + length] -= samples[:, :length] * (1.0 - rise)


def _ramp(n: int) -> Any:
    """0..1 at the middles of n samples."""
    import numpy as np

    return (np.arange(n) + 0.5) / max(n, 1)
