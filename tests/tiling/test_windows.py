"""Windows over time."""

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from h3video.errors import UsageError
from h3video.models import WAN
from h3video.models.minimax_h3 import MINIMAX_H3
from h3video.tiling.windows import plan_windows


@given(
    st.integers(1, 200),
    st.integers(1, 60),
    st.integers(0, 20),
    st.sampled_from(["fused", "frozen"]),
)
def test_weights_sum_to_one_at_every_frame(total, length, overlap, mode):
    if overlap >= length:
        return
    windows = plan_windows(total, length, overlap, mode, WAN)
    sums = [0.0] * total
    for window in windows:
        assert window.length == len(window.weights) == min(length, total)
        assert window.start >= 0 and window.start + window.length <= total
        for j, weight in enumerate(window.weights):
            assert 0.0 <= weight <= 1.0
            sums[window.start + j] += weight
    assert sums == pytest.approx([1.0] * total)
    for a, b in itertools.pairwise(windows):
        assert a.start + a.length - b.start >= overlap


@given(st.integers(0, 40), st.integers(2, 60), st.integers(0, 10))
def test_minimax_h3_windows_are_clips_it_could_make(k, length, overlap):
    total = 5 * k + 2
    try:
        windows = plan_windows(total, length, overlap, "fused", MINIMAX_H3)
    except UsageError as e:
        assert "advance" in str(e) or "too short" in str(e)
        return
    for window in windows:
        assert window.length % 5 == 2 and window.start % 5 == 0


@pytest.mark.parametrize("window", [None, 0, 12, 99])
def test_one_window_holds_a_short_clip(window):
    (only,) = plan_windows(12, window, 3, "fused", MINIMAX_H3)
    assert (only.start, only.length, set(only.weights)) == (0, 12, {1.0})


def test_what_cannot_be():
    with pytest.raises(UsageError, match="use at least 7"):
        plan_windows(12, 1, 0, "fused", MINIMAX_H3)
    with pytest.raises(UsageError, match="use a window_overlap of at most 2"):
        plan_windows(12, 7, 4, "fused", MINIMAX_H3)


def test_a_fused_overlap_has_no_steps():
    windows = plan_windows(40, 16, 6, "fused", WAN)
    for window in windows:
        steps = [abs(b - a) for a, b in itertools.pairwise(window.weights)]
        assert max(steps) < 0.35
