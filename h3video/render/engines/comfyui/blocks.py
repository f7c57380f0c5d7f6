"""One forward pass of a diffusion model on token tiles.

ComfyUI calls `patches_replace["dit"][("double_block", i)](args, {"original_block": f})` instead of
block i. Every block gets such a replacement for the one pass, around whatever replacement is there
already: it runs the block once per tile. Nothing outlives the pass.
"""

from __future__ import annotations

import contextlib
import inspect
from collections.abc import Callable, Collection, Iterator, Mapping
from typing import Any

import torch

from ....tiling.fuse import Streams, TileRunner
from ....tiling.table import Tables, Tile
from ....tiling.tokens import TokenPlan
from ..cut import in_chunks
from .families.base import Args, BlockKey, Family, replaced

PIECES = 4


class BlockPass:
    """The replacements of every block for one forward pass.

    family     the adapter of this pass
    plan       what to run;  exchange  step | block
    on_tile    called after each tile of each block with its share of the pass
    active     the plan's tiles that run, see TileRunner; None: all
    even       see TileRunner
    """

    def __init__(
        self, family: Family, plan: TokenPlan, tables: Tables, *, exchange: str, accumulate: str,
        on_tile: Callable[[float], None] | None = None, active: Mapping[int, float] | None = None,
        even: bool = False, measure: bool = False,
    ) -> None:  # fmt: skip
        self.family = family
        self.plan = plan
        self.tables = tables
        self.settings = {"on_tile": on_tile, "active": active, "accumulate": accumulate,
                         "exchange": exchange, "even": even}  # fmt: skip
        self.measure = measure
        self.keys = family.blocks()
        self.runner: TileRunner | None = None
        self._kind = ""

    def replacements(self, existing: Mapping[BlockKey, Any]) -> dict[BlockKey, Any]:
        """For `patches_replace["dit"]`."""
        return {**existing, **{k: self._replace(k, existing.get(k)) for k in self.keys}}

    def _replace(self, key: BlockKey, inner: Any) -> Any:
        def run(args: Args, extra: Args) -> Args:
            original = extra["original_block"]
            call = original if inner is None else lambda a: inner(a, {"original_block": original})
            return self._block(key, args, call)

        return run

    def _block(self, key: BlockKey, args: Args, call: Callable[[Args], Args]) -> Args:
        family, streams = self.family, self.family.read(key, args)
        runner = self._at(key, args, next(iter(streams.values())).device)

        def one(tile: Tile, states: Streams) -> Streams:
            return family.result(key, call(family.tile_args(key, args, tile, states)))

        block = block_of(call)
        with resident(block, runner), in_pieces(block, family.feed_forward):
            out = runner.block(
                streams, one, 1.0 / len(self.keys), last=key == self.keys[-1],
                release=family.releasable(key, args),
            )  # fmt: skip
        return {**family.reply(key, out)}

    def _at(self, key: BlockKey, args: Args, device: torch.device) -> TileRunner:
        """The runner, moved on to this kind of block."""
        if self.runner is None or key[0] != self._kind:
            table = self.tables.get(self.plan, self.family.sequences(key, args), device)
            if self.runner is None:
                self.runner = TileRunner(table, **self.settings)  # type: ignore[arg-type]
                self.runner.measure = self.measure
            else:
                self.runner.retable(table, self.family.join)
            self._kind = key[0]
        return self.runner


@contextlib.contextmanager
def resident(block: torch.nn.Module | None, runner: TileRunner) -> Iterator[None]:
    """Hold a block's weights on the device while its tiles run, so that they are fetched once.

    With weights that wait elsewhere, ComfyUI moves every layer's weight each time that the layer
    is called; a block is called once per tile.
    """
    if block is None:
        yield
        return
    device, moved = runner.table.device, []
    try:
        for module in block.modules():
            if hasattr(module, "_v"):  # ComfyUI's own pager keeps these
                continue
            for name, value in list(module._parameters.items()):
                if value is not None and value.device != device and value.device.type != "meta":
                    moved.append((module, name, value))
                    module._parameters[name] = _parameter(value, device)
        yield
    finally:
        for module, name, value in moved:
            module._parameters[name] = value


@contextlib.contextmanager
def in_pieces(block: torch.nn.Module | None, names: Collection[str]) -> Iterator[None]:
    """Run a block's feed-forward over a part of the tokens at a time.

    Its inner layer is several times as wide as the hidden states, the largest tensors of a block.
    """

    def make(original: Any) -> Any:
        def forward(x: Any) -> Any:
            axis = x.ndim - 2
            parts = [
                original(x.narrow(axis, a, b - a)) for a, b in in_chunks(x.shape[axis], PIECES)
            ]
            return torch.cat(parts, axis)

        return forward

    with contextlib.ExitStack() as stack:
        for name in names:
            layer = getattr(block, name, None)
            if isinstance(layer, torch.nn.Module):
                stack.enter_context(replaced(layer, "forward", make))
        yield


def _parameter(value: Any, device: torch.device) -> Any:
    there = value.detach().to(device)
    return torch.nn.Parameter(there, requires_grad=False) if type(there) is torch.Tensor else there


def block_of(call: Any) -> torch.nn.Module | None:
    """The module that a block replacement will call: a name in the closure of ComfyUI's wrapper."""
    seen: set[int] = set()
    waiting = [call]
    while waiting:
        function = waiting.pop()
        if id(function) in seen or not inspect.isfunction(function):
            continue
        seen.add(id(function))
        for cell in function.__closure__ or ():
            try:
                value = cell.cell_contents
            except ValueError:
                continue
            if isinstance(value, torch.nn.Module) and not hasattr(value, "diffusion_model"):
                return value
            waiting.append(value)
    return None
