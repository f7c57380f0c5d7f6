"""What every family's adapter says; the hook in blocks.py does the rest."""

from __future__ import annotations

import contextlib
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterator, Mapping
from typing import Any, ClassVar

from torch import Tensor

from .....errors import UsageError
from .....models.family import DenoiserShape, VideoFamily
from .....tiling.fuse import Streams, TileRunner
from .....tiling.guide import Guide, Shrink
from .....tiling.sequence import Sequence
from .....tiling.table import Tile

Args = dict[str, Any]
BlockKey = tuple[str, int]
"""("double_block", 3): the name by which ComfyUI knows a block."""


class Family(ABC):
    """The adapter of one forward pass.

    model       the diffusion model
    arguments   what its `_forward` was called with, by name
    """

    name: ClassVar[str]
    classes: ClassVar[tuple[str, ...]]
    """Class names in ComfyUI; subclasses without an entry of their own are taken for their base."""
    feed_forward: ClassVar[tuple[str, ...]] = ()
    """Names in a block of layers that see one token at a time and are wide inside."""
    placeless: ClassVar[tuple[str, ...]] = (
        "context", "transformer_options", "attention_mask", "guidance", "y", "clip_fea",
        "frame_rate", "txt_byt5", "disable_time_r",
    )
    """Arguments of the forward pass that belong to no place of the frame."""
    audio: ClassVar[str] = ""
    """What happens to sound, in one line for the log; empty where there is none."""

    def __init__(self, model: Any, arguments: Mapping[str, Any]) -> None:
        self.model = model
        self.arguments = arguments

    @classmethod
    def patch_of(cls, model: Any) -> int:
        """Latents that a token covers, each way."""
        patch = getattr(model, "patch_size", 1)
        return int(patch[-1] if isinstance(patch, (list, tuple)) else patch)

    # -- what a frame is ------------------------------------------------------------------

    @property
    @abstractmethod
    def video(self) -> VideoFamily:
        """The family's numbers."""

    @abstractmethod
    def frame(self) -> tuple[int, int, int]:
        """Token columns, token rows and latent frames of what is being made."""

    @abstractmethod
    def shape(self) -> DenoiserShape:
        """The transformer's sizes."""

    # -- the frame made small -----------------------------------------------------------------

    def guide(self, channels: int, sigma: Tensor, factor: int) -> Guide:
        """The frame made small, for a guided step; the model predicts the first `channels`."""
        x = self._latent()[:, :channels]
        shrink = Shrink(factor, self.patch_of(self.model), x.shape[-1], x.shape[-2])
        return Guide(x, sigma, shrink)

    def small_args(self, guide: Guide) -> Args:
        """What the model is called with for the small frame, where that differs.

        Raises UsageError for an input that has a place in the frame and cannot be made small.
        """
        latent = self._latent()
        x, time = self.arguments["x"], self.arguments["timestep"]
        if time.numel() not in (1, latent.shape[0]):
            raise UsageError(
                f"guide_steps needs one noise level for a frame, this model was given "
                f"{time.numel()} (a start image with its own); use guide_steps 0"
            )
        frame = guide.frame(latent)
        own: Args = {
            "x": frame if isinstance(x, Tensor) else [frame, *x[1:]],
            "timestep": guide.time(time),
        }
        for name, value in self.arguments.items():
            if value is None or name in own or name in self.placeless:
                continue
            fits = isinstance(value, Tensor) and value.shape[-2:] == latent.shape[-2:]
            if not fits or name == "denoise_mask":  # a mask keeps parts clean: other noise levels
                raise UsageError(
                    f"guide_steps cannot make {name!r} small, which has a place in the frame; "
                    "take that input away, or use guide_steps 0"
                )
            own[name] = guide.shrink.small(value).to(value.dtype)
        return own

    def _latent(self) -> Tensor:
        x = self.arguments["x"]
        found: Tensor = x if isinstance(x, Tensor) else x[0]  # sound comes beside the frame
        return found

    # -- blocks -----------------------------------------------------------------------------

    @abstractmethod
    def blocks(self) -> list[BlockKey]:
        """Every block in the order in which it is called."""

    @abstractmethod
    def sequences(self, key: BlockKey, args: Args) -> dict[str, Sequence]:
        """The sequences that a block changes; read at the first block of a kind."""

    @abstractmethod
    def read(self, key: BlockKey, args: Args) -> Streams:
        """The states that a block is given: [B, tokens, channels] by name."""

    @abstractmethod
    def tile_args(self, key: BlockKey, args: Args, tile: Tile, states: Streams) -> Args:
        """The arguments of a block for one tile."""

    @abstractmethod
    def result(self, key: BlockKey, out: Args) -> Streams:
        """The states that the block returned."""

    @abstractmethod
    def reply(self, key: BlockKey, streams: Streams) -> Args:
        """What the host expects back."""

    def releasable(self, key: BlockKey, args: Args) -> Collection[Tensor]:
        """Tensors that nothing reads after the first block although the host keeps them."""
        return ()

    def join(self, states: Streams) -> Streams:
        """A tile's states of double blocks as those of single blocks."""
        return states

    # -- what else ----------------------------------------------------------------------------

    def check(self) -> None:  # noqa: B027
        """Raise UsageError for an input that tiles would get wrong."""

    def needs_exchange(self) -> str:
        """Why the frame must be whole between blocks ("" if it need not), for the log."""
        patches = self.options().get("patches", {})
        if patches.get("double_block"):
            return "a patch reads the frame between blocks"
        return ""

    def options(self) -> Mapping[str, Any]:
        """ComfyUI's transformer_options."""
        found = self.arguments.get("transformer_options")
        return found if isinstance(found, Mapping) else {}

    def text_tokens(self) -> int:
        """Length of the text, for estimates, to the next 512: prompts must not change the plan."""
        context = self.arguments.get("context")
        if isinstance(context, (list, tuple)):
            context = context[0]
        if not isinstance(context, Tensor) or context.ndim < 3:
            return 512
        return ceil_div(int(context.shape[1]), 512) * 512

    @contextlib.contextmanager
    def overrides(self, runner: Callable[[], TileRunner | None]) -> Iterator[None]:
        """Methods replaced for one forward pass; `runner` gives the pass's runner."""
        yield


# -- helpers ------------------------------------------------------------------------------------


def ceil_div(value: int, by: int) -> int:
    """Patches that cover `value` latents: ComfyUI pads up to a whole patch."""
    return -(-value // by)


def ranges(
    tile: Tile, name: str, parts: Collection[tuple[int, int | None, Any]]
) -> list[tuple[int, int, Any]]:
    """(start, stop, value) over a sequence as (start, stop, value) over a tile's tokens."""
    out = []
    for start, stop, value in parts:
        first = tile.before(name, start)
        last = tile.length(name) if stop is None else tile.before(name, stop)
        if last > first:
            out.append((first, last, value))
    return out


@contextlib.contextmanager
def replaced(owner: Any, name: str, make: Callable[[Any], Any]) -> Iterator[None]:
    """`owner.name` is make(original) inside the block, on this one instance."""
    before = owner.__dict__.get(name)
    object.__setattr__(owner, name, make(getattr(owner, name)))
    try:
        yield
    finally:
        if before is None:
            object.__delattr__(owner, name)
        else:
            object.__setattr__(owner, name, before)
