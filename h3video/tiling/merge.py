"""Cut a clip along a layout, and merge tiles back with hexagonal weights.

Tensors are seen as [frames, planes, rows, columns, inner], whatever the caller calls them:
an image batch [F, H, W, C] is (F, 1, H, W, C), latents [B, C, T, h, w] are (T, B x C, h, w, 1).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import torch
from torch import Tensor

from ..blend.accumulate import blend_into
from ..errors import UsageError
from .clip import ClipLayout, ClipTile, chunk_weights
from .match import ColourMatch, match_tiles

Interrupt = Callable[[], None]

_BAND_ROWS = 16
"""Rows that a thread weighs at a time: the weights of a point take 32 bytes."""

_SMALL = 1 << 18
"""Numbers of a tile that are not worth a second thread."""


def as_block(clip: Tensor) -> Tensor:
    """A view [frames, planes, rows, columns, inner] of an image batch or of latents."""
    if clip.ndim == 4:  # [F, H, W, C]
        return clip[:, None]
    if clip.ndim == 5:  # [B, C, T, h, w]
        return clip.flatten(0, 1).transpose(0, 1)[..., None]
    raise UsageError(
        f"a clip has 4 axes (images) or 5 (video latents), not {clip.ndim}: {tuple(clip.shape)}"
    )


def cut_tile(clip: Tensor, tile: ClipTile, layout: ClipLayout) -> Tensor:
    """The tile of a clip, as a view: image [f, h, w, C] or latents [B, C, t, h, w]."""
    rows = slice(tile.top, tile.top + layout.crop_rows)
    columns = slice(tile.left, tile.left + layout.crop_columns)
    if clip.ndim == 4:
        return clip[tile.start : tile.stop, rows, columns]
    return clip[:, :, tile.start : tile.stop, rows, columns]


@dataclass(frozen=True)
class _Owned:
    """Where a tile counts in the result, and how much: float32 numpy [rows, columns]."""

    rows: slice
    columns: slice
    weight: Any


class TileMerger:
    """Merges tiles as they come, in any order; holds the result and weights of one frame a chunk.

        merger = TileMerger(layout)
        for index, tile in tiles: merger.add(index, tile)
        clip = merger.finish()

    Tiles may be larger or smaller than they were cut, all by the same factor. Untouched tiles give
    back the clip bit for bit. `colours` corrects each tile first (see match.py).
    """

    def __init__(self, layout: ClipLayout, colours: ColourMatch | None = None) -> None:
        self.layout = layout
        self.colours = colours
        self.done: set[int] = set()
        self._out: Tensor | None = None
        self._seen: Any = None  # float32 numpy [chunks, rows, columns]
        self._time = chunk_weights(layout.chunks, layout.fade, layout.frames)
        self._places: list[_Owned] = []
        self._pool: ThreadPoolExecutor | None = None

    # ---- adding ----

    def add(self, index: int, tile: Tensor) -> None:
        """Add tile `index` of the layout: image [f, h, w, C] or latents [B, C, t, h, w]."""
        import numpy as np

        if not 0 <= index < len(self.layout.tiles):
            raise UsageError(
                f"tile {index} is out of range 0..{len(self.layout.tiles) - 1} of this layout"
            )
        if index in self.done:
            raise UsageError(f"{self.layout.tiles[index].name} came twice")
        place = self.layout.tiles[index]
        if self._out is None:
            self._begin(tile, place)
        self._check(tile, place)
        if self.colours is not None:
            tile = self.colours.apply(index, tile)
        assert self._out is not None and self._seen is not None
        left, top = round(place.left * self.scale), round(place.top * self.scale)
        owned = self._places[index % self.layout.places]
        rows, columns = owned.rows, owned.columns
        block = as_block(tile.detach().to(torch.float32))
        block = self._on_pixels(block, place.left * self.scale - left, place.top * self.scale - top)
        block = block[
            :, :, rows.start - top : rows.stop - top, columns.start - left : columns.stop - left
        ]
        if block.stride(-1) != 1 or block.stride(-2) != block.shape[-1]:
            block = block.contiguous()
        chunk = index // self.layout.places
        counts = self._time[chunk].nonzero()[0]  # frames in which the chunk does
        start, stop = (int(counts[0]), int(counts[-1]) + 1) if len(counts) else (0, 0)
        others = self._time[:, start:stop].any(1).nonzero()[0]
        around = range(others[0], others[-1] + 1) if len(others) else range(0)
        shares = np.ascontiguousarray(self._time[[chunk, *around], start:stop].T)
        seen = self._seen[around.start : around.stop, rows, columns]
        out = as_block(self._out)[:, :, rows, columns]

        def blend(first: int, last: int) -> None:
            blend_into(
                out[first:last], block[first - place.start : last - place.start], owned.weight,
                seen, shares[first - start : last - start],
            )  # fmt: skip

        self._share_out(blend, start, stop, block.numel())
        self._seen[chunk, rows, columns] += owned.weight
        self.done.add(index)

    def _share_out(
        self, work: Callable[[int, int], None], start: int, stop: int, size: int
    ) -> None:
        """work(first, last) for all of start..stop, in parts of a thread each."""
        assert self._out is not None
        threads = min(torch.get_num_threads(), 8, stop - start)
        if threads < 2 or size < _SMALL or self._out.device.type != "cpu":
            return work(start, stop)
        if self._pool is None:  # native code and numpy let go of the interpreter's lock
            self._pool = ThreadPoolExecutor(min(torch.get_num_threads(), 8))
        cuts = [start + (stop - start) * i // threads for i in range(threads + 1)]
        for _ in self._pool.map(work, cuts[:-1], cuts[1:]):
            pass

    def finish(self) -> Tensor:
        """The clip. Raises UsageError when tiles are missing, naming them."""
        check_complete(self.layout, self.done)
        assert self._out is not None  # every layout has a tile
        out, self._out = self._out, None
        if self._pool is not None:
            self._pool.shutdown()
        self._blacken_holes(out)
        return out if out.dtype == self._dtype else out.to(self._dtype)

    def _blacken_holes(self, out: Tensor) -> None:
        """Points that no tile reached, which rounded sides could leave: 0, not what lay there."""
        holes = self._seen <= 0.0
        if not holes.any():
            return
        block = as_block(out)
        for f in range(self.layout.frames):
            hole = torch.from_numpy(holes[self._time[:, f] > 0.0].all(0)).to(out.device)
            block[f, :, hole] = 0.0

    # ---- the first tile decides ----

    def _begin(self, tile: Tensor, place: ClipTile) -> None:
        import numpy as np

        layout = self.layout
        block = as_block(tile)
        height, width = block.shape[2:4]
        scale = common_scale(layout.crop_columns, width, layout.crop_rows, height)
        if scale is None:
            raise UsageError(
                f"{place.name} is {width}x{height}, cut as "
                f"{layout.crop_columns}x{layout.crop_rows}: scaled by "
                f"{width / layout.crop_columns:.3f} across but {height / layout.crop_rows:.3f} "
                "down; scale both alike"
            )
        self.scale = scale
        # As far as the outermost tiles reach: with an odd factor that may be a pixel from
        # round(scale x size), and a row that no tile reaches would stay black.
        self.columns = max(round(t.left * scale) for t in layout.tiles) + width
        self.rows = max(round(t.top * scale) for t in layout.tiles) + height
        self._like = tuple(block.shape)
        self._dtype = tile.dtype
        if tile.ndim == 4:
            shape = (layout.frames, self.rows, self.columns, tile.shape[3])
        else:
            shape = (*tile.shape[:2], layout.frames, self.rows, self.columns)
        device = tile.device
        self._out = torch.empty(shape, dtype=torch.float32, device=device)  # tiles fill all of it
        self._seen = np.zeros((len(layout.chunks), self.rows, self.columns), np.float32)
        self._weigh()

    def _check(self, tile: Tensor, place: ClipTile) -> None:
        shape = tuple(as_block(tile).shape)
        frames = place.stop - place.start
        if shape[0] != frames:
            raise UsageError(
                f"{place.name} has {shape[0]} frames, cut as {frames}; merge before changing the "
                "number of frames"
            )
        if shape[1:] != self._like[1:]:
            raise UsageError(
                f"{place.name} is {shape[3]}x{shape[2]} with {shape[1] * shape[4]} channels, the "
                f"first one {self._like[3]}x{self._like[2]} with {self._like[1] * self._like[4]}; "
                "all tiles must be scaled alike"
            )

    # ---- weights ----

    def _weigh(self) -> None:
        """What each tile of a chunk owns of the result; the same for every chunk."""
        import numpy as np

        layout = self.layout
        step = layout.step / self.scale
        band = layout.overlap / 2.0 + step
        owner = np.full(len(layout.grid.cells) + 1, -1, np.int32)
        for place in layout.tiles[: layout.places]:
            owner[list(place.cells)] = place.index
            boxes = [layout.grid.bounds(i) for i in place.cells]
            left, top = round(place.left * self.scale), round(place.top * self.scale)
            # The tile's rectangle may reach a pixel beyond the frame, and its halo is not its own.
            columns = slice(
                max(left, int((min(b[0] for b in boxes) - band) / step)),
                min(
                    left + self._like[3],
                    self.columns,
                    int((max(b[2] for b in boxes) + band) / step) + 1,
                ),
            )
            rows = slice(
                max(top, int((min(b[1] for b in boxes) - band) / step)),
                min(
                    top + self._like[2],
                    self.rows,
                    int((max(b[3] for b in boxes) + band) / step) + 1,
                ),
            )
            weight = np.empty((rows.stop - rows.start, columns.stop - columns.start), np.float32)
            self._places.append(_Owned(rows, columns, weight))

        def weigh(first: int, last: int) -> None:
            for row in range(first, last, _BAND_ROWS):
                stop = min(row + _BAND_ROWS, last)
                index, weight = layout.grid.sample_weights(
                    self.columns, stop - row, step, layout.overlap, 0.0, row * step
                )
                number = owner[index]
                for i, p in enumerate(self._places):
                    a, b = max(row, p.rows.start), min(stop, p.rows.stop)
                    if a < b:
                        part = (slice(a - row, b - row), p.columns)
                        mine = weight[part] * (number[part] == i)
                        p.weight[a - p.rows.start : b - p.rows.start] = mine.sum(-1)

        self._share_out(weigh, 0, self.rows, self.rows * self.columns)

    def _on_pixels(self, block: Tensor, right: float, down: float) -> Tensor:
        """The tile moved by a part of a pixel (right, down), which only odd factors need."""
        for axis, shift in ((3, right), (2, down)):
            if abs(shift) < 1e-6:
                continue
            # Point x of the frame's raster is point x - shift of the tile: linear in between.
            step = -1 if shift > 0 else 1
            n = block.shape[axis]
            order = (torch.arange(n) + step).clamp(0, n - 1).to(block.device)
            block = torch.lerp(block, block.index_select(axis, order), abs(shift))
        return block


def check_complete(layout: ClipLayout, done: set[int]) -> None:
    """Raise UsageError when tiles of the layout are not among `done`, naming them."""
    missing = [t for t in layout.tiles if t.index not in done]
    if not missing:
        return
    names = ", ".join(t.name for t in missing[:4])
    more = f" and {len(missing) - 4} more" if len(missing) > 4 else ""
    raise UsageError(f"{len(missing)} of {len(layout.tiles)} tiles are missing: {names}{more}")


def common_scale(from_x: int, to_x: int, from_y: int, to_y: int) -> float | None:
    """The factor by which both sides were scaled, or None when no one factor explains both.

    Upscalers round sides (or cut them off), so a range of factors does; the simplest fraction in
    it is the one that a person would have typed.
    """
    found = []
    for low, high in ((Fraction(-1, 2), Fraction(1, 2)), (Fraction(0), Fraction(1))):
        least = max((to_x + low) / from_x, (to_y + low) / from_y)
        most = min((to_x + high) / from_x, (to_y + high) / from_y)
        if 0 < least <= most:
            found.append(_simplest(least, most))
    return float(min(found, key=lambda f: f.denominator)) if found else None


def _simplest(low: Fraction, high: Fraction) -> Fraction:
    """The fraction with the smallest denominator in [low, high] (continued fractions)."""
    whole = low.numerator // low.denominator
    if whole == low:
        return Fraction(whole)
    if whole + 1 <= high:
        return Fraction(whole + 1)
    return whole + 1 / _simplest(1 / (high - whole), 1 / (low - whole))


def merge_clip(
    layout: ClipLayout, tiles: Sequence[Tensor], *, match: str = "none",
    indices: Sequence[int] | None = None, on_tile: Interrupt | None = None,
) -> Tensor:  # fmt: skip
    """Merge tiles into the clip that they were cut from.

    tiles     image [f, h, w, C] or latents [B, C, t, h, w] each, in the layout's order; anything
              with len() and [] will do, so that tiles can be read from disk one at a time
    indices   which tiles of the layout they are; None: all, in order
    match     none | mean/std: tiles' colours are first drawn towards their neighbours'
    on_tile   called after each tile; may raise to stop
    """
    if match not in ("none", "mean/std"):
        raise UsageError(f"match {match!r} is unknown; use none or mean/std")
    order = list(range(len(layout.tiles))) if indices is None else list(indices)
    if len(order) < len(tiles):
        raise UsageError(f"{len(tiles)} tiles came for the {len(order)} places of the layout")
    order = order[: len(tiles)]
    check_complete(layout, set(order))  # before any work is done
    colours = match_tiles(layout, tiles, order) if match == "mean/std" else None
    merger = TileMerger(layout, colours)
    for number in range(len(tiles)):
        merger.add(order[number], tiles[number])
        if on_tile is not None:
            on_tile()
    return merger.finish()
