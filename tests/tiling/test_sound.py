"""Sound of chunks: lengths to the sample, no click, no hole, no bump."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from h3video.errors import UsageError
from h3video.tiling.sound import FADE, crossfade, fit_sound, join_sounds, sample_at

RATE = 24_000


def tone(start, count, hertz=440.0, phase=0.0, rate=RATE, level=0.5):
    t = np.arange(start, start + count) / rate
    one = level * np.sin(2 * np.pi * hertz * t + phase)
    return np.stack([one, 0.5 * one]).astype(np.float32)


def cut_into(count, length, shared, fps, rate=RATE):
    """(first frame, frames) of chunks that share frames."""
    starts = [k * (length - shared) for k in range(count)]
    return [(s, length) for s in starts], starts[-1] + length


@pytest.mark.parametrize("count", [1, 2, 7])
@pytest.mark.parametrize("length", [5, 17, 33, 39, 81])
@pytest.mark.parametrize("rate", [16_000, 24_000, 44_100, 48_000])
@pytest.mark.parametrize("fps", [16, 24, 30_000 / 1001])
def test_lengths_are_exact(count, length, rate, fps):
    shared = min(3, length - 1)
    parts, frames = cut_into(count, length, shared, fps)
    total = sample_at(frames, rate, fps)
    whole = np.arange(total, dtype=np.float32)[None] / total
    chunks = []
    for start, n in parts:
        a, b = sample_at(start, rate, fps), sample_at(start + n, rate, fps)
        chunks.append((a, whole[:, a:b]))
    out = join_sounds(chunks, total, rate)
    assert out.shape == (1, total)
    assert np.array_equal(out, whole)  # equal sounds come out as they are


@given(st.integers(0, 10**6), st.sampled_from([8000, 44_100, 48_000]),
       st.sampled_from([16.0, 23.976, 24.0, 25.0, 29.97]))  # fmt: skip
def test_frames_lengths_add_up(frame, rate, fps):
    step = sample_at(frame + 1, rate, fps) - sample_at(frame, rate, fps)
    assert abs(step - rate / fps) <= 1.0
    assert abs(sample_at(frame, rate, fps) - frame * rate / fps) <= 0.51


def clicks(out, rate=RATE):
    """The loudest thing above 6 kHz at any moment (64 samples), against the median moment."""
    from numpy.lib.stride_tricks import sliding_window_view

    frames = sliding_window_view(out[0], 64)[::16] * np.hanning(64)
    power = (np.abs(np.fft.rfft(frames, axis=1)) ** 2)[:, int(6000 / rate * 64) :].sum(1)
    return float(power.max() / (np.abs(np.fft.rfft(frames, axis=1)) ** 2).sum(1).max())


def two(phase, shared=RATE // 10, hertz=440.0, joined=True):
    """Two tones of another phase or pitch that meet."""
    old, new = tone(0, RATE), tone(0, RATE, hertz, phase)
    start = RATE - shared
    if joined:
        return join_sounds([(0, old), (start, new)], start + RATE, RATE)
    middle = start + shared // 2
    return np.concatenate([old[:, :middle], new[:, middle - start :]], 1)


@pytest.mark.parametrize(("phase", "hertz"), [(1.5, 440.0), (3.1, 440.0), (0.7, 553.0)])
def test_no_click_is_heard(phase, hertz):
    assert clicks(two(phase, hertz=hertz)) < 1e-5
    # What a plain cut does: the measure finds it.
    assert clicks(two(phase, hertz=hertz, joined=False)) > 1e-4


def test_chunks_that_share_nothing_do_not_click_either():
    old, new = tone(0, RATE, phase=1.0), tone(0, RATE, phase=2.0)
    out = join_sounds([(0, old), (RATE, new)], 2 * RATE, RATE)
    cut = np.concatenate([old, new], 1)
    assert clicks(out) < 0.02 * clicks(cut)
    away = np.flatnonzero(np.abs(out - cut).max(0) > 1e-6)
    assert away.min() > RATE - 60 and away.max() < RATE + 60


def test_loudness_stays():
    """Unrelated noises fade with equal power, alike ones without the bump that this would make."""
    noise = np.random.default_rng(0).normal(0.0, 0.1, (3, 400, 2, 480)).astype(np.float32)
    for mix, tolerance in ((0.0, 0.06), (0.5, 0.06), (1.0, 0.01)):
        power = []
        for common, a, b in zip(*noise):
            old = np.sqrt(mix) * common + np.sqrt(1 - mix) * a
            new = np.sqrt(mix) * common + np.sqrt(1 - mix) * b
            power.append(crossfade(old, new) ** 2)
        level = np.sqrt(np.mean(power, (0, 1)) / 0.01).reshape(12, 40).mean(1)
        assert np.abs(level - 1.0).max() < tolerance, (mix, level)


def test_only_the_fade_is_touched():
    old, new = tone(0, 4800), tone(0, 4800, 700.0)
    out = join_sounds([(0, old), (2400, new)], 7200, RATE)
    fade = round(FADE * RATE)
    middle = 2400 + (2400 - fade) // 2
    assert np.array_equal(out[:, :middle], old[:, :middle])
    assert np.array_equal(out[:, middle + fade :], new[:, middle + fade - 2400 :])


def test_sounds_are_made_to_fit():
    sound = tone(0, 1000)
    assert fit_sound(sound, 1000, RATE) is sound
    assert np.array_equal(fit_sound(sound, 900, RATE), sound[:, :900])
    longer = fit_sound(sound, 1200, RATE)
    assert longer.shape == (2, 1200) and not longer[:, 1000:].any()
    assert np.array_equal(longer[:, :900], sound[:, :900])
    assert np.abs(np.diff(longer[0])).max() < 1.1 * np.abs(np.diff(sound[0])).max()
    assert np.array_equal(sound, tone(0, 1000))  # the caller's is untouched


def test_silence_and_what_cannot_be_joined():
    nothing = np.zeros((1, 100), np.float32)
    assert not join_sounds([(0, nothing), (50, nothing)], 150, RATE).any()
    with pytest.raises(UsageError, match="starts at sample 120, the sound before it ends at 100"):
        join_sounds([(0, nothing), (120, nothing)], 220, RATE)
    with pytest.raises(UsageError, match="2 channels of sound, the first 1"):
        join_sounds([(0, nothing), (50, tone(0, 100))], 150, RATE)
    with pytest.raises(UsageError, match="ends at sample 100 of 150"):
        join_sounds([(0, nothing)], 150, RATE)
    with pytest.raises(UsageError, match="no chunk has a sound"):
        join_sounds([], 150, RATE)
