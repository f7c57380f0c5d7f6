"""Sets of tokens: growing by a disc, and as bits."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from h3video.grid import hex_grid
from h3video.tiling.cover import as_array, as_bits, cover, dilate, joined, together


@given(
    st.integers(1, 12), st.integers(1, 12), st.floats(0, 30), st.integers(0, 2**32 - 1),
)  # fmt: skip
@settings(max_examples=60)
def test_growing_is_by_true_distance(columns, rows, radius, seed):
    sets = np.random.default_rng(seed).random((3, rows, columns)) < 0.15
    y, x = np.divmod(np.arange(rows * columns), columns)
    far = np.hypot(x[:, None] - x, y[:, None] - y)
    for one, grown in zip(sets, dilate(sets, radius)):
        want = far[:, one.ravel()].min(1, initial=np.inf) <= radius
        assert np.array_equal(grown.ravel(), want)


@given(st.lists(st.booleans(), min_size=1, max_size=70))
def test_bits_are_the_set(values):
    array = np.array(values)
    seen = as_bits(array)
    assert seen[1] == sum(values)
    assert np.array_equal(as_array(seen, len(values)), array)


@pytest.mark.parametrize("origin", [(0.0, 0.0), (17.0, -30.0)])
def test_groups_cover_and_keep_to_the_limit(origin):
    grid = hex_grid(1280, 704, 4, 0.075, 20.0, origin)
    found = cover(grid, 80, 44, 16, 64.0, 48.0)
    limit = 2 * found.largest
    groups = joined(found, limit, sum)
    assert sorted(i for g in groups for i in g) == list(range(len(found.cells)))
    sizes = [together(found, g)[1] for g in groups]
    assert max(sizes) <= limit
    assert sum(sizes) < sum(count for _, count in found.seen)
