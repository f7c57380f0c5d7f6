"""Crop plans: one shape, inside the frame, every weight inside its crop."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from h3video.errors import UsageError
from h3video.models import WAN
from h3video.tiling import plan_crop_tiles


@given(
    st.integers(4, 40), st.integers(4, 40), st.sampled_from(["auto", 2, 3]),
    st.sampled_from([None, 0.0, 16.0, 64.0]), st.sampled_from(["hex", "rect"]),
    st.floats(-90, 90),
)  # fmt: skip
@settings(max_examples=60)
def test_crops_hold_their_weights(columns, rows, res, overlap, shape, rotation):
    plan = plan_crop_tiles(
        columns * 16, rows * 16, WAN, hex_res=res, overlap=overlap, shape=shape, rotation=rotation
    )
    total = np.zeros((plan.height, plan.width), np.float32)
    for tile, weights in zip(plan.tiles, plan.weights()):
        assert 0 <= tile.left <= plan.columns - plan.crop_columns
        assert 0 <= tile.top <= plan.rows - plan.crop_rows
        y, x = np.divmod(weights.points, plan.width)
        assert (x >= tile.left * 8).all() and (x < (tile.left + plan.crop_columns) * 8).all()
        assert (y >= tile.top * 8).all() and (y < (tile.top + plan.crop_rows) * 8).all()
        total[y, x] += weights.weight
    assert np.abs(total - 1.0).max() <= 1e-6


def test_context_around_every_owned_pixel():
    plan = plan_crop_tiles(1280, 704, WAN)
    assert len(plan.tiles) > 1
    for tile, weights in zip(plan.tiles, plan.weights()):
        y, x = np.divmod(weights.points, plan.width)
        for low, high, first, size, frame in (
            (x.min(), x.max(), tile.left, plan.crop_columns, plan.columns),
            (y.min(), y.max(), tile.top, plan.crop_rows, plan.rows),
        ):
            # 4 latents of context, or the frame's own border
            assert first == 0 or low // 8 - first >= 4
            assert first + size == frame or first + size - 1 - high // 8 >= 4


def test_one_crop():
    plan = plan_crop_tiles(480, 288, WAN, shape="none")
    assert len(plan.tiles) == 1
    assert (plan.crop_columns, plan.crop_rows) == (60, 36)


def test_small_frames_are_decoded_whole_unless_a_budget_says_otherwise():
    assert len(plan_crop_tiles(160, 96, WAN).tiles) == 1
    assert len(plan_crop_tiles(160, 96, WAN, budget=0.1).tiles) > 1


def test_bad_size_is_refused():
    with pytest.raises(UsageError, match="width 100"):
        plan_crop_tiles(100, 96, WAN)
