"""HunyuanVideo 1.0 and 1.5 in ComfyUI: text and frame apart in double blocks, then as one.

A double block gets `img` and `txt`, `pe` [B, 1, text + frame, ...] and masks over both; a single
block gets one sequence, text first (last in ComfyUI 0.3). A reference picture comes before the
frame. Modulation that differs by range (a first frame kept clean) is counted again over the tile's
tokens.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Collection, Iterator
from typing import Any, ClassVar

import torch
from torch import Tensor

from .....models.family import DenoiserShape, VideoFamily
from .....models.hunyuan import HUNYUAN, HUNYUAN_15
from .....tiling.fuse import Streams, TileRunner
from .....tiling.sequence import Sequence, Span
from .....tiling.table import Tile
from ...cut import frame_span, in_chunks
from .base import Args, BlockKey, Family, ranges, replaced

BOTH = "both"
"""Name of the sequence of text and frame together."""


class HunyuanFamily(Family):
    """See the module."""

    name = "hunyuan-video"
    classes = ("HunyuanVideo",)
    feed_forward = ("img_mlp",)
    dims: ClassVar[dict[str, str]] = {
        "modulation_dims_img": "img", "modulation_dims_txt": "txt", "modulation_dims": BOTH,
    }  # fmt: skip

    _text = 0
    """Tokens of text, known from the double blocks on."""

    @property
    def video(self) -> VideoFamily:
        """1.5 has tokens of one latent."""
        return HUNYUAN_15 if self.model.patch_size[-1] == 1 else HUNYUAN

    def frame(self) -> tuple[int, int, int]:
        """From the latent; ComfyUI asks for whole patches here."""
        x, patch = self.arguments["x"], self.model.patch_size
        frames = x.shape[2] // patch[0] if len(patch) == 3 else 1
        return x.shape[-1] // patch[-1], x.shape[-2] // patch[-2], frames

    def shape(self) -> DenoiserShape:
        """From the model's parameters."""
        model, x = self.model, self.arguments["x"]
        wide = model.hidden_size
        return DenoiserShape(
            hidden=wide, ffn=int(wide * model.params.mlp_ratio), heads=model.num_heads,
            layers=len(self.blocks()), text_tokens=0, dtype_bytes=x.element_size(),
            linear=int(wide * wide * (4 + 2 * model.params.mlp_ratio)), along=self.text_tokens(),
        )  # fmt: skip

    def blocks(self) -> list[BlockKey]:
        """Double ones first."""
        double = [("double_block", i) for i in range(len(self.model.double_blocks))]
        return double + [("single_block", i) for i in range(len(self.model.single_blocks))]

    def sequences(self, key: BlockKey, args: Args) -> dict[str, Sequence]:
        """Rotary rows and masks run over both even where the streams are apart."""
        if key[0] == "single_block":
            both = self._both(int(args["img"].shape[1]) - self._text)
            return {"img": both, BOTH: both}
        self._text, image = int(args["txt"].shape[1]), int(args["img"].shape[1])
        return {"img": self._picture(image), "txt": Sequence(self._text), BOTH: self._both(image)}

    def _picture(self, total: int) -> Sequence:
        """The picture's own sequence: a reference comes before the frame."""
        columns, rows, frames = frame = self.frame()
        return frame_span(total, frame, total - columns * rows * frames, self.name)

    def _both(self, image: int) -> Sequence:
        shift = self._text if self._text_first else 0
        spans = self._picture(image).spans
        moved = tuple(Span(s.start + shift, s.frames, s.target) for s in spans)
        return Sequence(self._text + image, moved)

    @property
    def _text_first(self) -> bool:
        """ComfyUI 0.3 had HunyuanVideo's text after the frame."""
        return not getattr(self.model.double_blocks[0], "flipped_img_txt", False)

    def read(self, key: BlockKey, args: Args) -> Streams:
        """Two streams, later one."""
        if key[0] == "single_block":
            return {"img": args["img"]}
        return {"img": args["img"], "txt": args["txt"]}

    def join(self, states: Streams) -> Streams:
        """In the order that the host joins them in."""
        order = ("txt", "img") if self._text_first else ("img", "txt")
        return {"img": torch.cat([states[name] for name in order], 1)}

    def tile_args(self, key: BlockKey, args: Args, tile: Tile, states: Streams) -> Args:
        """Everything over both sequences is cut by the joint one."""
        mine = {**args, **states}
        if isinstance(args.get("pe"), Tensor):
            mine["pe"] = tile.rows(BOTH, args["pe"], 2)
        for name in ("attention_mask", "attn_mask"):
            mask = args.get(name)
            if isinstance(mask, Tensor):
                mine[name] = self._mask(tile, mask)
        for name, sequence in self.dims.items():
            if args.get(name) is not None:
                mine[name] = ranges(tile, sequence, args[name])
        options = args.get("transformer_options")
        if key[0] == "single_block" and options and "img_slice" in options:
            start = tile.before(BOTH, options["img_slice"][0])
            mine["transformer_options"] = {**options, "img_slice": [start, tile.length(BOTH)]}
        return mine

    def _mask(self, tile: Tile, mask: Tensor) -> Tensor:
        total = tile.total(BOTH)
        for axis in (mask.ndim - 1, mask.ndim - 2):
            if axis > 0 and mask.shape[axis] == total:
                mask = tile.rows(BOTH, mask, axis)
        return mask

    def result(self, key: BlockKey, out: Args) -> Streams:
        """Two streams, later one."""
        return {name: out[name] for name in ("img", "txt") if name in out}

    def reply(self, key: BlockKey, streams: Streams) -> Args:
        """As they are."""
        return dict(streams)

    def releasable(self, key: BlockKey, args: Args) -> Collection[Tensor]:
        """The embedding."""
        return (args["img"],)

    def needs_exchange(self) -> str:
        """A control net adds to the frame between blocks."""
        if self.arguments.get("control") is not None:
            return "a control net adds to the frame between blocks"
        return super().needs_exchange()

    @contextlib.contextmanager
    def overrides(self, runner: Callable[[], TileRunner | None]) -> Iterator[None]:
        """The output head in pieces."""
        if not hasattr(self.model, "final_layer"):
            yield
            return
        with replaced(self.model.final_layer, "forward", _final_layer):
            yield


def _final_layer(original: Any) -> Any:
    def forward(x: Tensor, vec: Tensor, modulation_dims: Any = None, **kwargs: Any) -> Tensor:
        if modulation_dims is not None:  # ranges over tokens: rare, and short
            return original(x, vec, modulation_dims=modulation_dims, **kwargs)
        return torch.cat([original(x[:, a:b], vec, **kwargs) for a, b in in_chunks(x.shape[1])], 1)

    return forward
