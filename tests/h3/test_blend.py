"""blend_tile, native and pure: the definition, what is exact, views, bounds."""

import ctypes

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from h3video import h3


def arrays(shape, seed):
    rng = np.random.default_rng(seed)
    out = rng.standard_normal(shape).astype(np.float32)
    tile = rng.standard_normal(shape).astype(np.float32)
    alpha = rng.random(shape[2:4]).astype(np.float32)
    alpha[rng.random(alpha.shape) < 0.3] = 0.0
    alpha[rng.random(alpha.shape) < 0.3] = 1.0
    same = rng.random(shape) < 0.2
    tile[same] = out[same]
    return out, tile, alpha


@given(
    st.integers(1, 3), st.integers(1, 3), st.integers(1, 9), st.integers(1, 40),
    st.sampled_from([1, 2, 3, 4]), st.integers(0, 2**32 - 1),
)  # fmt: skip
def test_both_backends_are_the_definition(f, p, r, c, i, seed):
    shape = (f, p, r, c, i)
    start, tile, alpha = arrays(shape, seed)
    a = alpha[None, None, :, :, None]
    wanted = np.where(
        a == 0,
        start,
        np.where(a == 1, tile, np.where(tile == start, start, start + a * (tile - start))),
    ).astype(np.float32)
    for name in backends():
        out = start.copy()
        with h3.use_backend(name):
            h3.blend_tile(out, tile, alpha)
        assert out.tobytes() == wanted.tobytes()


def backends():
    try:
        with h3.use_backend("native"):
            return ("native", "pure")
    except Exception:
        return ("pure",)


@given(
    st.integers(1, 6), st.integers(1, 2), st.integers(1, 6), st.integers(1, 60),
    st.sampled_from([1, 2, 3, 4, 7]), st.integers(0, 3), st.integers(0, 2**32 - 1),
)  # fmt: skip
def test_shares_are_the_alphas_that_they_stand_for(f, p, r, c, i, others, seed):
    """Frames of equal and of other shares, runs of every kind, against one frame at a time."""
    rng = np.random.default_rng(seed)
    shape = (f, p, r, c, i)
    start, tile, weight = arrays(shape, seed)
    big = rng.random((others, r + 2, c + 3)).astype(np.float32)
    big[rng.random(big.shape) < 0.5] = 0.0
    seen = big[:, 1 : r + 1, 2 : c + 2]
    shares = rng.random((f, 1 + others)).astype(np.float32)
    shares[rng.random(shares.shape) < 0.3] = 0.0
    shares[rng.random(f) < 0.5] = shares[0]
    wanted = start.copy()
    for k in range(f):
        own, before = shares[k, 0] * weight, np.zeros_like(weight)
        for n in range(others):
            before += shares[k, 1 + n] * seen[n]
        for y, x in np.ndindex(r, c):
            if not own[y, x] > 0:
                continue
            a, o, t = own[y, x] / (before[y, x] + own[y, x]), wanted[k, :, y, x], tile[k, :, y, x]
            wanted[k, :, y, x] = t if a >= 1 else np.where(o == t, o, o + a * (t - o))
    tile[:, :, weight == 0] = np.nan
    for name in backends():
        out = start.copy()
        with h3.use_backend(name):
            h3.blend_tile(out, tile, weight, seen, shares)
        assert out.tobytes() == wanted.tobytes(), name


@pytest.mark.parametrize("columns, inner", [(3100, 1), (1500, 3), (4, 900), (3, 3072), (2, 7001)])
@pytest.mark.parametrize("name", backends())
def test_rows_longer_than_what_is_worked_on_at_a_time(name, columns, inner):
    shape = (2, 1, 2, columns, inner)
    out, tile, alpha = arrays(shape, columns)
    a = alpha[None, None, :, :, None]
    mixed = np.where(tile == out, out, out + a * (tile - out))
    wanted = np.where(a == 0, out, np.where(a == 1, tile, mixed)).astype(np.float32)
    with h3.use_backend(name):
        h3.blend_tile(out, tile, alpha)
    assert out.tobytes() == wanted.tobytes()


