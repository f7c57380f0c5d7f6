"""The choice of switch frames against trying them all."""

import itertools
import random

from hypothesis import given, settings
from hypothesis import strategies as st

from h3video.grid import hex_grid
from h3video.tiling.switch import switch_frames, total_cost


@st.composite
def problems(draw):
    cells, frames = draw(st.sampled_from([(1, 5), (2, 5), (3, 4), (4, 3), (6, 2), (5, 1), (3, 0)]))
    cost = st.integers(0, 40)
    costs = draw(st.lists(st.lists(cost, min_size=frames + 1, max_size=frames + 1),
                          min_size=cells, max_size=cells))  # fmt: skip
    pairs = list(itertools.combinations(range(cells), 2))
    tied = draw(st.lists(st.booleans(), min_size=len(pairs), max_size=len(pairs)))
    tie = st.lists(st.integers(0, 15), min_size=frames, max_size=frames)
    return costs, {pair: draw(tie) for pair, on in zip(pairs, tied) if on}


@given(problems())
@settings(max_examples=300, deadline=None)
def test_no_choice_is_cheaper(problem):
    costs, borders = problem
    found = switch_frames(costs, borders)
    frames = len(costs[0]) - 1
    every = itertools.product(range(frames + 1), repeat=len(costs))
    least = min(total_cost(costs, borders, choice) for choice in every)
    assert total_cost(costs, borders, found) == least


def test_free_cells_take_their_own_best_and_the_latest_among_equals():
    assert switch_frames([[3, 1, 2], [0, 9, 0], [5, 5, 5]], {}) == [1, 2, 2]


def test_a_dear_border_makes_neighbours_switch_together():
    costs = [[0, 9, 9], [9, 9, 4]]
    assert switch_frames(costs, {}) == [0, 2]
    assert switch_frames(costs, {(0, 1): [9, 9]}) == [0, 0]


def test_no_cells_and_no_frames():
    assert switch_frames([], {}) == []
    assert switch_frames([[7], [7]], {(0, 1): []}) == [0, 0]


def test_on_a_grid_no_single_cell_and_no_pair_can_do_better():
    grid, frames = hex_grid(832, 480, 4), 9
    dice = random.Random(7)
    costs = [[dice.randrange(1000) for _ in range(frames + 1)] for _ in grid.cells]
    borders = {
        (i, j): [dice.randrange(120) for _ in range(frames)]
        for i, near in enumerate(grid.neighbours) for j in near if j > i
    }  # fmt: skip
    found = switch_frames(costs, borders)
    least = total_cost(costs, borders, found)
    for i in range(len(costs)):
        for s in range(frames + 1):
            assert total_cost(costs, borders, [*found[:i], s, *found[i + 1 :]]) >= least
    for i, j in list(borders)[::7]:
        for s, t in itertools.product(range(frames + 1), repeat=2):
            other = list(found)
            other[i], other[j] = s, t
            assert total_cost(costs, borders, other) >= least
