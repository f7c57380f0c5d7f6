"""The index through ctypes: csrc/h3_bridge.h with argument and result types on every function.

Angles are radians. ctypes releases the GIL during calls; the library keeps no state.
"""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from typing import Any

from .constants import MOST_CELLS
from .errors import error

ABI = 4

_I32, _I64, _U64, _F64 = ctypes.c_int32, ctypes.c_int64, ctypes.c_uint64, ctypes.c_double
_PU64, _PF64 = ctypes.POINTER(_U64), ctypes.POINTER(_F64)
_PI32, _PI64 = ctypes.POINTER(_I32), ctypes.POINTER(_I64)
_PU8, _PF32 = ctypes.POINTER(ctypes.c_uint8), ctypes.POINTER(ctypes.c_float)

SIGNATURES: dict[str, tuple[Any, list[Any]]] = {
    "bridge_abi_version": (_I32, []),
    "bridge_latlng_to_cell": (_I64, [_F64, _F64, _I32, _PU64]),
    "bridge_cell_to_latlng": (_I64, [_U64, _PF64]),
    "bridge_cell_to_boundary": (_I64, [_U64, _PF64, _I64]),
    "bridge_grid_disk": (_I64, [_U64, _I32, _PU64, _I64]),
    "bridge_grid_disk_distances": (_I64, [_U64, _I32, _PU64, _PI32, _I64]),
    "bridge_grid_ring": (_I64, [_U64, _I32, _PU64, _I64]),
    "bridge_grid_distance": (_I64, [_U64, _U64, _PI64]),
    "bridge_are_neighbor_cells": (_I64, [_U64, _U64, _PI32]),
    "bridge_cell_to_parent": (_I64, [_U64, _I32, _PU64]),
    "bridge_cell_to_center_child": (_I64, [_U64, _I32, _PU64]),
    "bridge_cell_to_children_size": (_I64, [_U64, _I32, _PI64]),
    "bridge_cell_to_children": (_I64, [_U64, _I32, _PU64, _I64]),
    "bridge_is_valid_cell": (_I32, [_U64]),
    "bridge_is_pentagon": (_I32, [_U64]),
    "bridge_get_resolution": (_I32, [_U64]),
    "bridge_get_base_cell_number": (_I32, [_U64]),
    "bridge_get_pentagons": (_I64, [_I32, _PU64, _I64]),
    "bridge_get_res0_cells": (_I64, [_PU64, _I64]),
    "bridge_string_to_cell": (_I64, [ctypes.c_char_p, _PU64]),
    "bridge_cell_to_string": (_I64, [_U64, ctypes.c_char_p, _I64]),
    "bridge_plane_to_latlng": (_I64, [_I32, _F64, _F64, _PF64]),
    "bridge_latlng_to_plane": (_I64, [_I32, _F64, _F64, _PF64]),
    "bridge_use_level": (_I32, [_I32]),
    "bridge_describe_error": (_I64, [ctypes.c_uint32, ctypes.c_char_p, _I64]),
    "bridge_grid_path": (_I64, [_U64, _U64, _PU64, _I64]),
    "bridge_grid_disk_unsafe": (_I64, [_U64, _I32, _PU64, _PI32, _I64]),
    "bridge_grid_ring_unsafe": (_I64, [_U64, _I32, _PU64, _I64]),
    "bridge_cell_to_local_ij": (_I64, [_U64, _U64, _PI32]),
    "bridge_local_ij_to_cell": (_I64, [_U64, _I32, _I32, _PU64]),
    "bridge_cell_to_child_pos": (_I64, [_U64, _I32, _PI64]),
    "bridge_child_pos_to_cell": (_I64, [_I64, _U64, _I32, _PU64]),
    "bridge_compact_cells": (_I64, [_PU64, _I64, _PU64, _I64]),
    "bridge_uncompact_cells": (_I64, [_PU64, _I64, _I32, _PU64, _I64]),
    "bridge_construct_cell": (_I64, [_I32, _I32, _PI32, _PU64]),
    "bridge_get_index_digit": (_I32, [_U64, _I32]),
    "bridge_is_res_class_iii": (_I32, [_U64]),
    "bridge_is_valid_index": (_I32, [_U64]),
    "bridge_is_valid_directed_edge": (_I32, [_U64]),
    "bridge_is_valid_vertex": (_I32, [_U64]),
    "bridge_get_num_cells": (_I64, [_I32, _PI64]),
    "bridge_get_icosahedron_faces": (_I64, [_U64, _PI32, _I64]),
    "bridge_cells_to_directed_edge": (_I64, [_U64, _U64, _PU64]),
    "bridge_directed_edge_to_cells": (_I64, [_U64, _PU64]),
    "bridge_origin_to_directed_edges": (_I64, [_U64, _PU64, _I64]),
    "bridge_reverse_directed_edge": (_I64, [_U64, _PU64]),
    "bridge_directed_edge_to_boundary": (_I64, [_U64, _PF64, _I64]),
    "bridge_cell_to_vertex": (_I64, [_U64, _I32, _PU64]),
    "bridge_cell_to_vertexes": (_I64, [_U64, _PU64, _I64]),
    "bridge_vertex_to_latlng": (_I64, [_U64, _PF64]),
    "bridge_cell_area": (_I64, [_U64, _PF64]),
    "bridge_edge_length": (_I64, [_U64, _PF64]),
    "bridge_average_hexagon_area": (_I64, [_I32, _PF64]),
    "bridge_average_edge_length": (_I64, [_I32, _PF64]),
    "bridge_great_circle_distance": (_F64, [_F64, _F64, _F64, _F64]),
    "bridge_latlngs_to_cells": (_I64, [_PF64, _PF64, _I64, _F64, _I64, _I32, _PU64]),
    "bridge_cells_to_latlngs": (_I64, [_PU64, _I64, _F64, _PF64, _PF64, _I64]),
    "bridge_cells_to_boundaries": (_I64, [_PU64, _I64, _F64, _PF64, _PI32]),
    "bridge_cells_to_parents": (_I64, [_PU64, _I64, _I32, _PU64]),
    "bridge_cells_to_center_children": (_I64, [_PU64, _I64, _I32, _PU64]),
    "bridge_cell_areas": (_I64, [_PU64, _I64, _F64, _PF64]),
    "bridge_are_valid_cells": (_I64, [_PU64, _I64, _PU8]),
    "bridge_get_resolutions": (_I64, [_PU64, _I64, _PI32]),
    "bridge_grid_disks": (_I64, [_PU64, _I64, _I32, _PU64, _PI64, _I64]),
    "bridge_grid_distances": (_I64, [_PU64, _PU64, _I64, _PI64]),
    "bridge_planes_to_latlngs": (_I64, [_I32, _PF64, _PF64, _I64, _PF64, _PF64]),
    "bridge_latlngs_to_planes": (_I64, [_I32, _PF64, _PF64, _I64, _PF64, _PF64]),
    "bridge_frame_cells": (
        _I64, [_I32, _F64, _F64, _I64, _I64, _F64, _F64, _I32, _PU64, _I64],
    ),
    "bridge_hex_weights": (
        _I64,
        [_I64, _I64, _F64, _F64, _F64, _I64, _PF64, _PF64, _F64, _F64, _F64, _PI32, _PF32, _I64],
    ),
    "bridge_blend_tile": (
        _I64,
        [
            _PI64, _PF32, _I64, _PI64, _PF32, _I64, _PI64, _PF32, _I64, _I64, _PF32, _I64, _PI64,
            _PF32, _I64,
        ],
    ),
}  # fmt: skip


