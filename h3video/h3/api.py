"""The index for callers: degrees, Python integers, whichever backend serves.

The native library is used when there is one for this machine, else pure Python
with the same contract and one log line. $H3VIDEO_BACKEND=native|pure decides
by force; `use_backend` does so in a test. `use` swaps the library (see kernel.py).
"""

from __future__ import annotations

import logging
import math
import operator
import os
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from . import kernel, native
from . import pure_arrays as pure

log = logging.getLogger("h3video")

CONTRACT = (
    "latlng_to_cell", "cell_to_latlng", "cell_to_boundary", "grid_disk", "grid_disk_distances",
    "grid_ring", "grid_distance", "are_neighbor_cells", "cell_to_parent", "cell_to_children",
    "cell_to_children_size", "cell_to_center_child", "is_valid_cell", "is_pentagon",
    "get_resolution", "get_base_cell_number", "get_pentagons", "get_res0_cells", "str_to_int",
    "int_to_str", "plane_to_latlng", "latlng_to_plane", "latlngs_to_cells", "cells_to_latlngs",
    "cells_to_boundaries", "cells_to_parents", "are_valid_cells", "get_resolutions",
    "grid_disks", "grid_distances", "planes_to_latlngs", "latlngs_to_planes", "frame_cells",
    "hex_weights", "blend_tile",
)  # fmt: skip
"""What each backend must provide, in radians."""

_backend: Any = None


def _use() -> Any:
    """The backend, chosen at first use."""
    global _backend
    if _backend is None:
        _backend = _choose(os.environ.get("H3VIDEO_BACKEND", ""))
    return _backend


def _choose(wanted: str) -> Any:
    if wanted == "pure":
        return pure
    try:
        return native.Native(kernel.load())
    except kernel.LibraryError as e:
        if wanted == "native":
            raise
        log.warning("%s; the pure-Python index serves", e)
        return pure


def backend() -> str:
    """Which backend serves: "native" or "pure"."""
    return "pure" if _use() is pure else "native"


@contextmanager
def use_backend(name: str) -> Iterator[None]:
    """Use "native" or "pure" inside the block. Raises kernel.LibraryError without one."""
    global _backend
    before, _backend = _backend, _choose(name)
    try:
        yield
    finally:
        _backend = before


def use(path: str | os.PathLike[str] | None) -> None:
    """Serve the index from another library with the functions of csrc/h3_bridge.h from now on.

    None goes back to the library of this installation. Raises kernel.LibraryError with the reason
    where the library is refused (its ABI, a missing function, a wrong answer in the self-test);
    then the one before goes on serving.
    """
    global _backend
    _backend = None if path is None else native.Native(kernel.load(kernel.absolute(path)))


# ---- points ----


def latlng_to_cell(lat: float, lng: float, res: int) -> int:
    """The cell of a point in degrees (latitude first) at resolution 0..15."""
    return int(_use().latlng_to_cell(math.radians(lat), math.radians(lng), res))


def cell_to_latlng(cell: int) -> tuple[float, float]:
    """Latitude and longitude of a cell's centre in degrees."""
    lat, lng = _use().cell_to_latlng(cell)
    return math.degrees(lat), math.degrees(lng)


def cell_to_boundary(cell: int) -> list[tuple[float, float]]:
    """The 5 to 10 corners of a cell, (latitude, longitude) in degrees, counter-clockwise."""
    return [(math.degrees(a), math.degrees(b)) for a, b in _use().cell_to_boundary(cell)]


def plane_to_latlng(face: int, u: float, v: float) -> tuple[float, float]:
    """Latitude and longitude in degrees of a point of a face's gnomonic plane."""
    lat, lng = _use().plane_to_latlng(face, u, v)
    return math.degrees(lat), math.degrees(lng)


def latlng_to_plane(face: int, lat: float, lng: float) -> tuple[float, float]:
    """Plane coordinates (u, v) on a face of a point in degrees."""
    u, v = _use().latlng_to_plane(face, math.radians(lat), math.radians(lng))
    return float(u), float(v)


# ---- neighbours ----


def grid_disk(cell: int, k: int) -> list[int]:
    """All cells within k steps, nearest first."""
    return list(_use().grid_disk(cell, k))


def grid_disk_distances(cell: int, k: int) -> list[tuple[int, int]]:
    """(cell, steps) of all cells within k steps, nearest first."""
    return list(_use().grid_disk_distances(cell, k))


def grid_ring(cell: int, k: int) -> list[int]:
    """All cells at exactly k steps."""
    return list(_use().grid_ring(cell, k))


def grid_distance(a: int, b: int) -> int:
    """Steps between two cells of one resolution; H3FailedError if their faces share no vertex."""
    return int(_use().grid_distance(a, b))


