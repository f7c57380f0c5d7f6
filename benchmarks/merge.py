"""Merging tiles against a plain copy of the same clip: GB/s through memory, time, peak.

    python benchmarks/merge.py [--frames 97] [--size 1920x1088] [--hex-res 4] [--backend native]

GB/s counts what goes through memory: a copied value is read and written (8 bytes), a blended one
is read twice and written (12 bytes). Tiles are views of one tensor, so that nothing but merging is
timed; weights are computed anew, as in real use. The copy is `Tensor.copy_`, best of five.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from typing import Any

import torch

from h3video import h3
from h3video.grid import grid_cells, hex_grid
from h3video.memory.meter import format_bytes, host_peak, reset_host_peak
from h3video.tiling import merge
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
    traffic = count_traffic()
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
    merged = merged[: max(1, a.frames // 4)]  # a quarter is enough to copy, and leaves room for it
    target = torch.zeros_like(merged)
    copy_s = min(timed(lambda: target.copy_(merged)) for _ in range(5))
    copy_rate = 2 * merged.numel() * 4 / copy_s / 1e9
    merge_rate = sum(traffic) / merge_s / 1e9
    print(f"merge {merge_s:.2f} s, {merge_rate:.2f} GB/s; copy {copy_rate:.2f} GB/s")
    print(f"merge reaches {merge_rate / copy_rate:.0%} of a copy's rate ({a.backend}, "
          f"{torch.get_num_threads()} threads); peak {format_bytes(peak)} = {peak / size:.2f} x "
          f"the output of {format_bytes(size)}")  # fmt: skip


def timed(work: Callable[[], object]) -> float:
    """Seconds of a call."""
    started = time.perf_counter()
    work()
    return time.perf_counter() - started


def count_traffic() -> list[float]:
    """Make the merger note the bytes of each blend that go through memory."""
    found: list[float] = []
    blend_into = merge.blend_into

    def counted(out: torch.Tensor, tile: torch.Tensor, alpha: Any) -> None:
        blend_into(out, tile, alpha)
        point = out.numel() * 4 / alpha.size
        found.append(point * (2 * (alpha > 0).sum() + ((alpha > 0) & (alpha < 1)).sum()))

    merge.blend_into = counted
    return found


if __name__ == "__main__":
    main()
