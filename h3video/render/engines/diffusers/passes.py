"""One forward pass of a diffusers transformer on token tiles."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Collection
from typing import TYPE_CHECKING, Any

from torch import Tensor

from ....errors import UsageError
from ....tiling.fuse import Streams, TileRunner
from ....tiling.guide import shrink_factor
from ....tiling.table import Tables, Tile
from ....tiling.tokens import TokenPlan
from .families.base import Args, Family
from .offload import held
from .rows import Rows, norm_by_rows, projection_by_rows

if TYPE_CHECKING:
    from .attach import HexTiling


class Signature:
    """A method's arguments by name, and back: the wrapped method never sees the difference."""

    def __init__(self, owner: Any) -> None:
        self._signature = inspect.signature(type(owner).forward)
        self._owner = owner

    def arguments(self, args: tuple[Any, ...], kwargs: Args, defaults: bool = False) -> Args:
        """By name, without self."""
        bound = self._signature.bind(self._owner, *args, **kwargs)
        if defaults:
            bound.apply_defaults()
        named = dict(bound.arguments)
        named.pop("self")
        return named

    def call(self, function: Callable[..., Any], arguments: Args) -> Any:
        """Call with arguments by name."""
        ordered = {"self": self._owner}
        ordered |= {n: arguments[n] for n in self._signature.parameters if n in arguments}
        bound = inspect.BoundArguments(self._signature, ordered)  # type: ignore[arg-type]
        return function(*bound.args[1:], **bound.kwargs)


class Pass:
    """The runner of one forward pass, made at its first block.

    on_tile   called with the share of the pass that was done
    spent     embeddings that nothing reads once the first block has its tiles
    """

    def __init__(
        self, family: Family, plan: TokenPlan, tables: Tables, blocks: int, accumulate: str,
        on_tile: Callable[[float], None], measure: bool,
    ) -> None:  # fmt: skip
        self.family = family
        self.plan = plan
        self.tables = tables
        self.blocks = blocks
        self.accumulate = accumulate
        self.on_tile = on_tile
        self.measure = measure
        self.runner: TileRunner | None = None
        self.spent: list[Tensor] = []
        self._signature: Signature | None = None

    def start(self, kind: str, args: Args) -> TileRunner:
        """The runner; the first caller's arguments decide the sequences."""
        if self.runner is None:
            sequences = self.family.sequences(kind, args)
            table = self.tables.get(self.plan, sequences, args["hidden_states"].device)
            self.runner = TileRunner(table, on_tile=self.on_tile, accumulate=self.accumulate)
            self.runner.measure = self.measure
        return self.runner

    def block(self, i: int, kind: str, signature: Signature, original: Any, args: Args) -> Any:
        """Block i on all tiles: what the host expects back."""
        family, runner = self.family, self.start(kind, args)
        last = i == self.blocks - 1

        def one(tile: Tile, states: Streams) -> Streams:
            mine = family.tile_args(kind, args, tile, states)
            return family.after(i, tile, family.result(signature.call(original, mine)))

        release = with_bases((*family.releasable(args), *self.spent)) if i == 0 else []
        self.spent = []
        streams = family.read(kind, args)
        out: dict[str, Any] = dict(
            runner.block(streams, one, 1.0 / self.blocks, last, release=release)
        )
        if last:
            out["img"] = Rows(out["img"])
        return family.reply(out)

    def side(self, j: int, signature: Signature, original: Any, args: Args) -> Any:
        """A block of VACE's own."""
        self._signature = signature
        return self.family.side_block(j, self, original, args)  # type: ignore[attr-defined]

    def call(self, original: Any, args: Args) -> Any:
        """A side block with arguments by name."""
        assert self._signature is not None
        return self._signature.call(original, args)

    def away(self, value: Tensor) -> Tensor:
        """To where states wait between blocks."""
        return value.to("cpu") if self.accumulate == "cpu" else value

    def here(self, value: Tensor) -> Tensor:
        """And back."""
        assert self.runner is not None
        return value.to(self.runner.table.device)


def with_bases(values: Collection[Tensor]) -> list[Tensor]:
    """Tensors, and what they are views of: a layer's output often is one, even without gradients,
    and its base would keep the memory."""
    bases = [value._base for value in values]
    return [*values, *(base for base in bases if base is not None)]


