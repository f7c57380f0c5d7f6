"""MiniMax-H3 in diffusers: one packed sequence of text, conditions, sound and the frame.

A block gets hidden_states [B, S, d], temb (a row per noise level), adaln_indices [S] that choose
each token's row, and a rotary pair [S, d]. The transformer is told positions, not sizes: the frame
is the grid at the end of the video tokens. Keyframes lie on it and have times of the clip, so a
tile takes those near it; text, references and sound go along whole.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from .....errors import UsageError
from .....models.family import DenoiserShape, VideoFamily
from .....models.minimax_h3 import MINIMAX_H3, denoiser_shape
from .....tiling.fuse import Streams
from .....tiling.sequence import Sequence, Span
from .....tiling.table import Tile
from ...cut import pair_rows
from .base import Args, Family
from .positions import Positions, last_frames, same_grid


class MiniMaxH3Family(Family):
    """See the module."""

    classes = ("MiniMaxH3Transformer3DModel",)
    audio = (
        "every tile carries the whole sound track; its prediction is the mean over tiles by the "
        "area that each owns"
    )
    projections = ("proj_out", "audio_proj_out")
    embeddings = ("proj_in",)

    def __init__(self, transformer: Any, arguments: Mapping[str, Any], video: VideoFamily) -> None:
        super().__init__(transformer, arguments, video)
        self._positions = Positions.of(arguments["position_ids"].T)
        self._video = arguments["video_indices"].detach().cpu()
        total = len(self._positions)
        if not len(self._video) or int(self._video[-1]) != total - 1:
            raise UsageError(
                "the packed sequence does not end with the frame's tokens; this layout has no "
                "tiles yet, run it without tiling"
            )
        jumps = (self._video[1:] != self._video[:-1] + 1).nonzero()
        self._after = int(self._video[int(jumps[-1]) + 1]) if len(jumps) else int(self._video[0])
        self._frame = last_frames(self._positions.at(self._after, total))

    @classmethod
    def video_of(cls, transformer: Any, pipe: Any) -> VideoFamily:
        """The family's numbers."""
        return MINIMAX_H3

    @classmethod
    def blocks(cls, transformer: Any) -> list[tuple[str, Any]]:
        """One kind only."""
        return [("block", block) for block in transformer.transformer_blocks]

    @classmethod
    def norm_arguments(cls, args: tuple[Any, ...], start: int, stop: int) -> tuple[Any, ...]:
        """Every token has the index of its own row."""
        temb, indices = args
        return temb, indices[start:stop]

    def frame(self) -> tuple[int, int, int]:
        """The grid at the end."""
        return self._frame

    def shape(self) -> DenoiserShape:
        """From the model's configuration."""
        text = self.arguments["encoder_hidden_states"]
        return denoiser_shape(self.transformer.config, text.element_size(), int(text.shape[1]))

    def sequences(self, kind: str, args: Args) -> dict[str, Sequence]:
        """The frame at the end, keyframes before it."""
        columns, rows, frames = self._frame
        total, spatial = len(self._positions), columns * rows
        start = total - frames * spatial
        one = self._positions.at(start, start + spatial)
        spans = [span for a, b in self._runs(start) for span in self._keyframes(a, b, one)]
        return {"img": Sequence(total, (*spans, Span(start, frames)))}

    def _runs(self, start: int) -> list[tuple[int, int]]:
        """(start, stop) of every run of video tokens before the frame."""
        indices = self._video[self._video < start].tolist()
        runs: list[tuple[int, int]] = []
        for i in indices:
            if runs and runs[-1][1] == i:
                runs[-1] = (runs[-1][0], i + 1)
            else:
                runs.append((i, i + 1))
        return runs

    def _keyframes(self, start: int, stop: int, one: Positions) -> list[Span]:
        """Spans of a run whose time is the clip's; references have times before it."""
        spans = same_grid(self._positions.at(start, stop), one, start)
        begin, time = float(one.time[0]), self._positions.time
        return [span for span in spans if float(time[span.start]) >= begin]

    def read(self, kind: str, args: Args) -> Streams:
        """One stream."""
        return {"img": args["hidden_states"]}

    def tile_args(self, kind: str, args: Args, tile: Tile, states: Streams) -> Args:
        """The table of modulation is shared, its rows are chosen by the tile's tokens."""
        return {
            **args,
            "hidden_states": states["img"],
            "adaln_indices": tile.rows("img", args["adaln_indices"], 0),
            "rotary_emb": pair_rows(tile, "img", args["rotary_emb"], 0),
        }