def are_neighbor_cells(a: int, b: int) -> bool:
    """Whether two cells of one resolution share an edge."""
    return bool(_use().are_neighbor_cells(a, b))


# ---- hierarchy ----


def cell_to_parent(cell: int, res: int) -> int:
    """The ancestor at a coarser resolution."""
    return int(_use().cell_to_parent(cell, res))


def cell_to_children(cell: int, res: int) -> list[int]:
    """All descendants at a finer resolution, in index order."""
    return list(_use().cell_to_children(cell, res))


def cell_to_children_size(cell: int, res: int) -> int:
    """How many descendants there are."""
    return int(_use().cell_to_children_size(cell, res))


def cell_to_center_child(cell: int, res: int) -> int:
    """The descendant in the middle."""
    return int(_use().cell_to_center_child(cell, res))


def get_pentagons(res: int) -> list[int]:
    """The 12 pentagons of a resolution."""
    return list(_use().get_pentagons(res))


def get_res0_cells() -> list[int]:
    """The 122 base cells."""
    return list(_use().get_res0_cells())


# ---- facts and text ----


def is_valid_cell(cell: int) -> bool:
    """Whether a number is a cell."""
    return bool(_use().is_valid_cell(cell))


def is_pentagon(cell: int) -> bool:
    """Whether a cell is one of the 12 pentagons of its resolution."""
    return bool(_use().is_pentagon(cell))


def get_resolution(cell: int) -> int:
    """The resolution of a cell."""
    return int(_use().get_resolution(cell))


def get_base_cell_number(cell: int) -> int:
    """The base cell (0..121) of a cell."""
    return int(_use().get_base_cell_number(cell))


def str_to_int(text: str) -> int:
    """The number that 1 to 16 hexadecimal digits stand for; anything else is an error."""
    return int(_use().str_to_int(text))


def int_to_str(cell: int) -> str:
    """A cell as hexadecimal text."""
    return str(_use().int_to_str(cell))


# ---- arrays (numpy) ----


def _ids(cells: Iterable[int]) -> Any:
    """uint64 [n], not cut to 64 bits: what does not fit becomes 0. Refuses floats, which have
    lost digits of an id already."""
    import numpy as np

    ids = cells if isinstance(cells, np.ndarray) else list(cells)
    if isinstance(ids, np.ndarray) and ids.dtype.kind in "ui":
        flat = ids.reshape(-1)
        return np.where(flat < 0, 0, flat).astype(np.uint64) if flat.dtype.kind == "i" else flat
    known = map(operator.index, np.ravel(ids).tolist() if isinstance(ids, np.ndarray) else ids)
    return np.array([h if 0 <= h < 1 << 64 else 0 for h in known], np.uint64)


def latlngs_to_cells(lat: Sequence[float], lng: Sequence[float], res: int) -> Any:
    """Cells of points in degrees: uint64 [n]; 0 where a coordinate is not finite."""
    import numpy as np

    return _use().latlngs_to_cells(
        np.radians(np.asarray(lat, float)), np.radians(np.asarray(lng, float)), res
    )


def cells_to_latlngs(cells: Iterable[int]) -> tuple[Any, Any]:
    """Latitudes and longitudes of centres in degrees, [n] each; NaN for what is no cell."""
    import numpy as np

    lat, lng = _use().cells_to_latlngs(_ids(cells))
    return np.degrees(lat), np.degrees(lng)


def cells_to_boundaries(cells: Iterable[int]) -> tuple[Any, Any]:
    """Corners in degrees [n, 10, 2] (unused NaN) and their number [n] (-1: no cell)."""
    import numpy as np

    points, counts = _use().cells_to_boundaries(_ids(cells))
    return np.degrees(points), counts


def cells_to_parents(cells: Iterable[int], res: int) -> Any:
    """Ancestors at `res`: uint64 [n]; 0 where there is none."""
    return _use().cells_to_parents(_ids(cells), res)


def are_valid_cells(cells: Iterable[int]) -> Any:
    """Whether each number is a cell: bool [n]."""
    return _use().are_valid_cells(_ids(cells))


def get_resolutions(cells: Iterable[int]) -> Any:
    """Resolution of each cell: int32 [n]; -1 for what is no cell."""
    return _use().get_resolutions(_ids(cells))


def grid_disks(cells: Iterable[int], k: int) -> tuple[Any, Any]:
    """The disks of many cells, one after the other: (uint64 [m], int64 [n + 1] offsets).

    Disk i is cells[offsets[i]:offsets[i + 1]], nearest first; empty for what is no cell.
    """
    return _use().grid_disks(_ids(cells), k)


def planes_to_latlngs(face: int, u: Sequence[float], v: Sequence[float]) -> tuple[Any, Any]:
    """Latitudes and longitudes in degrees of points of a face's plane; NaN if not finite."""
    import numpy as np

    lat, lng = _use().planes_to_latlngs(face, u, v)
    return np.degrees(lat), np.degrees(lng)


