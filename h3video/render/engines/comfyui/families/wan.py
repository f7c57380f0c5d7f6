"""Wan 2.1 and 2.2 in ComfyUI: text or image to video, VACE, fun control, camera.

A block gets `img` [B, S, d], `txt`, `vec` (modulation: one row, one per latent frame or one per
token) and `pe` [1, S, 1, d/2, 2, 2]. The sequence is a reference (if any), the frame, in-context
references (if any). Concat latents, control video and camera go into the patch embedding, which
runs on the whole frame. VACE has blocks of its own beside some of the main ones; they run on the
same tiles.
"""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable, Collection, Iterator
from typing import Any

import torch
from torch import Tensor

from .....models.family import DenoiserShape, VideoFamily
from .....models.wan import WAN, with_vae
from .....tiling.fuse import Streams, TileRunner
from .....tiling.sequence import Sequence
from .....tiling.table import Tile
from ...cut import frame_span, in_chunks, per_token
from .base import Args, BlockKey, Family, ceil_div, replaced

PLAIN = ("WanModel", "VaceWanModel", "CameraWanModel")
"""Models whose code between the blocks is known; others see the whole frame there."""


class WanFamily(Family):
    """See the module."""

    name = "wan"
    classes = PLAIN
    feed_forward = ("ffn",)

    @property
    def video(self) -> VideoFamily:
        """2.2's 5B has 48 latent channels of 16 px."""
        return with_vae(WAN, 16 if self.model.out_dim == 48 else 8)

    def frame(self) -> tuple[int, int, int]:
        """From the latent, and what is appended to it in time."""
        x = self.arguments["x"]
        _, tall, wide = self.model.patch_size
        frames = int(x.shape[2])
        extra = self.arguments.get("time_dim_concat")
        if isinstance(extra, Tensor):
            frames += int(extra.shape[2])
        return ceil_div(x.shape[-1], wide), ceil_div(x.shape[-2], tall), frames

    def shape(self) -> DenoiserShape:
        """From the model's own attributes."""
        model, x = self.model, self.arguments["x"]
        return DenoiserShape(
            hidden=model.dim, ffn=model.ffn_dim, heads=model.num_heads,
            layers=len(model.blocks), text_tokens=self.text_tokens(), dtype_bytes=x.element_size(),
        )  # fmt: skip

    def blocks(self) -> list[BlockKey]:
        """One kind only."""
        return [("double_block", i) for i in range(len(self.model.blocks))]

    def sequences(self, key: BlockKey, args: Args) -> dict[str, Sequence]:
        """The frame's place follows from what is appended after it."""
        total, frame = int(args["img"].shape[1]), self.frame()
        after = 0
        for latent in self.arguments.get("context_latents") or ():
            _, tall, wide = self.model.patch_size
            after += latent.shape[-3] * ceil_div(latent.shape[-2], tall) * ceil_div(
                latent.shape[-1], wide
            )
        start = total - after - frame[0] * frame[1] * frame[2]
        return {"img": frame_span(total, frame, start, "Wan's sequence")}

    def read(self, key: BlockKey, args: Args) -> Streams:
        """One stream."""
        return {"img": args["img"]}

    def tile_args(self, key: BlockKey, args: Args, tile: Tile, states: Streams) -> Args:
        """Text is shared; modulation and rotary rows are the tile's."""
        frames = self.frame()[2]
        return {
            **args,
            "img": states["img"],
            "vec": per_token(tile, "img", args["vec"], 1, frames)
            if args["vec"].ndim > 3
            else args["vec"],
            "pe": tile.rows("img", args["pe"], 1),
        }

    def result(self, key: BlockKey, out: Args) -> Streams:
        """One stream."""
        return {"img": out["img"]}

    def reply(self, key: BlockKey, streams: Streams) -> Args:
        """One stream. VACE adds to it in place between blocks, which a placeholder cannot bear."""
        image = streams["img"]
        if self._vace and image.stride(1) == 0:
            image = image.new_zeros((1, 1, 1))
        return {"img": image}

    def releasable(self, key: BlockKey, args: Args) -> Collection[Tensor]:
        """The embedding, except where VACE reads it again."""
        return () if self._vace or type(self.model).__name__ not in PLAIN else (args["img"],)

    def needs_exchange(self) -> str:
        """Models that inject something between blocks see the whole frame there."""
        name = type(self.model).__name__
        if name not in PLAIN:
            return f"{name} adds to the frame between blocks"
        return super().needs_exchange()

    @property
    def _vace(self) -> bool:
        return hasattr(self.model, "vace_blocks")

    @contextlib.contextmanager
    def overrides(self, runner: Callable[[], TileRunner | None]) -> Iterator[None]:
        """The head in pieces, and VACE's blocks on tiles."""
        with contextlib.ExitStack() as stack:
            stack.enter_context(replaced(self.model.head, "forward", self._head))
            if self._vace:
                contexts = _VaceTiles(self, runner)
                for i, block in enumerate(self.model.vace_blocks):
                    wrap = functools.partial(contexts.wrap, i)
                    stack.enter_context(replaced(block, "forward", wrap))
            yield

    def _head(self, original: Any) -> Any:
        def forward(x: Tensor, e: Tensor) -> Tensor:
            rows, total = e.shape[1] if e.ndim == 3 else 1, x.shape[1]
            if rows not in (1, total):  # one per latent frame: whole frames at a time
                if total % rows:
                    return original(x, e)
                size = total // rows
                parts = [
                    original(x[:, a * size : b * size], e[:, a:b]) for a, b in in_chunks(rows)
                ]
            else:
                parts = [
                    original(x[:, a:b], e if rows == 1 else e[:, a:b]) for a, b in in_chunks(total)
                ]
            return torch.cat(parts, 1)

        return forward


