"""Decoding in crops: as the whole where a VAE allows it, left alone where it does not."""

import logging

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("diffusers")

from h3video.models import HUNYUAN, LTX, LTX2
from h3video.render.engines.diffusers import HexTiling, wrap_vae
from h3video.tiling.settings import HexSettings


def ltx_vae():
    from diffusers import AutoencoderKLLTXVideo

    return AutoencoderKLLTXVideo(
        latent_channels=6, block_out_channels=(8, 8, 8, 8),
        decoder_block_out_channels=(8, 8, 8, 8), layers_per_block=(1, 1, 1, 1, 1),
        decoder_layers_per_block=(1, 1, 1, 1, 1),
    )  # fmt: skip


def ltx2_vae():
    from diffusers import AutoencoderKLLTX2Video

    return AutoencoderKLLTX2Video(
        latent_channels=6, block_out_channels=(8, 8, 8, 8),
        decoder_block_out_channels=(8, 16, 32), layers_per_block=(1, 1, 1, 1, 1),
        decoder_layers_per_block=(1, 1, 1, 1),
    )  # fmt: skip


def decode(vae, latents):
    with torch.no_grad():
        return vae.decode(latents, return_dict=False)[0]


@pytest.mark.parametrize(("make", "family"), [(ltx_vae, LTX), (ltx2_vae, LTX2)])
def test_crops_decode_as_the_whole_does(make, family):
    torch.manual_seed(0)
    vae = make().eval()
    latents = torch.randn(1, 6, 1, 24, 40, generator=torch.Generator().manual_seed(1))
    plain = decode(vae, latents)
    done = []
    tiling = HexTiling(family, HexSettings(budget=0.5), lambda phase, share: done.append(share))
    assert wrap_vae(tiling, vae) is True
    plan = tiling.crop_plan(40 * 32, 24 * 32)
    assert len(plan.tiles) > 1
    tiled = decode(vae, latents)
    assert sum(done) == pytest.approx(1.0)
    assert (tiled - plain).norm() < 0.01 * plain.norm()
    tiling.undo()
    assert torch.equal(decode(vae, latents), plain)


def test_a_decoder_that_draws_noise_is_left_alone(caplog):
    from diffusers import AutoencoderKLLTXVideo

    vae = AutoencoderKLLTXVideo(
        latent_channels=6, block_out_channels=(8, 8, 8, 8),
        decoder_block_out_channels=(8, 8, 8, 8), layers_per_block=(1, 1, 1, 1, 1),
        decoder_layers_per_block=(1, 1, 1, 1, 1),
        decoder_inject_noise=(True, True, True, False, False),
    )  # fmt: skip
    with caplog.at_level(logging.INFO, "h3video"):
        assert wrap_vae(HexTiling(LTX, HexSettings()), vae) is False
    assert "draws noise" in caplog.text and "_decode" not in vae.__dict__


def test_hunyuans_decoder_is_left_alone_because_crops_differ(caplog):
    from diffusers import AutoencoderKLHunyuanVideo

    torch.manual_seed(0)
    vae = AutoencoderKLHunyuanVideo(
        latent_channels=4, block_out_channels=(8, 8, 8, 8), layers_per_block=1, norm_num_groups=4
    ).eval()
    with caplog.at_level(logging.INFO, "h3video"):
        assert wrap_vae(HexTiling(HUNYUAN, HexSettings()), vae) is False
    assert caplog.text.count("the VAE is not tiled: its group norms") == 1
    # The reason, seen: the same latents decode differently when less of the picture is there.
    latents = torch.randn(1, 4, 1, 24, 24, generator=torch.Generator().manual_seed(1))
    latents[..., 16:] += 3.0
    whole, crop = decode(vae, latents), decode(vae, latents[..., :16])
    inner = slice(0, 32)
    assert (whole[..., inner] - crop[..., inner]).abs().max() > 0.05 * whole.std()


def test_unknown_vaes_are_left_alone(caplog):
    class SomeVae(torch.nn.Module):
        pass

    with caplog.at_level(logging.INFO, "h3video"):
        assert wrap_vae(HexTiling(LTX, HexSettings()), SomeVae()) is False
    assert "SomeVae is not known to decode crops" in caplog.text
