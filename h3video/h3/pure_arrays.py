"""The rest of the pure backend: arrays and frame rasters, one item at a time.

numpy is used only where arrays come in and go out; with pure.py this module fulfils
the whole contract (api.CONTRACT). Angles are radians.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any

from .errors import error
from .pure import (
    _encode,
    _inside,
    _nearest,
    _res,
    _res_of,
    are_neighbor_cells,
    cell_to_boundary,
    cell_to_center_child,
    cell_to_children,
    cell_to_children_size,
    cell_to_latlng,
    cell_to_parent,
    get_base_cell_number,
    get_pentagons,
    get_res0_cells,
    get_resolution,
    grid_disk,
    grid_disk_distances,
    grid_distance,
    grid_ring,
    int_to_str,
    is_pentagon,
    is_valid_cell,
    latlng_to_cell,
    latlng_to_plane,
    plane_to_cell,
    plane_to_latlng,
    str_to_int,
)  # fmt: skip
from .pure_more import (
    average_hexagon_area,
    average_hexagon_edge_length,
    cell_area,
    cell_to_child_pos,
    cell_to_local_ij,
    cell_to_vertex,
    cell_to_vertexes,
    cells_to_directed_edge,
    child_pos_to_cell,
    compact_cells,
    construct_cell,
    describe_error,
    directed_edge_to_boundary,
    directed_edge_to_cells,
    edge_length,
    get_icosahedron_faces,
    get_index_digit,
    get_num_cells,
    great_circle_distance,
    grid_disk_unsafe,
    grid_path_cells,
    grid_ring_unsafe,
    is_res_class_iii,
    is_valid_directed_edge,
    is_valid_index,
    is_valid_vertex,
    local_ij_to_cell,
    origin_to_directed_edges,
    reverse_directed_edge,
    uncompact_cells,
    vertex_to_latlng,
)  # fmt: skip

__all__ = [
    "are_neighbor_cells", "are_valid_cells", "average_hexagon_area", "average_hexagon_edge_length",
    "blend_tile", "cell_area", "cell_areas", "cell_to_boundary", "cell_to_center_child",
    "cell_to_child_pos", "cell_to_children", "cell_to_children_size", "cell_to_latlng",
    "cell_to_local_ij", "cell_to_parent", "cell_to_vertex", "cell_to_vertexes",
    "cells_to_boundaries", "cells_to_center_children", "cells_to_directed_edge",
    "cells_to_latlngs", "cells_to_parents", "child_pos_to_cell", "compact_cells", "construct_cell",
    "describe_error", "directed_edge_to_boundary", "directed_edge_to_cells", "edge_length",
    "frame_cells", "get_base_cell_number", "get_icosahedron_faces", "get_index_digit",
    "get_num_cells", "get_pentagons", "get_res0_cells", "get_resolution", "get_resolutions",
    "great_circle_distance", "grid_disk", "grid_disk_distances", "grid_disk_unsafe", "grid_disks",
    "grid_distance", "grid_distances", "grid_path_cells", "grid_ring", "grid_ring_unsafe",
    "hex_weights", "int_to_str", "is_pentagon", "is_res_class_iii", "is_valid_cell",
    "is_valid_directed_edge", "is_valid_index", "is_valid_vertex", "latlng_to_cell",
    "latlng_to_plane", "latlngs_to_cells", "latlngs_to_planes", "local_ij_to_cell",
    "origin_to_directed_edges", "plane_to_latlng", "planes_to_latlngs", "reverse_directed_edge",
    "str_to_int", "uncompact_cells", "vertex_to_latlng",
]  # fmt: skip


# ---- arrays, prepared by api.py and filled in place ---------------------------------------------


def latlngs_to_cells(lat: Any, lng: Any, res: int, unit: float, out: Any) -> None:
    _res(res)
    for i, (a, b) in enumerate(zip(lat.tolist(), lng.tolist())):
        known = math.isfinite(a) and math.isfinite(b)
        out[i] = latlng_to_cell(a * unit, b * unit, res) if known else 0


def cells_to_latlngs(cells: Any, unit: float, lat: Any, lng: Any) -> None:
    for i, h in enumerate(cells.tolist()):
        a, b = cell_to_latlng(h) if is_valid_cell(h) else (math.nan, math.nan)
        lat[i], lng[i] = a * unit, b * unit


def cells_to_boundaries(cells: Any, unit: float, points: Any, counts: Any) -> None:
    points[:] = math.nan
    counts[:] = -1
    for i, h in enumerate(cells.tolist()):
        if is_valid_cell(h):
            corners = [(a * unit, b * unit) for a, b in cell_to_boundary(h)]
            points[i, : len(corners)] = corners
            counts[i] = len(corners)


def cells_to_parents(cells: Any, res: int, out: Any) -> None:
    _res(res)
    for i, h in enumerate(cells.tolist()):
        out[i] = cell_to_parent(h, res) if is_valid_cell(h) and _res_of(h) >= res else 0


def cells_to_center_children(cells: Any, res: int, out: Any) -> None:
    _res(res)
    for i, h in enumerate(cells.tolist()):
        out[i] = cell_to_center_child(h, res) if is_valid_cell(h) and _res_of(h) <= res else 0


def are_valid_cells(cells: Any, out: Any) -> None:
    out[:] = [is_valid_cell(h) for h in cells.tolist()]


def get_resolutions(cells: Any, out: Any) -> None:
    out[:] = [_res_of(h) if is_valid_cell(h) else -1 for h in cells.tolist()]


def cell_areas(cells: Any, unit: float, out: Any) -> None:
    out[:] = [cell_area(h) * unit if is_valid_cell(h) else math.nan for h in cells.tolist()]


def grid_disks(cells: Any, k: int, out: Any) -> tuple[Any, Any]:
    import numpy as np

    if k < 0:
        raise error(2, f"k {k}")
    disks = [grid_disk(h, k) if is_valid_cell(h) else [] for h in cells.tolist()]
    offsets = np.cumsum([0, *map(len, disks)], dtype=np.int64)
    if out is None or len(out) < offsets[-1]:
        out = np.empty(offsets[-1], np.uint64)
    out = out[: offsets[-1]]
    out[:] = [h for disk in disks for h in disk]
    return out, offsets


def grid_distances(a: Any, b: Any, out: Any) -> None:
    for i, (p, q) in enumerate(zip(a.tolist(), b.tolist())):
        known = is_valid_cell(p) and is_valid_cell(q) and _res_of(p) == _res_of(q)
        out[i] = grid_distance(p, q) if known else -1


def planes_to_latlngs(face: int, u: Sequence[float], v: Sequence[float]) -> tuple[Any, Any]:
    return _pairs(plane_to_latlng, face, u, v)


def latlngs_to_planes(face: int, lat: Sequence[float], lng: Sequence[float]) -> tuple[Any, Any]:
    return _pairs(latlng_to_plane, face, lat, lng)


def _pairs(function: Any, face: int, x: Sequence[float], y: Sequence[float]) -> tuple[Any, Any]:
    import numpy as np

    if not 0 <= face < 20:
        raise error(2, f"face {face}")
    _same_length(x, y)
    out = np.full((2, len(x)), np.nan)
    for i, (p, q) in enumerate(zip(x, y)):
        try:
            out[:, i] = function(face, float(p), float(q))
        except ValueError:
            continue  # NaN says so
    return out[0], out[1]


def _same_length(a: Sequence[Any], b: Sequence[Any]) -> None:
    if len(a) != len(b):
        raise error(2, f"sequences of {len(a)} and {len(b)} items")


# ---- rasters: the written definition -----------------------------------------------------------


def frame_cells(
    face: int, u0: float, v0: float, width: int, height: int, span: float, rotation: float,
    res: int,
) -> Any:  # fmt: skip
    import numpy as np

    _raster(width, height)
    _res(res)
    numbers = all(map(math.isfinite, (u0, v0, rotation)))
    if not (0 <= face < 20 and numbers and 0.0 < span <= 4.0):
        raise error(2, f"face {face}, frame at ({u0}, {v0}), span {span}, rotation {rotation}")
    scale = span / max(width, height)
    c, s = math.cos(rotation), math.sin(rotation)
    out = np.empty(width * height, np.uint64)
    known: dict[tuple[int, int], int] = {}  # lattice point -> cell
    for y in range(height):
        dv = -(y + 0.5 - height / 2.0) * scale
        for x in range(width):
            du = (x + 0.5 - width / 2.0) * scale
            u, v = u0 + du * c - dv * s, v0 + du * s + dv * c
            if not _inside(u, v):
                out[y * width + x] = plane_to_cell(face, u, v, res)
                continue
            at = _nearest(u, v, res)
            if at not in known:
                known[at] = _encode((face, *at), res)
            out[y * width + x] = known[at]
    return out


def _raster(columns: int, rows: int) -> None:
    if not (0 < columns <= 1 << 24 and 0 < rows <= 1 << 24):
        raise error(2, f"raster of {columns}x{rows}")


def hex_weights(
    columns: int, rows: int, x0: float, y0: float, step: float, cx: Sequence[float],
    cy: Sequence[float], inradius: float, theta: float, overlap: float,
) -> tuple[Any, Any]:  # fmt: skip
    import numpy as np

    _raster(columns, rows)
    _same_length(cx, cy)
    numbers = (x0, y0, step, inradius, theta, overlap)
    good = len(cx) > 0 and all(map(math.isfinite, numbers)) and inradius > 1e-12
    if not good or not all(abs(v) < 1e12 for v in (*cx, *cy)) or not 0 <= overlap <= 2 * inradius:
        raise error(2, f"{len(cx)} cells, inradius {inradius}, overlap {overlap}")
    across, down = x0 + (np.arange(columns) + 0.5) * step, y0 + (np.arange(rows) + 0.5) * step
    index = np.full((rows, columns, 5), -1, np.int32)
    weight = np.zeros((rows, columns, 5))
    nearest = np.full((rows, columns), np.inf)
    closest = np.full((rows, columns), -1, np.int32)
    corner = inradius * 2.0 / math.sqrt(3.0)
    reach = (corner + overlap / 2.0) * (1.0 + 1e-9)
    centres = list(zip(map(float, cx), map(float, cy)))
    for i, (a, b) in enumerate(centres):
        # Only the box that the hexagon can reach: cells are many and small.
        left, right = _between(across, a - reach, a + reach)
        top, bottom = _between(down, b - reach, b + reach)
        if left >= right or top >= bottom:
            continue
        box = (slice(top, bottom), slice(left, right))
        dx, dy = np.broadcast_arrays(across[left:right] - a, down[top:bottom, None] - b)
        squared = dx * dx + dy * dy
        nearer = squared < nearest[box]
        closest[box][nearer] = i
        nearest[box][nearer] = squared[nearer]
        if overlap > 0.0:
            t = np.minimum(outline_distance(dx, dy, inradius, theta) / overlap + 0.5, 1.0)
            p = t > 0.0
            # In the fifth place, then to where it belongs: stable, so lower cells stay first.
            found, share = index[box][p], weight[box][p]
            found[:, 4], share[:, 4] = i, t[p] * t[p] * (3.0 - 2.0 * t[p])
            order = np.argsort(-share, axis=1, kind="stable")
            found = np.take_along_axis(found, order, axis=1)
            share = np.take_along_axis(share, order, axis=1)
            found[:, 4], share[:, 4] = -1, 0.0
            index[box][p], weight[box][p] = found, share
    # A point farther than a corner from every centre in its box is in no hexagon: ask all centres.
    lost = np.argwhere((index[..., 0] < 0) & ~(nearest <= corner * corner))
    for row, column in lost:
        distances = [(across[column] - a) ** 2 + (down[row] - b) ** 2 for a, b in centres]
        closest[row, column] = min(range(len(centres)), key=distances.__getitem__)
    bare = index[..., 0] < 0
    index[..., 0][bare], weight[..., 0][bare] = closest[bare], 1.0
    w = weight[..., :4].reshape(-1, 4)
    total = w[:, 0] + w[:, 1] + w[:, 2] + w[:, 3]
    return index[..., :4].reshape(-1, 4).copy(), (w / total[:, None]).astype(np.float32)


def _between(points: Any, low: float, high: float) -> tuple[int, int]:
    """Positions of the points in [low, high] of evenly spaced ones, ascending or descending."""
    import numpy as np

    if len(points) > 1 and points[1] < points[0]:
        first = np.searchsorted(-points, -high, side="left")
        return int(first), int(np.searchsorted(-points, -low, side="right"))
    first = np.searchsorted(points, low, side="left")
    return int(first), int(np.searchsorted(points, high, side="right"))


def blend_tile(out: Any, tile: Any, weight: Any, seen: Any, shares: Any) -> None:
    for first, last, alpha in blend_alphas(len(out), weight, seen, shares):
        _blend(out[first:last], tile[first:last], alpha)


def blend_alphas(
    frames: int, weight: Any, seen: Any, shares: Any
) -> Iterator[tuple[int, int, Any]]:
    """Runs of frames (first, last) with the same alpha [rows, columns], see api.blend_tile."""
    import numpy as np

    if shares is None or not shares.size:
        yield 0, frames, weight
        return
    first = 0
    for last in range(1, frames + 1):
        if last < frames and (shares[last] == shares[first]).all():
            continue
        own, before = shares[first, 0] * weight, np.zeros_like(weight)
        for k in shares[first, 1:].nonzero()[0]:
            before += shares[first, 1 + k] * seen[k]
        with np.errstate(invalid="ignore"):
            alpha = own / (before + own)
        yield first, last, alpha
        first = last


def _blend(out: Any, tile: Any, alpha: Any) -> None:
    import numpy as np

    with np.errstate(invalid="ignore"):  # NaN
        whole = (alpha >= 1.0)[:, :, None]
        rows, columns = np.nonzero((alpha > 0.0) & (alpha < 1.0))  # most points are 0 or 1
    a = alpha[rows, columns][:, None]
    for o, t in zip(out, tile):  # frame by frame: no second copy of a tile
        np.copyto(o, t, where=whole)
        before, new = o[:, rows, columns], t[:, rows, columns]
        with np.errstate(invalid="ignore", over="ignore"):
            o[:, rows, columns] = np.where(new == before, before, before + a * (new - before))


def outline_distance(dx: Any, dy: Any, inradius: float, theta: float) -> Any:
    """Euclidean distance of points to a hexagon's outline, inside positive; from its centre."""
    import numpy as np

    across, along = np.full(dx.shape, -1.0), np.zeros(dx.shape)
    for k in range(3):
        nx = math.cos(theta + k * 1.0471975511965976)
        ny = math.sin(theta + k * 1.0471975511965976)
        p = np.abs(dx * nx + dy * ny)
        along = np.where(p > across, np.abs(dy * nx - dx * ny), along)
        across = np.maximum(across, p)
    out, past = across - inradius, along - inradius / 1.7320508075688772
    return np.where((out <= 0.0) | (past <= 0.0), -out, -np.hypot(out, past))