class _VaceTiles:
    """VACE's side blocks on the tiles of the main ones, with states of their own."""

    def __init__(self, family: WanFamily, runner: Callable[[], TileRunner | None]) -> None:
        self.family = family
        self.runner = runner
        self.states: list[list[Tensor]] = []  # by context, by tile
        self.turn = 0

    def wrap(self, i: int, original: Any) -> Any:
        def forward(c: Tensor, x: Tensor, **kwargs: Any) -> Any:
            runner = self.runner()
            if runner is None or runner.exchange == "block":
                return original(c, x=x, **kwargs)
            return self._block(runner, i, original, c, x, kwargs)

        return forward

    def _block(
        self, runner: TileRunner, i: int, original: Any, c: Tensor, x: Tensor, kwargs: Args
    ) -> tuple[Tensor, Tensor]:
        if i == 0:  # the first block of a context is given the whole frame of it
            self.states.append([tile.rows("img", c, 1) for tile in runner.tiles])
            mine = len(self.states) - 1
        else:
            mine = self.turn % len(self.states)
        self.turn = mine + 1
        strengths = self.family.arguments.get("vace_strength")
        strength = strengths[mine] if strengths is not None else 1.0
        skips: list[Tensor] = []
        frames = self.family.frame()[2]
        for k, tile in enumerate(runner.tiles):
            e = kwargs["e"]
            own = {
                **kwargs,
                "freqs": tile.rows("img", kwargs["freqs"], 1),
                "e": per_token(tile, "img", e, 1, frames) if e.ndim > 3 else e,
            }
            embedded = tile.rows("img", x, 1) if i == 0 else x
            skip, self.states[mine][k] = original(self.states[mine][k], x=embedded, **own)
            skips.append(skip)
        nothing = c.new_zeros((1, 1, 1))
        if runner.done:  # beside the last main block: its blended output is there already
            return runner.blend("img", skips), nothing
        for k, skip in enumerate(skips):
            runner.add(k, "img", skip * strength)
        return nothing, nothing
