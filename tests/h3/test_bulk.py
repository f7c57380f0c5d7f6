"""Arrays, many threads, and lists that are long or end at the far side of the globe."""

import subprocess
import sys

import numpy as np
import pytest

from h3video import h3
from h3video.h3 import errors

SAN_FRANCISCO = 0x89283082A67FFFF


def test_disks_of_many_cells(index):
    cells = [*index.get_pentagons(3)[:2], SAN_FRANCISCO, 5, -1, 1 << 70, index.get_res0_cells()[7]]
    found, offsets = index.grid_disks(cells, 2)
    assert found.dtype == np.uint64 and offsets.dtype == np.int64
    assert offsets[0] == 0 and offsets[-1] == len(found)
    for i, cell in enumerate(cells):
        disk = found[offsets[i] : offsets[i + 1]].tolist()
        assert disk == (index.grid_disk(cell, 2) if index.is_valid_cell(cell) else [])
    none, offsets = index.grid_disks([], 3)
    assert len(none) == 0 and offsets.tolist() == [0]
    with pytest.raises(errors.H3DomainError):
        index.grid_disks(cells, -1)


def test_resolutions_and_ids_that_are_none(index):
    cells = [SAN_FRANCISCO, index.get_res0_cells()[0], 0, -3, 1 << 64]
    assert index.get_resolutions(cells).tolist() == [9, 0, -1, -1, -1]
    assert index.are_valid_cells(cells).tolist() == [True, True, False, False, False]
    assert index.are_valid_cells(np.array([SAN_FRANCISCO, -1])).tolist() == [True, False]
    for rounded in ([float(SAN_FRANCISCO)], np.array([6e17])):
        with pytest.raises(TypeError):
            index.cells_to_latlngs(rounded)


@pytest.mark.parametrize("face", [0, 7, 13, 19])
def test_planes(index, face):
    rng = np.random.default_rng(face)
    u, v = rng.uniform(-0.7, 0.7, (2, 40))
    lat, lng = index.planes_to_latlngs(face, u, v)
    back_u, back_v = index.latlngs_to_planes(face, lat, lng)
    assert np.abs(back_u - u).max() < 1e-14 and np.abs(back_v - v).max() < 1e-14
    for i in range(5):
        assert index.plane_to_latlng(face, u[i], v[i]) == (lat[i], lng[i])
        assert index.latlng_to_plane(face, lat[i], lng[i]) == (back_u[i], back_v[i])
    far_u, _ = index.latlngs_to_planes(face, [-lat[0], np.nan], [lng[0] + 180, 0.0])
    assert np.isnan(far_u).all()  # the other side of the globe is not on the plane
    with pytest.raises(errors.H3DomainError):
        index.latlng_to_plane(face, -lat[0], lng[0] + 180)


def test_the_two_backends_agree_to_the_last_digits(library):
    rng = np.random.default_rng(1)
    for res in range(16):
        lat, lng = np.degrees(np.arcsin(rng.uniform(-1, 1, 60))), rng.uniform(-180, 180, 60)
        results = []
        for name in ("native", "pure"):
            with h3.use_backend(name):
                cells = h3.latlngs_to_cells(lat, lng, res)
                results.append((cells, *h3.cells_to_latlngs(cells), *h3.cells_to_boundaries(cells)))
        native, pure = results
        assert (native[0] == pure[0]).all() and (native[4] == pure[4]).all()
        for a, b in zip(native[1:4], pure[1:4]):
            assert np.allclose(a, b, rtol=0, atol=1e-12, equal_nan=True)


@pytest.mark.parametrize("k", [9, 12, 13, 14, 16])
def test_a_ring_that_encloses_pentagons(index, k):
    """The official library returns too many cells here, some twice (uber/h3 issue 1241)."""
    origin = index.latlng_to_cell(0.0, 0.0, 1)
    rings, seen = [{origin}], {origin}
    for _ in range(k):
        rings.append({n for h in rings[-1] for n in index.grid_disk(h, 1)} - seen)
        seen |= rings[-1]
    ring = index.grid_ring(origin, k)
    assert len(ring) == len(set(ring)) and set(ring) == rings[k]


def test_the_far_side_of_the_globe(index):
    base = index.get_res0_cells()[40]
    assert sorted(index.grid_disk(base, 2**31)) == index.get_res0_cells()
    assert index.grid_ring(base, 2**40) == [] == index.grid_ring(base, 11)
    assert max(d for _, d in index.grid_disk_distances(base, 10**6)) <= 10
    pentagon = index.get_pentagons(2)[3]
    assert len(index.grid_disk(pentagon, 500)) == 2 + 120 * 49


def test_lists_too_long_for_memory_are_refused(index):
    for call in (
        lambda: index.grid_disk(SAN_FRANCISCO, 10**6),
        lambda: index.cell_to_children(index.get_res0_cells()[0], 15),
    ):
        with pytest.raises(errors.H3MemoryAllocError):
            call()


def test_first_use_from_many_threads(library):
    """Tables are built once, whoever comes first; ctypes lets the threads run at the same time."""
    code = """
import threading
import numpy as np
from h3video import h3
lat, lng = np.linspace(-80, 80, 3000), np.linspace(-170, 170, 3000)
gate, out = threading.Barrier(8), []
with h3.use_backend("native"):
    def work():
        gate.wait()
        out.append(h3.latlngs_to_cells(lat, lng, 9))
    threads = [threading.Thread(target=work) for _ in range(8)]
    for t in threads: t.start()
    for t in threads: t.join()
assert len(out) == 8 and all((o == out[0]).all() for o in out) and (out[0] > 0).all()
"""
    for _ in range(3):
        subprocess.run([sys.executable, "-c", code], check=True)
