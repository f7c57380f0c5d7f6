"""Which cells a tile owns: join neighbours as long as that saves work.

All tiles of a plan have one size, so a sliver at the frame's edge costs as much
as a whole cell, and every tile pays for a halo. Joining neighbours lowers
tiles x size until the joined tile itself sets the size.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Collection, Sequence
from typing import Any, TypeVar

Reach = TypeVar("Reach")


def group_cells(
    reaches: Sequence[Reach],
    neighbours: Sequence[Sequence[int]],
    limit: int,
    join: Callable[[Reach, Reach], Reach],
    size: Callable[[Reach], int],
    cost: Callable[[Collection[Reach]], Any] | None = None,
    by_saving: bool = False,
) -> tuple[tuple[int, ...], ...]:
    """Groups of neighbouring cells that minimise the work of all tiles.

    reaches      what a tile owning the cell must run (a token set, a box, ...)
    neighbours   for every cell the cells it touches
    limit        largest size that a joined tile may have
    join, size   the reach of two tiles together; the size of a reach
    cost         of a set of tiles, anything that can be compared; None: their number x the size of
                 the largest

    by_saving    which pair is joined next: the one that saves most, or whose union is smallest

    Greedy: joins pairs as long as a union stays within `limit`, and keeps the
    cheapest state met on the way. Deterministic.
    """
    groups: dict[int, tuple[int, ...]] = {i: (i,) for i in range(len(reaches))}
    reach = dict(enumerate(reaches))
    if cost is None:

        def cost(tiles: Collection[Reach]) -> int:
            return len(tiles) * max(map(size, tiles))

    near = {i: set(neighbours[i]) for i in groups}
    version = dict.fromkeys(groups, 0)

    heap: list[tuple[int, int, int, int, int]] = []

    def consider(i: int, j: int) -> None:
        a, b = min(i, j), max(i, j)
        union = size(join(reach[a], reach[b]))
        if union <= limit:
            rank = union - size(reach[a]) - size(reach[b]) if by_saving else union
            heapq.heappush(heap, (rank, a, b, version[a], version[b]))

    for i in groups:
        for j in near[i]:
            if i < j:
                consider(i, j)
    best_cost, best = cost(reach.values()), dict(groups)
    while heap:
        _, i, j, version_i, version_j = heapq.heappop(heap)
        if i not in groups or j not in groups:
            continue
        if (version[i], version[j]) != (version_i, version_j):
            continue
        groups[i] = tuple(sorted(groups[i] + groups.pop(j)))
        reach[i] = join(reach[i], reach.pop(j))
        near[i] = (near[i] | near.pop(j)) - {i, j}
        version[i] += 1
        for k in near[i]:
            near[k] = (near[k] - {j}) | {i}
            consider(i, k)
        work = cost(reach.values())
        if work < best_cost:
            best_cost, best = work, dict(groups)
    return tuple(best[i] for i in sorted(best))
