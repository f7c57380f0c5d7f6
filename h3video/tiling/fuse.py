"""Run a transformer's blocks on token tiles, block-major: each block on every tile, then the next.

Weights are read once per step, as without tiling. In between either the tiles'
own hidden states stay (exchange "step": the result is that of tiles predicted
apart and blended once) or the blended sequence does (exchange "block": tiles
see each other's work after every block, and only one frame is resident).

The host (diffusers, ComfyUI) decides how a block is called; this file moves
tokens. A host's states are streams by name, [B, tokens, channels] each.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from time import perf_counter

import torch
from torch import Tensor

from .table import Tile, TileTable
from .tokens import TokenPlan

Streams = dict[str, Tensor]
"""Hidden states by name: [B, tokens, channels]."""

BlockCall = Callable[[Tile, Streams], Streams]
"""call(tile, its states) -> its states after the block"""


class TileRunner:
    """One forward pass of a transformer on the tiles of a table.

    on_tile      called after each tile of each block with the share of the pass that it was
    accumulate   device | cpu: where states of exchange "step" wait between blocks
    active       numbers of the plan's tiles that run, each with its share in what all tiles have
                 in common (sound); None: all, by the area that they own. Where an inactive tile
                 has weight the result is not complete, and must not be used
    even         tiles count fully wherever they have weight, for one that is weighed later
    """

    def __init__(
        self,
        table: TileTable,
        *,
        on_tile: Callable[[float], None] | None = None,
        accumulate: str = "device",
        active: Mapping[int, float] | None = None,
        exchange: str | None = None,
        even: bool = False,
    ) -> None:
        self.table = table
        self.exchange = table.plan.exchange if exchange is None else exchange
        self.on_tile = on_tile
        self.accumulate = accumulate
        self.even = even
        self.own_seconds = 0.0
        self.measure = False
        self.done = False
        self.active = None if active is None else dict(active)
        self._states: list[Streams] = []
        self._shapes: dict[str, torch.Size] = {}

    @property
    def plan(self) -> TokenPlan:
        """The plan that is run."""
        return self.table.plan

    @property
    def tiles(self) -> list[Tile]:
        """The tiles that run."""
        tiles = self.table.tiles
        return [t for t in tiles if self.active is None or t.number in self.active]

    def block(
        self, streams: Streams, call: BlockCall, share: float, last: bool,
        release: Collection[Tensor] = (),
    ) -> Streams:  # fmt: skip
        """Run one block on all tiles.

        streams   what the host passes: read at the first block (exchange "step") or at every
                  block (exchange "block")
        share     of the pass that this block is
        last      whether to blend the tiles
        release   tensors that the host never reads again, though it keeps their names: their
                  memory is given back, that of the streams once all tiles have their rows. Later
                  blocks, too: a host may make placeholders real (joining text and frame)
        Returns full sequences. Before the last block of exchange "step" they are placeholders of
        the right shape without memory: the tiles' states are kept here.
        """
        started = self._now()
        if self.exchange == "block":
            return self._exchange(streams, call, share, last, started)
        read = [value for value in release if _within(value, streams)]
        for value in [value for value in release if not _within(value, streams)]:
            _release(value)
        if not self._states:
            self._gather(streams)
        streams.clear()
        for value in read:
            _release(value)
        for k, tile in enumerate(self.tiles):
            states = self._here(self._states[k])
            self._own(started)
            states = call(tile, states)
            started = self._now()
            self._states[k] = self._away(states)
            self._tick(share, tile)
        out = self._blend() if last else self.placeholders()
        self._own(started)
        return out

    def placeholders(self) -> Streams:
        """Zeros of the full sequences' shapes that take no memory."""
        some = next(iter(self._states[0].values()))
        zero = some.new_zeros((), device=self.table.device)
        return {name: zero.expand(shape) for name, shape in self._shapes.items()}

    def add(self, k: int, name: str, value: Tensor) -> None:
        """Add to the states of the k-th tile that runs, outside a block."""
        state = self._states[k][name]
        self._states[k][name] = state + value.to(state.device)

    def retable(self, table: TileTable, edit: Callable[[Streams], Streams]) -> None:
        """Go on with other sequences (text and frame become one, say) of the same tiles."""
        if self._states:
            for k, states in enumerate(self._states):  # in place: one tile's old states at a time
                self._states[k] = self._away(edit(self._here(states)))
            del states
            self._shapes = {}
            for name, state in self._states[0].items():
                total = table.sequences[name].total
                self._shapes[name] = torch.Size((state.shape[0], total, *state.shape[2:]))
        self.table = table

    def blend(self, name: str, states: list[Tensor]) -> Tensor:
        """One full sequence [B, S, d] from every active tile's rows [B, n, d]; empties the list."""
        tiles, first = self.tiles, states[0]
        total = self.table.sequences[name].total
        out = first.new_empty((first.shape[0], total, *first.shape[2:]), device=self.table.device)
        for _, start, length in tiles[0].indices[name].along:
            out[:, start : start + length] = self._mean(name, tiles, states, start, length)
        for place, piece in enumerate(tiles[0].indices[name].pieces):
            frames, spatial = piece.span.frames, self.plan.columns * self.plan.rows
            for begin, end, channels in _pieces(frames, out.shape[2]):
                at = piece.span.start + begin * spatial
                out[:, at : at + (end - begin) * spatial, channels] = self._sum(
                    name, tiles, states, place, begin, end, channels
                ).flatten(1, 2)
        states.clear()
        return out

    # -- the parts ---------------------------------------------------------------------------

    def _gather(self, streams: Streams) -> None:
        self._shapes = {name: value.shape for name, value in streams.items()}
        for name, value in streams.items():
            if value.shape[1] != self.table.sequences[name].total:
                raise RuntimeError(
                    f"the transformer runs {value.shape[1]} tokens of {name!r}, the plan is for "
                    f"{self.table.sequences[name].total} ({self.plan.columns}x{self.plan.rows} "
                    f"tokens x {self.plan.latent_frames} latent frames)"
                )
        self._states = [
            self._away({name: tile.rows(name, v, 1) for name, v in streams.items()})
            for tile in self.tiles
        ]

    def _exchange(
        self, streams: Streams, call: BlockCall, share: float, last: bool, started: float
    ) -> Streams:
        tiles = self.tiles
        self.done = last
        sums = {name: self._zeros(value) for name, value in streams.items()}
        means: dict[tuple[str, int], Tensor] = {}
        first: Streams = {}
        for tile in tiles:
            states = {name: tile.rows(name, v, 1) for name, v in streams.items()}
            self._own(started)
            states = call(tile, states)
            started = self._now()
            for name, state in states.items():
                self._spread(sums[name], name, tile, state)
                self._mix(means, first, name, tile, state)
            self._tick(share, tile)
        for (name, start), mean in means.items():
            sums[name][:, start : start + mean.shape[1]] = mean
        out = {name: value.to(streams[name].dtype) for name, value in sums.items()}
        self._own(started)
        return out

    def _spread(self, sums: Tensor, name: str, tile: Tile, state: Tensor) -> None:
        spatial = self.plan.columns * self.plan.rows
        for piece in tile.indices[name].pieces:
            rows = state[:, piece.offset : piece.offset + piece.frames * tile.tokens]
            rows = rows.unflatten(1, (piece.frames, tile.tokens))
            at = piece.span.start + piece.first * spatial
            to = sums[:, at : at + piece.frames * spatial].unflatten(1, (piece.frames, spatial))
            for frame in range(piece.frames):
                weight = self._weight(tile) * self._time_weight(tile, piece.span.target, frame)
                part = rows[:, frame].index_select(1, tile.inside).float() * weight
                to[:, frame].index_add_(1, tile.target, part)

    def _mix(
        self, means: dict[tuple[str, int], Tensor], first: Streams, name: str, tile: Tile,
        state: Tensor,
    ) -> None:  # fmt: skip
        total = self._total_area()
        for offset, start, length in tile.indices[name].along:
            rows = state[:, offset : offset + length].float()
            key = (name, start)
            if key not in means:
                means[key] = rows.clone()
                first[f"{name} {start}"] = rows
            else:
                means[key] += (self._area(tile) / total) * (rows - first[f"{name} {start}"])

    def _blend(self) -> Streams:
        self.done = True
        names = list(self._states[0])
        columns = {name: [s[name] for s in self._states] for name in names}
        self._states = []
        return {name: self.blend(name, columns[name]) for name in names}

    def _mean(
        self, name: str, tiles: list[Tile], states: list[Tensor], start: int, length: int
    ) -> Tensor:
        """The mean over tiles by the area that each owns, [B, length, d]; equal rows stay equal."""
        total = self._total_area()
        base: Tensor | None = None
        mean: Tensor | None = None
        for tile, state in zip(tiles, states):
            offset = next(o for o, s, _ in tile.indices[name].along if s == start)
            rows = state[:, offset : offset + length].to(self.table.device).float()
            if base is None or mean is None:
                base, mean = rows, rows.clone()
            else:
                mean += (self._area(tile) / total) * (rows - base)
        assert mean is not None
        return mean

    def _sum(
        self, name: str, tiles: list[Tile], states: list[Tensor], place: int, begin: int, end: int,
        channels: slice,
    ) -> Tensor:  # fmt: skip
        """Some frames and channels of a span blended: float32 [B, frames, spatial, channels]."""
        spatial = self.plan.columns * self.plan.rows
        like = states[0]
        shape = (like.shape[0], end - begin, spatial, channels.stop - channels.start)
        out = torch.zeros(shape, dtype=torch.float32, device=self.table.device)
        for tile, state in zip(tiles, states):
            piece = tile.indices[name].pieces[place]
            low, high = max(begin, piece.first), min(end, piece.first + piece.frames)
            if low >= high:
                continue
            at = piece.offset + (low - piece.first) * tile.tokens
            rows = state[:, at : at + (high - low) * tile.tokens, channels].to(self.table.device)
            rows = rows.unflatten(1, (high - low, tile.tokens)).index_select(2, tile.inside)
            weights = [
                self._time_weight(tile, piece.span.target, f - piece.first)
                for f in range(low, high)
            ]
            weight = self._weight(tile)
            if any(w != 1.0 for w in weights):
                times = torch.tensor(weights, dtype=torch.float32, device=self.table.device)
                weight = times[:, None, None] * weight
            # Places of one tile are unique, so index_add_ is deterministic on every device.
            out[:, low - begin : high - begin].index_add_(2, tile.target, rows.float() * weight)
        return out

    def _weight(self, tile: Tile) -> Tensor:
        return torch.ones_like(tile.weight) if self.even else tile.weight

    def _time_weight(self, tile: Tile, target: bool, frame: int) -> float:
        if target:
            return tile.window.weights[frame]
        return sum(tile.window.weights) / self.plan.latent_frames  # a condition: every window

    def _area(self, tile: Tile) -> float:
        if self.active is None:
            return tile.area
        frames = sum(tile.window.weights) / self.plan.latent_frames
        return self.active[tile.number] * frames

    def _total_area(self) -> float:
        return sum(self._area(tile) for tile in self.tiles)

    def _zeros(self, like: Tensor) -> Tensor:
        return torch.zeros(like.shape, dtype=torch.float32, device=like.device)

    def _here(self, states: Streams) -> Streams:
        if self.accumulate == "device":
            return states
        return {name: value.to(self.table.device) for name, value in states.items()}

    def _away(self, states: Streams) -> Streams:
        if self.accumulate == "device":
            return states
        return {name: value.to("cpu") for name, value in states.items()}

    def _tick(self, share: float, tile: Tile) -> None:
        if self.on_tile is not None:
            tokens = sum(t.tokens * t.window.length for t in self.tiles)
            self.on_tile(share * tile.tokens * tile.window.length / tokens)

    def _now(self) -> float:
        return perf_counter() if self.measure else 0.0

    def _own(self, started: float) -> None:
        if self.measure:
            self.own_seconds += perf_counter() - started


