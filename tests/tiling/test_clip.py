"""Layouts of clips: every tile of one shape, everything owned, chunks that fade."""

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from h3video.errors import UsageError
from h3video.grid import finest_res, frame_grid, grid_cells, hex_grid
from h3video.tiling.clip import chunk_weights, clip_layout

sizes = st.integers(4, 40)


@given(
    sizes, sizes, st.sampled_from([1, 8, 16]), st.integers(0, 4), st.floats(0, 64),
    st.floats(0, 64), st.integers(1, 40), st.integers(0, 20), st.integers(0, 10),
)  # fmt: skip
def test_layouts_hold_together(columns, rows, unit, res, overlap, halo, frames, length, shared):
    assume(shared * 2 <= length)
    grid = hex_grid(
        columns * unit, rows * unit, min(res, finest_res(columns * unit, rows * unit, 0.075))
    )
    cells = grid_cells(grid, overlap)
    layout = clip_layout(
        cells, columns, rows, frames, halo=halo, chunk_frames=length, chunk_overlap=shared
    )
    assert len(layout.tiles) == layout.places * len(layout.chunks)
    assert [t.index for t in layout.tiles] == list(range(len(layout.tiles)))
    owned = sorted(i for t in layout.tiles[: layout.places] for i in t.cells)
    assert owned == list(range(len(grid.cells)))
    for t in layout.tiles:
        assert 0 <= t.left <= columns - layout.crop_columns
        assert 0 <= t.top <= rows - layout.crop_rows
        assert 0 <= t.start < t.stop <= frames
    covered = np.zeros(frames, int)
    for a, b in layout.chunks:
        covered[a:b] += 1
    assert covered.min() >= 1
    if shared:
        assert len({b - a for a, b in layout.chunks}) == 1
        for (_, b), (a, _) in zip(layout.chunks, layout.chunks[1:]):
            assert b - a >= shared
    weights = chunk_weights(layout.chunks, layout.fade, frames)
    np.testing.assert_allclose(weights.sum(0), 1.0, atol=1e-6)
    for k, (a, b) in enumerate(layout.chunks):
        assert not weights[k, :a].any() and not weights[k, b:].any()


def test_chunks_are_as_a_person_expects():
    cells = grid_cells(hex_grid(64, 64, 2))

    def chunks(frames, length, shared):
        return clip_layout(cells, 64, 64, frames, chunk_frames=length, chunk_overlap=shared).chunks

    assert chunks(97, 0, 0) == ((0, 97),)
    assert chunks(97, 100, 8) == ((0, 97),)
    assert chunks(10, 4, 0) == ((0, 4), (4, 8), (8, 10))
    assert chunks(10, 4, 2) == ((0, 4), (2, 6), (4, 8), (6, 10))
    assert chunks(9, 4, 2) == ((0, 4), (2, 6), (4, 8), (5, 9))


def test_a_chunk_fades_in_over_the_shared_frames():
    w = chunk_weights(((0, 6), (2, 8)), 4, 8)
    assert (w[0, :2] == 1).all() and (w[1, 6:] == 1).all()
    assert (np.diff(w[1, 1:7]) > 0).all()
    assert w[1, 2] == pytest.approx(0.125**2 * (3 - 0.25))


def test_image_tiles_lie_on_multiples_of_16():
    layout = clip_layout(grid_cells(hex_grid(1920, 1088, 4)), 1920, 1088, 1)
    for t in layout.tiles:
        assert t.left % 16 == 0 and t.top % 16 == 0
    assert layout.crop_columns % 16 == 0 and layout.crop_rows % 16 == 0
    assert 1.0 < layout.price < 4.0


def test_names_say_cell_and_frames():
    layout = clip_layout(grid_cells(hex_grid(640, 384, 4)), 640, 384, 9, chunk_frames=5)
    name = layout.tiles[-1].name
    assert f"{layout.tiles[-1].ids[0]:x}" in name and "frames 5-8" in name
    assert name in layout.summary()


@pytest.mark.parametrize(
    "change, says",
    [
        (dict(columns=600), "the clip is 600x384, the grid is for 640x384 px"),
        (dict(halo=-1.0), "halo -1 is out of range"),
        (dict(chunk_frames=8, chunk_overlap=5), "chunk_overlap 5 is out of range 0..4"),
        (dict(chunk_frames=1), None),
    ],
)
def test_bad_values_are_refused(change, says):
    arguments = {"columns": 640, "rows": 384, "frames": 33, **change}
    cells = grid_cells(hex_grid(640, 384, 4))
    if says is None:
        assert len(clip_layout(cells, **arguments).chunks) == 33
        return
    with pytest.raises(UsageError, match=says):
        clip_layout(cells, **arguments)


def test_too_many_tiles_and_a_globe_are_refused():
    with pytest.raises(UsageError, match="use hex_res 5 or less"):
        clip_layout(grid_cells(hex_grid(2048, 2048, 6), 0.0), 2048, 2048, 1, halo=0.0)
    globe = grid_cells(frame_grid(512, 256, "0", projection="equirectangular"), 4.0)
    with pytest.raises(UsageError, match="use projection face"):
        clip_layout(globe, 512, 256, 1)
