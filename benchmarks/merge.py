"""Merging tiles against a plain copy of the same clip: GB/s, time, peak.

    python benchmarks/merge.py [--frames 97] [--size 1920x1088] [--hex-res 4] [--backend native]
                               [--threads N] [--times 3]

Two rates are printed. "Clip": the clip's bytes a second, for merging and for copying. "Memory":
what goes through memory; a copied value is read and written (8 bytes), a blended one is read twice
and written (12 bytes), and tiles overlap, so merging has to move several times what a copy moves.

Like is compared with like. Real merging is "fresh": the system hands out its result's memory page
by page as it is written, and its counterpart is a copy into a fresh tensor. "Warm" is the same
merge and the same copy into memory that was written before. Both use the same number of threads
and take turns, the best of --times counts. Tiles are views of one tensor, so that nothing but
merging is timed; weights are computed anew, as in real use.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

import torch

from h3video import h3
from h3video.grid import grid_cells, hex_grid
from h3video.h3.pure_arrays import blend_alphas
from h3video.memory.meter import format_bytes, host_peak, reset_host_peak
from h3video.tiling import merge
from h3video.tiling.clip import ClipLayout, clip_layout
from h3video.tiling.merge import TileMerger


def main() -> None:
    """Print the merge, the copies and what the one reaches of the other."""
    p = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    p.add_argument("--frames", type=int, default=97)
    p.add_argument("--size", default="1920x1088")
    p.add_argument("--hex-res", type=int, default=4)
    p.add_argument("--backend", choices=("native", "pure"), default="native")
    p.add_argument("--threads", type=int, default=torch.get_num_threads())
    p.add_argument("--times", type=int, default=3)
    a = p.parse_args()
    torch.set_num_threads(a.threads)
    width, height = map(int, a.size.split("x"))
    cells = grid_cells(hex_grid(width, height, a.hex_res), 64.0)
    layout = clip_layout(
        cells, width, height, a.frames, halo=64.0, chunk_frames=25, chunk_overlap=4
    )
    frames = max(t.stop - t.start for t in layout.tiles)
    tile = torch.rand(frames, layout.crop_rows, layout.crop_columns, 3)
    print(layout.summary().splitlines()[0])
    size = a.frames * height * width * 3 * 4
    traffic = count_traffic(layout, tile)
    seconds: dict[str, list[float]] = {}
    peak = 0

    def take(name: str, work: Callable[[], Any]) -> Any:
        started = time.perf_counter()
        result = work()
        seconds.setdefault(name, []).append(time.perf_counter() - started)
        return result

    with h3.use_backend(a.backend):
        for _ in range(a.times):  # in turn, so that other work on the machine meets all of them
            reset_host_peak()
            before = host_peak() or 0
            merged = take("fresh merge", lambda: merge_all(layout, tile))
            peak = max(peak, (host_peak() or 0) - before)
            target = take("fresh copy", lambda m=merged: copy(torch.empty_like(m), m, a.threads))
            for _ in range(3):
                take("warm copy", lambda t=target, m=merged: copy(t, m, a.threads))
            del target
            with memory_of(merged):
                take("warm merge", lambda: merge_all(layout, tile))
            del merged
    print(f"{a.backend}, {a.threads} threads; peak {format_bytes(peak)} = {peak / size:.2f} x the "
          f"output of {format_bytes(size)}")  # fmt: skip
    for kind in ("fresh", "warm"):
        done, best = min(seconds[f"{kind} merge"]), min(seconds[f"{kind} copy"])
        ours, copied = traffic / done / 1e9, 2 * size / best / 1e9
        print(f"{kind:5} merge {done:5.2f} s: clip {size / done / 1e9:5.2f} GB/s, "
              f"memory {ours:5.2f} GB/s")  # fmt: skip
        print(f"{kind:5} copy  {best:5.2f} s: clip {size / best / 1e9:5.2f} GB/s, "
              f"memory {copied:5.2f} GB/s")  # fmt: skip
        print(f"      merge reaches {best / done:.0%} of it (clip), {ours / copied:.0%} (memory)")


def merge_all(layout: ClipLayout, tile: torch.Tensor) -> torch.Tensor:
    """The clip of a layout of which every tile is this one."""
    merger = TileMerger(layout)
    for t in layout.tiles:
        merger.add(t.index, tile[: t.stop - t.start])
    return merger.finish()


def copy(target: torch.Tensor, source: torch.Tensor, threads: int) -> torch.Tensor:
    """A plain copy, numpy's, in as many parts as there are threads."""
    import numpy as np

    to, of = target.numpy(), source.numpy()
    if threads == 1:
        np.copyto(to, of)
        return target
    with ThreadPoolExecutor(threads) as pool:
        list(pool.map(np.copyto, np.array_split(to, threads), np.array_split(of, threads)))
    return target


@contextmanager
def memory_of(tensor: torch.Tensor) -> Iterator[None]:
    """Merging inside writes over this tensor instead of asking for memory."""
    empty = torch.empty
    torch.empty = lambda *_, **__: tensor  # type: ignore[assignment]
    try:
        yield
    finally:
        torch.empty = empty


def count_traffic(layout: ClipLayout, tile: torch.Tensor) -> float:
    """The bytes that merging moves through memory, found by a merge that blends nothing."""
    found: list[float] = []
    blend_into = merge.blend_into

    def count(out: torch.Tensor, tile: torch.Tensor, weight: Any, seen: Any, shares: Any) -> None:
        for first, last, alpha in blend_alphas(len(out), weight, seen, shares):
            point = out[first:last].numel() * 4 / alpha.size
            found.append(point * (2 * (alpha > 0).sum() + ((alpha > 0) & (alpha < 1)).sum()))

    merge.blend_into = count
    try:
        merge_all(layout, tile)
    finally:
        merge.blend_into = blend_into
    return sum(found)


if __name__ == "__main__":
    main()
