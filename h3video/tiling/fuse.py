"""Run a transformer's blocks on token tiles, block-major: each block on every tile, then the next.

Weights are read once per step, as without tiling. In between either the tiles'
own hidden states stay resident (exchange "step": the result is that of tiles
predicted apart and blended once) or the blended frame does (exchange "block":
tiles see each other's work after every block, and only one frame is resident).

The host (diffusers, ComfyUI) decides how a block is called; this file moves
tokens. With one tile nothing is moved at all, so the result is bit-identical.
"""

from __future__ import annotations

from collections.abc import Callable
from time import perf_counter
from typing import Any

import torch
from torch import Tensor

from .tokens import TokenPlan

BlockCall = Callable[[Tensor, Any, Any], Tensor]
"""call(hidden [B, n, d], per-token modulation or as given, rotary rows) -> hidden [B, n, d]"""


class BlockMajor:
    """One denoising step after another on the tiles of a plan.

    plan       what to run
    blocks     how many blocks the transformer has
    on_tile    called after each tile of each block with the share of a step it was, so that
               the calls of one forward pass add up to 1

    Call `block(i, ...)` for i = 0 .. blocks - 1 in order; `reset()` drops a half-run step.
    """

    def __init__(
        self, plan: TokenPlan, blocks: int, on_tile: Callable[[float], None] | None = None
    ) -> None:
        self.plan = plan
        self.blocks = blocks
        self.on_tile = on_tile
        self.own_seconds = 0.0
        self.measure = False
        self._device: torch.device | None = None
        self._index: list[Tensor] = []  # [n] token indices of the full sequence, per tile
        self._inside: list[Tensor] = []  # [m] positions inside the tile that carry weight
        self._target: list[Tensor] = []  # [m] their token indices
        self._weight: list[Tensor] = []  # [m, 1] float32
        self.reset()

    def reset(self) -> None:
        """Forget a step that was interrupted."""
        self._states: list[Tensor] = []

    @property
    def single(self) -> bool:
        """One tile that holds every token: no tiling at all."""
        return len(self.plan.tiles) == 1

    def block(
        self, i: int, call: BlockCall, hidden: Tensor, modulation: Any, rotary: Any
    ) -> Tensor:
        """Run block i on all tiles.

        hidden       [B, S, d] as the host passes it: read at block 0 (exchange "step") or at every
                     block (exchange "block")
        modulation   a tensor; gathered when its axis 1 is the token axis, else passed whole
        rotary       a tensor or tuple with the token axis at 1 ([1, S, 1, D]), gathered
        Returns [B, S, d]. Between the first and the last block of exchange "step" that is a
        placeholder without memory: the tiles' states are kept here.
        """
        if self.single:
            out = call(hidden, modulation, rotary)
            self._tick(1)
            return out
        started = perf_counter()
        self._prepare(hidden)
        if self.plan.exchange == "block":
            return self._exchange(i, call, hidden, modulation, rotary, started)
        if i == 0:
            self._states = [hidden.index_select(1, index) for index in self._index]
        tokens = hidden.shape[1]
        for k, index in enumerate(self._index):
            # Gathered for every block anew: kept for all tiles, the rotary rows of a narrow
            # model would be larger than its hidden states.
            rows = _rows(modulation, index, tokens), _rows(rotary, index, tokens)
            self._own(started)
            self._states[k] = call(self._states[k], *rows)
            started = perf_counter()
            self._tick(len(self._states))
        if i < self.blocks - 1:
            return hidden.new_zeros(()).expand(hidden.shape)
        started = perf_counter()
        blended = self._zeros(hidden)
        for k in range(len(self._states)):
            self._add(blended, k, self._states[k])
            self._states[k] = blended.new_empty(0)
        self.reset()
        out = blended.to(hidden.dtype)
        self._own(started)
        return out

    def _exchange(
        self, i: int, call: BlockCall, hidden: Tensor, modulation: Any, rotary: Any, started: float
    ) -> Tensor:
        blended = self._zeros(hidden)
        tokens = hidden.shape[1]
        for k, index in enumerate(self._index):
            state = hidden.index_select(1, index)
            rows = _rows(modulation, index, tokens), _rows(rotary, index, tokens)
            self._own(started)
            state = call(state, *rows)
            started = perf_counter()
            self._add(blended, k, state)
            self._tick(len(self._index))
        out = blended.to(hidden.dtype)
        self._own(started)
        return out

    def _zeros(self, hidden: Tensor) -> Tensor:
        return torch.zeros(hidden.shape, dtype=torch.float32, device=hidden.device)

    def _add(self, blended: Tensor, k: int, state: Tensor) -> None:
        # Indices of one tile are unique, so index_add_ is deterministic on every device.
        part = state.index_select(1, self._inside[k]).float() * self._weight[k]
        blended.index_add_(1, self._target[k], part)

    def _prepare(self, hidden: Tensor) -> None:
        """Index tensors on the device of the hidden states, once."""
        if hidden.shape[1] != self.plan.frame_tokens:
            raise RuntimeError(
                f"the transformer runs {hidden.shape[1]} tokens, the plan is for "
                f"{self.plan.frame_tokens} ({self.plan.columns}x{self.plan.rows} tokens x "
                f"{self.plan.latent_frames} latent frames)"
            )
        if self._device == hidden.device:
            return
        spatial, frames = self.plan.columns * self.plan.rows, self.plan.latent_frames
        starts = torch.arange(frames)[:, None] * spatial  # [T, 1]
        self._index, self._inside, self._target, self._weight = [], [], [], []
        for tile, weights in zip(self.plan.tiles, self.plan.weights()):
            tokens = torch.tensor(tile.tokens, dtype=torch.long)
            points = torch.as_tensor(weights.points, dtype=torch.long)
            place = torch.searchsorted(tokens, points)
            if not torch.equal(tokens[place.clamp(max=len(tokens) - 1)], points):
                raise RuntimeError("a tile has weight on a token that it does not run")
            steps = torch.arange(frames)[:, None] * len(tokens)
            device = hidden.device
            self._index.append((starts + tokens).reshape(-1).to(device))
            self._inside.append((steps + place).reshape(-1).to(device))
            self._target.append((starts + points).reshape(-1).to(device))
            weight = torch.as_tensor(weights.weight, dtype=torch.float32)
            self._weight.append(weight.repeat(frames)[:, None].to(device))
        self._device = hidden.device

    def _tick(self, tiles: int) -> None:
        if self.on_tile is not None:
            self.on_tile(1.0 / (tiles * self.blocks))

    def _own(self, started: float) -> None:
        if self.measure:
            self.own_seconds += perf_counter() - started


def _rows(value: Any, index: Tensor, tokens: int) -> Any:
    """The rows of a tile from anything that has the token axis at 1; other tensors as they are."""
    if isinstance(value, Tensor):
        by_token = value.ndim > 2 and value.shape[1] == tokens
        return value.index_select(1, index) if by_token else value
    if isinstance(value, (tuple, list)):
        return type(value)(_rows(v, index, tokens) for v in value)
    return value
