"""Means and ratios over seeds with bootstrap confidence intervals."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

RESAMPLES = 4000
LEVEL = 0.95


@dataclass(frozen=True)
class Estimate:
    """A figure with the interval that holds it in 95 of 100 repetitions."""

    value: float
    low: float
    high: float

    def __str__(self) -> str:
        return f"{_short(self.value)} ({_short(self.low)} to {_short(self.high)})"

    def to_json(self) -> dict[str, float]:
        """The estimate as plain data."""
        return {"value": self.value, "low": self.low, "high": self.high}


def mean(values: Sequence[float]) -> Estimate:
    """The mean over seeds."""
    v = np.asarray(values, float)
    return _interval(float(v.mean()), v[_draws(len(v))].mean(1))


def ratio(values: Sequence[float], base: Sequence[float]) -> Estimate:
    """Mean over mean, the two measured with the same seeds, which are drawn in pairs."""
    v, b = np.asarray(values, float), np.asarray(base, float)
    if v.shape != b.shape:
        raise ValueError(f"{len(v)} values against {len(b)}: pairs are needed")
    draws = _draws(len(v))
    return _interval(float(v.mean() / b.mean()), v[draws].mean(1) / b[draws].mean(1))


def difference(values: Sequence[float], base: Sequence[float]) -> Estimate:
    """Mean difference of pairs."""
    return mean(np.asarray(values, float) - np.asarray(base, float))


def _draws(count: int) -> Any:
    if count < 2:
        raise ValueError(f"an interval needs two seeds or more, not {count}")
    return np.random.default_rng(0).integers(0, count, (RESAMPLES, count))


def _interval(value: float, resampled: Any) -> Estimate:
    tail = 100.0 * (1.0 - LEVEL) / 2.0
    low, high = np.percentile(resampled, [tail, 100.0 - tail])
    return Estimate(value, float(low), float(high))


def _short(value: float) -> str:
    digits = 3 if abs(value) < 1 else 2 if abs(value) < 100 else 0
    return f"{value:.{digits}f}"
