"""A clip cut into tiles around cells and chunks of frames: the layout in plain numbers.

Tiles are rectangles of one shape around a cell (slivers at the edge join one), so that any
upscaler or sampler takes them; merged, each counts with its cells' hexagonal weights.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ..errors import UsageError
from ..grid import GridCells, HexGrid
from .crops import MAX_CROPS, crop_boxes

MAX_CHUNKS = 4096


@dataclass(frozen=True)
class ClipTile:
    """One tile: it owns `cells`; corner and frames in elements of the clip.

    index        position in `ClipLayout.tiles`, which is the order that tiles come in
    left, top    corner in elements (pixels of an image, latents of a latent)
    start, stop  its frames
    """

    index: int
    cells: tuple[int, ...]
    ids: tuple[int, ...]
    left: int
    top: int
    start: int
    stop: int

    @property
    def name(self) -> str:
        """How messages call it."""
        more = f" and {len(self.ids) - 1} more" if len(self.ids) > 1 else ""
        return (
            f"tile {self.index} (cell {self.ids[0]:x}{more}, frames {self.start}-{self.stop - 1})"
        )


@dataclass(frozen=True)
class ClipLayout:
    """How a clip was cut. Make one with `clip_layout`.

    step                       px of the grid that one element covers
    columns, rows, frames      the clip in elements
    crop_columns, crop_rows    every tile in elements
    overlap                    px of the band that neighbouring cells share
    chunks                     frames (start, stop) of each chunk
    fade                       frames over which a chunk takes over from the one before
    """

    grid: HexGrid
    step: float
    columns: int
    rows: int
    frames: int
    crop_columns: int
    crop_rows: int
    overlap: float
    chunks: tuple[tuple[int, int], ...]
    fade: int
    tiles: tuple[ClipTile, ...]

    @property
    def places(self) -> int:
        """Tiles of one chunk."""
        return len(self.tiles) // len(self.chunks)

    @property
    def price(self) -> float:
        """Elements of all tiles against the clip's."""
        covered = sum(t.stop - t.start for t in self.tiles) * self.crop_columns * self.crop_rows
        return covered / (self.columns * self.rows * self.frames)

    def summary(self) -> str:
        """The layout for people."""
        first = self.tiles[0]
        lines = [
            f"{len(self.tiles)} tiles of {self.crop_columns}x{self.crop_rows}"
            f"x{first.stop - first.start} from {self.columns}x{self.rows}x{self.frames}: "
            f"{self.places} places x {len(self.chunks)} chunks, {self.price:.2f} x the clip's work",
            f"hex_res {self.grid.res}, edge {self.grid.edge:.0f} px, overlap {self.overlap:.0f} px",
        ]
        return "\n".join(lines + [t.name for t in self.tiles])


def clip_layout(
    cells: GridCells, columns: int, rows: int, frames: int, *, halo: float = 32.0,
    chunk_frames: int = 0, chunk_overlap: int = 0,
) -> ClipLayout:  # fmt: skip
    """Plan the tiles of a clip of columns x rows elements and `frames` frames.

    cells           the grid (face projection); one element covers the same px both ways
    halo            px of context beyond the shared band
    chunk_frames    frames of a chunk, 0: all in one
    chunk_overlap   frames that neighbouring chunks share and fade over; 0: a cut

    All chunks are equally long (the last one starts earlier), except with chunk_overlap 0.
    Raises UsageError when sizes do not belong together or are out of range.
    """
    grid = cells.grid
    if not isinstance(grid, HexGrid):
        raise UsageError("an equirectangular grid cannot be cut into tiles; use projection face")
    step = grid.width / columns
    if abs(grid.height / rows - step) > 1e-9:
        raise UsageError(
            f"the clip is {columns}x{rows}, the grid is for {grid.width}x{grid.height} px; "
            f"make the grid for the clip's size (or a multiple of it both ways)"
        )
    if not 0.0 <= halo <= 4096.0:
        raise UsageError(f"halo {halo:g} is out of range 0..4096 px")
    chunks = _chunks(frames, chunk_frames, chunk_overlap)
    align = _alignment(columns, rows) if step == 1.0 else 1
    boxes = crop_boxes(
        grid, step * align, columns // align, rows // align, cells.overlap / 2.0 + halo, None
    )
    if len(boxes.places) > MAX_CROPS:
        raise UsageError(
            f"hex_res {grid.res} cuts {grid.width}x{grid.height} into {len(boxes.places)} tiles, "
            f"the limit is {MAX_CROPS}; use hex_res {grid.res - 1} or less"
        )
    tiles: list[ClipTile] = []
    for start, stop in chunks:
        for group, left, top in boxes.places:
            ids = tuple(grid.cells[i].id for i in group)
            tiles.append(ClipTile(len(tiles), group, ids, left * align, top * align, start, stop))
    return ClipLayout(
        grid, step, columns, rows, frames, boxes.columns * align, boxes.rows * align,
        cells.overlap, chunks, chunk_overlap, tuple(tiles),
    )  # fmt: skip


def _alignment(columns: int, rows: int) -> int:
    """Tiles of images lie on multiples of 16 px where the frame allows, so that upscaling by 1.5
    or 1.25 keeps them on whole pixels and models that want such sizes take them."""
    return next(a for a in (16, 8, 4, 2, 1) if columns % a == 0 and rows % a == 0)


def _chunks(frames: int, length: int, overlap: int) -> tuple[tuple[int, int], ...]:
    if length == 0 or length >= frames:
        return ((0, frames),)
    if length < 0 or overlap < 0 or overlap * 2 > length:
        raise UsageError(
            f"chunk_overlap {overlap} is out of range 0..{max(length, 0) // 2}: at most half of "
            f"chunk_frames {length}"
        )
    stride = length - overlap
    if overlap == 0:
        found = tuple((a, min(a + length, frames)) for a in range(0, frames, stride))
    else:
        count = -(-(frames - overlap) // stride)
        last = frames - length
        found = tuple((a, a + length) for a in (min(i * stride, last) for i in range(count)))
    if len(found) > MAX_CHUNKS:
        raise UsageError(
            f"chunk_frames {length} gives {len(found)} chunks, the limit is {MAX_CHUNKS}; "
            "use longer chunks"
        )
    return found


def chunk_weights(chunks: tuple[tuple[int, int], ...], fade: int, frames: int) -> Any:
    """How much each chunk counts at each frame: float32 numpy [chunks, frames], columns sum to 1.

    A chunk fades in over the first `fade` frames that it shares with the one before.
    Chunks with equal frames would fade alike whatever the tiles are.
    """
    import numpy as np

    out = np.zeros((len(chunks), frames))
    at = np.arange(frames)
    left = np.ones(frames)  # what later chunks have not taken over
    for k in reversed(range(len(chunks))):
        start, stop = chunks[k]
        if k == 0:
            rise = np.ones(frames)
        else:
            begin = max(start, chunks[k - 1][1] - fade) if fade else chunks[k - 1][1]
            t = np.clip((at - begin + 0.5) / max(fade, 1), 0.0, 1.0)
            rise = t * t * (3.0 - 2.0 * t) if fade else (at >= begin).astype(float)
        inside = (at >= start) & (at < stop)
        out[k] = np.where(inside, left * rise, 0.0)
        left = left - out[k]
    return (out / out.sum(0)).astype(np.float32)
