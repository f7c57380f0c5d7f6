"""The shipped folder: its size, its shape for ComfyUI, and that it loads in every dtype."""

import json
from pathlib import Path

import pytest

torch = pytest.importorskip("torch")
diffusers = pytest.importorskip("diffusers")

from h3video import nano
from h3video.nano.pack import MAX_BYTES, folder_bytes
from h3video.nano.text import make_tokenizer


def test_size():
    assert folder_bytes(nano.path()) <= MAX_BYTES == 25_000_000


def test_shapes_fit_comfyui():
    config = json.loads((Path(nano.path()) / "transformer/config.json").read_text())
    assert config["attention_head_dim"] == 128
    assert (config["text_dim"], config["freq_dim"]) == (4096, 256)
    assert (config["in_channels"], config["out_channels"]) == (16, 16)
    assert config["cross_attn_norm"] and config["qk_norm"] == "rms_norm_across_heads"
    vae = json.loads((Path(nano.path()) / "vae/config.json").read_text())
    assert vae["dim_mult"] == [1, 2, 4, 4] and vae["z_dim"] == 16
    assert vae["temperal_downsample"] == [False, True, True] and vae["attn_scales"] == []
    # ComfyUI knows these numbers by heart (latent_formats.Wan21).
    assert vae["latents_mean"][:2] == [-0.7571, -0.7089]
    assert vae["latents_std"][:2] == [2.8184, 1.4541]


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "float16"])
def test_loads_and_runs(dtype):
    pipe = diffusers.WanPipeline.from_pretrained(nano.path(), torch_dtype=getattr(torch, dtype))
    pipe.set_progress_bar_config(disable=True)
    assert pipe.transformer.dtype == pipe.vae.dtype == getattr(torch, dtype)
    out = pipe(
        "a red circle moves left over blue waves", width=64, height=48, num_frames=5,
        num_inference_steps=2, guidance_scale=3.0, output_type="pt", max_sequence_length=32,
        generator=torch.Generator().manual_seed(0),
    ).frames  # fmt: skip
    assert out.shape == (1, 5, 3, 48, 64)
    assert torch.isfinite(out.float()).all() and out.float().std() > 0.01


def test_tokenizer_is_the_one_of_the_code():
    from transformers import AutoTokenizer

    shipped = AutoTokenizer.from_pretrained(Path(nano.path()) / "tokenizer")
    prompt = "A Red circle moves LEFT over zebra waves."
    ids = shipped(prompt).input_ids
    assert ids == make_tokenizer()(prompt).input_ids
    unknown = shipped.unk_token_id
    assert [t == unknown for t in ids] == [False] * 6 + [True, False, True, False]


def test_words_have_vectors_of_their_own():
    """A collapsed encoder says the same for every word; this happened once in training."""
    pipe = diffusers.WanPipeline.from_pretrained(
        nano.path(), transformer=None, vae=None, torch_dtype=torch.float32
    )
    with torch.no_grad():
        a, b = (
            pipe.encode_prompt(f"a {c} star moves up over sand dots",
                               do_classifier_free_guidance=False, max_sequence_length=16)[0]
            for c in ("red", "green")
        )  # fmt: skip
    assert torch.cosine_similarity(a[0, 1], b[0, 1], dim=0) < 0.85  # collapsed: 0.97
    assert (a[0, 9:] == 0).all()
