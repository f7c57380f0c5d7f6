"""Arrays on their way to the index: numpy arrays, array.array, memoryview or lists, not copied
where their numbers lie as they must; work split over threads. numpy is imported on use only.
"""

from __future__ import annotations

import operator
import os
from collections.abc import Callable, Iterable
from typing import Any

from .errors import error


def doubles(values: Any) -> Any:
    """float64 [n]; a view with steps stays a view."""
    import numpy as np

    flat = np.asarray(values if _has_buffer(values) else list(values), np.float64).reshape(-1)
    return flat if flat.size < 2 or flat.strides[0] > 0 else np.ascontiguousarray(flat)


def same_steps(a: Any, b: Any) -> tuple[Any, Any]:
    """Two arrays that the library can walk over with one step."""
    import numpy as np

    if len(a) < 2 or (a.strides == b.strides and a.strides[0] % 8 == 0):
        return a, b
    return np.ascontiguousarray(a), np.ascontiguousarray(b)


def ids(cells: Iterable[int]) -> Any:
    """uint64 [n], contiguous, not cut to 64 bits: what does not fit becomes 0. Refuses floats,
    which have lost digits of an id already."""
    import numpy as np

    items = np.asarray(cells) if _has_buffer(cells) else list(cells)
    if isinstance(items, np.ndarray) and items.dtype.kind in "ui":
        flat = np.ascontiguousarray(items).reshape(-1)
        if flat.dtype.itemsize == 8:  # the high bit of a negative number makes it no cell
            return flat.view(np.uint64)
        return np.where(flat < 0, 0, flat).astype(np.uint64)
    known = map(operator.index, np.ravel(items).tolist() if _has_buffer(items) else items)
    return np.array([h if 0 <= h < 1 << 64 else 0 for h in known], np.uint64)


def _has_buffer(values: Any) -> bool:
    if hasattr(values, "__array__"):
        return True
    try:
        memoryview(values)
    except TypeError:
        return False
    return True


def room(out: Any, shape: tuple[int, ...], dtype: str) -> Any:
    """An array of this shape and type: a new one, or `out` (any writable buffer) without a copy.

    Raises ValueError for an `out` that is read-only, of another type or size, or not contiguous.
    """
    import numpy as np

    if out is None:
        return np.empty(shape, dtype)
    array = np.asarray(out)
    size = int(np.prod(shape))
    if not array.flags.writeable or array.dtype != dtype or array.size != size:
        kind = f"{array.dtype} of {array.size} items"
        how = "writable" if array.flags.writeable else "read-only"
        raise ValueError(f"out is {how} {kind}; it must be writable {dtype} of {size} items")
    if not array.flags.c_contiguous:
        raise ValueError(f"out has strides {array.strides}; it must be contiguous")
    return array.reshape(shape)


LEAST_PART = 4096
"""Items below which a thread of its own is no gain."""


def in_parts(n: int, threads: int, work: Callable[[slice], None]) -> None:
    """Do `work` on slices of n items, on so many threads (0: one a processor)."""
    if threads < 0:
        raise error(2, f"threads {threads}")
    wanted = threads or os.cpu_count() or 1
    parts = max(1, min(wanted, n // LEAST_PART))
    if parts == 1:
        work(slice(0, n))
        return
    from concurrent.futures import ThreadPoolExecutor

    bounds = [n * i // parts for i in range(parts + 1)]
    with ThreadPoolExecutor(parts) as pool:
        list(pool.map(work, map(slice, bounds, bounds[1:])))
