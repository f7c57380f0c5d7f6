"""Counts are those of real plans, and every way keeps the context that it promises."""

import numpy as np
import pytest

scipy = pytest.importorskip("scipy")

from scipy.ndimage import distance_transform_edt

from benchmarks.quality import counted
from benchmarks.quality.counted import SHAPES, best, cropped, interior, joined_crops, token_plan
from h3video.errors import UsageError
from h3video.models.wan import WAN

W, H, PX = 832, 480, 16


@pytest.mark.parametrize("radius", [64.0, 128.0])
@pytest.mark.parametrize("way", SHAPES)
@pytest.mark.parametrize("sizes", [1, 3])
def test_every_owned_token_has_its_context(way, radius, sizes):
    p = token_plan(WAN, W, H, radius, 0.4, way, sizes)
    index, _ = p.grid.sample_weights(p.columns, p.rows, float(PX), p.overlap)
    owner = index[..., 0].ravel()
    for tile in p.tiles:
        seen = np.zeros(p.columns * p.rows, bool)
        seen[list(tile.tokens)] = True
        if not seen.all():
            away = distance_transform_edt(seen.reshape(p.rows, p.columns)).ravel() * PX
            assert away[np.isin(owner, tile.cells)].min() > radius
    assert len({len(t.tokens) for t in p.tiles}) <= sizes


def test_counts_are_the_plans():
    for way in SHAPES:
        p = token_plan(WAN, W, H, 64.0, 0.3, way, 3)
        found = best(WAN, W, H, 64.0, 0.3, way)
        assert (found.tiles, found.tokens) == (len(p.tiles), sum(len(t.tokens) for t in p.tiles))
        assert found.share == max(len(t.tokens) for t in p.tiles) / (W * H / PX**2) <= 0.3
        assert found.price == found.tokens / (W * H / PX**2) > 1


def test_crops_by_hand():
    # 832 = 52 tokens in 2 of 26; with 64 px = 4 tokens on the one side that is not the frame's
    assert cropped(W, H, PX, 2, 1, 64.0, 1) == (2 * 30 * 30, 2, 30 * 30, "2x1")
    assert cropped(W, H, PX, 2, 1, 64.0, 3)[0] == 2 * 30 * 30
    # three of 17.3: 17 + 4, 18 + 8 and 17 + 4 tokens
    assert cropped(W, H, PX, 3, 1, 64.0, 1)[:3] == (3 * 26 * 30, 3, 26 * 30)
    assert cropped(W, H, PX, 3, 1, 64.0, 2)[:3] == ((21 + 26 + 21) * 30, 3, 26 * 30)


@pytest.mark.parametrize(("across", "down"), [(5, 3), (4, 3), (3, 2), (7, 4)])
def test_crops_hold_what_round_corners_do_and_no_more_than_the_corners_on_top(across, down):
    """One by one: a crop is the smallest rectangle around a rectangular token tile."""
    from h3video.grid import rectangles
    from h3video.tiling.cover import cover

    total = cropped(W, H, PX, across, down, 64.0, 10**6)[0]
    grid = rectangles(W, H, across, down)
    seen = [count for _, count in cover(grid, W // PX, H // PX, PX, 64.0, 64.0).seen]
    corners = 4 * 4 * (4 - np.pi) / 4  # tokens of a square of 4 beyond a quarter disc
    assert sum(seen) < total <= sum(seen) + 4 * across * down * (corners + 4)


def test_joined_crops_are_no_dearer_than_single_ones():
    single = cropped(W, H, PX, 7, 4, 64.0, 1)
    joined = min(joined_crops(WAN, W, H, 7, 4, 64.0))
    assert joined[0] < single[0]
    assert joined[1] < single[1]


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


def test_the_best_fits_its_limit_and_more_room_is_no_dearer():
    tight = best(WAN, W, H, 64.0, 1 / 4, "crops")
    loose = best(WAN, W, H, 64.0, 1 / 2, "crops")
    assert tight.share <= 1 / 4
    assert loose.tokens <= tight.tokens
    assert loose.tokens <= best(WAN, W, H, 64.0, 1 / 2, "crops", 1).tokens
    with pytest.raises(UsageError, match="no tile of 832x480"):
        best(WAN, W, H, 256.0, 1 / 16, "crops")


def test_all_is_counted_and_what_nothing_fits_is_left_out():
    said = []
    rows = counted.run(said.append, [(WAN, W, H)], (64.0, 256.0), (1 / 4,))
    assert {(r.way, r.sizes) for r in rows if r.radius == 64.0} == {
        (way, sizes) for way in counted.WAYS for sizes in counted.SIZES
    }
    assert not [r for r in rows if r.radius == 256.0]
    assert said == ["counted wan 832x480"]
    assert all(isinstance(v, (str, int, float)) for r in rows for v in r.to_json().values())
