"""The index against the official C library, random points, one thread, in one interleaved run.

    python benchmarks/h3_index.py [--res 9] [--points 1000000] [--repeats 7] [--level 0|1|2]

The official library is the one inside the `h3` wheel, called from a C loop (compiled here; needs a
C compiler), so that Python costs it nothing. Ours is called from Python, whole arrays at a time, in
degrees, into arrays that are there already (as the C loop has them). Every figure is the median
of interleaved repeats, in CPU time (others may use the machine). Answers are compared in the same
run; the factor is official / ours.
"""

from __future__ import annotations

import argparse
import ctypes
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from h3video import h3
from h3video.h3 import api

LOOPS = r"""
#include <stdint.h>
#include <string.h>
typedef int64_t I;
typedef uint64_t U;
typedef uint32_t E;
typedef struct { double lat, lng; } Point;
typedef struct { int n; Point v[10]; } Outline;
void cells(E (*f)(const Point *, int, U *), const double *a, const double *b, I n, int res,
           U *out) {
    for (I i = 0; i < n; i++) {
        Point p = {a[i], b[i]};
        if (f(&p, res, out + i)) out[i] = 0;
    }
}
void centres(E (*f)(U, Point *), const U *c, I n, double *a, double *b) {
    for (I i = 0; i < n; i++) {
        Point p;
        f(c[i], &p);
        a[i] = p.lat;
        b[i] = p.lng;
    }
}
void outlines(E (*f)(U, Outline *), const U *c, I n, double *v, int32_t *k) {
    for (I i = 0; i < n; i++) {
        Outline o;
        f(c[i], &o);
        k[i] = o.n;
        memcpy(v + 20 * i, o.v, sizeof(Point) * o.n);
    }
}
void disks(E (*f)(U, int, U *), const U *c, I n, int k, U *out) {
    I room = 3LL * k * (k + 1) + 1;
    for (I i = 0; i < n; i++) {
        memset(out + room * i, 0, 8 * room);
        f(c[i], k, out + room * i);
    }
}
void distances(E (*f)(U, U, I *), const U *a, const U *b, I n, I *out) {
    for (I i = 0; i < n; i++) if (f(a[i], b[i], out + i)) out[i] = -1;
}
void valid(int (*f)(U), const U *c, I n, uint8_t *out) {
    for (I i = 0; i < n; i++) out[i] = f(c[i]) != 0;
}
void parents(E (*f)(U, int, U *), const U *c, I n, int res, U *out) {
    for (I i = 0; i < n; i++) if (f(c[i], res, out + i)) out[i] = 0;
}
"""


class Official:
    """The official C library in a C loop; angles in radians."""

    def __init__(self) -> None:
        import h3 as wheel

        found = (Path(wheel.__file__).parent / "_cy").glob("cells*")
        self.c = ctypes.CDLL(str(next(p for p in found if p.suffix in (".so", ".pyd"))))
        self.version = wheel.versions()["c"]
        with tempfile.TemporaryDirectory() as folder:
            source, library = Path(folder, "loops.c"), Path(folder, "loops.so")
            source.write_text(LOOPS)
            subprocess.run(
                ["cc", "-O2", "-shared", "-fPIC", source, "-o", library], check=True
            )
            self.loops = ctypes.CDLL(str(library))

    def run(self, loop: str, function: str, *given: Any) -> None:
        """`loop` over a function; arrays as pointers, lengths and k as they are."""
        pointer = ctypes.cast(getattr(self.c, function), ctypes.c_void_p)
        arrays = (isinstance(g, np.ndarray) for g in given)
        items = [ctypes.c_void_p(g.ctypes.data) if a else g for g, a in zip(given, arrays)]
        getattr(self.loops, loop)(pointer, *items)


def long(n: int) -> ctypes.c_int64:
    """A length for C."""
    return ctypes.c_int64(n)


class Case:
    """One line of the table: both ways to do it, the comparison, the number of items."""

    def __init__(self, name: str, goal: str, n: int, official: Callable[[], Any],
                 ours: Callable[[], Any], wrong: Callable[[], int]) -> None:  # fmt: skip
        self.name, self.goal, self.n = name, goal, n
        self.official, self.ours, self.wrong = official, ours, wrong

    def times(self, repeats: int) -> tuple[float, float]:
        """Median ns an item of the official and of our function, taken in turns."""
        self.official(), self.ours()
        taken: tuple[list[float], list[float]] = ([], [])
        for _ in range(repeats):
            for run, into in zip((self.official, self.ours), taken):
                start = time.thread_time()
                run()
                into.append((time.thread_time() - start) / self.n * 1e9)
        return statistics.median(taken[0]), statistics.median(taken[1])