class Native:
    """Every function of the backend contract (see api.CONTRACT) on a loaded library."""

    def __init__(self, library: ctypes.CDLL) -> None:
        self._lib = library

    # ---- one cell ----

    def latlng_to_cell(self, lat: float, lng: float, res: int) -> int:
        out = _U64()
        _check(self._lib.bridge_latlng_to_cell(lat, lng, _int(res), out), lat, lng, res)
        return out.value

    def cell_to_latlng(self, cell: int) -> tuple[float, float]:
        out = (_F64 * 2)()
        _check(self._lib.bridge_cell_to_latlng(_id(cell), out), cell)
        return out[0], out[1]

    def cell_to_boundary(self, cell: int) -> list[tuple[float, float]]:
        out = (_F64 * 20)()
        n = _check(self._lib.bridge_cell_to_boundary(_id(cell), out, 20), cell)
        return [(out[i], out[i + 1]) for i in range(0, n, 2)]

    def grid_disk_distances(self, cell: int, k: int) -> list[tuple[int, int]]:
        room = self._disk_room(cell, k)
        out, distances = (_U64 * room)(), (_I32 * room)()
        n = self._lib.bridge_grid_disk_distances(_id(cell), _int(k), out, distances, room)
        return list(zip(out[: _check(n, cell, k)], distances[:n]))

    def grid_disk(self, cell: int, k: int) -> list[int]:
        room = self._disk_room(cell, k)
        out = (_U64 * room)()
        n = _check(self._lib.bridge_grid_disk(_id(cell), _int(k), out, room), cell, k)
        return out[:n]

    def grid_ring(self, cell: int, k: int) -> list[int]:
        self._disk_room(cell, k)
        # Asked with no room first: the library says how much it needs, or what is wrong.
        room = _check(self._lib.bridge_grid_ring(_id(cell), _int(k), None, 0), cell, k)
        out = (_U64 * room)()
        n = _check(self._lib.bridge_grid_ring(_id(cell), _int(k), out, room), cell, k)
        return out[:n]

    def _disk_room(self, cell: int, k: int) -> int:
        room = _check(self._lib.bridge_grid_disk(_id(cell), _int(k), None, 0), cell, k)
        if room > MOST_CELLS:
            raise error(13, f"disk of {k} steps around {cell:#x}")
        return room

    def grid_disk_unsafe(self, cell: int, k: int) -> list[int]:
        room = self._disk_room(cell, k)
        out = (_U64 * room)()
        n = self._lib.bridge_grid_disk_unsafe(_id(cell), _int(k), out, None, room)
        return out[: _check(n, cell, k)]

    def grid_ring_unsafe(self, cell: int, k: int) -> list[int]:
        self._disk_room(cell, k)
        room = _check(self._lib.bridge_grid_ring_unsafe(_id(cell), _int(k), None, 0), cell, k)
        out = (_U64 * room)()
        n = self._lib.bridge_grid_ring_unsafe(_id(cell), _int(k), out, room)
        return out[: _check(n, cell, k)]

    def grid_distance(self, a: int, b: int) -> int:
        return self._one(_I64, self._lib.bridge_grid_distance, _id(a), _id(b))

    def are_neighbor_cells(self, a: int, b: int) -> bool:
        return bool(self._one(_I32, self._lib.bridge_are_neighbor_cells, _id(a), _id(b)))

    def grid_path_cells(self, a: int, b: int) -> list[int]:
        return self._list(self._lib.bridge_grid_path, _id(a), _id(b))

    def cell_to_local_ij(self, origin: int, cell: int) -> tuple[int, int]:
        out = (_I32 * 2)()
        _check(self._lib.bridge_cell_to_local_ij(_id(origin), _id(cell), out), origin, cell)
        return out[0], out[1]

    def local_ij_to_cell(self, origin: int, i: int, j: int) -> int:
        return self._one(_U64, self._lib.bridge_local_ij_to_cell, _id(origin), _int(i), _int(j))

    @staticmethod
    def _one(kind: Any, function: Any, *given: Any) -> Any:
        """The number that a function writes behind its arguments."""
        out = kind()
        _check(function(*given, out), *given)
        return out.value

    @staticmethod
    def _list(function: Any, *given: Any, kind: Any = _U64) -> list[Any]:
        """A list of which the library says how much room it needs."""
        room = _check(function(*given, None, 0), *given)
        if room > MOST_CELLS:
            raise error(13, f"a list of {room} items")
        out = (kind * room)()
        return list(out[: _check(function(*given, out, room), *given)])

    def cell_to_parent(self, cell: int, res: int) -> int:
        out = _U64()
        _check(self._lib.bridge_cell_to_parent(_id(cell), _int(res), out), cell, res)
        return out.value

    def cell_to_center_child(self, cell: int, res: int) -> int:
        out = _U64()
        _check(self._lib.bridge_cell_to_center_child(_id(cell), _int(res), out), cell, res)
        return out.value

    def cell_to_children_size(self, cell: int, res: int) -> int:
        out = _I64()
        _check(self._lib.bridge_cell_to_children_size(_id(cell), _int(res), out), cell, res)
        return out.value

    def cell_to_children(self, cell: int, res: int) -> list[int]:
        room = self.cell_to_children_size(cell, res)
        if room > MOST_CELLS:
            raise error(13, f"children of {cell:#x} at resolution {res}")
        out = (_U64 * room)()
        _check(self._lib.bridge_cell_to_children(_id(cell), _int(res), out, room), cell, res)
        return out[:]

    def is_valid_cell(self, cell: int) -> bool:
        return 0 <= cell < 1 << 64 and bool(self._lib.bridge_is_valid_cell(cell))

    def is_pentagon(self, cell: int) -> bool:
        return bool(_check(self._lib.bridge_is_pentagon(_id(cell)), cell))

    def get_resolution(self, cell: int) -> int:
        return _check(self._lib.bridge_get_resolution(_id(cell)), cell)

    def get_base_cell_number(self, cell: int) -> int:
        return _check(self._lib.bridge_get_base_cell_number(_id(cell)), cell)

    def get_pentagons(self, res: int) -> list[int]:
        out = (_U64 * 12)()
        _check(self._lib.bridge_get_pentagons(_int(res), out, 12), res)
        return out[:]

    def get_res0_cells(self) -> list[int]:
        out = (_U64 * 122)()
        _check(self._lib.bridge_get_res0_cells(out, 122))
        return out[:]

    def cell_to_child_pos(self, child: int, res: int) -> int:
        return self._one(_I64, self._lib.bridge_cell_to_child_pos, _id(child), _int(res))

    def child_pos_to_cell(self, parent: int, res: int, pos: int) -> int:
        pos = max(-1, min(pos, (1 << 63) - 1))
        return self._one(_U64, self._lib.bridge_child_pos_to_cell, pos, _id(parent), _int(res))

    def compact_cells(self, cells: Sequence[int]) -> list[int]:
        ids = (_U64 * len(cells))(*map(_id, cells))
        return self._list(self._lib.bridge_compact_cells, ids, len(ids))

    def uncompact_cells(self, cells: Sequence[int], res: int) -> list[int]:
        ids = (_U64 * len(cells))(*map(_id, cells))
        return self._list(self._lib.bridge_uncompact_cells, ids, len(ids), _int(res))

    def construct_cell(self, res: int, base: int, digits: Sequence[int]) -> int:
        items = (_I32 * 16)(*map(_int, digits[:15]))
        return self._one(_U64, self._lib.bridge_construct_cell, _int(res), _int(base), items)

    def get_index_digit(self, index: int, res: int) -> int:
        return _check(self._lib.bridge_get_index_digit(_id(index), _int(res)), index, res)

    def is_res_class_iii(self, cell: int) -> bool:
        return bool(_check(self._lib.bridge_is_res_class_iii(_id(cell)), cell))

    def is_valid_index(self, h: int) -> bool:
        return 0 <= h < 1 << 64 and bool(self._lib.bridge_is_valid_index(h))

    def is_valid_directed_edge(self, h: int) -> bool:
        return 0 <= h < 1 << 64 and bool(self._lib.bridge_is_valid_directed_edge(h))

    def is_valid_vertex(self, h: int) -> bool:
        return 0 <= h < 1 << 64 and bool(self._lib.bridge_is_valid_vertex(h))

    def get_num_cells(self, res: int) -> int:
        return self._one(_I64, self._lib.bridge_get_num_cells, _int(res))

    def get_icosahedron_faces(self, cell: int) -> list[int]:
        return self._list(self._lib.bridge_get_icosahedron_faces, _id(cell), kind=_I32)

    def cells_to_directed_edge(self, origin: int, destination: int) -> int:
        ends = _id(origin), _id(destination)
        return self._one(_U64, self._lib.bridge_cells_to_directed_edge, *ends)

    def directed_edge_to_cells(self, edge: int) -> tuple[int, int]:
        out = (_U64 * 2)()
        _check(self._lib.bridge_directed_edge_to_cells(_id(edge, 6), out), edge)
        return out[0], out[1]

    def origin_to_directed_edges(self, origin: int) -> list[int]:
        return self._list(self._lib.bridge_origin_to_directed_edges, _id(origin))

    def reverse_directed_edge(self, edge: int) -> int:
        return self._one(_U64, self._lib.bridge_reverse_directed_edge, _id(edge, 6))

    def directed_edge_to_boundary(self, edge: int) -> list[tuple[float, float]]:
        out = self._list(self._lib.bridge_directed_edge_to_boundary, _id(edge, 6), kind=_F64)
        return list(zip(out[::2], out[1::2]))

    def cell_to_vertex(self, cell: int, number: int) -> int:
        return self._one(_U64, self._lib.bridge_cell_to_vertex, _id(cell), _int(number))

    def cell_to_vertexes(self, cell: int) -> list[int]:
        return self._list(self._lib.bridge_cell_to_vertexes, _id(cell))

    def vertex_to_latlng(self, vertex: int) -> tuple[float, float]:
        out = (_F64 * 2)()
        _check(self._lib.bridge_vertex_to_latlng(_id(vertex, 8), out), vertex)
        return out[0], out[1]

    def cell_area(self, cell: int) -> float:
        return self._one(_F64, self._lib.bridge_cell_area, _id(cell))

    def edge_length(self, edge: int) -> float:
        return self._one(_F64, self._lib.bridge_edge_length, _id(edge, 6))

    def average_hexagon_area(self, res: int) -> float:
        return self._one(_F64, self._lib.bridge_average_hexagon_area, _int(res))

    def average_hexagon_edge_length(self, res: int) -> float:
        return self._one(_F64, self._lib.bridge_average_edge_length, _int(res))

    def great_circle_distance(self, lat0: float, lng0: float, lat1: float, lng1: float) -> float:
        return float(self._lib.bridge_great_circle_distance(lat0, lng0, lat1, lng1))

    def describe_error(self, code: int) -> str:
        out = ctypes.create_string_buffer(100)
        self._lib.bridge_describe_error(max(-1, _int(code)) & 0xFFFFFFFF, out, 100)
        return out.value.decode("ascii")

    def use_level(self, level: int) -> int:
        """Use vectors of this width at most (0 baseline, 1 AVX2, 2 AVX-512); what is in use."""
        return int(self._lib.bridge_use_level(level))

    def str_to_int(self, text: str) -> int:
        out = _U64()
        code = 1
        if text.isascii() and "\0" not in text:
            code = -self._lib.bridge_string_to_cell(text.encode("ascii"), out)
        if code:
            raise error(1, f"text {text[:40]!r}, which is no index of 1 to 16 hexadecimal digits")
        return out.value

    def int_to_str(self, cell: int) -> str:
        out = ctypes.create_string_buffer(17)
        self._lib.bridge_cell_to_string(_id(cell), out, 17)
        return out.value.decode("ascii")

    def plane_to_latlng(self, face: int, u: float, v: float) -> tuple[float, float]:
        out = (_F64 * 2)()
        _check(self._lib.bridge_plane_to_latlng(_int(face), u, v, out), face, u, v)
        return out[0], out[1]

    def latlng_to_plane(self, face: int, lat: float, lng: float) -> tuple[float, float]:
        out = (_F64 * 2)()
        _check(self._lib.bridge_latlng_to_plane(_int(face), lat, lng, out), face, lat, lng)
        return out[0], out[1]

    # ---- arrays: prepared by api.py, contiguous unless said, filled in place ----

    def latlngs_to_cells(self, lat: Any, lng: Any, res: int, unit: float, out: Any) -> None:
        """lat and lng may have steps."""
        step = lat.strides[0] // 8 if len(lat) > 1 else 1
        head = (_of(lat, _PF64), _of(lng, _PF64), step, unit, len(lat))
        _check(self._lib.bridge_latlngs_to_cells(*head, _int(res), _of(out, _PU64)), res)

    def cells_to_latlngs(self, cells: Any, unit: float, lat: Any, lng: Any) -> None:
        """lat and lng may have steps."""
        step = lat.strides[0] // 8 if len(lat) > 1 else 1
        head = (_of(cells, _PU64), len(cells), unit)
        _check(self._lib.bridge_cells_to_latlngs(*head, _of(lat, _PF64), _of(lng, _PF64), step))

    def cells_to_boundaries(self, cells: Any, unit: float, points: Any, counts: Any) -> None:
        head = (_of(cells, _PU64), len(cells), unit)
        _check(self._lib.bridge_cells_to_boundaries(*head, _of(points, _PF64), _of(counts, _PI32)))

    def cells_to_parents(self, cells: Any, res: int, out: Any) -> None:
        head = (_of(cells, _PU64), len(cells), _int(res))
        _check(self._lib.bridge_cells_to_parents(*head, _of(out, _PU64)), res)

    def cells_to_center_children(self, cells: Any, res: int, out: Any) -> None:
        head = (_of(cells, _PU64), len(cells), _int(res))
        _check(self._lib.bridge_cells_to_center_children(*head, _of(out, _PU64)), res)

    def are_valid_cells(self, cells: Any, out: Any) -> None:
        self._lib.bridge_are_valid_cells(_of(cells, _PU64), len(cells), _of(out, _PU8))

    def get_resolutions(self, cells: Any, out: Any) -> None:
        self._lib.bridge_get_resolutions(_of(cells, _PU64), len(cells), _of(out, _PI32))

    def cell_areas(self, cells: Any, unit: float, out: Any) -> None:
        self._lib.bridge_cell_areas(_of(cells, _PU64), len(cells), unit, _of(out, _PF64))

    def grid_distances(self, a: Any, b: Any, out: Any) -> None:
        head = (_of(a, _PU64), _of(b, _PU64), len(a))
        _check(self._lib.bridge_grid_distances(*head, _of(out, _PI64)))

    def grid_disks(self, cells: Any, k: int, out: Any) -> tuple[Any, Any]:
        import numpy as np

        offsets = np.zeros(len(cells) + 1, np.int64)
        room = len(cells) * (3 * k * (k + 1) + 1)
        if out is None:
            out = np.empty(room if k >= 0 and room <= MOST_CELLS else 0, np.uint64)
        head = (_of(cells, _PU64), len(cells), _int(k))
        n = _check(
            self._lib.bridge_grid_disks(*head, _of(out, _PU64), _of(offsets, _PI64), len(out)), k
        )
        if n > len(out):
            if n > MOST_CELLS:
                raise error(13, f"{len(cells)} disks of {k} steps")
            return self.grid_disks(cells, k, np.empty(n, np.uint64))
        return out[:n], offsets

    def planes_to_latlngs(
        self, face: int, u: Sequence[float], v: Sequence[float]
    ) -> tuple[Any, Any]:
        return self._pairs(self._lib.bridge_planes_to_latlngs, face, u, v)

    def latlngs_to_planes(
        self, face: int, lat: Sequence[float], lng: Sequence[float]
    ) -> tuple[Any, Any]:
        return self._pairs(self._lib.bridge_latlngs_to_planes, face, lat, lng)

    @staticmethod
    def _pairs(function: Any, face: int, x: Any, y: Any) -> tuple[Any, Any]:
        import numpy as np

        p, q = _array(x, np.float64), _array(y, np.float64)
        if len(p) != len(q):
            raise error(2, f"{len(p)} and {len(q)} coordinates")
        s, t = np.empty(len(p)), np.empty(len(p))
        n = function(_int(face), _of(p, _PF64), _of(q, _PF64), len(p), _of(s, _PF64), _of(t, _PF64))
        _check(n, face)
        return s, t

    # ---- rasters ----

    def frame_cells(
        self, face: int, u0: float, v0: float, width: int, height: int, span: float,
        rotation: float, res: int,
    ) -> Any:  # fmt: skip
        import numpy as np

        settings = (_int(face), u0, v0, width, height, span, rotation, _int(res))
        # Asked with no room first: the library says how much it needs, or what is wrong.
        nothing = np.empty(0, np.uint64)
        needed = self._lib.bridge_frame_cells(*settings, _of(nothing, _PU64), 0)
        _check(needed, *settings)
        out = np.empty(needed, np.uint64)
        _check(self._lib.bridge_frame_cells(*settings, _of(out, _PU64), needed), *settings)
        return out

    def hex_weights(
        self, columns: int, rows: int, x0: float, y0: float, step: float, cx: Sequence[float],
        cy: Sequence[float], inradius: float, theta: float, overlap: float,
    ) -> tuple[Any, Any]:  # fmt: skip
        import numpy as np

        x, y = _array(cx, np.float64), _array(cy, np.float64)
        if len(x) != len(y):
            raise error(2, f"{len(x)} and {len(y)} centre coordinates")
        head = (columns, rows, x0, y0, step, len(x), _of(x, _PF64), _of(y, _PF64))
        tail = (inradius, theta, overlap)
        index, weight = np.empty((0, 4), np.int32), np.empty((0, 4), np.float32)
        for _ in range(2):
            needed = self._lib.bridge_hex_weights(
                *head, *tail, _of(index, _PI32), _of(weight, _PF32), index.size
            )
            _check(needed, len(x), *tail)
            if needed > index.size:
                index = np.empty((needed // 4, 4), np.int32)
                weight = np.empty((needed // 4, 4), np.float32)
        return index, weight

    def blend_tile(self, out: Any, tile: Any, weight: Any, seen: Any, shares: Any) -> None:
        counts = (_I64 * 6)(*out.shape, len(seen))
        out_strides = (_I64 * 3)(*(s // 4 for s in out.strides[:3]))
        tile_strides = (_I64 * 3)(*(s // 4 for s in tile.strides[:3]))
        seen_strides = (_I64 * 2)(*(s // 4 for s in seen.strides[:2]))
        _check(
            self._lib.bridge_blend_tile(
                counts, _of(out, _PF32), _extent(out), out_strides, _of(tile, _PF32),
                _extent(tile), tile_strides, _of(weight, _PF32), weight.size,
                weight.strides[0] // 4, _of(seen, _PF32), _extent(seen), seen_strides,
                _of(shares, _PF32), shares.size,
            ),
            out.shape, tile.shape, seen.shape, shares.shape,
        )  # fmt: skip


def _extent(array: Any) -> int:
    """Items from a view's first to its last one, which is what the library may touch."""
    return 1 + sum((n - 1) * (s // 4) for n, s in zip(array.shape, array.strides)) * (
        array.size > 0
    )


def _check(result: int, *given: Any) -> int:
    """The result, or the exception of a negative one."""
    if result < 0:
        shown = ", ".join(
            f"{g:#x}" if isinstance(g, int) and g > 1 << 32 else str(g) for g in given
        )
        raise error(-result, f"arguments ({shown})")
    return result


def _id(h: int, code: int = 5) -> int:
    """ctypes would cut a number that does not fit in 64 bits; it is no index."""
    if not 0 <= h < 1 << 64:
        raise error(code, f"index {h:#x}")
    return h


def _int(value: int) -> int:
    """Clamp to 32 bits: what is out of range stays out of range."""
    return max(-(1 << 31), min((1 << 31) - 1, value))


def _array(values: Any, dtype: Any) -> Any:
    import numpy as np

    if not isinstance(values, np.ndarray):
        values = list(values)
    return np.ascontiguousarray(values, dtype).reshape(-1)


def _of(array: Any, kind: Any) -> Any:
    return array.ctypes.data_as(kind)
