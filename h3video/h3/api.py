"""The index for callers: degrees, Python integers, whichever backend serves.

The native library is used when there is one for this machine, else pure Python
with the same contract and one log line. $H3VIDEO_BACKEND=native|pure decides
by force; `use_backend` does so in a test. `use` swaps the library (see kernel.py).
"""

from __future__ import annotations

import logging
import math
import os
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from . import buffers, kernel, native
from . import pure_arrays as pure
from .errors import error

log = logging.getLogger("h3video")

CONTRACT = (
    "latlng_to_cell", "cell_to_latlng", "cell_to_boundary", "grid_disk", "grid_disk_distances",
    "grid_ring", "grid_distance", "are_neighbor_cells", "cell_to_parent", "cell_to_children",
    "cell_to_children_size", "cell_to_center_child", "is_valid_cell", "is_pentagon",
    "get_resolution", "get_base_cell_number", "get_pentagons", "get_res0_cells", "str_to_int",
    "int_to_str", "plane_to_latlng", "latlng_to_plane", "latlngs_to_cells", "cells_to_latlngs",
    "cells_to_boundaries", "cells_to_parents", "are_valid_cells", "get_resolutions",
    "grid_disks", "grid_distances", "planes_to_latlngs", "latlngs_to_planes", "frame_cells",
    "hex_weights", "blend_tile", "grid_disk_unsafe", "grid_ring_unsafe", "grid_path_cells",
    "cell_to_local_ij", "local_ij_to_cell", "cell_to_child_pos", "child_pos_to_cell",
    "compact_cells", "uncompact_cells", "construct_cell", "get_index_digit", "is_res_class_iii",
    "is_valid_index", "is_valid_directed_edge", "is_valid_vertex", "get_num_cells",
    "get_icosahedron_faces", "cells_to_directed_edge", "directed_edge_to_cells",
    "origin_to_directed_edges", "reverse_directed_edge", "directed_edge_to_boundary",
    "cell_to_vertex", "cell_to_vertexes", "vertex_to_latlng", "cell_area", "edge_length",
    "average_hexagon_area", "average_hexagon_edge_length", "great_circle_distance",
    "describe_error", "cells_to_center_children", "cell_areas",
)  # fmt: skip
"""What each backend must provide, in radians."""

DEGREE = math.pi / 180.0
PER_RADIAN = 180.0 / math.pi
EARTH_KM = 6371.007180918475

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
    """The fewest steps from neighbour to neighbour between any two cells of one resolution."""
    return int(_use().grid_distance(a, b))


def are_neighbor_cells(a: int, b: int) -> bool:
    """Whether two cells of one resolution share an edge."""
    return bool(_use().are_neighbor_cells(a, b))


def grid_path_cells(start: int, end: int) -> list[int]:
    """A shortest path from neighbour to neighbour, both ends included, between any two cells."""
    return list(_use().grid_path_cells(start, end))


def grid_disk_unsafe(cell: int, k: int) -> list[int]:
    """grid_disk in uber/h3's order; H3PentagonError if a pentagon is within k steps."""
    return list(_use().grid_disk_unsafe(cell, k))


def grid_ring_unsafe(cell: int, k: int) -> list[int]:
    """grid_ring in uber/h3's order; H3PentagonError if a pentagon is within k steps."""
    return list(_use().grid_ring_unsafe(cell, k))


def cell_to_local_ij(origin: int, cell: int) -> tuple[int, int]:
    """Lattice coordinates (i, j) of a cell around the base cell of `origin`.

    H3FailedError: the base cells are not side by side, or a pentagon lies between.
    """
    i, j = _use().cell_to_local_ij(origin, cell)
    return int(i), int(j)


def local_ij_to_cell(origin: int, i: int, j: int) -> int:
    """The cell at such coordinates; H3FailedError where there is none."""
    return int(_use().local_ij_to_cell(origin, i, j))


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


def cell_to_child_pos(child: int, res: int) -> int:
    """The place of a cell among the descendants of its ancestor at `res`."""
    return int(_use().cell_to_child_pos(child, res))


