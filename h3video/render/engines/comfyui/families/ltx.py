"""LTX-Video, and LTX-2 with sound, in ComfyUI.

A block gets `img` [B, S, d], `vec` (modulation: one row or one per token), `pe` and, with guide
frames of unequal strength, a self-attention mask. Guide frames follow the frame as further latent
frames. LTX-2's blocks get `img` as (picture, sound), both with modulation and positions of their
own, compressed to one row per latent frame where a frame's rows are equal.
"""

from __future__ import annotations

import contextlib
import copy
import functools
from collections.abc import Callable, Collection, Iterator
from typing import Any

import torch
from torch import Tensor

from .....errors import UsageError
from .....models.family import DenoiserShape, VideoFamily
from .....models.ltx import LTX, LTX2
from .....tiling.fuse import Streams, TileRunner
from .....tiling.sequence import Sequence, Span
from .....tiling.table import Tile
from ...cut import in_chunks, per_token
from .base import Args, BlockKey, Family, replaced


class LtxFamily(Family):
    """LTX-Video: see the module."""

    name = "ltx-video"
    classes = ("LTXVModel",)
    feed_forward = ("ff",)

    @property
    def video(self) -> VideoFamily:
        """The family's numbers."""
        return LTX

    def _picture(self) -> Tensor:
        x = self.arguments["x"]
        return x[0] if isinstance(x, (list, tuple)) else x

    def _guides(self) -> int:
        """Latent frames at the end that are guides."""
        keyframes = self.arguments.get("keyframe_idxs")
        x = self._picture()
        return 0 if keyframes is None else keyframes.shape[2] // (x.shape[-1] * x.shape[-2])

    def frame(self) -> tuple[int, int, int]:
        """A token is one latent; guide frames at the end are not being made."""
        x = self._picture()
        return x.shape[-1], x.shape[-2], x.shape[2] - self._guides()

    def shape(self) -> DenoiserShape:
        """From the model's own attributes."""
        model, x = self.model, self._picture()
        heads = model.transformer_blocks[0].attn1.heads
        return DenoiserShape(
            hidden=model.inner_dim, ffn=4 * model.inner_dim, heads=heads,
            layers=len(model.transformer_blocks), text_tokens=self.text_tokens(),
            dtype_bytes=x.element_size(),
        )  # fmt: skip

    def blocks(self) -> list[BlockKey]:
        """One kind only."""
        return [("double_block", i) for i in range(len(self.model.transformer_blocks))]

    def sequences(self, key: BlockKey, args: Args) -> dict[str, Sequence]:
        """The frame first, then guides: on its grid when they are whole, else all along."""
        image = args["img"][0] if isinstance(args["img"], tuple) else args["img"]
        columns, rows, frames = self.frame()
        total, spatial, guides = int(image.shape[1]), columns * rows, self._guides()
        spans = [Span(0, frames)]
        if guides and total == (frames + guides) * spatial:
            spans.append(Span(frames * spatial, guides, target=False))
        return {"img": Sequence(total, tuple(spans))}

    def read(self, key: BlockKey, args: Args) -> Streams:
        """One stream."""
        return {"img": args["img"]}

    def tile_args(self, key: BlockKey, args: Args, tile: Tile, states: Streams) -> Args:
        """Text is shared."""
        return {
            **args,
            "img": states["img"],
            "vec": modulation(tile, args["vec"]),
            "pe": positions(tile, args["pe"]),
            **self._mask(tile, args),
        }

    def _mask(self, tile: Tile, args: Args) -> Args:
        mask = args.get("self_attention_mask")
        return {} if mask is None else {"self_attention_mask": guide_mask(tile, mask)}

    def result(self, key: BlockKey, out: Args) -> Streams:
        """One stream."""
        return {"img": out["img"]}

    def reply(self, key: BlockKey, streams: Streams) -> Args:
        """One stream."""
        return {"img": streams["img"]}

    def releasable(self, key: BlockKey, args: Args) -> Collection[Tensor]:
        """The embedding."""
        return (args["img"],)

    @contextlib.contextmanager
    def overrides(self, runner: Callable[[], TileRunner | None]) -> Iterator[None]:
        """Rotary tables by tile; the output head a few latent frames at a time.

        Both where they are methods of their own.
        """
        with contextlib.ExitStack() as stack:
            if hasattr(self.model, "_precompute_freqs_cis"):
                stack.enter_context(replaced(self.model, "_precompute_freqs_cis", _by_tile))
            if not self._guides() and hasattr(self.model, "_process_output"):
                stack.enter_context(replaced(self.model, "_process_output", _by_frames))
            yield


class LtxAvFamily(LtxFamily):
    """LTX-2: picture and sound in two streams."""

    name = "ltx-2"
    classes = ("LTXAVModel",)
    placeless = (*LtxFamily.placeless, "a_timestep")  # sound keeps its own noise level
    audio = (
        "every tile carries the whole sound track; its prediction is the mean over tiles by the "
        "area that each owns"
    )

    @property
    def video(self) -> VideoFamily:
        """The family's numbers."""
        return LTX2

    def sequences(self, key: BlockKey, args: Args) -> dict[str, Sequence]:
        """Sound has no grid."""
        return {**super().sequences(key, args), "sound": Sequence(int(args["img"][1].shape[1]))}

    def read(self, key: BlockKey, args: Args) -> Streams:
        """Two streams."""
        return {"img": args["img"][0], "sound": args["img"][1]}

    def tile_args(self, key: BlockKey, args: Args, tile: Tile, states: Streams) -> Args:
        """Everything of the sound is shared but its states."""
        picture = ("v_timestep", "v_cross_scale_shift_timestep", "v_cross_gate_timestep")
        return {
            **args,
            "img": (states["img"], states["sound"]),
            **{name: modulation(tile, args[name]) for name in picture},
            "v_pe": positions(tile, args["v_pe"]),
            "v_cross_pe": positions(tile, args["v_cross_pe"]),
            **{name: whole(args[name]) for name in ("a_pe", "a_cross_pe")},
            **self._mask(tile, args),
        }

    def result(self, key: BlockKey, out: Args) -> Streams:
        """Two streams."""
        return {"img": out["img"][0], "sound": out["img"][1]}

    def reply(self, key: BlockKey, streams: Streams) -> Args:
        """As a pair."""
        return {"img": (streams["img"], streams["sound"])}

    def releasable(self, key: BlockKey, args: Args) -> Collection[Tensor]:
        """The picture's embedding."""
        return (args["img"][0],)


