"""Weights of hexagons against an independent definition: distances to six segments."""

import math
import time

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from h3video import h3


def signed_distance(x, y, cx, cy, inradius, theta):
    """To a regular hexagon's outline, inside positive, by its corners alone."""
    radius = inradius * 2 / math.sqrt(3)
    corners = [
        (cx + radius * math.cos(theta + math.radians(60 * k + 30)),
         cy + radius * math.sin(theta + math.radians(60 * k + 30)))
        for k in range(6)
    ]  # fmt: skip
    best, inside = math.inf, True
    for (ax, ay), (bx, by) in zip(corners, corners[1:] + corners[:1]):
        ex, ey, px, py = bx - ax, by - ay, x - ax, y - ay
        t = min(1.0, max(0.0, (px * ex + py * ey) / (ex * ex + ey * ey)))
        best = min(best, math.hypot(px - t * ex, py - t * ey))
        inside &= ex * py - ey * px >= 0
    return best if inside else -best


def lattice(inradius, theta, n, shift=(0.0, 0.0)):
    a, b = theta, theta + math.pi / 3
    return [
        (shift[0] + 2 * inradius * (q * math.cos(a) + r * math.cos(b)),
         shift[1] + 2 * inradius * (q * math.sin(a) + r * math.sin(b)))
        for q in range(-n, n + 1) for r in range(-n, n + 1)
    ]  # fmt: skip


def both(*arguments):
    for name in ("native", "pure"):
        with h3.use_backend(name):
            yield h3.hex_weights(*arguments)


@given(
    st.integers(1, 12), st.integers(1, 12), st.floats(0.3, 6.0), st.floats(3.0, 30.0),
    st.floats(-4, 4), st.floats(0.01, 1.0), st.floats(-20, 20), st.floats(-20, 20),
)  # fmt: skip
@settings(max_examples=40, deadline=None)
def test_by_the_definition(columns, rows, step, inradius, theta, fade, x0, y0):
    overlap = fade * 2 * inradius
    cells = lattice(inradius, theta, 3)
    cx, cy = zip(*cells)
    for index, weight in both(columns, rows, x0, y0, step, cx, cy, inradius, theta, overlap):
        assert index.shape == weight.shape == (columns * rows, 4)
        assert np.isfinite(weight).all()
        assert np.abs(weight.sum(1, dtype=np.float64) - 1).max() < 1e-6
        assert (np.diff(weight, axis=1) <= 0).all() and ((index < 0) == (weight == 0)).all()
        for p in range(columns * rows):
            x, y = x0 + (p % columns + 0.5) * step, y0 + (p // columns + 0.5) * step
            t = [
                min(1.0, max(0.0, signed_distance(x, y, a, b, inradius, theta) / overlap + 0.5))
                for a, b in cells
            ]
            w = [v * v * (3 - 2 * v) for v in t]
            if sum(w) < 1e-9:
                continue  # beyond the cells: the nearest has it, tested below
            got = np.zeros(len(cells))
            got[index[p][index[p] >= 0]] = weight[p][index[p] >= 0]
            assert np.abs(got - np.array(w) / sum(w)).max() < 1e-6


@pytest.mark.parametrize("overlap", [0.0, 3.0, 8.0])
def test_a_point_that_no_cell_covers_goes_to_the_nearest(overlap):
    cx, cy = zip(*lattice(4.0, 0.3, 1, (20.0, 20.0)))
    for index, weight in both(40, 30, -60.0, -70.0, 5.0, cx, cy, 4.0, 0.3, overlap):
        for p in range(0, 1200, 7):
            x, y = -60 + (p % 40 + 0.5) * 5, -70 + (p // 40 + 0.5) * 5
            d = [math.hypot(x - a, y - b) for a, b in zip(cx, cy)]
            if min(d) > 4.0 * 2 / math.sqrt(3) + overlap / 2 or overlap == 0.0:
                assert d[index[p, 0]] == pytest.approx(min(d), abs=1e-12)
                assert weight[p].tolist() == [1, 0, 0, 0]


def test_ties_of_a_hard_partition_go_to_the_lower_cell():
    for order in ([0.0, 10.0], [10.0, 0.0]):
        for index, _ in both(1, 1, 4.5, -0.5, 1.0, order, [0.0, 0.0], 5.0, 0.0, 0.0):
            assert index[0, 0] == 0


@given(st.integers(1, 300), st.integers(1, 200), st.floats(0.001, 1.0))
@settings(max_examples=15, deadline=None)
def test_sums_over_random_frames(width, height, fade):
    with h3.use_backend("native"):
        cx, cy = zip(*lattice(12.0, 0.7, 12, (width / 2, height / 2)))
        index, weight = h3.hex_weights(
            width, height, 0.0, 0.0, 1.0, cx, cy, 12.0, 0.7, fade * 24.0
        )
        assert np.abs(weight.sum(1, dtype=np.float64) - 1).max() < 1e-6
        assert (weight[:, 0] > 0).all() and (index[:, 0] >= 0).all()


def test_thousands_of_cells_take_no_longer(library):
    """Work per point does not grow with the number of cells."""
    seconds = []
    with h3.use_backend("native"):
        for n in (5, 50):  # 121 and 10,201 cells
            cx, cy = zip(*lattice(60.0 / n, 0.2, n, (256.0, 256.0)))
            times = []
            for _ in range(3):
                start = time.process_time()
                h3.hex_weights(256, 256, 0.0, 0.0, 2.0, cx, cy, 400.0 / n, 0.2, 200.0 / n)
                times.append(time.process_time() - start)
            seconds.append(min(times))
    assert seconds[1] < 8 * seconds[0] + 0.05


def test_one_row_of_cells_far_apart(library):
    for index, _ in both(3, 1, 0.0, 0.0, 1.0, [0.0, 1e11], [0.0, 0.0], 1e-3, 0.0, 1e-4):
        assert index[:, 0].tolist() == [0, 0, 0]
