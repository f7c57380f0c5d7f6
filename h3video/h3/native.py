"""The index through ctypes: csrc/h3_bridge.h with argument and result types on every function.

Angles are radians. ctypes releases the GIL during calls; the library keeps no state.
"""

from __future__ import annotations

import ctypes
from collections.abc import Iterable, Sequence
from typing import Any

from .constants import MOST_CELLS
from .errors import error

ABI = 3

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
    "bridge_latlngs_to_cells": (_I64, [_PF64, _PF64, _I64, _I32, _PU64]),
    "bridge_cells_to_latlngs": (_I64, [_PU64, _I64, _PF64, _PF64]),
    "bridge_cells_to_boundaries": (_I64, [_PU64, _I64, _PF64, _PI32]),
    "bridge_cells_to_parents": (_I64, [_PU64, _I64, _I32, _PU64]),
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

    def grid_distance(self, a: int, b: int) -> int:
        out = _I64()
        _check(self._lib.bridge_grid_distance(_id(a), _id(b), out), a, b)
        return out.value

    def are_neighbor_cells(self, a: int, b: int) -> bool:
        out = _I32()
        _check(self._lib.bridge_are_neighbor_cells(_id(a), _id(b), out), a, b)
        return bool(out.value)

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

    # ---- arrays ----

    def latlngs_to_cells(self, lat: Sequence[float], lng: Sequence[float], res: int) -> Any:
        import numpy as np

        la, lo = _array(lat, np.float64), _array(lng, np.float64)
        if len(la) != len(lo):
            raise error(2, f"{len(la)} latitudes and {len(lo)} longitudes")
        out = np.empty(len(la), np.uint64)
        n = self._lib.bridge_latlngs_to_cells(
            _of(la, _PF64), _of(lo, _PF64), len(la), _int(res), _of(out, _PU64)
        )
        _check(n, res)
        return out

    def cells_to_latlngs(self, cells: Iterable[int]) -> tuple[Any, Any]:
        import numpy as np

        ids = _array(cells, np.uint64)
        lat, lng = np.empty(len(ids)), np.empty(len(ids))
        self._lib.bridge_cells_to_latlngs(
            _of(ids, _PU64), len(ids), _of(lat, _PF64), _of(lng, _PF64)
        )
        return lat, lng

    def cells_to_boundaries(self, cells: Iterable[int]) -> tuple[Any, Any]:
        import numpy as np

        ids = _array(cells, np.uint64)
        out, counts = np.empty((len(ids), 10, 2)), np.empty(len(ids), np.int32)
        self._lib.bridge_cells_to_boundaries(
            _of(ids, _PU64), len(ids), _of(out, _PF64), _of(counts, _PI32)
        )
        return out, counts

    def cells_to_parents(self, cells: Iterable[int], res: int) -> Any:
        import numpy as np

        ids = _array(cells, np.uint64)
        out = np.empty(len(ids), np.uint64)
        n = self._lib.bridge_cells_to_parents(_of(ids, _PU64), len(ids), _int(res), _of(out, _PU64))
        _check(n, res)
        return out

    def are_valid_cells(self, cells: Iterable[int]) -> Any:
        import numpy as np

        ids = _array(cells, np.uint64)
        out = np.empty(len(ids), np.uint8)
        self._lib.bridge_are_valid_cells(_of(ids, _PU64), len(ids), _of(out, _PU8))
        return out.astype(bool)

    def get_resolutions(self, cells: Iterable[int]) -> Any:
        import numpy as np

        ids = _array(cells, np.uint64)
        out = np.empty(len(ids), np.int32)
        self._lib.bridge_get_resolutions(_of(ids, _PU64), len(ids), _of(out, _PI32))
        return out

    def grid_disks(self, cells: Iterable[int], k: int) -> tuple[Any, Any]:
        import numpy as np

        ids = _array(cells, np.uint64)
        out, offsets = np.empty(0, np.uint64), np.zeros(len(ids) + 1, np.int64)
        for _ in range(2):
            n = self._lib.bridge_grid_disks(
                _of(ids, _PU64), len(ids), _int(k), _of(out, _PU64), _of(offsets, _PI64), len(out)
            )
            if _check(n, k) <= len(out):
                break
            if n > MOST_CELLS:
                raise error(13, f"{len(ids)} disks of {k} steps")
            out = np.empty(n, np.uint64)
        return out[:n].copy(), offsets

    def grid_distances(self, a: Iterable[int], b: Iterable[int]) -> Any:
        import numpy as np

        p, q = _array(a, np.uint64), _array(b, np.uint64)
        if len(p) != len(q):
            raise error(2, f"{len(p)} and {len(q)} cells")
        out = np.empty(len(p), np.int64)
        self._lib.bridge_grid_distances(_of(p, _PU64), _of(q, _PU64), len(p), _of(out, _PI64))
        return out

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


def _id(cell: int) -> int:
    """ctypes would cut a number that does not fit in 64 bits; it is no cell."""
    if not 0 <= cell < 1 << 64:
        raise error(5, f"cell {cell:#x}")
    return cell


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
