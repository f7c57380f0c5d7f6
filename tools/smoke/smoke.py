"""smoke.py FOLDER: h3video installed under FOLDER serves its native index, equal to pure Python.

Needs nothing but the standard library, so that it runs on any interpreter of any platform.
"""

import math
import platform
import random
import sys
import sysconfig
from pathlib import Path

import h3video
from h3video import h3
from h3video.h3 import kernel, pure

here = Path(h3video.__file__).resolve()
assert Path(sys.argv[1]).resolve() in here.parents, f"{here} is not the installed one"
assert kernel.library_path().parent == here.parent / "h3" / "_native"
assert h3.backend() == "native", h3.backend()

chance = random.Random(5)
asked = 0
for res in range(16):
    for _ in range(20):
        lat = math.degrees(math.asin(chance.uniform(-1, 1)))
        cell = h3.latlng_to_cell(lat, chance.uniform(-180, 180), res)
        assert h3.is_valid_cell(cell) and h3.get_resolution(cell) == res
        got, want = h3.cell_to_latlng(cell), pure.cell_to_latlng(cell)
        assert all(abs(math.radians(g) - w) < 1e-12 for g, w in zip(got, want))
        assert h3.latlng_to_cell(*got, res) == cell == pure.latlng_to_cell(*want, res)
        assert sorted(h3.grid_disk(cell, 2)) == sorted(pure.grid_disk(cell, 2))
        assert len(h3.cell_to_boundary(cell)) == len(pure.cell_to_boundary(cell))
        assert h3.str_to_int(h3.int_to_str(cell)) == cell
        asked += 1
print(
    f"{platform.python_implementation()} {platform.python_version()} {sysconfig.get_platform()}: "
    f"{kernel.library_name()} serves, {asked} cells equal to pure Python"
)
