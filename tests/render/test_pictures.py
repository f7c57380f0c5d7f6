"""The sheet and the grid overlay."""

import numpy as np
import pytest

pytest.importorskip("PIL")

from h3video.grid import hex_grid, rect_grid
from h3video.render.pictures import contact_sheet, draw_grid, save_png, tile_edges


@pytest.mark.parametrize("make", [hex_grid, rect_grid])
def test_edges_inside_a_tile_are_told_from_borders(make):
    grid = make(480, 288, 3, 0.075)
    alone = [(c.index,) for c in grid.cells]
    border, inner = tile_edges(grid, alone)
    assert not inner
    shared = sum(map(len, grid.neighbours)) // 2
    joined_border, joined = tile_edges(grid, [tuple(c.index for c in grid.cells)])
    assert len(joined) == shared
    assert len(joined) + len(joined_border) == len(border)


def test_sheet_and_overlay(tmp_path):
    frames = np.full((9, 96, 160, 3), 90, np.uint8)
    grid = hex_grid(160, 96, 3)
    sheet = contact_sheet(frames, grid, [(0, 1)], "caption")
    assert sheet.width >= 960
    overlay = np.asarray(draw_grid(frames[0], grid, [(0, 1)], 4.0))
    assert overlay.shape == (384, 640, 3)
    assert 0.01 < (overlay != 90).any(-1).mean() < 0.4  # lines and ids, not a painted-over frame
    one_frame = contact_sheet(frames[:1], grid, [], "")
    save_png(one_frame, tmp_path / "s.png")
    assert [p.name for p in tmp_path.iterdir()] == ["s.png"]
