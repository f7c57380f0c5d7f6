"""What H3FiniteGuard looks for: broken numbers, black, tint, noise; and no false alarms."""

import pytest
import torch

from h3video.render.health import check_images, check_values


def picture(frames=3, height=64, width=96, seed=0):
    """Something like a photograph: smooth shapes with grain."""
    g = torch.Generator().manual_seed(seed)
    coarse = torch.rand(frames, 3, 9, 13, generator=g)
    smooth = torch.nn.functional.interpolate(coarse, (height, width), mode="bicubic")
    return (
        smooth.permute(0, 2, 3, 1) + 0.03 * torch.randn(frames, height, width, 3, generator=g)
    ).clamp(0, 1)


@pytest.mark.parametrize("seed", range(12))
def test_ordinary_pictures_pass(seed):
    health = check_images(picture(seed=seed))
    assert not health.broken and not health.suspicious
    assert health.report.count("channel") == 3


@pytest.mark.parametrize(
    "colour", [(0.9, 0.2, 0.9), (0.1, 0.8, 0.2), (0.02, 0.02, 0.05), (1, 1, 1), (0.8, 0.1, 0.1)]
)
def test_a_coloured_thing_on_a_plain_ground_passes(colour):
    images = torch.full((3, 64, 96, 3), 0.6)
    images[:, 10:50, 20:70] = torch.tensor(colour)
    assert not check_images(images).suspicious


def test_a_night_scene_passes():
    assert not check_images(picture() * 0.06).suspicious


def test_one_black_frame_in_a_fade_passes():
    images = picture()
    images[0] = 0
    assert not check_images(images).suspicious


def test_nan_and_infinity_are_counted_and_located():
    latent = torch.randn(1, 16, 5, 12, 20)
    latent[0, 3, 0] = float("nan")
    latent[0, 7, 0, 0, 0] = float("inf")
    health = check_values(latent, 1, "the latent")
    share = 240 / latent.numel()
    assert f"{share:.1%} NaN" in health.broken
    assert "in 2 of 16 channels: 3, 7" in health.broken
    assert "bfloat16" in health.broken and "GGUF" in health.broken
    assert "channel 3: mean" in health.report and "nan" not in health.report.split("\n")[4]


def test_a_channel_without_a_finite_value_is_reported():
    latent = torch.randn(1, 2, 3, 4, 4)
    latent[:, 1] = float("nan")
    assert "channel 1: no finite value" in check_values(latent, 1, "x").report


def test_black_noise_and_tint_are_suspicious():
    assert "black" in check_images(torch.zeros(3, 64, 96, 3)).suspicious
    noise = torch.rand(3, 64, 96, 3, generator=torch.Generator().manual_seed(1))
    assert "noise" in check_images(noise).suspicious
    purple = picture() * torch.tensor([1.0, 0.1, 1.0])
    assert "purple all over" in check_images(purple).suspicious
    green = picture() * torch.tensor([0.1, 1.0, 0.1])
    assert "green all over" in check_images(green).suspicious


def test_noise_in_one_of_three_frames_passes():
    images = picture()
    images[1] = torch.rand(64, 96, 3)
    assert not check_images(images).suspicious


def test_tiny_grey_and_single_channel_images_do_not_break():
    for shape in [(1, 1, 1, 3), (1, 8, 8, 1), (2, 16, 16, 4), (1, 64, 64, 1)]:
        assert not check_images(torch.full(shape, 0.5)).broken
