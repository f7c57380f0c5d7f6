"""When each cell switches from one chunk to the next: the exact minimum over all cells at once.

Every cell has a cost for each frame that it could switch at, and every pair of neighbours a cost
for each frame in which one has switched and the other has not. The cheapest choice for all cells
is a minimum cut: one node says "cell c still shows the old chunk at frame f", a cell's nodes form
a chain that is cut where the cell switches, and neighbours' chains are tied frame by frame (a
graph cut through a video volume as Kwatra et al. 2003 make, with cells in place of pixels and one
switch per cell). Integers and standard library only, so the choice is the same on every machine.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence

Costs = Sequence[Sequence[int]]
Borders = Mapping[tuple[int, int], Sequence[int]]

MAX_NODES = 12_000
"""Cells x frames up to which the cut takes a second or two; callers thin out the frames beyond."""

_ENDLESS = 1 << 60


def switch_frames(costs: Costs, borders: Borders) -> list[int]:
    """The frame that every cell switches at, with the least total cost (see `total_cost`).

    costs     for every cell n + 1 whole numbers >= 0: the cost of switching at frame 0..n, where 0
              is "all of the overlap is new" and n "all of it is old"
    borders   for pairs of cells n whole numbers >= 0: the cost of every frame in which one of the
              two shows the new chunk and the other the old one

    Among equally cheap choices the one that switches latest.
    """
    if not costs:
        return []
    frames = len(costs[0]) - 1
    graph = _Graph(len(costs) * frames + 2)
    source, sink = len(costs) * frames, len(costs) * frames + 1
    if frames == 0:
        return [0] * len(costs)
    for cell, cost in enumerate(costs):
        first = cell * frames
        graph.tie(source, first, cost[0], 0)
        for f in range(1, frames):
            # Never from new to old again: the way back cannot be cut.
            graph.tie(first + f - 1, first + f, cost[f], _ENDLESS)
        graph.tie(first + frames - 1, sink, cost[frames], 0)
    for (a, b), tie in borders.items():
        for f in range(frames):
            if tie[f]:
                graph.tie(a * frames + f, b * frames + f, tie[f], tie[f])
    graph.saturate(source, sink)
    new = graph.reaches(sink)  # nodes that still reach the sink show the new chunk
    found = []
    for cell in range(len(costs)):
        chain = new[cell * frames : (cell + 1) * frames]
        found.append(chain.index(True) if True in chain else frames)
    return found


def total_cost(costs: Costs, borders: Borders, choice: Sequence[int]) -> int:
    """What a choice of switch frames costs."""
    own = sum(cost[s] for cost, s in zip(costs, choice))
    shared = 0
    for (a, b), tie in borders.items():
        low, high = sorted((choice[a], choice[b]))
        shared += sum(tie[low:high])
    return own + shared


class _Graph:
    """A flow network with residual capacities; edge e and its reverse are e and e ^ 1."""

    def __init__(self, nodes: int) -> None:
        self.out: list[list[int]] = [[] for _ in range(nodes)]
        self.to: list[int] = []
        self.free: list[int] = []

    def tie(self, a: int, b: int, there: int, back: int) -> None:
        """An edge a -> b of capacity `there`, and b -> a of capacity `back`."""
        self.out[a].append(len(self.to))
        self.out[b].append(len(self.to) + 1)
        self.to += (b, a)
        self.free += (there, back)

    def saturate(self, source: int, sink: int) -> None:
        """Push as much as goes from source to sink (Dinic 1970: shortest paths, phase by phase)."""
        while True:
            level = self._levels(source, sink)
            if level[source] < 0:
                return
            self._phase(source, sink, level)

    def _levels(self, source: int, sink: int) -> list[int]:
        """Distance of every node to the sink along free edges, -1 where there is no way."""
        level = [-1] * len(self.out)
        level[sink] = 0
        queue = deque([sink])
        to, free = self.to, self.free
        while queue:
            node = queue.popleft()
            if node == source:
                break
            near = level[node] + 1
            for e in self.out[node]:
                other = to[e]
                if level[other] < 0 and free[e ^ 1]:
                    level[other] = near
                    queue.append(other)
        return level

    def _phase(self, source: int, sink: int, level: list[int]) -> None:
        """Push along paths that come one step closer to the sink with every edge."""
        to, free, out = self.to, self.free, self.out
        tried = [0] * len(out)
        path: list[int] = []
        node = source
        while True:
            if node == sink:
                amount = min(free[e] for e in path)
                cut = 0
                for i in range(len(path) - 1, -1, -1):
                    e = path[i]
                    free[e] -= amount
                    free[e ^ 1] += amount
                    if not free[e]:
                        cut = i
                node = to[path[cut] ^ 1]
                del path[cut:]
                continue
            edges, i, closer = out[node], tried[node], level[node] - 1
            while i < len(edges):
                e = edges[i]
                if free[e] and level[to[e]] == closer:
                    break
                i += 1
            tried[node] = i
            if i < len(edges):
                path.append(edges[i])
                node = to[edges[i]]
            elif path:
                node = to[path.pop() ^ 1]
                tried[node] += 1
            else:
                return

    def reaches(self, sink: int) -> list[bool]:
        """Which nodes have a way to the sink left."""
        seen = [False] * len(self.out)
        seen[sink] = True
        queue = deque([sink])
        while queue:
            node = queue.popleft()
            for e in self.out[node]:
                other = self.to[e]
                if not seen[other] and self.free[e ^ 1]:
                    seen[other] = True
                    queue.append(other)
        return seen
