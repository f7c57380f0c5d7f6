"""LTX-Video, and LTX-2 with sound, in diffusers.

A block gets the packed frame [B, S, d], temb ([B, 1 or S, 6 d]) and a rotary pair. Conditions on
further frames are tokens of their own: before the frame in LTX-Video, after it in LTX-2; those on
the frame's grid follow the tile, others go along whole. LTX-2's blocks run sound beside the
picture, with modulation and positions of its own.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from torch import Tensor

from .....errors import UsageError
from .....models.family import DenoiserShape, VideoFamily
from .....models.ltx import LTX, LTX2, denoiser_shape
from .....tiling.fuse import Streams
from .....tiling.sequence import Sequence, Span
from .....tiling.table import Tile
from ...cut import pair_rows, per_token
from .base import Args, Family
from .positions import Positions, last_frames, same_grid


class LtxFamily(Family):
    """LTX-Video: see the module."""

    classes = ("LTXVideoTransformer3DModel",)

    def __init__(self, transformer: Any, arguments: Mapping[str, Any], video: VideoFamily) -> None:
        super().__init__(transformer, arguments, video)
        self._positions: Positions | None = None

    @classmethod
    def video_of(cls, transformer: Any, pipe: Any) -> VideoFamily:
        """The family's numbers."""
        return LTX

    @classmethod
    def lacking(cls, transformer: Any) -> str:
        """Every published model has patches of one latent."""
        config = transformer.config
        if (config.patch_size, config.patch_size_t) == (1, 1):
            return ""
        size = f"{config.patch_size} x {config.patch_size_t}"
        return f"patches of {size} latents; use a model of 1 x 1"

    @classmethod
    def blocks(cls, transformer: Any) -> list[tuple[str, Any]]:
        """One kind only."""
        return [("block", block) for block in transformer.transformer_blocks]

    def frame(self) -> tuple[int, int, int]:
        """From the call where it says so, else from the tokens' coordinates."""
        sizes = tuple(self.arguments[n] for n in ("width", "height", "num_frames"))
        if None in sizes:
            return last_frames(self.positions())
        return int(sizes[0]), int(sizes[1]), int(sizes[2])

    def positions(self) -> Positions:
        """Coordinates of all tokens."""
        if self._positions is None:
            coordinates = self.arguments["video_coords"]
            if coordinates is None:
                raise UsageError(
                    "the transformer was called with neither video_coords nor num_frames, height "
                    "and width; tiles need either"
                )
            first = coordinates[0] if coordinates.ndim == 3 else coordinates[0, ..., 0]
            self._positions = Positions.of(first)
        return self._positions

    def shape(self) -> DenoiserShape:
        """From the model's configuration."""
        text = self.arguments["encoder_hidden_states"]
        size = self.arguments["hidden_states"].element_size()
        return denoiser_shape(self.transformer.config, size, int(text.shape[1]))

    def sequences(self, kind: str, args: Args) -> dict[str, Sequence]:
        """The frame, and conditions on its grid."""
        columns, rows, frames = self.frame()
        total, spatial = int(args["hidden_states"].shape[1]), columns * rows
        extra = total - spatial * frames
        if extra < 0:
            raise UsageError(
                f"LTX's sequence has {total} tokens, fewer than {columns}x{rows} tokens x {frames} "
                "latent frames; this input has no tiles yet, run it without tiling"
            )
        start = self.start(extra)
        spans = [Span(start, frames)]
        if extra and self.arguments["video_coords"] is not None:
            one = self.positions().at(start, start + spatial)
            before, after = (0, start), (start + frames * spatial, total)
            for a, b in (before, after):
                spans += same_grid(self.positions().at(a, b), one, a)
        return {"img": Sequence(total, tuple(sorted(spans, key=lambda span: span.start)))}

    def start(self, extra: int) -> int:
        """Where the frame begins: conditions come first."""
        return extra

    def read(self, kind: str, args: Args) -> Streams:
        """One stream."""
        return {"img": args["hidden_states"]}

    def tile_args(self, kind: str, args: Args, tile: Tile, states: Streams) -> Args:
        """Text and its mask are shared."""
        return {
            **args,
            "hidden_states": states["img"],
            "temb": per_token(tile, "img", args["temb"], 1),
            "image_rotary_emb": pair_rows(tile, "img", args["image_rotary_emb"], 1),
        }


class Ltx2Family(LtxFamily):
    """LTX-2: picture and sound in two streams."""

    classes = ("LTX2VideoTransformer3DModel",)
    audio = (
        "every tile carries the whole sound track; its prediction is the mean over tiles by the "
        "area that each owns"
    )

    @classmethod
    def video_of(cls, transformer: Any, pipe: Any) -> VideoFamily:
        """The family's numbers."""
        return LTX2

    def start(self, extra: int) -> int:
        """The frame comes first."""
        return 0

    def sequences(self, kind: str, args: Args) -> dict[str, Sequence]:
        """Sound has no grid."""
        sound = Sequence(int(args["audio_hidden_states"].shape[1]))
        return {**super().sequences(kind, args), "sound": sound}

    def read(self, kind: str, args: Args) -> Streams:
        """Two streams."""
        return {"img": args["hidden_states"], "sound": args["audio_hidden_states"]}

    def tile_args(self, kind: str, args: Args, tile: Tile, states: Streams) -> Args:
        """Everything of the sound is shared but its states."""
        for name in ("a2v_cross_attention_mask", "v2a_cross_attention_mask"):
            if args.get(name) is not None:
                raise UsageError(f"{name} has no tiles yet; run this input without tiling")
        video = ("temb", "temb_ca_scale_shift", "temb_ca_gate")
        mask = args.get("self_attention_mask")
        if mask is not None:
            mask = tile.rows("img", tile.rows("img", mask, 1), 2)
        return {
            **args,
            "hidden_states": states["img"],
            "audio_hidden_states": states["sound"],
            **{name: per_token(tile, "img", args[name], 1) for name in video},
            "video_rotary_emb": rotary(tile, args["video_rotary_emb"]),
            "ca_video_rotary_emb": rotary(tile, args["ca_video_rotary_emb"]),
            "self_attention_mask": mask,
        }

    def result(self, out: Any) -> Streams:
        """Two streams."""
        return {"img": out[0], "sound": out[1]}

    def reply(self, streams: Mapping[str, Any]) -> Any:
        """As a pair."""
        return streams["img"], streams["sound"]


def rotary(tile: Tile, pair: tuple[Tensor, Tensor] | None) -> Any:
    """Rows of a rotary pair: [B, S, d], or [B, heads, S, d] where it is split by head."""
    if pair is None:
        return None
    return pair_rows(tile, "img", pair, 2 if pair[0].ndim == 4 else 1)
