"""Intervals: they hold what they should as often as they say."""

import numpy as np
import pytest

from benchmarks.quality.stats import Estimate, difference, mean, ratio


def test_a_constant_has_no_width():
    assert mean([3.0] * 20) == Estimate(3, 3, 3)
    assert ratio([2.0] * 20, [4.0] * 20) == Estimate(0.5, 0.5, 0.5)


def test_the_interval_holds_the_truth_about_95_times_in_100():
    rng = np.random.default_rng(0)
    held = 0
    for _ in range(300):
        e = mean(rng.normal(5, 2, 24))
        assert e.low < e.value < e.high
        held += e.low <= 5 <= e.high
    assert 0.89 < held / 300 < 0.98


def test_pairs_are_drawn_together():
    rng = np.random.default_rng(0)
    base = rng.uniform(1, 100, 24)
    tight = ratio(base * 0.5, base)
    assert tight.high - tight.low < 1e-9
    assert difference(base + 1, base).low == pytest.approx(1)


def test_what_has_no_interval_is_refused():
    with pytest.raises(ValueError, match="two seeds"):
        mean([1.0])
    with pytest.raises(ValueError, match="pairs"):
        ratio([1, 2], [1, 2, 3])


def test_text():
    assert str(Estimate(0.12345, 0.1, 0.2)) == "0.123 (0.100 to 0.200)"
    assert str(Estimate(12.345, 10, 20)) == "12.35 (10.00 to 20.00)"
