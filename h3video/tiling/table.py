"""The index tensors of a plan's tiles on one device, for one set of sequences."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from .sequence import Sequence, TileIndex, tile_index
from .shift import PLACES
from .tokens import TokenPlan
from .windows import TimeWindow


@dataclass(frozen=True)
class Tile:
    """One tile in one window.

    number     of the tile in the plan;  window   its frames and their weights
    area       the share of the clip that it owns; all areas sum to 1
    inside     places in its spatial tokens that carry weight: int64 [m]
    target     the same as places in the frame's spatial tokens: int64 [m]
    weight     float32 [m, 1]
    """

    number: int
    window: TimeWindow
    tokens: int
    area: float
    inside: Tensor
    target: Tensor
    weight: Tensor
    indices: Mapping[str, TileIndex]
    tensors: Mapping[str, Tensor]
    sequences: Mapping[str, Sequence]

    def total(self, name: str) -> int:
        """Tokens of the full sequence `name`."""
        return self.sequences[name].total

    def rows(self, name: str, value: Tensor, axis: int) -> Tensor:
        """The tile's rows of a tensor that has sequence `name` along `axis`."""
        return value.index_select(axis, self.tensors[name])

    def length(self, name: str) -> int:
        """How many tokens of sequence `name` the tile takes."""
        return len(self.indices[name].index)

    def before(self, name: str, place: int) -> int:
        """How many of the tile's tokens come before `place` in the full sequence."""
        import numpy as np

        return int(np.searchsorted(self.indices[name].index, place))

    def frames(self, name: str) -> list[int]:
        """The latent frames that the tile takes, counted over all spans of the sequence."""
        out: list[int] = []
        at = 0
        for piece in self.indices[name].pieces:
            out += range(at + piece.first, at + piece.first + piece.frames)
            at += piece.span.frames
        return out


class TileTable:
    """All tiles of a plan, window after window, for sequences by name."""

    def __init__(
        self, plan: TokenPlan, sequences: Mapping[str, Sequence], device: torch.device | str
    ) -> None:
        self.plan = plan
        self.sequences = dict(sequences)
        self.device = torch.device(device)
        for name, sequence in self.sequences.items():
            sequence.check(plan, f"the sequence {name!r}")
        self.tiles = self._build()

    def matches(
        self, plan: TokenPlan, sequences: Mapping[str, Sequence], device: torch.device
    ) -> bool:
        """Whether this table serves."""
        same = self.plan is plan and self.device == device
        return same and self.sequences == dict(sequences)

    def _build(self) -> tuple[Tile, ...]:
        import numpy as np

        spatial = self.plan.columns * self.plan.rows
        tiles = []
        for number, (tile, weights) in enumerate(zip(self.plan.tiles, self.plan.weights())):
            tokens = np.asarray(tile.tokens, np.int64)
            place = np.searchsorted(tokens, weights.points)
            if not np.array_equal(tokens[np.minimum(place, len(tokens) - 1)], weights.points):
                raise RuntimeError("a tile has weight on a token that it does not run")
            owned = float(np.asarray(weights.weight, np.float64).sum()) / spatial
            shared = (
                self._put(place), self._put(weights.points),
                torch.as_tensor(weights.weight, dtype=torch.float32)[:, None].to(self.device),
            )  # fmt: skip
            for window in self.plan.windows:
                span = (window.start, window.length)
                indices = {
                    name: tile_index(sequence, spatial, tokens, span)
                    for name, sequence in self.sequences.items()
                }
                area = owned * sum(window.weights) / self.plan.latent_frames
                once = {self.sequences[name]: self._put(i.index) for name, i in indices.items()}
                tensors = {name: once[self.sequences[name]] for name in indices}
                tiles.append(
                    Tile(number, window, len(tokens), area, *shared, indices, tensors,
                         self.sequences)
                )  # fmt: skip
        # Window after window: a window's tiles are neighbours in time, too.
        count = len(self.plan.windows)
        return tuple(tiles[k] for j in range(count) for k in range(j, len(tiles), count))

    def _put(self, values: Any) -> Tensor:
        return torch.as_tensor(values, dtype=torch.long).to(self.device)


class Tables:
    """The last few index tables, so that steps and prompts do not build them anew."""

    def __init__(self, most: int = 4 * PLACES) -> None:  # prompts of four lengths or models
        self.most = most
        self._tables: list[TileTable] = []

    def get(
        self, plan: TokenPlan, sequences: Mapping[str, Sequence], device: torch.device
    ) -> TileTable:
        """The table for these, made if need be."""
        for i, table in enumerate(self._tables):
            if table.matches(plan, sequences, device):
                self._tables.append(self._tables.pop(i))
                return table
        self._tables.append(TileTable(plan, sequences, device))
        del self._tables[: -self.most]
        return self._tables[-1]
