"""The self-test of a library at load: a few cells and arrays whose answers are known.

It takes under a millisecond and asks every kind of function once: a kernel with wrong tables, a
wrong calling convention, fused arithmetic gone astray or swapped arguments does not get past it.
It proves no more than that; tests/h3 is the proof.
"""

from __future__ import annotations

import ctypes
import math
from collections.abc import Iterator, Sequence
from typing import Any

from .errors import (
    H3CellInvalidError,
    H3DomainError,
    H3Error,
    H3FailedError,
    H3NotNeighborsError,
    H3ResDomainError,
)

TOLERANCE = 1e-12
"""Radians between two libms' answers: a hundredth of a millimetre on the globe."""

POINT = (0.6596559, -2.1361722)
"""Latitude and longitude in radians, well inside its cells at the resolutions asked here."""
HEX = 0x89283082A67FFFF
HEX_5 = 0x85283473FFFFFFF
PENT_0, PENT_1 = 0x8009FFFFFFFFFFF, 0x81083FFFFFFFFFF
RING = (0x81093FFFFFFFFFF, 0x8109BFFFFFFFFFF, 0x8108BFFFFFFFFFF, 0x8108FFFFFFFFFFF,
        0x81097FFFFFFFFFF)  # fmt: skip
"""The neighbours of PENT_1."""

# Function of the backend contract, arguments, answer: a value, a list, or an error's class.
# A set stands for a list in any order.
CELLS: tuple[tuple[str, Sequence[Any], Any], ...] = (
    ("latlng_to_cell", (*POINT, 0), 0x8029FFFFFFFFFFF),
    ("latlng_to_cell", (*POINT, 9), HEX),
    ("latlng_to_cell", (*POINT, 15), 0x8F283082A672A13),
    ("latlng_to_cell", (math.pi / 2, 0.0, 5), 0x85032623FFFFFFF),
    ("latlng_to_cell", (*POINT, 16), H3ResDomainError),
    ("cell_to_latlng", (HEX,), (0.6596663885769969, -2.1361959799764674)),
    ("cell_to_latlng", (HEX - 1,), H3CellInvalidError),
    ("cell_to_boundary", (PENT_0,), [
        (1.1012164353766927, -0.18229924845325501), (0.9722665253630554, 0.09640581900153952),
        (1.0192992462388597, 0.43777608996454465), (1.2030547183008666, 0.5555606498349379),
        (1.2795047786845286, 0.00568297271998714),
    ]),
    ("cell_to_boundary", (HEX_5,), [
        (0.6505078765569767, -2.1278195595404963), (0.6519490051151718, -2.126897030193998),
        (0.6532477872571462, -2.1279673831553825), (0.6531044519454292, -2.1299602868027208),
        (0.6516632883200012, -2.130879969983952), (0.6503654944795708, -2.1298096010950887),
    ]),
    ("grid_disk", (PENT_1, 1), {PENT_1, *RING}),
    ("grid_disk_distances", (PENT_1, 1), {(PENT_1, 0), *((c, 1) for c in RING)}),
    ("grid_ring", (PENT_1, 1), {*RING}),
    ("grid_ring", (HEX, -1), H3DomainError),
    ("grid_distance", (RING[0], RING[2]), 2),
    ("grid_distance", (HEX, 0x89283082A37FFFF), 3),
    ("are_neighbor_cells", (RING[0], RING[1]), True),
    ("are_neighbor_cells", (RING[0], RING[2]), False),
    ("cell_to_parent", (HEX, 5), 0x85283083FFFFFFF),
    ("cell_to_center_child", (HEX, 11), 0x8B283082A640FFF),
    ("cell_to_children_size", (PENT_1, 4), 286),
    ("cell_to_children_size", (HEX, 15), 117649),
    ("cell_to_children", (PENT_0, 1), {PENT_1, *RING}),
    ("is_valid_cell", (HEX,), True),
    ("is_valid_cell", (HEX | 1 << 63,), False),
    ("is_valid_cell", (PENT_1 | 1 << 42,), False),  # the subsequence that a pentagon lacks
    ("is_pentagon", (PENT_1,), True),
    ("is_pentagon", (HEX,), False),
    ("get_resolution", (HEX,), 9),
    ("get_base_cell_number", (HEX,), 20),
    ("str_to_int", ("89283082a67ffff",), HEX),
    ("str_to_int", ("89283082a67ffffz",), H3FailedError),
    ("int_to_str", (HEX,), "89283082a67ffff"),
    ("grid_path_cells", (RING[0], RING[0]), [RING[0]]),
    ("cell_to_child_pos", (HEX, 5), 0x72B),
    ("child_pos_to_cell", (0x85283083FFFFFFF, 9, 0x72B), HEX),
    ("compact_cells", ([PENT_1, *RING],), [PENT_0]),
    ("uncompact_cells", ([PENT_0], 1), {PENT_1, *RING}),
    ("construct_cell", (2, 20, [3, 4]), 0x8228E7FFFFFFFFF),
    ("get_icosahedron_faces", (PENT_0,), {0, 1, 2, 3, 4}),
    ("cells_to_directed_edge", (HEX, 0x89283082A77FFFF), 0x149283082A67FFFF),
    ("cells_to_directed_edge", (RING[0], RING[2]), H3NotNeighborsError),
    ("is_valid_directed_edge", (HEX,), False),
    ("cell_to_vertex", (HEX, 0), 0x249283082A63FFFF),
    ("great_circle_distance", (0.1, 0.2, 0.3, 0.4), 0.27977139816197316),
    ("latlng_to_plane", (7, *POINT), (-0.15583024381811592, -0.28426122014439603)),
    ("plane_to_latlng", (7, 0.1, -0.2), (0.40078266697945936, -2.1275137251299117)),
)  # fmt: skip


