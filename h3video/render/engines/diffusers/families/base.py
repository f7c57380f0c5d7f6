"""What every family's adapter says about diffusers' transformer; passes.py does the rest."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Mapping
from typing import Any, ClassVar

from torch import Tensor

from .....models.family import DenoiserShape, VideoFamily
from .....tiling.fuse import Streams
from .....tiling.guide import Guide, Shrink
from .....tiling.sequence import Sequence
from .....tiling.table import Tile

Args = dict[str, Any]
"""A block's arguments by name; further positional ones under the name of its `*args`."""


class Family(ABC):
    """The adapter of one forward pass.

    transformer   the model
    arguments     what its forward was called with, by name, defaults among them
    video         the family's numbers, as `video_of` gave them
    """

    classes: ClassVar[tuple[str, ...]]
    """Names of the transformer's class; a subclass with another name is another model."""
    audio: ClassVar[str] = ""
    """What happens to sound, in one line for the log; empty where there is none."""
    projections: ClassVar[tuple[str, ...]] = ("proj_out",)
    """Attributes of the transformer that end the output head."""
    embeddings: ClassVar[tuple[str, ...]] = ()
    """Attributes whose output the host copies into the sequence and then keeps for nothing."""

    on_grid: ClassVar[tuple[str, ...]] = ()
    """Arguments [B, C, T, rows, columns] over the frame's latents, what is predicted first; empty
    where a frame cannot be made small (guide_steps)."""

    def __init__(self, transformer: Any, arguments: Mapping[str, Any], video: VideoFamily) -> None:
        self.transformer = transformer
        self.arguments = arguments
        self.video = video

    # -- before the first pass ----------------------------------------------------------------

    @classmethod
    @abstractmethod
    def video_of(cls, transformer: Any, pipe: Any) -> VideoFamily:
        """The family's numbers for this model."""

    @classmethod
    def lacking(cls, transformer: Any) -> str:
        """Why this variant of the model has no tiles; empty if it has."""
        return ""

    @classmethod
    @abstractmethod
    def blocks(cls, transformer: Any) -> list[tuple[str, Any]]:
        """(kind, module) of every block in the order in which it is called."""

    @classmethod
    def norm_arguments(cls, args: tuple[Any, ...], start: int, stop: int) -> tuple[Any, ...]:
        """Further arguments of the transformer's `norm_out` for rows start..stop."""
        return args

    # -- what a frame is ----------------------------------------------------------------------

    @abstractmethod
    def frame(self) -> tuple[int, int, int]:
        """Token columns, token rows and latent frames of what is being made."""

    @abstractmethod
    def shape(self) -> DenoiserShape:
        """The transformer's sizes."""

    def guide(self, sigma: Tensor, factor: int) -> Guide:
        """The frame made small, for a guided step."""
        x = self.arguments[self.on_grid[0]][:, : self.transformer.config.out_channels]
        patch = self.transformer.config.patch_size
        patch = patch if isinstance(patch, int) else patch[-1]
        return Guide(x, sigma, Shrink(factor, patch, x.shape[-1], x.shape[-2]))

    def small_args(self, guide: Guide) -> Args:
        """What the transformer is called with for the small frame."""
        own = dict(self.arguments)
        first, *others = self.on_grid
        own[first] = guide.frame(own[first])
        for name in others:
            if own[name] is not None:
                own[name] = guide.shrink.small(own[name]).to(own[name].dtype)
        own["timestep"] = guide.time(own["timestep"])
        return own

    # -- blocks -------------------------------------------------------------------------------

    @abstractmethod
    def sequences(self, kind: str, args: Args) -> dict[str, Sequence]:
        """The sequences by which arguments are cut; read at the first block."""

    @abstractmethod
    def read(self, kind: str, args: Args) -> Streams:
        """The states that a block is given: [B, tokens, channels] by name."""

    @abstractmethod
    def tile_args(self, kind: str, args: Args, tile: Tile, states: Streams) -> Args:
        """The arguments of a block for one tile."""

    def result(self, out: Any) -> Streams:
        """The states that a block returned."""
        return {"img": out}

    def reply(self, streams: Mapping[str, Any]) -> Any:
        """What the host expects of a block."""
        return streams["img"]

    def after(self, i: int, tile: Tile, states: Streams) -> Streams:
        """What the host would do to a tile's states after block i."""
        return states

    def releasable(self, args: Args) -> Collection[Tensor]:
        """Tensors that nothing reads after the first block although the host keeps them."""
        return (args["hidden_states"],)
