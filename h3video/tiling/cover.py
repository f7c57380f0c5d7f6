"""Which tokens every tile must run, and which cells a tile takes.

A tile owns the tokens whose centres lie in its cells. It runs all tokens within the halo of one
that it owns, and all on which it has weight. Sets of tokens are Python integers with a bit a
token: the union of two is one operation, and so is their size.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from typing import Any

from ..blend.weights import Grid
from .groups import group_cells

Seen = tuple[int, int]
"""A set of tokens as the bits of a number, and how many they are."""

SLIVER = 1.15
"""Without a share joined cells may run this much more than the largest single cell."""

SLACK = 1e-6
"""Px that keep a token on the border inside on every machine."""


@dataclass(frozen=True)
class Cover:
    """A frame's cells with the tokens that each must run.

    cells        indices in the grid of the cells that own a token
    neighbours   for each of them its neighbours, by place in `cells`
    seen         what each must run
    owned        how many tokens each owns
    """

    cells: tuple[int, ...]
    neighbours: tuple[tuple[int, ...], ...]
    seen: tuple[Seen, ...]
    owned: tuple[int, ...] = ()

    @property
    def largest(self) -> int:
        """Tokens that the largest cell must run."""
        return max(count for _, count in self.seen)


def cover(
    grid: Grid, columns: int, rows: int, token_px: int, overlap: float, halo: float
) -> Cover:
    """The cells of a grid and what they must run, by the real weights."""
    import numpy as np

    index, weight = grid.sample_weights(columns, rows, float(token_px), overlap)
    owner = index[..., 0]  # slot 0 has the largest weight
    cells = [int(i) for i in np.unique(owner)]
    owned = owner[None] == np.asarray(cells)[:, None, None]
    seen = dilate(owned, (halo + SLACK) / token_px)
    for slot in range(index.shape[-1]):
        weighed = np.where(weight[..., slot] > 0.0, index[..., slot], -1)
        seen |= weighed[None] == np.asarray(cells)[:, None, None]
    place = {cell: i for i, cell in enumerate(cells)}
    near = tuple(tuple(place[j] for j in grid.neighbours[i] if j in place) for i in cells)
    counts = tuple(int(n) for n in owned.sum((1, 2)))
    return Cover(tuple(cells), near, tuple(as_bits(s) for s in seen), counts)


def dilate(sets: Any, radius: float) -> Any:
    """Sets of tokens grown by a disc of `radius` tokens: bool numpy [n, rows, columns]."""
    import numpy as np

    n, rows, columns = sets.shape
    if radius >= math.hypot(rows, columns):
        return np.broadcast_to(sets.any((1, 2), keepdims=True), sets.shape).copy()
    until = np.zeros((n, rows, columns + 1), np.int32)
    np.cumsum(sets, axis=2, dtype=np.int32, out=until[:, :, 1:])
    out = np.zeros_like(sets)
    x = np.arange(columns)
    for dy, reach in enumerate(disc(radius, rows)):
        wide = np.minimum(x + reach + 1, columns), np.maximum(x - reach, 0)
        grown = until[:, :, wide[0]] > until[:, :, wide[1]]
        out[:, dy:] |= grown[:, : rows - dy]
        out[:, : rows - dy] |= grown[:, dy:]
    return out


def disc(radius: float, most: int) -> list[int]:
    """Half widths of a disc's rows 0, 1, 2, ..., at most `most` of them, in tokens."""
    return [int(math.sqrt(radius**2 - dy**2)) for dy in range(min(int(radius), most - 1) + 1)]


def as_bits(tokens: Any) -> Seen:
    """A bool array of tokens as a number with a bit a token, and their number."""
    import numpy as np

    bits = int.from_bytes(np.packbits(tokens, bitorder="little").tobytes(), "little")
    return bits, bits.bit_count()


def as_array(seen: Seen, spatial: int) -> Any:
    """The set as a bool numpy array [spatial]."""
    import numpy as np

    data = seen[0].to_bytes(-(-spatial // 8), "little")
    return np.unpackbits(np.frombuffer(data, np.uint8), count=spatial, bitorder="little") > 0


Cost = Callable[[Sequence[int]], Any]
"""What a plan costs whose tiles need so many tokens each: anything that can be compared."""


def joined(
    found: Cover, limit: int, cost: Cost, ways: Sequence[bool] = (False, True)
) -> tuple[tuple[int, ...], ...]:
    """Groups of cells (places in `cells`) that cost least, none of more than `limit` tokens.

    ways   orders in which pairs are joined that are tried, see group_cells
    """

    def price(tiles: Collection[Seen]) -> Any:
        return cost([count for _, count in tiles])

    tried = [
        group_cells(
            found.seen, found.neighbours, limit, _both, lambda seen: seen[1], price, by_saving
        )
        for by_saving in ways
    ]
    return min(tried, key=lambda groups: price([together(found, g) for g in groups]))


def together(found: Cover, group: Sequence[int]) -> Seen:
    """What a tile of some cells must run."""
    bits = 0
    for i in group:
        bits |= found.seen[i][0]
    return bits, bits.bit_count()


def _both(a: Seen, b: Seen) -> Seen:
    bits = a[0] | b[0]
    return bits, bits.bit_count()