class WrongAnswer(Exception):
    """What was asked, what came, what is right: one line."""


def check_cells(index: Any) -> None:
    """Ask a backend (angles in radians) for CELLS. Raises WrongAnswer."""
    for name, arguments, want in CELLS:
        asked = f"{name}({', '.join(map(_text, arguments))})"
        try:
            got = getattr(index, name)(*arguments)
        except H3Error as e:
            got = type(e)
        except Exception as e:  # an answer so wrong that the binding stumbles over it
            raise WrongAnswer(f"{asked} ends in {type(e).__name__}: {e}") from None
        _expect(asked, got, want)


def check_arrays(library: ctypes.CDLL) -> None:
    """Ask the array functions for small arrays, junk among them. Raises WrongAnswer."""
    for asked, got, want in _arrays(library):
        _expect(asked, got, want)


def _arrays(library: ctypes.CDLL) -> Iterator[tuple[str, Any, Any]]:
    cells = (ctypes.c_uint64 * 3)(HEX, 0, PENT_1)
    lat, lng = (ctypes.c_double * 3)(), (ctypes.c_double * 3)()
    failed = library.bridge_cells_to_latlngs(cells, 3, 1.0, lat, lng, 1)
    yield "cells_to_latlngs: failed ones", failed, 1
    yield "cells_to_latlngs: the first", (lat[0], lng[0]), CELLS[5][2]
    yield "cells_to_latlngs: no cell", (lat[1] != lat[1], lng[1] != lng[1]), (True, True)
    back = (ctypes.c_uint64 * 3)()
    for res, want in ((9, HEX), (1, PENT_1)):
        failed = library.bridge_latlngs_to_cells(lat, lng, 1, 1.0, 3, res, back)
        yield f"latlngs_to_cells at {res}: failed ones", failed, 1
        yield f"latlngs_to_cells at {res}", (back[0 if res == 9 else 2], back[1]), (want, 0)
    valid = (ctypes.c_uint8 * 3)()
    library.bridge_are_valid_cells(cells, 3, valid)
    yield "are_valid_cells", list(valid), [1, 0, 1]
    steps = (ctypes.c_int64 * 3)()
    library.bridge_grid_distances(cells, cells, 3, steps)
    yield "grid_distances", list(steps), [0, -1, 0]
    yield from _rasters(library)


def _rasters(library: ctypes.CDLL) -> Iterator[tuple[str, Any, Any]]:
    # Four pixels around POINT's place on face 7, a frame far smaller than the cell.
    u, v = CELLS[-2][2]
    raster = (ctypes.c_uint64 * 4)()
    room = library.bridge_frame_cells(7, u, v, 2, 2, 1e-9, 0.0, 9, raster, 4)
    yield "frame_cells", (room, *raster), (4, HEX, HEX, HEX, HEX)
    # A point midway between two hexagons belongs half to each.
    cx, cy = (ctypes.c_double * 2)(-1.0, 1.0), (ctypes.c_double * 2)(0.0, 0.0)
    index, weight = (ctypes.c_int32 * 4)(), (ctypes.c_float * 4)()
    room = library.bridge_hex_weights(
        1, 1, -0.5, -0.5, 1.0, 2, cx, cy, 1.0, 0.0, 0.5, index, weight, 4
    )
    yield "hex_weights: room", room, 4
    yield "hex_weights", (set(index[:2]), *weight[:3]), ({0, 1}, 0.5, 0.5, 0.0)


def _expect(asked: str, got: Any, want: Any) -> None:
    if not _same(got, want):
        raise WrongAnswer(f"{asked} is {_text(got)}, right is {_text(want)}")


def _same(got: Any, want: Any) -> bool:
    if isinstance(want, set):
        return isinstance(got, (list, set)) and len(got) == len(want) and set(got) == want
    if isinstance(want, (list, tuple)):
        if not isinstance(got, (list, tuple)) or len(got) != len(want):
            return False
        return all(map(_same, got, want))
    if isinstance(want, float):
        return isinstance(got, float) and math.isclose(got, want, rel_tol=0, abs_tol=TOLERANCE)
    return bool(got == want)


def _text(value: Any) -> str:
    if isinstance(value, int) and value >= 1 << 32:
        return hex(value)
    if isinstance(value, (list, tuple, set)):
        return f"[{', '.join(map(_text, value))}]"
    return value.__name__ if isinstance(value, type) else repr(value)