class TiledTransformer:
    """A transformer whose forward opens a pass, whose blocks run in it tile by tile."""

    def __init__(self, tiling: HexTiling, transformer: Any, family: type[Family]) -> None:
        if reason := family.lacking(transformer):
            raise UsageError(f"{type(transformer).__name__} has no tiles with {reason}")
        self.tiling = tiling
        self.transformer = transformer
        self.family = family
        self.video = tiling.family
        self.tables = Tables()
        self.current: Pass | None = None
        self._wrap()

    def _wrap(self) -> None:
        wrappers, transformer, family = self.tiling.wrappers, self.transformer, self.family
        wrappers.wrap(transformer, "forward", self._forward)
        for i, (kind, block) in enumerate(family.blocks(transformer)):
            wrappers.wrap(block, "forward", self._block(i, kind, block))
        for j, block in enumerate(getattr(family, "side_blocks", lambda t: [])(transformer)):
            wrappers.wrap(block, "forward", self._side_block(j, block))
        wrappers.wrap(transformer.norm_out, "forward", norm_by_rows(family.norm_arguments))
        for name in family.embeddings:
            wrappers.wrap(getattr(transformer, name), "forward", self._embedding)
        for name in family.projections:
            wrappers.wrap(getattr(transformer, name), "forward", projection_by_rows)

    def _forward(self, original: Any) -> Any:
        signature = Signature(self.transformer)

        def forward(*args: Any, **kwargs: Any) -> Any:
            tiling = self.tiling
            if not tiling.in_range():
                tiling.say_once("steps outside start_step..end_step see the full frame")
                return self._whole(original, args, kwargs)
            named = signature.arguments(args, kwargs, defaults=True)
            family = self.family(self.transformer, named, self.video)
            plan = tiling.plan(*family.frame(), family.shape(), named.get("timestep"))
            if plan.single:
                return self._whole(original, args, kwargs)
            check_hooks(self.transformer)
            if family.audio:
                tiling.say_once(f"sound: {family.audio}")
            out = self._tiled(original, args, kwargs, family, plan)
            if tiling.guided():
                return self._guided(original, signature, family, tiling.largest or plan, out)
            return out

        return forward

    def _guided(
        self, original: Any, signature: Signature, family: Family, plan: TokenPlan, out: Any
    ) -> Any:
        """The tiles' prediction, led by one of the whole frame at the size of a tile."""
        guide = family.guide(self._sigma(family), shrink_factor(plan))
        self.tiling.say_once(
            f"guided steps predict the frame again at 1/{guide.shrink.factor} of its size"
        )
        small = signature.call(original, family.small_args(guide))
        velocity = guide.lead(_velocity(out), _velocity(small))
        if isinstance(out, tuple):
            return velocity, *out[1:]
        out.sample = velocity
        return out

    def _sigma(self, family: Family) -> Tensor:
        time = family.arguments["timestep"]
        return time.float() / self.tiling.train_steps

    def _whole(self, original: Any, args: Any, kwargs: Any) -> Any:
        out = original(*args, **kwargs)
        self.tiling.report("denoise", 1.0)
        return out

    def _tiled(self, original: Any, args: Any, kwargs: Any, family: Family, plan: TokenPlan) -> Any:
        tiling = self.tiling
        self.current = run = Pass(
            family, plan, self.tables, len(self.family.blocks(self.transformer)),
            tiling.settings.accumulate, lambda share: tiling.report("denoise", share),
            tiling.measure,
        )  # fmt: skip
        try:
            return original(*args, **kwargs)
        finally:
            self.current = None
            if run.runner is not None:
                tiling.own_seconds += run.runner.own_seconds

    def _block(self, i: int, kind: str, block: Any) -> Callable[[Any], Any]:
        signature = Signature(block)

        def make(original: Any) -> Any:
            def forward(*args: Any, **kwargs: Any) -> Any:
                run = self.current
                if run is None:  # not in tiles, or outside a forward pass of the transformer
                    return original(*args, **kwargs)
                with held(block):
                    named = signature.arguments(args, kwargs)
                    return run.block(i, kind, signature, original, named)

            return forward

        return make

    def _embedding(self, original: Any) -> Any:
        def forward(x: Tensor) -> Tensor:
            out: Tensor = original(x)
            if self.current is not None:
                self.current.spent.append(out)
            return out

        return forward

    def _side_block(self, j: int, block: Any) -> Callable[[Any], Any]:
        signature = Signature(block)

        def make(original: Any) -> Any:
            def forward(*args: Any, **kwargs: Any) -> Any:
                run = self.current
                if run is None:
                    return original(*args, **kwargs)
                with held(block):
                    return run.side(j, signature, original, signature.arguments(args, kwargs))

            return forward

        return make


def _velocity(out: Any) -> Tensor:
    found: Tensor = out[0] if isinstance(out, tuple) else out.sample
    return found


def check_hooks(transformer: Any) -> None:
    """Raise UsageError for hooks that tiles would get wrong: they keep or split what blocks see."""
    for name, module in transformer.named_modules():
        registry = vars(module).get("_diffusers_hook")
        for hook in getattr(registry, "hooks", {}).values():
            if hook._is_stateful:
                raise UsageError(
                    f"{type(hook).__name__} on {name or 'the transformer'} keeps what a block saw "
                    "at an earlier call, which with tiles was another tile; call "
                    "transformer.disable_cache() or remove_hex_tiling(pipe)"
                )
            if "ContextParallel" in type(hook).__name__:
                raise UsageError(
                    f"{type(hook).__name__} on {name or 'the transformer'} splits the sequence "
                    "over devices, which has no tiles yet; use one device or no tiling"
                )
