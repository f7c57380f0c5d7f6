"""Cells for tests: all of a resolution, some of it, and distances by breadth-first search."""

import os
from functools import lru_cache

import numpy as np

SLOW = os.environ.get("H3VIDEO_SLOW") == "1"
"""Exhaustive runs: a hundred times the work, minutes instead of seconds."""


@lru_cache(maxsize=8)
def every_cell(res):
    import h3.api.basic_int as official

    tops = official.get_res0_cells()
    return sorted(c for b in tops for c in official.cell_to_children(b, res))


def random_cells(res, n, seed=0):
    """Random ones, and those around every pentagon."""
    import h3.api.basic_int as official

    rng = np.random.default_rng([seed, res])
    lat, lng = np.degrees(np.arcsin(rng.uniform(-1, 1, n))), rng.uniform(-180, 180, n)
    cells = [official.latlng_to_cell(a, b, res) for a, b in zip(lat, lng)]
    near = [c for p in official.get_pentagons(res) for c in official.grid_disk(p, 2)]
    return [*dict.fromkeys(cells + near)]


@lru_cache(maxsize=4)
def adjacency(res):
    """Cells of a resolution (uint64 [n]) and the positions of their neighbours ([n, 6], -1)."""
    import h3.api.basic_int as official

    cells = every_cell(res)
    place = {c: i for i, c in enumerate(cells)}
    near = np.full((len(cells), 6), -1)
    for i, c in enumerate(cells):
        others = [place[n] for n in official.grid_disk(c, 1) if n != c]
        near[i, : len(others)] = others
    return np.array(cells, np.uint64), near


def steps_from(near, start):
    """Steps from one cell to all others, ring by ring."""
    steps = np.full(len(near), -1)
    steps[start], ring, k = 0, np.array([start]), 0
    while len(ring):
        k += 1
        found = near[ring].ravel()
        found = np.unique(found[found >= 0])
        ring = found[steps[found] < 0]
        steps[ring] = k
    return steps
