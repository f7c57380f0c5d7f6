"""MiniMax-H3 in ComfyUI: one packed sequence of text, conditions, sound and the frame.

A block gets `img` [S, d] (no batch), `t_emb`, `mod_segments` as (start, stop, row) and
`rope_freqs` [1, S, ...]. Keyframes lie on the frame's own grid, so a tile takes those near it;
text, references and sound go along whole.
"""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable, Collection, Iterator, Mapping
from typing import Any

import torch
from torch import Tensor

from .....errors import UsageError
from .....models.family import DenoiserShape, VideoFamily
from .....models.minimax_h3 import MINIMAX_H3
from .....models.minimax_h3 import shape as minimax_shape
from .....tiling.fuse import Streams, TileRunner
from .....tiling.guide import Guide
from .....tiling.sequence import Sequence, Span
from .....tiling.table import Tile
from ...cut import in_chunks
from .base import Args, BlockKey, Family, ceil_div, ranges, replaced


class MiniMaxH3Family(Family):
    """See the module."""

    name = "minimax-h3"
    classes = ("MiniMaxH3Model",)
    feed_forward = ("mlp",)
    placeless = (*Family.placeless, "minimax_payload", "latent_shapes")
    audio = (
        "every tile carries the whole sound track; its prediction is the mean over tiles by the "
        "area that each owns"
    )

    def __init__(self, model: Any, arguments: Mapping[str, Any]) -> None:
        super().__init__(model, arguments)
        self._embedded: list[Tensor] = []

    @property
    def video(self) -> VideoFamily:
        """The family's numbers."""
        return MINIMAX_H3

    def frame(self) -> tuple[int, int, int]:
        """From the video latent; ComfyUI pads it to whole patches."""
        video = self.arguments["x"][0]
        _, tall, wide = self.model.patch_size
        return ceil_div(video.shape[-1], wide), ceil_div(video.shape[-2], tall), video.shape[2]

    def shape(self) -> DenoiserShape:
        """From the first block; attention is wider than the hidden states."""
        block, context = self.model.blocks[0], self.arguments.get("context")
        inner = block.attn.out_proj.in_features
        heads = getattr(block.attn, "heads", None) or max(1, inner // 128)
        return minimax_shape(
            self.model.hidden_size, block.mlp.fc2.in_features, heads, inner // heads,
            len(self.model.blocks), 2 if context is None else context.element_size(),
            self.text_tokens(),
        )  # fmt: skip

    def blocks(self) -> list[BlockKey]:
        """One kind only."""
        return [("double_block", i) for i in range(len(self.model.blocks))]

    def sequences(self, key: BlockKey, args: Args) -> dict[str, Sequence]:
        """The frame comes last; keyframes are found in the model's own layout."""
        total = int(args["img"].shape[0])
        columns, rows, frames = self.frame()
        spatial = columns * rows
        spans = [
            Span(start, (stop - start) // spatial, target=False)
            for start, stop, kind in self._layout(total)
            if kind == "cond" and stop - start and (stop - start) % spatial == 0
        ]
        spans.append(Span(total - frames * spatial, frames))
        return {"img": Sequence(total, tuple(spans))}

    def read(self, key: BlockKey, args: Args) -> Streams:
        """ComfyUI's sequence has no batch axis."""
        return {"img": args["img"].unsqueeze(0)}

    def tile_args(self, key: BlockKey, args: Args, tile: Tile, states: Streams) -> Args:
        """Modulation segments are counted again over the tile's tokens."""
        return {
            **args,
            "img": states["img"].squeeze(0),
            "mod_segments": ranges(tile, "img", args["mod_segments"]),
            "rope_freqs": tile.rows("img", args["rope_freqs"], 1),
        }

    def result(self, key: BlockKey, out: Args) -> Streams:
        """With a batch axis again."""
        return {"img": out["img"].unsqueeze(0)}

    def reply(self, key: BlockKey, streams: Streams) -> Args:
        """Without it."""
        return {"img": streams["img"].squeeze(0)}

    def releasable(self, key: BlockKey, args: Args) -> Collection[Tensor]:
        """The packed embedding, and the frame's own, which the model copied into it."""
        spent = [args["img"], *self._embedded]
        self._embedded.clear()
        return spent

    def _layout(self, total: int) -> list[tuple[int, int, str]]:
        """(start, stop, kind) of every segment; empty when the model's layout is not known."""
        payload = self.arguments.get("minimax_payload") or {}
        layout = payload.get("layout")
        if layout is None or layout.seq_len != total:
            audio = self.arguments["x"][1]
            columns, rows, frames = self.frame()
            make = getattr(sys.modules[type(self.model).__module__], "PackedLayout", None)
            if make is None:
                return []
            _, tall, wide = self.model.patch_size
            layout = make(
                self.arguments["context"].shape[1], frames, rows * tall, columns * wide,
                audio.shape[-1], keyframes=payload.get("keyframes"), refs=payload.get("refs"),
            )  # fmt: skip
        return list(layout.segments) if layout.seq_len == total else []

    def small_args(self, guide: Guide) -> Args:
        """References have grids of their own; keyframes lie on the frame's."""
        payload = self.arguments.get("minimax_payload") or {}
        if payload.get("keyframes"):
            raise UsageError(
                "guide_steps cannot make keyframes small; take them away, or use guide_steps 0"
            )
        return super().small_args(guide)

    @contextlib.contextmanager
    def overrides(self, runner: Callable[[], TileRunner | None]) -> Iterator[None]:
        """The output head in pieces; the embedding cast where it is made, to know the tensor."""
        with (
            replaced(self.model.final_layer, "forward", _final_layer),
            replaced(self.model.video_patch_proj, "forward", self._embed),
        ):
            yield
        self._embedded.clear()

    def _embed(self, original: Any) -> Any:
        context = self.arguments.get("context")
        dtype = getattr(context, "dtype", None)  # what the model computes in

        def forward(rows: Tensor) -> Tensor:
            out: Tensor = original(rows).to(dtype)
            self._embedded.append(out)
            return out

        return forward if dtype is not None else original


def _final_layer(original: Any) -> Any:
    def forward(x: Tensor, t_emb: Tensor, video_seg: Any, audio_seg: Any) -> Any:
        start, stop, row = video_seg
        parts, sound = [], None
        for first, last in in_chunks(stop - start):
            piece = (start + first, start + last, row)
            # The sound's rows are few; with all but the first piece an empty run of them.
            audio = audio_seg if sound is None else (audio_seg[0], audio_seg[0], audio_seg[2])
            part, heard = original(x, t_emb, piece, audio)
            parts.append(part)
            sound = heard if sound is None else sound
        return torch.cat(parts), sound

    return forward