def latlngs_to_planes(face: int, lat: Sequence[float], lng: Sequence[float]) -> tuple[Any, Any]:
    """Plane coordinates (u, v) of points in degrees; NaN where the plane does not reach."""
    import numpy as np

    return _use().latlngs_to_planes(
        face, np.radians(np.asarray(lat, float)), np.radians(np.asarray(lng, float))
    )


def grid_distances(a: Iterable[int], b: Iterable[int]) -> Any:
    """Steps between pairs of cells: int64 [n]; -1 where there is no answer."""
    return _use().grid_distances(_ids(a), _ids(b))


# ---- rasters (numpy) ----


def frame_cells(
    face: int, u0: float, v0: float, width: int, height: int, span: float, rotation: float,
    res: int,
) -> Any:  # fmt: skip
    """The cell of every pixel of a frame in a face's plane: uint64 [height * width].

    The frame's centre is at (u0, v0), its longer side spans `span` plane units, it is turned
    by `rotation` radians counter-clockwise; y points down, pixel centres are half-integers.
    """
    return _use().frame_cells(face, u0, v0, width, height, span, rotation, res)


def hex_weights(
    columns: int, rows: int, x0: float, y0: float, step: float, cx: Sequence[float],
    cy: Sequence[float], inradius: float, theta: float, overlap: float,
) -> tuple[Any, Any]:  # fmt: skip
    """Weights of regular hexagons at a raster of points.

    Points are (x0 + (i + 0.5) step, y0 + (j + 0.5) step). Hexagons have their centres at
    (cx, cy), an edge normal at angle `theta` (from +x towards +y). Returns (cell int32, weight
    float32), both [columns * rows, 4], largest weight first, unused (-1, 0). The weight is
    smoothstep(signed distance / overlap + 1/2), normalised; overlap 0 gives it all to the
    nearest centre. Needs 0 <= overlap <= 2 inradius, else H3DomainError.
    """
    return _use().hex_weights(columns, rows, x0, y0, step, cx, cy, inradius, theta, overlap)


def blend_tile(out: Any, tile: Any, weight: Any, seen: Any = None, shares: Any = None) -> None:
    """One tile into a running weighted mean, in place: out += alpha (tile - out).

    out, tile   float32 [frames, planes, rows, columns, inner], views are welcome as long as the
                last two axes are contiguous and no stride is negative
    weight      float32 [rows, columns], contiguous: the alpha, if nothing else is given
    seen        float32 [others, rows, columns], rows contiguous: weights blended there already
    shares      float32 [frames, 1 + others], contiguous: how much the tile counts in a frame, and
                each plane of `seen`; then alpha is own / (before + own), own = share x weight,
                before = the sum of shares x seen

    Alpha 0 or NaN (0 / 0) reads nothing, 1 copies. Numbers that are equal in both stay as they
    are, bit for bit.
    """
    import numpy as np

    shape = tuple(out.shape)
    if len(shape) != 5 or tuple(tile.shape) != shape or tuple(weight.shape) != shape[2:4]:
        raise ValueError(
            f"out {shape} and tile {tuple(tile.shape)} must be alike and have 5 axes, "
            f"weight {tuple(weight.shape)} the rows and columns"
        )
    if (seen is None) != (shares is None):
        raise ValueError("seen and shares belong together")
    if seen is None:
        seen, shares = np.empty((0, *shape[2:4]), np.float32), np.empty(0, np.float32)
    elif tuple(seen.shape[1:]) != shape[2:4] or shares.shape != (shape[0], 1 + len(seen)):
        raise ValueError(
            f"seen {tuple(seen.shape)} must have the rows and columns of out {shape}, shares "
            f"{tuple(shares.shape)} its frames and a column more than seen has planes"
        )
    packed = {
        "out": (out, (4 * shape[4], 4)), "tile": (tile, (4 * shape[4], 4)),
        "weight": (weight, (4 * shape[3], 4)), "seen": (seen, (4,)),
        "shares": (shares, (4 * (1 + len(seen)), 4)[-shares.ndim :]),
    }  # fmt: skip
    for name, (array, wanted) in packed.items():
        if array.dtype != "float32":
            raise ValueError(f"{name} is {array.dtype}, it must be float32")
        ends = zip(array.shape[-len(wanted) :], array.strides[-len(wanted) :], wanted)
        if array.size and (min(array.strides) < 0 or any(n > 1 and s != p for n, s, p in ends)):
            raise ValueError(f"{name} has strides {array.strides}; its rows must be contiguous")
    if out.size:
        _use().blend_tile(out, tile, weight, seen, shares)