@pytest.mark.parametrize("name", backends())
def test_alpha_zero_reads_nothing_and_equal_numbers_keep_their_sign(name):
    out = np.array([0.0, -0.0, 1.0, 2.0], np.float32).reshape(1, 1, 1, 4, 1)
    tile = np.array([-0.0, -0.0, np.nan, np.inf], np.float32).reshape(1, 1, 1, 4, 1)
    alpha = np.array([[0.5, 0.5, 0.0, 0.0]], np.float32)
    before = out.tobytes()
    with h3.use_backend(name):
        h3.blend_tile(out, tile, alpha)
    assert out.tobytes() == before


@pytest.mark.parametrize("name", backends())
def test_views_of_larger_arrays(name):
    rng = np.random.default_rng(0)
    big = rng.random((4, 2, 20, 30, 3)).astype(np.float32)
    tiles = rng.random((4, 2, 9, 11, 3)).astype(np.float32)
    alpha = rng.random((9, 11)).astype(np.float32)
    wanted = big.copy()
    view = wanted[1:3, :, 5:14, 7:18]
    view += alpha[:, :, None] * (tiles[1:3] - view)
    with h3.use_backend(name):
        h3.blend_tile(big[1:3, :, 5:14, 7:18], tiles[1:3], alpha)
    np.testing.assert_allclose(big, wanted, atol=1e-6)


@pytest.mark.parametrize(
    "change, says",
    [
        (lambda o, t, a: (o[:, :, :, ::2], t[:, :, :, ::2], a[:, ::2].copy()), "strides"),
        (lambda o, t, a: (o[::-1], t, a), "strides"),
        (lambda o, t, a: (o, t[:, :, :2], a), "must be alike"),
        (lambda o, t, a: (o, t, a[:2]), "must be alike"),
        (lambda o, t, a: (o[0], t[0], a), "must be alike"),
        (lambda o, t, a: (o, t.astype(np.float64), a), "must be float32"),
    ],
)
def test_wrong_arrays_are_refused(change, says):
    out, tile, alpha = arrays((2, 2, 4, 6, 3), 1)
    with pytest.raises(ValueError, match=says):
        h3.blend_tile(*change(out, tile, alpha))


@pytest.mark.parametrize(
    "seen, shares, says",
    [
        ((1, 4, 6), None, "belong together"),
        ((1, 4, 5), (2, 2), "must have the rows"),
        ((1, 4, 6), (2, 1), "must have the rows"),
        ((1, 4, 6), (3, 2), "must have the rows"),
    ],
)
def test_wrong_shares_are_refused(seen, shares, says):
    out, tile, weight = arrays((2, 2, 4, 6, 3), 1)
    given = [None if s is None else np.zeros(s, np.float32) for s in (seen, shares)]
    with pytest.raises(ValueError, match=says):
        h3.blend_tile(out, tile, weight, *given)


def test_empty_tiles_do_nothing():
    for shape in [(0, 1, 2, 2, 3), (1, 1, 0, 2, 3), (1, 1, 2, 0, 3)]:
        out = np.zeros(shape, np.float32)
        h3.blend_tile(out, out.copy(), np.zeros(shape[2:4], np.float32))


@pytest.mark.skipif("native" not in backends(), reason="no native library")
@given(
    st.lists(st.integers(-2, 6), min_size=6, max_size=6),
    st.lists(st.integers(-1, 40), min_size=9, max_size=9), st.booleans(),
)  # fmt: skip
def test_the_library_never_writes_beyond_the_given_lengths(counts, strides, shared):
    from h3video.h3 import kernel

    library = kernel.load()
    room = 64
    out = np.full(room + 64, 7.0, np.float32)
    tile, alpha = np.full(room, 1.0, np.float32), np.full(room, 0.5, np.float32)
    f32 = ctypes.POINTER(ctypes.c_float)
    result = library.bridge_blend_tile(
        (ctypes.c_int64 * 6)(*counts), out.ctypes.data_as(f32), room,
        (ctypes.c_int64 * 3)(*strides[:3]), tile.ctypes.data_as(f32), room,
        (ctypes.c_int64 * 3)(*strides[3:6]), alpha.ctypes.data_as(f32), room, strides[6],
        alpha.ctypes.data_as(f32), room, (ctypes.c_int64 * 2)(*strides[7:]),
        alpha.ctypes.data_as(f32), room if shared else 0,
    )  # fmt: skip
    assert (out[room:] == 7.0).all()
    if min(counts) < 0 or min(strides) < 0:
        assert result == -2
    elif result < 0:
        assert result == -14 and (out == 7.0).all()
    elif 0 not in counts[:5]:
        assert (out != 7.0).any()
