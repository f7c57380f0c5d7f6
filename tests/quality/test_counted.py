"""Counts are those of real plans, and every way keeps the context that it promises."""

import numpy as np
import pytest

scipy = pytest.importorskip("scipy")

from benchmarks.quality import counted
from benchmarks.quality.counted import (
    RoundedGrid,
    crops,
    interior,
    joined_crops,
    rectangles,
    shifted,
    token_tiles,
)
from h3video.grid import hex_grid, rect_grid
from h3video.grid.rectgrid import RectGrid
from h3video.models.wan import WAN
from h3video.tiling.tokens import _tiles, plan_token_tiles

W, H, PX = 832, 480, 16


def test_counts_are_the_plans():
    for shape, make in (("hex", hex_grid), ("rect", rect_grid)):
        for res, span, halo in ((4, 0.02, 64.0), (3, 0.075, 96.0)):
            plan = plan_token_tiles(
                W, H, 17, WAN, hex_res=res, span=span, halo=halo, shape=shape
            )  # fmt: skip
            tiles, tokens, needed, _ = token_tiles(make(W, H, res, span), PX, halo, None)
            assert (tiles, tokens) == (len(plan.tiles), len(plan.tiles[0].tokens))
            assert tokens < needed <= tiles * tokens


def context(mask, owned):
    """The least distance of an owned token to one that is missing; the frame's edge is none."""
    from scipy.ndimage import distance_transform_edt

    if mask.all():
        return np.inf
    return distance_transform_edt(mask)[owned].min() * PX


@pytest.mark.parametrize("radius", [64.0, 128.0])
@pytest.mark.parametrize("kind", ["hexagons", "rounded", "rectangles"])
def test_every_owned_token_has_its_context(kind, radius):
    grid = {
        "hexagons": hex_grid(W, H, 4, 0.03, 10.0),
        "rounded": rectangles(W, H, 5, 3, RoundedGrid),
        "rectangles": rectangles(W, H, 5, 3),
    }[kind]
    columns, rows = W // PX, H // PX
    tiles, overlap, _ = _tiles(grid, columns, rows, PX, 64.0, radius, grid.shape, None)
    index, _ = grid.sample_weights(columns, rows, float(PX), overlap)
    for tile in tiles:
        mask = np.zeros(columns * rows, bool)
        mask[list(tile.tokens)] = True
        owned = np.isin(index[..., 0], tile.cells)
        assert context(mask.reshape(rows, columns), owned) > radius


def test_rectangles_match_the_packages_own():
    grid = rectangles(W, H, 5, 3)
    own = next(
        g for g in (rect_grid(W, H, 4, s) for s in np.geomspace(0.01, 0.2, 200))
        if (g.columns, g.rows) == (5, 3)
    )  # fmt: skip
    centres = [[(c.x, c.y) for c in g.cells] for g in (grid, own)]
    assert np.allclose(*centres)
    assert token_tiles(grid, PX, 64.0, None) == token_tiles(own, PX, 64.0, None)


def test_crops_by_hand():
    # 832 = 52 tokens in 2 of 26; with 64 px = 4 tokens on the one side that is not the frame's
    assert crops(rectangles(W, H, 2, 1), PX, 64.0)[:3] == (2, 30 * 30, 2 * 30 * 30)
    # three of 17.3: the middle one sees 4 more on both sides and sets the size
    tiles, tokens, needed, _ = crops(rectangles(W, H, 3, 1), PX, 64.0)
    assert tiles == 3
    assert 25 * 30 <= tokens <= 26 * 30
    assert needed < 3 * tokens


def test_crops_are_rectangular_token_tiles():
    """Without joining both run the same tokens, but a crop is as wide as the widest and as tall
    as the tallest of all."""
    for columns, rows in ((2, 1), (2, 2)):  # no cell that is small enough to be joined
        grid = rectangles(W, H, columns, rows, RectGrid)
        a, b = crops(grid, PX, 64.0), token_tiles(grid, PX, 64.0, None)
        assert a[:3] == b[:3]


def test_shifted_grids_cover_the_frame_with_the_same_hexagons():
    grid = hex_grid(W, H, 4, 0.03, 10.0)
    moved = shifted(grid, 0.5, 0.25)
    assert sum(c.pixels for c in moved.cells) == W * H
    assert moved.inradius == grid.inradius
    step = (0.5 * grid.lattice.pitch, 0.25 * grid.lattice.pitch)
    at = {(c.q, c.r): (c.x, c.y) for c in grid.cells}
    for c in moved.cells:
        if (c.q, c.r) in at:
            was = at[c.q, c.r]
            assert (c.x - was[0], c.y - was[1]) == pytest.approx(step)
    assert shifted(grid, 0.0, 0.0).lattice == grid.lattice
    tiles, tokens, needed, _ = token_tiles(moved, PX, 64.0, None)
    assert W * H // PX**2 < needed <= tiles * tokens


def test_joined_crops_are_the_packages_own():
    grid = rectangles(W, H, 5, 3, RectGrid)
    tiles, tokens, _, _ = joined_crops(grid, PX, 64.0, None)
    assert tiles < 15
    assert tiles * tokens <= 15 * crops(grid, PX, 64.0)[1] * 1.05


def test_inner_tiles_are_the_formulas():
    """Area of a cell and its surroundings by elementary geometry, within 2 %."""
    for side, share in ((256.0, 1.0), (384.0, 2.0)):
        found = interior(side, share)
        r, pitch = found.radius, side * np.sqrt(2 / np.sqrt(3))
        perimeter = 6 * pitch / np.sqrt(3)
        assert r == pytest.approx(share * pitch / 2)
        disc, token = np.pi * r**2, PX**2
        assert found.hexagons * token == pytest.approx(side**2 + perimeter * r + disc, rel=0.02)
        assert found.rounded * token == pytest.approx(side**2 + 4 * side * r + disc, rel=0.02)
        assert found.rectangles * token == pytest.approx((side + 2 * r) ** 2, rel=0.02)


def test_the_best_fits_its_limit_and_a_looser_limit_is_no_dearer():
    tight = counted.best(WAN, W, H, 64.0, 1 / 4, "crops")
    loose = counted.best(WAN, W, H, 64.0, 1 / 2, "crops")
    assert tight.share <= 1 / 4
    assert loose.tokens <= tight.tokens
    own = counted.best(WAN, W, H, 64.0, 1 / 2, "crops", own_sizes=True)
    assert own.tokens <= loose.tokens
    with pytest.raises(ValueError, match="no tile of 832x480"):
        counted.best(WAN, W, H, 256.0, 1 / 16, "crops")
