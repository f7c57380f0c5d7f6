"""Joining cells: a partition, never costlier than no joining, within the limit."""

from hypothesis import given
from hypothesis import strategies as st

from h3video.tiling.groups import group_cells


@given(st.lists(st.sets(st.integers(0, 30), min_size=1, max_size=12), min_size=1, max_size=12),
       st.integers(1, 40))  # fmt: skip
def test_groups_of_a_chain(reaches, limit):
    chain = [
        [j for j in (i - 1, i + 1) if 0 <= j < len(reaches)] for i in range(len(reaches))
    ]
    groups = group_cells(reaches, chain, limit, set.union, len)
    assert sorted(i for g in groups for i in g) == list(range(len(reaches)))
    assert groups == group_cells(reaches, chain, limit, set.union, len)

    def cost(gs):
        return len(gs) * max(len(set.union(*(reaches[i] for i in g))) for g in gs)

    assert cost(groups) <= cost([(i,) for i in range(len(reaches))])
    for g in groups:
        if len(g) > 1:
            assert len(set.union(*(reaches[i] for i in g))) <= limit
            assert list(g) == list(range(g[0], g[-1] + 1))  # joined along the chain


def test_a_sliver_joins_its_neighbour():
    reaches = [set(range(10)), set(range(10, 20)), {19, 20}]
    groups = group_cells(reaches, [[1], [0, 2], [1]], 12, set.union, len)
    assert groups == ((0,), (1, 2))