class TileRotary:
    """A rotary table of which only the rows that a tile asks for are ever made.

    The whole table takes four times the memory of the hidden states, more than all tiles. A row
    depends on its own token's coordinates alone.

    make    coordinates [B, axes, S, ...] -> the rows of S tokens
    """

    def __init__(self, make: Callable[[Tensor], Any], coordinates: Tensor) -> None:
        self.make = make
        self.coordinates = coordinates.clone()  # the model goes on to scale them in place

    def rows(self, tile: Tile) -> Any:
        """The rows of a tile's tokens, as the model makes them."""
        return self.make(tile.rows("img", self.coordinates, 2))

    @functools.cached_property
    def whole(self) -> Any:
        """Every row: sound has few."""
        return self.make(self.coordinates)


def _by_tile(original: Any) -> Any:
    def precompute(indices_grid: Tensor, *args: Any, **kwargs: Any) -> Any:
        return TileRotary(lambda grid: original(grid, *args, **kwargs), indices_grid)

    return precompute


def _by_frames(original: Any) -> Any:
    def process(x: Any, embedded_timestep: Any, keyframe_idxs: Any, **kwargs: Any) -> Any:
        both = isinstance(x, list)
        picture, how = (x[0], embedded_timestep[0]) if both else (x, embedded_timestep)
        shape = list(kwargs["orig_shape"])
        spatial, parts, sound = shape[3] * shape[4], [], None
        for a, b in in_chunks(shape[2]):
            own = {**kwargs, "orig_shape": [*shape[:2], b - a, *shape[3:]]}
            rows = picture[:, a * spatial : b * spatial]
            lit = _frames_of(how, a, b, spatial, shape[2])
            if both:
                part = original([rows, x[1]], [lit, *embedded_timestep[1:]], keyframe_idxs, **own)
                if isinstance(part, list):
                    part, sound = part
            else:
                part = original(rows, lit, keyframe_idxs, **own)
            parts.append(part)
        out = torch.cat(parts, 2)
        return out if sound is None else [out, sound]

    return process


def _frames_of(value: Any, start: int, stop: int, spatial: int, frames: int) -> Any:
    """Latent frames start..stop of an embedded timestep."""
    if isinstance(value, Tensor):
        whole = value.shape[1] == frames * spatial and value.shape[1] > 1
        return value[:, start * spatial : stop * spatial] if whole else value
    mine = copy.copy(value)
    if value.patches_per_frame == 1:
        mine.data = _frames_of(value.data, start, stop, spatial, frames)
    elif value.num_frames == frames:
        mine.data = value.data[:, start:stop]
    mine.num_frames = mine.data.shape[1]
    return mine


def positions(tile: Tile, pe: Any) -> Any:
    """Rotary rows: [B, 1, S, ...] (0.3), or ([B, S, ...], how) later, or made when asked for."""
    if isinstance(pe, TileRotary):
        return pe.rows(tile)
    if isinstance(pe, tuple):
        return (tile.rows("img", pe[0], 1), *pe[1:])
    return tile.rows("img", pe, 2 if pe.ndim == 6 else 1)


def whole(pe: Any) -> Any:
    """Rotary rows that every tile needs."""
    return pe.whole if isinstance(pe, TileRotary) else pe


def modulation(tile: Tile, value: Any) -> Any:
    """Rows of a modulation, also when it is kept as one row per latent frame."""
    if value is None or isinstance(value, Tensor):
        return per_token(tile, "img", value, 1)
    missing = [n for n in ("data", "patches_per_frame", "num_frames") if not hasattr(value, n)]
    if missing:
        raise UsageError(f"a modulation of type {type(value).__name__} is not known; no tiles yet")
    mine = copy.copy(value)
    if value.patches_per_frame == 1:
        mine.data = per_token(tile, "img", value.data, 1)
    else:
        wanted = torch.tensor(tile.frames("img"), device=value.data.device)
        mine.data = value.data.index_select(1, wanted)
        mine.patches_per_frame = tile.tokens
    mine.num_frames = mine.data.shape[1]
    return mine


def guide_mask(tile: Tile, mask: Any) -> Any:
    """The tile's part of a mask that weakens attention between the frame and its guides."""
    if isinstance(mask, Tensor):
        raise UsageError("a dense self-attention mask has no tiles yet; remove the guides' masks")
    first = tile.before("img", mask.guide_start)
    last = tile.before("img", mask.guide_start + mask.tracked_count)
    rows = tile.tensors["img"][first:last] - mask.guide_start
    mine = copy.copy(mask)
    mine.guide_start, mine.tracked_count = first, last - first
    mine.noisy_mask = tile.rows("img", mask.noisy_mask, 3)
    mine.tracked_mask = tile.rows("img", mask.tracked_mask.index_select(2, rows), 3)
    return mine