def child_pos_to_cell(parent: int, res: int, pos: int) -> int:
    """The descendant at `res` at a place; H3DomainError where there is none."""
    return int(_use().child_pos_to_cell(parent, res, pos))


def compact_cells(cells: Iterable[int]) -> list[int]:
    """Complete families of cells of one resolution replaced by their parents, again and again."""
    return list(_use().compact_cells(list(cells)))


def uncompact_cells(cells: Iterable[int], res: int) -> list[int]:
    """All descendants at `res` of cells of it or coarser ones."""
    return list(_use().uncompact_cells(list(cells), res))


def construct_cell(base_cell: int, *digits: int, res: int | None = None) -> int:
    """The cell of a base cell and the digits of resolutions 1, 2, ... (`res` of them, if given)."""
    if res is not None and res != len(digits):
        raise error(4, f"resolution {res} with {len(digits)} digits")
    return int(_use().construct_cell(len(digits), base_cell, digits))


def get_num_cells(res: int) -> int:
    """How many cells a resolution has."""
    return int(_use().get_num_cells(res))


def get_icosahedron_faces(cell: int) -> list[int]:
    """The faces 0..19 on which a cell lies, ascending: 1 or 2, of a pentagon 5."""
    return list(_use().get_icosahedron_faces(cell))


# ---- directed edges and vertexes ----


def cells_to_directed_edge(origin: int, destination: int) -> int:
    """The edge from a cell to its neighbour; H3NotNeighborsError."""
    return int(_use().cells_to_directed_edge(origin, destination))


def directed_edge_to_cells(edge: int) -> tuple[int, int]:
    """Origin and destination of an edge."""
    origin, destination = _use().directed_edge_to_cells(edge)
    return int(origin), int(destination)


def get_directed_edge_origin(edge: int) -> int:
    """The cell from which an edge leads."""
    return directed_edge_to_cells(edge)[0]


def get_directed_edge_destination(edge: int) -> int:
    """The cell to which an edge leads."""
    return directed_edge_to_cells(edge)[1]


def origin_to_directed_edges(origin: int) -> list[int]:
    """The 6 (of a pentagon 5) edges that lead from a cell."""
    return list(_use().origin_to_directed_edges(origin))


def reverse_directed_edge(edge: int) -> int:
    """The same edge from the other side."""
    return int(_use().reverse_directed_edge(edge))


def directed_edge_to_boundary(edge: int) -> list[tuple[float, float]]:
    """The 2 ends of an edge in degrees, or 3 points where it bends."""
    return [(math.degrees(a), math.degrees(b)) for a, b in _use().directed_edge_to_boundary(edge)]


def cell_to_vertex(cell: int, number: int) -> int:
    """The vertex at corner 0..5 (of a pentagon 4) of a cell."""
    return int(_use().cell_to_vertex(cell, number))


def cell_to_vertexes(cell: int) -> list[int]:
    """All vertexes of a cell, counter-clockwise."""
    return list(_use().cell_to_vertexes(cell))


def vertex_to_latlng(vertex: int) -> tuple[float, float]:
    """Latitude and longitude of a vertex in degrees."""
    lat, lng = _use().vertex_to_latlng(vertex)
    return math.degrees(lat), math.degrees(lng)


# ---- areas and lengths ----


def cell_area(cell: int, unit: str = "km^2") -> float:
    """The area of a cell in "km^2", "m^2" or "rads^2"."""
    return float(_use().cell_area(cell) * _area_unit(unit))


def edge_length(edge: int, unit: str = "km") -> float:
    """The length of an edge in "km", "m" or "rads"."""
    return float(_use().edge_length(edge) * _length_unit(unit))


def average_hexagon_area(res: int, unit: str = "km^2") -> float:
    """The mean area of the hexagons of a resolution."""
    return float(_use().average_hexagon_area(res) * _area_unit(unit) / EARTH_KM**2)