def cases(o: Official, res: int, n: int) -> list[Case]:
    """The calls of the table on fresh random data."""
    rng = np.random.default_rng(1)
    lat, lng = np.arcsin(rng.uniform(-1, 1, n)), rng.uniform(-np.pi, np.pi, n)
    lat_degrees, lng_degrees = np.degrees(lat), np.degrees(lng)
    cells, mine = np.empty(n, np.uint64), np.empty(n, np.uint64)
    o.run("cells", "latLngToCell", lat, lng, long(n), res, cells)
    a, b, p = np.empty(n), np.empty(n), np.empty((2, n))
    v, k = np.empty((n, 10, 2)), np.empty(n, np.int32)
    w, m = np.empty((n, 10, 2)), np.empty(n, np.int32)
    broken = cells.copy()
    kinds = rng.integers(0, 8, n)
    broken[kinds == 0] ^= np.uint64(1 << 63)
    broken[kinds == 1] |= np.uint64(7 << 30)
    good, yes = np.empty(n, np.uint8), np.empty(n, bool)
    up = max(0, res - 4)
    older = np.empty(n, np.uint64)

    def disk_case(name: str, goal: str, origins: Any, steps: int) -> Case:
        room = 3 * steps * (steps + 1) + 1
        out = np.empty((len(origins), room), np.uint64)
        mine = np.empty(out.size, np.uint64)
        found: list[Any] = []

        def ours() -> None:
            found[:] = h3.grid_disks(origins, steps, out=mine)

        def wrong() -> int:
            disks = np.split(found[0], found[1][1:-1])
            return sum(set(d.tolist()) != set(t[t > 0].tolist()) for d, t in zip(disks, out))

        return Case(
            name, goal, len(origins),
            lambda: o.run("disks", "gridDisk", origins, long(len(origins)), steps, out),
            ours, wrong,
        )  # fmt: skip

    near = np.array(
        [c for five in h3.get_pentagons(res) for c in h3.grid_disk(five, 10)], np.uint64
    )
    few = cells[: n // 20].copy()
    disks, offsets = h3.grid_disks(few, 10)
    ends = disks[offsets[:-1] + rng.integers(0, np.diff(offsets))].copy()
    far = cells[rng.permutation(len(few))].copy()
    d, e = np.empty(len(few), np.int64), np.empty(len(few), np.int64)
    radians = np.radians

    def away(x: Any, y: Any) -> Any:
        off = np.abs(x - y)
        return np.minimum(off, np.abs(2 * np.pi - off))

    return [
        Case(
            "lat/lng -> cell", "5x", n,
            lambda: o.run("cells", "latLngToCell", lat, lng, long(n), res, cells),
            lambda: h3.latlngs_to_cells(lat_degrees, lng_degrees, res, out=mine),
            lambda: int((cells != mine).sum()),
        ),
        Case(
            "cell -> lat/lng", "4x", n,
            lambda: o.run("centres", "cellToLatLng", cells, long(n), a, b),
            lambda: h3.cells_to_latlngs(cells, out=p),
            lambda: int(((away(a, radians(p[0])) > 1e-8)
                         | (away(b, radians(p[1])) * np.cos(a) > 1e-9)).sum()),
        ),
        Case(
            "cell -> boundary", "3x", n,
            lambda: o.run("outlines", "cellToBoundary", cells, long(n), v, k),
            lambda: h3.cells_to_boundaries(cells, out=(w, m)),
            lambda: int(((k != m) | (np.where(np.arange(10) < k[:, None], np.maximum(
                away(v[..., 0], radians(w[..., 0])),
                away(v[..., 1], radians(w[..., 1])) * np.cos(v[..., 0])), 0) > 1e-8).any(1)).sum()),
        ),
        disk_case("disk k=1", "", few, 1),
        disk_case("disk k=10", "3x", few[: n // 100].copy(), 10),
        disk_case("disk k=10 near a pentagon", "25x", rng.choice(near, max(50, n // 500)), 10),
        Case(
            "distance, within 10", "4x", len(few),
            lambda: o.run("distances", "gridDistance", few, ends, long(len(few)), d),
            lambda: h3.grid_distances(few, ends, out=e),
            lambda: int(((d >= 0) & (d != e) | (e < 0)).sum()),
        ),
        Case(
            "distance, over the globe", "", len(few),
            lambda: o.run("distances", "gridDistance", few, far, long(len(few)), d),
            lambda: h3.grid_distances(few, far, out=e),
            lambda: int(((d >= 0) & (d != e) | (e < 0)).sum()),
        ),
        Case(
            "validity", "1.5x", n,
            lambda: o.run("valid", "isValidCell", broken, long(n), good),
            lambda: h3.are_valid_cells(broken, out=yes), lambda: int((good != yes).sum()),
        ),
        Case(
            f"parent at res {up}", "", n,
            lambda: o.run("parents", "cellToParent", cells, long(n), up, older),
            lambda: h3.cells_to_parents(cells, up, out=mine), lambda: int((older != mine).sum()),
        ),
    ]  # fmt: skip


def main() -> int:
    """Print the table; 1 if any answer differs."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--res", type=int, default=9)
    parser.add_argument("--points", type=int, default=1_000_000)
    parser.add_argument("--repeats", type=int, default=7)
    parser.add_argument("--level", type=int, default=9, help="instruction set at most")
    options = parser.parse_args()
    official = Official()
    with h3.use_backend("native"):
        level = api._use().use_level(options.level)
        kind = ("baseline", "AVX2", "AVX-512")[level]
        print(f"res {options.res}, {options.points} points, one thread, {kind}; ns an item, median")
        print(f"{'':<26}{'C ' + official.version:>12}{'ours':>10}{'factor':>9}  goal  differ")
        failed = 0
        for case in cases(official, options.res, options.points):
            theirs, ours = case.times(options.repeats)
            wrong = case.wrong()
            failed += wrong
            print(f"{case.name:<26}{theirs:>12,.1f}{ours:>10,.1f}{theirs / ours:>8.1f}x  "
                  f"{case.goal:<5} {wrong}")  # fmt: skip
    return int(failed > 0)


if __name__ == "__main__":
    sys.exit(main())
