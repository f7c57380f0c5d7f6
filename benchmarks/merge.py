"""Merging tiles against a plain copy of the same clip: GB/s, share of the copy's, peak memory.

    python benchmarks/merge.py [--frames 97] [--size 1920x1088] [--hex-res 4] [--backend native]

Both move every value of the clip once from one place in memory to another; the copy is
`Tensor.copy_` with the same threads. Tiles are views of one tensor, so that nothing but merging
is timed; weights are computed anew for every tile, as in real use.
"""

from __future__ import annotations

import argparse
import time

import torch

from h3video import h3
from h3video.grid import grid_cells, hex_grid
from h3video.memory.meter import format_bytes, host_peak, reset_host_peak
from h3video.tiling.clip import clip_layout
from h3video.tiling.merge import TileMerger


def main() -> None:
    """Print one line a case."""
    p = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    p.add_argument("--frames", type=int, default=97)
    p.add_argument("--size", default="1920x1088")
    p.add_argument("--hex-res", type=int, default=4)
    p.add_argument("--backend", choices=("native", "pure"), default="native")
    a = p.parse_args()
    width, height = map(int, a.size.split("x"))
    cells = grid_cells(hex_grid(width, height, a.hex_res), 64.0)
    layout = clip_layout(
        cells, width, height, a.frames, halo=64.0, chunk_frames=25, chunk_overlap=4
    )
    frames = max(t.stop - t.start for t in layout.tiles)
    tile = torch.rand(frames, layout.crop_rows, layout.crop_columns, 3)
    print(layout.summary().splitlines()[0])
    size = a.frames * height * width * 3 * 4
    with h3.use_backend(a.backend):
        reset_host_peak()
        before = host_peak() or 0
        started = time.perf_counter()
        merger = TileMerger(layout)
        for t in layout.tiles:
            merger.add(t.index, tile[: t.stop - t.start])
        merged = merger.finish()
        merge_s = time.perf_counter() - started
        peak = (host_peak() or 0) - before
    # The copy also writes to memory that was never touched before, as the merge does.
    started = time.perf_counter()
    torch.empty_like(merged).copy_(merged)
    copy_s = time.perf_counter() - started
    moved = 2 * size / 1e9
    print(f"merge  {merge_s:6.2f} s  {moved / merge_s:6.2f} GB/s")
    print(f"copy   {copy_s:6.2f} s  {moved / copy_s:6.2f} GB/s")
    print(f"merge reaches {copy_s / merge_s:.0%} of a copy's rate ({a.backend}, "
          f"{torch.get_num_threads()} threads); peak {format_bytes(peak)} = {peak / size:.2f} x "
          f"the output of {format_bytes(size)}")  # fmt: skip


if __name__ == "__main__":
    main()