def average_hexagon_edge_length(res: int, unit: str = "km") -> float:
    """The mean length of the edges of the hexagons of a resolution."""
    return float(_use().average_hexagon_edge_length(res) * _length_unit(unit) / EARTH_KM)


def great_circle_distance(
    a: tuple[float, float], b: tuple[float, float], unit: str = "km"
) -> float:
    """The distance of two points (latitude, longitude) in degrees along a great circle."""
    angles = map(math.radians, (*a, *b))
    return float(_use().great_circle_distance(*angles) * _length_unit(unit))


def _length_unit(unit: str) -> float:
    units = {"rads": 1.0, "km": EARTH_KM, "m": EARTH_KM * 1000.0}
    if unit not in units:
        raise error(15, f"unit {unit!r}, not rads, km or m")
    return units[unit]


def _area_unit(unit: str) -> float:
    if unit not in ("rads^2", "km^2", "m^2"):
        raise error(15, f"unit {unit!r}, not rads^2, km^2 or m^2")
    return _length_unit(unit[:-2]) ** 2


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


def get_index_digit(index: int, res: int) -> int:
    """The digit of resolution 1..15; 7 beyond the cell's own."""
    return int(_use().get_index_digit(index, res))


def is_res_class_iii(cell: int) -> bool:
    """Whether a cell is of an odd resolution."""
    return bool(_use().is_res_class_iii(cell))


is_res_class_III = is_res_class_iii


def is_valid_index(h: int) -> bool:
    """Whether a number is a cell, a directed edge or a vertex."""
    return bool(_use().is_valid_index(h))


def is_valid_directed_edge(h: int) -> bool:
    """Whether a number is a directed edge."""
    return bool(_use().is_valid_directed_edge(h))


def is_valid_vertex(h: int) -> bool:
    """Whether a number is a vertex."""
    return bool(_use().is_valid_vertex(h))


def describe_error(code: int) -> str:
    """What an error code of the index means."""
    return str(_use().describe_error(code))


def str_to_int(text: str) -> int:
    """The number that 1 to 16 hexadecimal digits stand for; anything else is an error."""
    return int(_use().str_to_int(text))


def int_to_str(cell: int) -> str:
    """A cell as hexadecimal text."""
    return str(_use().int_to_str(cell))


# ---- arrays ----
#
# They take numpy arrays, array.array, memoryview (none is copied) or lists and return numpy arrays,
# or fill `out`, any writable buffer of the type told. `threads`: how many work on it at the same
# time, 0: one a processor.


def latlngs_to_cells(
    lat: Sequence[float], lng: Sequence[float], res: int, *, out: Any = None, threads: int = 1
) -> Any:
    """Cells of points in degrees: uint64 [n]; 0 where a coordinate is not finite."""
    la, lo = buffers.doubles(lat), buffers.doubles(lng)
    if len(la) != len(lo):
        raise error(2, f"{len(la)} latitudes and {len(lo)} longitudes")
    la, lo = buffers.same_steps(la, lo)
    cells, index = buffers.room(out, (len(la),), "uint64"), _use()
    buffers.in_parts(
        len(la), threads,
        lambda s: index.latlngs_to_cells(la[s], lo[s], res, DEGREE, cells[s]),
    )  # fmt: skip
    return cells


def cells_to_latlngs(
    cells: Iterable[int], *, out: Any = None, threads: int = 1
) -> tuple[Any, Any]:
    """Latitudes and longitudes of centres in degrees, [n] each; NaN for what is no cell.

    `out`: a pair of float64 buffers [n], or one of 2 n: all latitudes, then all longitudes.
    """
    known, index = buffers.ids(cells), _use()
    n = len(known)
    if isinstance(out, tuple):
        lat, lng = (buffers.room(o, (n,), "float64") for o in out)
    else:
        lat, lng = buffers.room(out, (2, n), "float64")
    buffers.in_parts(
        n, threads, lambda s: index.cells_to_latlngs(known[s], PER_RADIAN, lat[s], lng[s])
    )
    return lat, lng


