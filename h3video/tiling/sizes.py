"""How many tokens every tile runs, where a plan may have a few different sizes.

A size is one compiled graph, so there should be few; every size more lets small tiles run less.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

TILE_SIZES = 3
"""Different token counts that a plan may have by default.

Counted on 20 plans of 6 to 50 tiles: a second size saves 3.8 % of the tokens, a third 1.4 % more,
any number of further ones 1.5 % more. Metal and torch.compile make a graph for each size.
"""


def size_classes(needed: Iterable[int], most: int) -> tuple[int, ...]:
    """At most `most` sizes, largest first, such that the tiles run the fewest tokens.

    needed   tokens that each tile needs, at least one tile. It runs the smallest size that holds
             them, see `fitting`

    Exact: the sizes, sorted, are cut into runs, each of which takes its largest.
    """
    values, until = _counted(needed)
    n = len(values)
    # best[j]: tokens of the first j values, and where the last class begins
    layers = [[(values[0] * until[j], 0) for j in range(n + 1)]]
    for _ in range(min(most, n) - 1):
        before = layers[-1]
        layers.append([
            min((before[i][0] + values[i] * (until[j] - until[i]), i) for i in range(j))
            if j > 1 else before[j]
            for j in range(n + 1)
        ])  # fmt: skip
    ends, cuts = n, []
    for layer in reversed(layers):
        begin = layer[ends][1]
        cuts.append(values[begin])
        ends = begin
        if begin == 0:
            break
    return tuple(reversed(cuts))


def tokens_run(needed: Sequence[int], most: int) -> int:
    """Tokens of all tiles with at most `most` sizes; plans are compared by it, so it is quick."""
    if most == 1:
        return len(needed) * max(needed)
    values, until = _counted(needed)
    if most >= len(values):
        return sum(needed)
    n = len(values)
    best = [values[0] * until[j] for j in range(n + 1)]
    for layer in range(2, most + 1):
        lines = [(best[i] - values[i] * until[i], values[i]) for i in range(n)]
        if layer == most:
            return min(a + b * until[n] for a, b in lines)
        best = [0] + [min([a + b * until[j] for a, b in lines[:j]]) for j in range(1, n + 1)]
    raise AssertionError("unreachable")


def fitting(needed: int, sizes: Sequence[int]) -> int:
    """The smallest of the sizes that holds so many tokens."""
    return min(s for s in sizes if s >= needed)


def _counted(needed: Iterable[int]) -> tuple[list[int], list[int]]:
    """Different values, largest first, and how many tiles need the first 0, 1, 2, ... of them."""
    values: list[int] = []
    until = [0]
    for value in sorted(needed, reverse=True):
        if values and values[-1] == value:
            until[-1] += 1
        else:
            values.append(value)
            until.append(until[-1] + 1)
    return values, until
