"""HunyuanVideo 1.0 and 1.5 in diffusers: text and frame in two streams through all blocks.

A block gets hidden_states [B, S, d], encoder_hidden_states, temb, a mask and a rotary pair [S, d]
over the frame. 1.0's mask [B, 1, 1, S + text] covers both, frame first; 1.5's [B, text] the text
alone. 1.0's image-to-video model that replaces tokens modulates those of the first latent frame,
`num_tokens` at the start, on their own.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from torch import Tensor

from .....models.family import DenoiserShape, VideoFamily
from .....models.hunyuan import HUNYUAN, HUNYUAN_15, denoiser_shape
from .....tiling.fuse import Streams
from .....tiling.sequence import Sequence
from .....tiling.table import Tile
from ...cut import frame_span, pair_rows
from .base import Args, Family

BOTH = "both"
"""Name of the sequence of frame and text together."""


class HunyuanFamily(Family):
    """See the module."""

    classes = ("HunyuanVideoTransformer3DModel", "HunyuanVideo15Transformer3DModel")
    on_grid = ("hidden_states",)

    @classmethod
    def video_of(cls, transformer: Any, pipe: Any) -> VideoFamily:
        """1.5 has tokens of one latent."""
        return HUNYUAN_15 if "15" in type(transformer).__name__ else HUNYUAN

    @classmethod
    def blocks(cls, transformer: Any) -> list[tuple[str, Any]]:
        """Double blocks, then (1.0) single ones."""
        double = [("double", block) for block in transformer.transformer_blocks]
        single = getattr(transformer, "single_transformer_blocks", ())
        return double + [("single", block) for block in single]

    def frame(self) -> tuple[int, int, int]:
        """From the latent [B, C, T, h, w]."""
        _, _, frames, rows, columns = self.arguments["hidden_states"].shape
        config = self.transformer.config
        patch = config.patch_size
        return columns // patch, rows // patch, frames // config.patch_size_t

    def shape(self) -> DenoiserShape:
        """From the model's configuration."""
        text = self.arguments["encoder_hidden_states"]
        size = self.arguments["hidden_states"].element_size()
        return denoiser_shape(self.transformer.config, size, int(text.shape[1]))

    def sequences(self, kind: str, args: Args) -> dict[str, Sequence]:
        """1.0's mask runs over both streams."""
        image = int(args["hidden_states"].shape[1])
        text = int(args["encoder_hidden_states"].shape[1])
        frame = frame_span(image, self.frame(), 0, "HunyuanVideo's sequence")
        return {
            "img": frame, "txt": Sequence(text), BOTH: Sequence(image + text, frame.spans)
        }  # fmt: skip

    def read(self, kind: str, args: Args) -> Streams:
        """Two streams, in single blocks too."""
        return {"img": args["hidden_states"], "txt": args["encoder_hidden_states"]}

    def tile_args(self, kind: str, args: Args, tile: Tile, states: Streams) -> Args:
        """Mask, angles and the count of first-frame tokens are the tile's."""
        own = {
            **args,
            "hidden_states": states["img"],
            "encoder_hidden_states": states["txt"],
        }
        angles = "freqs_cis" if kind == "double" else "image_rotary_emb"
        own[angles] = pair_rows(tile, "img", args[angles], 0)
        mask = args["attention_mask"]
        if isinstance(mask, Tensor) and mask.ndim == 4:
            own["attention_mask"] = tile.rows(BOTH, mask, 3)
        if args.get("num_tokens") is not None:
            own["num_tokens"] = tile.before("img", args["num_tokens"])
        return own

    def result(self, out: Any) -> Streams:
        """Two streams."""
        return {"img": out[0], "txt": out[1]}

    def reply(self, streams: Mapping[str, Any]) -> Any:
        """As a pair."""
        return streams["img"], streams["txt"]