def cells_to_boundaries(
    cells: Iterable[int], *, out: Any = None, threads: int = 1
) -> tuple[Any, Any]:
    """Corners in degrees [n, 10, 2] (unused NaN) and their number [n] (-1: no cell).

    `out`: a pair of buffers, float64 of 20 n items and int32 of n.
    """
    known, index = buffers.ids(cells), _use()
    points = buffers.room(out[0] if out else None, (len(known), 10, 2), "float64")
    counts = buffers.room(out[1] if out else None, (len(known),), "int32")
    buffers.in_parts(
        len(known), threads,
        lambda s: index.cells_to_boundaries(known[s], PER_RADIAN, points[s], counts[s]),
    )  # fmt: skip
    return points, counts


def cells_to_parents(
    cells: Iterable[int], res: int, *, out: Any = None, threads: int = 1
) -> Any:
    """Ancestors at `res`: uint64 [n]; 0 where there is none."""
    known, index = buffers.ids(cells), _use()
    found = buffers.room(out, (len(known),), "uint64")
    buffers.in_parts(
        len(known), threads, lambda s: index.cells_to_parents(known[s], res, found[s])
    )
    return found


def cells_to_center_children(
    cells: Iterable[int], res: int, *, out: Any = None, threads: int = 1
) -> Any:
    """The descendants in the middle at `res`: uint64 [n]; 0 where there is none."""
    known, index = buffers.ids(cells), _use()
    found = buffers.room(out, (len(known),), "uint64")
    buffers.in_parts(
        len(known), threads, lambda s: index.cells_to_center_children(known[s], res, found[s])
    )
    return found


def are_valid_cells(cells: Iterable[int], *, out: Any = None, threads: int = 1) -> Any:
    """Whether each number is a cell: bool [n] (`out`: uint8 or bool)."""
    import numpy as np

    known, index = buffers.ids(cells), _use()
    kind = "uint8" if out is not None and np.asarray(out).dtype == "uint8" else "bool"
    found = buffers.room(out, (len(known),), kind)
    raw = found.view(np.uint8)
    buffers.in_parts(len(known), threads, lambda s: index.are_valid_cells(known[s], raw[s]))
    return found


def get_resolutions(cells: Iterable[int], *, out: Any = None) -> Any:
    """Resolution of each cell: int32 [n]; -1 for what is no cell."""
    known = buffers.ids(cells)
    found = buffers.room(out, (len(known),), "int32")
    _use().get_resolutions(known, found)
    return found


def cell_areas(
    cells: Iterable[int], unit: str = "km^2", *, out: Any = None, threads: int = 1
) -> Any:
    """Area of each cell: float64 [n]; NaN for what is no cell."""
    known, index, factor = buffers.ids(cells), _use(), _area_unit(unit)
    found = buffers.room(out, (len(known),), "float64")
    buffers.in_parts(len(known), threads, lambda s: index.cell_areas(known[s], factor, found[s]))
    return found


def grid_disks(cells: Iterable[int], k: int, *, out: Any = None) -> tuple[Any, Any]:
    """The disks of many cells, one after the other: (uint64 [m], int64 [n + 1] offsets).

    Disk i is cells[offsets[i]:offsets[i + 1]], nearest first; empty for what is no cell. `out`: a
    buffer of any size for the cells; where it is too small, a new array is made.
    """
    if out is not None:
        import numpy as np

        out = buffers.room(out, (np.asarray(out).size,), "uint64")
    return _use().grid_disks(buffers.ids(cells), k, out)


def grid_distances(
    a: Iterable[int], b: Iterable[int], *, out: Any = None, threads: int = 1
) -> Any:
    """Steps between pairs of cells: int64 [n]; -1 for what is no cell or of two resolutions."""
    p, q, index = buffers.ids(a), buffers.ids(b), _use()
    if len(p) != len(q):
        raise error(2, f"{len(p)} and {len(q)} cells")
    steps = buffers.room(out, (len(p),), "int64")
    buffers.in_parts(len(p), threads, lambda s: index.grid_distances(p[s], q[s], steps[s]))
    return steps


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
