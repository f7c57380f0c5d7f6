"""Crop decoding with decoders that give themselves away."""

import pytest

torch = pytest.importorskip("torch")

from h3video.models import WAN
from h3video.tiling import plan_crop_tiles
from h3video.tiling.decode import decode_crops


def upscale(z):
    """A decoder whose pixels are the latents they come from."""
    return z[:, :3].repeat_interleave(8, -1).repeat_interleave(8, -2)


def coordinates(rows, columns, frames=2):
    y, x = torch.meshgrid(torch.arange(rows), torch.arange(columns), indexing="ij")
    z = torch.stack([x, y, x * 1000 + y]).float()
    return z[None, :, None].repeat(1, 1, frames, 1, 1)


@pytest.mark.parametrize("shape", ["hex", "rect"])
@pytest.mark.parametrize("size", [(480, 288), (1280, 704), (624, 400)])
def test_every_pixel_comes_from_its_own_latent(size, shape):
    width, height = size
    plan = plan_crop_tiles(width, height, WAN, shape=shape)
    assert len(plan.tiles) > 1
    z = coordinates(height // 8, width // 8)
    calls = []
    out = decode_crops(plan, z, lambda c: calls.append(tuple(c.shape)) or upscale(c))
    torch.testing.assert_close(out, upscale(z), rtol=1e-6, atol=1e-2)
    assert set(calls) == {(1, 3, 2, plan.crop_rows, plan.crop_columns)}  # one shape


def test_one_crop_is_the_decoder_itself():
    plan = plan_crop_tiles(480, 288, WAN, shape="none")
    z = torch.randn(1, 3, 2, 36, 60)
    assert torch.equal(decode_crops(plan, z, upscale), upscale(z))


def test_seams_are_blended():
    plan = plan_crop_tiles(480, 288, WAN)
    count = iter(range(100))
    out = decode_crops(plan, torch.zeros(1, 3, 1, 36, 60),
                       lambda c: torch.full_like(upscale(c), float(next(count))))  # fmt: skip
    want = torch.zeros(288 * 480)
    for k, w in enumerate(plan.weights()):
        want[torch.as_tensor(w.points)] += k * torch.as_tensor(w.weight)
    torch.testing.assert_close(out[0, 0, 0].reshape(-1), want)
    steps = (out[0, 0, 0, :, 1:] - out[0, 0, 0, :, :-1]).abs().max()
    assert steps < 0.5 * len(plan.tiles)  # a fade and not a jump


def test_progress_and_dtype():
    plan = plan_crop_tiles(480, 288, WAN)
    ticks = []
    out = decode_crops(plan, torch.zeros(1, 3, 1, 36, 60, dtype=torch.bfloat16), upscale,
                       ticks.append)  # fmt: skip
    assert out.dtype == torch.bfloat16
    assert sum(ticks) == pytest.approx(1.0)


def test_other_latents_are_refused():
    plan = plan_crop_tiles(480, 288, WAN)
    with pytest.raises(RuntimeError, match="the plan is for 60x36"):
        decode_crops(plan, torch.zeros(1, 3, 1, 35, 60), upscale)
