"""Families' numbers against published configurations and counts (see docs/models.md)."""

import dataclasses

import pytest

from h3video.errors import UsageError
from h3video.models import (
    COGVIDEOX,
    HUNYUAN,
    HUNYUAN_15,
    LTX,
    LTX2,
    MINIMAX_H3,
    MOCHI,
    WAN,
    family_of,
    hunyuan,
    ltx,
    minimax_h3,
    wan,
)

FIVE_B = wan.with_vae(WAN, 16)


def heads(n, width, **more):
    return {"num_attention_heads": n, "attention_head_dim": width, **more}


@pytest.mark.parametrize(
    ("shape", "hidden", "ffn", "count", "layers"),
    [
        (wan.denoiser_shape(heads(12, 128, ffn_dim=8960, num_layers=30)), 1536, 8960, 12, 30),
        (wan.denoiser_shape(heads(40, 128, ffn_dim=13824, num_layers=40)), 5120, 13824, 40, 40),
        (wan.denoiser_shape(heads(24, 128, ffn_dim=14336, num_layers=30)), 3072, 14336, 24, 30),
        (
            minimax_h3.denoiser_shape(
                heads(56, 128, hidden_size=5376, ffn_dim=14336, num_layers=50)
            ),
            5376, 28672, 56, 50,
        ),
        (ltx.denoiser_shape(heads(32, 64, num_layers=28)), 2048, 8192, 32, 28),
        (ltx.denoiser_shape(heads(32, 128, num_layers=48)), 4096, 16384, 32, 48),
        (
            hunyuan.denoiser_shape(
                heads(24, 128, mlp_ratio=4.0, num_layers=20, num_single_layers=40)
            ),
            3072, 12288, 24, 60,
        ),
        (hunyuan.denoiser_shape(heads(16, 128, mlp_ratio=4.0, num_layers=54)), 2048, 8192, 16, 54),
    ],
    ids=["wan-1.3b", "wan-14b", "wan-5b", "minimax-h3", "ltx-2b", "ltx-13b", "hunyuan", "hy-1.5"],
)  # fmt: skip
def test_denoisers_from_configurations(shape, hidden, ffn, count, layers):
    assert (shape.hidden, shape.ffn, shape.heads, shape.layers) == (hidden, ffn, count, layers)
    assert shape.dtype_bytes == 2


def test_bytes_of_a_row_of_minimax_h3():
    shape = minimax_h3.denoiser_shape(
        heads(56, 128, hidden_size=5376, ffn_dim=14336, num_layers=50)
    )
    assert shape.hidden_bytes(1) == 10752
    assert shape.largest_tensor(1) * shape.dtype_bytes == 57344  # the first feed-forward layer


@pytest.mark.parametrize(
    ("family", "width", "height", "frames", "tokens"),
    [
        (WAN, 832, 480, 81, 32760), (WAN, 1280, 720, 81, 75600), (FIVE_B, 1280, 704, 121, 27280),
        (HUNYUAN, 1280, 720, 129, 118800), (HUNYUAN_15, 1280, 720, 121, 111600),
        (LTX, 1216, 704, 121, 13376), (LTX2, 1280, 704, 121, 14080),
        (MINIMAX_H3, 512, 512, 22, 1792), (MINIMAX_H3, 640, 384, 39, 2880),
        (MINIMAX_H3, 640, 384, 56, 4080), (MINIMAX_H3, 864, 480, 124, 14985),
        (MINIMAX_H3, 960, 544, 124, 18870), (MINIMAX_H3, 1344, 768, 124, 37296),
        (MINIMAX_H3, 1344, 768, 362, 107856),
    ],
)  # fmt: skip
def test_tokens_of_a_clip(family, width, height, frames, tokens):
    family.check(width, height, frames)
    columns, rows = family.token_grid(width, height)
    assert columns * rows * family.latent_frames(frames) == tokens


@pytest.mark.parametrize(
    ("frames", "latent"),
    [(5, 2), (22, 7), (39, 12), (56, 17), (124, 37), (243, 72), (362, 107)],
)
def test_minimax_h3_has_17k_plus_5_frames_and_5k_plus_2_latents(frames, latent):
    MINIMAX_H3.check(640, 384, frames)
    assert MINIMAX_H3.latent_frames(frames) == latent
    assert MINIMAX_H3.latent_grid() == "5k+2"


@pytest.mark.parametrize(
    ("frames", "message"),
    [(48, "frames 48 is not 17k\\+5 for minimax-h3; use 39 or 56"),
     (4, "frames 4 is not 17k\\+5 for minimax-h3; use 5 or 22"), (0, "frames 0 is not"),
     (-3, "frames -3 is not")],
)  # fmt: skip
def test_other_lengths_are_refused_with_the_nearest(frames, message):
    with pytest.raises(UsageError, match=message):
        MINIMAX_H3.check(640, 384, frames)


def test_1280x720_is_no_size_of_minimax_h3():
    with pytest.raises(UsageError, match=r"height 720 is not a multiple of 32 .*; use 704 or 736"):
        MINIMAX_H3.check(1280, 720, 124)


@pytest.mark.parametrize("frames", [0, 2, 4, -7])
def test_wan_keeps_its_rule(frames):
    with pytest.raises(UsageError, match="is not 4k\\+1 for wan"):
        WAN.check(832, 480, frames)


def test_families_are_found_by_the_class_of_their_transformer():
    for name, family in (
        ("WanTransformer3DModel", WAN), ("WanVACETransformer3DModel", WAN),
        ("MiniMaxH3Transformer3DModel", MINIMAX_H3), ("LTXVideoTransformer3DModel", LTX),
        ("LTX2VideoTransformer3DModel", LTX2), ("HunyuanVideoTransformer3DModel", HUNYUAN),
        ("HunyuanVideo15Transformer3DModel", HUNYUAN_15),
    ):  # fmt: skip
        assert family_of(name) is family
    assert family_of("CogVideoXTransformer3DModel") is COGVIDEOX
    assert family_of("MochiTransformer3DModel") is MOCHI
    assert family_of("QwenImageTransformer2DModel") is None
    assert {f.sound for f in (LTX2, MINIMAX_H3)} == {True}
    assert not dataclasses.replace(WAN).sound
