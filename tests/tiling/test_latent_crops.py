"""Crops of latents for denoisers: inside the frame, on the patch, weights complete."""

import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from h3video.errors import UsageError
from h3video.tiling.latent_crops import LatentBox, plan_latent_crops
from h3video.tiling.settings import HexSettings


@given(
    st.integers(1, 70), st.integers(1, 70), st.sampled_from([1, 2, 8]), st.sampled_from([8, 16]),
    st.sampled_from(["auto", 2, 3]), st.sampled_from([None, 0.0, 16.0, 64.0]),
    st.sampled_from([None, 0.0, 24.0]), st.sampled_from(["hex", "rect", "none"]),
    st.sampled_from([None, 0.25]), st.floats(-90, 90),
)  # fmt: skip
@settings(max_examples=80)
def test_crops_hold_their_weights(
    columns, rows, patch, unit, res, overlap, halo, shape, budget, rotation
):
    plan = plan_latent_crops(
        columns, rows, unit, patch,
        HexSettings(hex_res=res, overlap=overlap, halo=halo, shape=shape, budget=budget,
                    rotation=rotation),
    )  # fmt: skip
    total = np.zeros((rows, columns), np.float32)
    for i, weight in enumerate(plan.crop_weights()):
        box = plan.box(i)
        assert 0 <= box.left <= columns - box.columns and 0 <= box.top <= rows - box.rows
        assert box.columns % patch == 0 or box.columns == columns
        assert box.rows % patch == 0 or box.rows == rows
        if columns % patch == rows % patch == 0:
            assert box.left % patch == box.top % patch == 0
        assert weight.any()
        total[box.top : box.top + box.rows, box.left : box.left + box.columns] += weight
    assert np.abs(total - 1.0).max() <= 1e-6
    assert sum(plan.areas()) == pytest.approx(1.0)
    assert len(plan.tiles) > 1 or plan.box(0).whole


def test_auto_is_the_coarsest_that_fits_and_small_frames_are_not_cut():
    plan = plan_latent_crops(160, 90, 8, 2, HexSettings())
    assert len(plan.tiles) > 1 and plan.share <= 0.5
    assert plan_latent_crops(8, 8, 8, 8, HexSettings()).box(0).whole
    finer = plan_latent_crops(160, 90, 8, 2, HexSettings(budget=0.1, halo=16.0))
    assert finer.share < plan.share


def test_a_budget_in_bytes_is_asked_for():
    plan = plan_latent_crops(160, 90, 8, 2, HexSettings(budget=1000), lambda c, r: c * r <= 3000)
    assert plan.crop_columns * plan.crop_rows <= 3000
    with pytest.raises(UsageError, match="use a share"):
        plan_latent_crops(160, 90, 8, 2, HexSettings(budget=1000))
    with pytest.raises(UsageError, match="fits the budget of 1,000 bytes"):
        plan_latent_crops(160, 90, 8, 2, HexSettings(budget=1000), lambda c, r: False)


def test_narrow_overlap_is_widened_with_a_warning(caplog):
    plan = plan_latent_crops(160, 90, 16, 2, HexSettings(hex_res=4, overlap=32.0))
    assert plan.overlap == 64.0 and "taken as 64 px" in caplog.text
    assert plan_latent_crops(160, 90, 16, 2, HexSettings(hex_res=4, overlap=0.0)).overlap == 0.0


def test_plain_data_and_one_line():
    plan = plan_latent_crops(160, 90, 8, 2, HexSettings())
    data = json.loads(json.dumps(plan.to_json()))
    assert data["crop_columns"] == plan.crop_columns and len(data["tiles"]) == len(plan.tiles)
    assert f"{len(plan.tiles)} crops" in plan.summary()


def test_too_many_crops_are_refused():
    with pytest.raises(UsageError, match="at most 256"):
        plan_latent_crops(400, 300, 8, 2, HexSettings(hex_res=6))
    with pytest.raises(UsageError, match="cannot be cut"):
        plan_latent_crops(0, 4, 8, 2, HexSettings())


def test_a_box_on_a_finer_and_a_coarser_raster():
    box = LatentBox(4, 8, 12, 16, 40, 40)
    assert box.scaled(8.0) == (32, 64, 96, 128)
    assert box.scaled(0.5) == (2, 4, 6, 8)
    with pytest.raises(UsageError, match="between the points"):
        box.scaled(1 / 8)
