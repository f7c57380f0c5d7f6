"""The official C library, which the official wheel's extension module carries and exports."""

import ctypes
from functools import lru_cache
from pathlib import Path


class LatLng(ctypes.Structure):
    _fields_ = [("lat", ctypes.c_double), ("lng", ctypes.c_double)]


@lru_cache(maxsize=1)
def library():
    import h3

    found = sorted((Path(h3.__file__).parent / "_cy").glob("cells*"))
    return ctypes.CDLL(str(next(p for p in found if p.suffix in (".so", ".pyd"))))


def _list(name, cell, k, room):
    out = (ctypes.c_uint64 * room)()
    assert getattr(library(), name)(ctypes.c_uint64(cell), k, out) == 0
    return out[:]


def grid_disk_unsafe(cell, k):
    return _list("gridDiskUnsafe", cell, k, 3 * k * (k + 1) + 1)


def grid_ring_unsafe(cell, k):
    return _list("gridRingUnsafe", cell, k, max(1, 6 * k))
