"""The search for a grid: it counts as plans do, beats fixed grids, keeps what is given."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from h3video.grid import hex_grid, rectangles
from h3video.grid.lattice import Lattice
from h3video.models import LTX2, MINIMAX_H3, WAN
from h3video.tiling import plan_token_tiles, search
from h3video.tiling.cover import cover, dilate
from h3video.tiling.search import Frame, grown
from h3video.tiling.tokens import plan_latent_tiles


@given(st.integers(4, 20), st.integers(4, 20), st.floats(0, 6), st.integers(0, 2**32 - 1))
@settings(max_examples=40)
def test_grown_intervals_hold_the_grown_set(columns, rows, radius, seed):
    rng = np.random.default_rng(seed)
    first = rng.integers(0, columns, (3, rows)).astype(np.int16)
    last = np.minimum(first + rng.integers(0, 5, (3, rows)), columns - 1).astype(np.int16)
    none = rng.random((3, rows)) < 0.3
    first[none], last[none] = search.FAR, -search.FAR
    x = np.arange(columns)
    sets = (x >= first[..., None]) & (x <= last[..., None])
    low, high = grown(first, last, radius, columns)
    want = dilate(sets, radius)
    for i in range(3):
        for y in range(rows):
            found = np.flatnonzero(want[i, y])
            if len(found):
                assert (low[i, y], high[i, y]) == (found[0], found[-1])
            else:
                assert low[i, y] > high[i, y]


@pytest.mark.parametrize("overlap", [0.0, 64.0, 128.0])
@pytest.mark.parametrize("turn", [0.0, 10.0, 20.0, 41.5])
def test_counted_hexagons_are_those_of_real_plans(overlap, turn):
    frame = Frame(52, 30, 16, overlap, 64.0)
    span, origin = 0.03, (21.0, -33.5)
    grid = hex_grid(832, 480, 4, span, turn, origin)
    real = cover(grid, 52, 30, 16, overlap, 64.0)
    lattice = Lattice.over_frame(832, 480, 4, span, turn, origin)
    first, last, near = search._hex_cover(frame, lattice)
    counts = sorted(search._lengths(first, last).sum(-1).tolist())
    # Rows are taken as whole intervals and arcs as chords: a token or two at most.
    assert np.abs(np.array(counts) - sorted(n for _, n in real.seen)).max() <= 2
    assert sorted(map(len, near)) == sorted(map(len, real.neighbours))


@pytest.mark.parametrize("overlap", [0.0, 64.0, 128.0])
@pytest.mark.parametrize(("columns", "rows"), [(3, 2), (5, 4), (7, 1)])
def test_counted_rectangles_are_those_of_real_plans(overlap, columns, rows):
    frame = Frame(52, 30, 16, overlap, 64.0)
    real = cover(rectangles(832, 480, columns, rows), 52, 30, 16, overlap, 64.0)
    counts = search._lengths(*search._rect_rows(frame, columns, rows)).sum(-1)
    assert np.abs(counts - [n for _, n in real.seen]).max() <= 2


@pytest.mark.parametrize(
    ("family", "width", "height"), [(WAN, 1280, 704), (MINIMAX_H3, 1344, 768), (LTX2, 1920, 1088)]
)
@pytest.mark.parametrize("shape", ["hex", "rect"])
def test_searched_plans_run_no_more_than_those_of_fixed_grids(family, width, height, shape):
    frames = family.frame_first + family.frame_step
    settings = dict(budget=0.25, halo=64.0, shape=shape)
    best = plan_token_tiles(width, height, frames, family, **settings)
    assert best.share <= 0.25
    for res, turn in ((2, 0.0), (3, 0.0), (3, 10.0), (4, 20.0)):
        fixed = plan_token_tiles(
            width, height, frames, family, hex_res=res, rotation=turn, halo=64.0, shape=shape
        )
        if fixed.share <= 0.25:
            assert best.tokens_run <= fixed.tokens_run


def crops(width, height, px, radius, limit):
    """Tokens of equal rectangles cut from the frame that see `radius` px around their own."""

    def side(tokens, parts):
        at = (np.arange(tokens) + 0.5) * px
        return max(
            int(((at >= i * tokens * px / parts - radius)
                 & (at <= (i + 1) * tokens * px / parts + radius)).sum())
            for i in range(parts)
        )  # fmt: skip

    columns, rows = width // px, height // px
    found = []
    for across in range(1, 13):
        for down in range(1, 10):
            size = side(columns, across) * side(rows, down)
            if size <= limit * columns * rows:
                found.append(across * down * size)
    return min(found)


@pytest.mark.parametrize(
    ("family", "width", "height", "radius", "limit", "fewer"),
    [
        (WAN, 1280, 704, 64.0, 1 / 4, 0.08), (WAN, 1280, 704, 64.0, 1 / 8, 0.08),
        (WAN, 1280, 704, 128.0, 1 / 4, 0.08), (MINIMAX_H3, 1344, 768, 64.0, 1 / 4, 0.08),
        (MINIMAX_H3, 1344, 768, 64.0, 1 / 8, 0.08), (MINIMAX_H3, 1920, 1088, 64.0, 1 / 4, 0.05),
        (LTX2, 3840, 2176, 64.0, 1 / 4, 0.03),
    ],
)  # fmt: skip
def test_hexagons_run_fewer_tokens_than_crops(family, width, height, radius, limit, fewer):
    frames = family.frame_first + family.frame_step
    plan = plan_token_tiles(width, height, frames, family, budget=limit, halo=radius)
    run = sum(len(t.tokens) for t in plan.tiles)
    assert run <= (1.0 - fewer) * crops(width, height, family.token_px, radius, limit)


def test_seams_are_kept_off_columns_and_rows():
    for size in ((832, 480), (1280, 704), (1920, 1088), (704, 1280)):
        grid = plan_token_tiles(*size, 17, WAN).grid
        upright = math.degrees(grid.lattice.theta) % 60.0
        assert 9.9 <= min(upright, 60.0 - upright) <= 20.1


@pytest.mark.parametrize(
    "given", [dict(rotation=33.0), dict(origin=(10.0, -4.0)), dict(span=0.05), dict(rotation=0.0)]
)
def test_what_is_given_is_kept(given):
    grid = plan_token_tiles(1280, 704, 17, WAN, budget=0.3, **given).grid
    for name, value in given.items():
        assert getattr(grid, name) == value


def test_a_search_finds_the_same_again():
    one = plan_token_tiles(1280, 704, 17, WAN, budget=0.2)
    plan_latent_tiles.cache_clear()
    assert plan_token_tiles(1280, 704, 17, WAN, budget=0.2) == one


def test_a_frame_of_a_few_tokens_is_not_tiled():
    plan = plan_token_tiles(64, 64, 17, WAN)
    assert plan.single
    assert plan.price == 1.0
