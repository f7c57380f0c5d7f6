"""Sizes of tiles: the exact answer beside every possible one."""

import itertools

from hypothesis import given
from hypothesis import strategies as st

from h3video.tiling.sizes import fitting, size_classes, tokens_run


def cheapest(needed, most):
    """By trying all sets of sizes."""
    values = sorted(set(needed))
    return min(
        sum(fitting(n, sizes) for n in needed)
        for count in range(1, most + 1)
        for sizes in itertools.combinations(values, min(count, len(values)))
        if max(sizes) == values[-1]
    )


@given(st.lists(st.integers(1, 12), min_size=1, max_size=8), st.integers(1, 4))
def test_sizes_are_the_cheapest(needed, most):
    sizes = size_classes(needed, most)
    assert len(sizes) <= most
    assert list(sizes) == sorted(set(sizes), reverse=True)
    found = sum(fitting(n, sizes) for n in needed)
    assert found == cheapest(needed, most) == tokens_run(needed, most)