PIECES = 16
"""The float32 sum of everything at once would be the largest tensor of a step."""


def _pieces(frames: int, channels: int) -> Iterator[tuple[int, int, slice]]:
    """Frames and channels that are blended together, about a sixteenth of all."""
    step = max(1, frames // PIECES)
    wide = max(1, -(-channels * min(frames, PIECES) // PIECES)) if frames < PIECES else channels
    for begin in range(0, frames, step):
        for first in range(0, channels, wide):
            yield begin, min(begin + step, frames), slice(first, min(first + wide, channels))


def _within(value: Tensor, streams: Streams) -> bool:
    """Whether a tensor shares memory with one of the streams."""
    data = value.untyped_storage().data_ptr()
    return any(data == other.untyped_storage().data_ptr() for other in streams.values())


def _release(value: Tensor) -> None:
    """Give a tensor's memory back while the host keeps its name: it becomes zeros without memory.

    A host's local variable holds the frame's embedding until the first block has returned, a
    whole frame beside the tiles' copies.
    """
    if value.requires_grad:
        return
    zero = value.new_zeros(1)
    with torch.no_grad():
        try:
            value.set_(zero.untyped_storage(), 0, value.shape, (0,) * value.ndim)
        except RuntimeError:  # a view that autograd watches: only the saving is lost
            return


