"""Wan 2.1 and 2.2 in diffusers: text or image to video, and VACE.

A block gets hidden_states [B, S, d], encoder_hidden_states (text, after an image's tokens for
image to video), temb ([B, 6, d], or [B, S, 6, d] where every token has its own timestep) and
rotary_emb, a pair of [1, S, 1, d/2]. Concat latents go into the patch embedding, which runs on the
whole frame. VACE first runs blocks of its own and later adds what each gave to the frame after one
of the main blocks; both happen on the tiles.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING, Any, ClassVar

import torch
from torch import Tensor

from .....models.family import DenoiserShape, VideoFamily
from .....models.wan import WAN, denoiser_shape, with_vae
from .....tiling.fuse import Streams
from .....tiling.sequence import Sequence
from .....tiling.table import Tile
from ...cut import frame_span, pair_rows, per_token
from .base import Args, Family

if TYPE_CHECKING:
    from ..passes import Pass


class WanFamily(Family):
    """Text or image to video: see the module."""

    classes = ("WanTransformer3DModel",)
    on_grid: ClassVar[tuple[str, ...]] = ("hidden_states",)

    @classmethod
    def video_of(cls, transformer: Any, pipe: Any) -> VideoFamily:
        """2.2's 5B has 48 latent channels of 16 px; a pipeline without its VAE does not know."""
        if transformer.config.out_channels == 48:
            return with_vae(WAN, 16)
        return with_vae(WAN, getattr(pipe, "vae_scale_factor_spatial", WAN.vae_space))

    @classmethod
    def blocks(cls, transformer: Any) -> list[tuple[str, Any]]:
        """One kind only."""
        return [("block", block) for block in transformer.blocks]

    def frame(self) -> tuple[int, int, int]:
        """From the latent [B, C, T, h, w]."""
        _, _, frames, rows, columns = self.arguments["hidden_states"].shape
        time, tall, wide = self.transformer.config.patch_size
        return columns // wide, rows // tall, frames // time

    def shape(self) -> DenoiserShape:
        """From the model's configuration."""
        size = self.arguments["hidden_states"].element_size()
        return denoiser_shape(self.transformer.config, size)

    def sequences(self, kind: str, args: Args) -> dict[str, Sequence]:
        """The frame is all there is."""
        total = int(args["hidden_states"].shape[1])
        return {"img": frame_span(total, self.frame(), 0, "Wan's sequence")}

    def read(self, kind: str, args: Args) -> Streams:
        """One stream."""
        return {"img": args["hidden_states"]}

    def tile_args(self, kind: str, args: Args, tile: Tile, states: Streams) -> Args:
        """Text is shared; modulation and rotary rows are the tile's."""
        temb = args["temb"]
        return {
            **args,
            "hidden_states": states["img"],
            "temb": per_token(tile, "img", temb, 1) if temb.ndim > 3 else temb,
            "rotary_emb": pair_rows(tile, "img", args["rotary_emb"], 1),
        }


class WanVaceFamily(WanFamily):
    """VACE: see the module."""

    classes = ("WanVACETransformer3DModel",)
    on_grid = ("hidden_states", "control_hidden_states")

    def __init__(self, transformer: Any, arguments: Mapping[str, Any], video: VideoFamily) -> None:
        super().__init__(transformer, arguments, video)
        self.states: list[Tensor] = []  # of the side blocks, by tile
        self.hints: dict[int, list[Tensor]] = {}  # by main block, by tile
        layers = transformer.config.vace_layers
        scale = arguments["control_hidden_states_scale"]
        self.scales = [1.0] * len(layers) if scale is None else torch.unbind(scale)

    @classmethod
    def side_blocks(cls, transformer: Any) -> list[Any]:
        """VACE's own blocks."""
        return list(transformer.vace_blocks)

    def side_block(self, j: int, run: Pass, original: Any, args: Args) -> tuple[Tensor, Tensor]:
        """Side block j on all tiles. Its results stay here; the host gets zeros to add."""
        embedded, control = args["hidden_states"], args["control_hidden_states"]
        tiles = run.start("block", args).tiles
        if j == 0:  # the host's embedding of the control; later ones find the tiles' own
            self.states = [run.away(tile.rows("img", control, 1)) for tile in tiles]
        hints = []
        for k, tile in enumerate(tiles):
            own = self.tile_args("side", args, tile, {})
            # Only the first side block reads the frame.
            rows = tile.rows("img", embedded, 1) if j == 0 else embedded
            own |= {"hidden_states": rows, "control_hidden_states": run.here(self.states[k])}
            hint, state = run.call(original, own)
            self.states[k] = run.away(state)
            hints.append(run.away(hint * self.scales[j]))
        self.hints[self.transformer.config.vace_layers[j]] = hints
        if j == len(self.transformer.vace_blocks) - 1:
            self.states = []
        nothing = control.new_zeros((1, 1, 1))
        return nothing, nothing

    def tile_args(self, kind: str, args: Args, tile: Tile, states: Streams) -> Args:
        """As Wan's; side blocks take their states from elsewhere."""
        return super().tile_args(kind, args, tile, states or {"img": args["hidden_states"]})

    def after(self, i: int, tile: Tile, states: Streams) -> Streams:
        """Add what a side block gave."""
        hints = self.hints.get(i)
        if not hints:
            return states
        image = states["img"]
        return {"img": image + hints.pop(0).to(image.device)}

    def reply(self, streams: Mapping[str, Any]) -> Any:
        """The host adds zeros to it between blocks: a placeholder must not become a frame."""
        image = streams["img"]
        if isinstance(image, Tensor) and image.stride(1) == 0:
            return image.new_zeros((1, 1, 1))
        return image

    def releasable(self, args: Args) -> Collection[Tensor]:
        """The embedding: side blocks have run before the first main one."""
        return (args["hidden_states"],)
