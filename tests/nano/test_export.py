"""The export to ComfyUI: every key name and shape, values untouched, and (with COMFYUI_PATH)
the same numbers out of ComfyUI's own classes."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("diffusers")
from safetensors.torch import load_file

from h3video import nano
from h3video.nano import export_comfy as ec
from h3video.nano.transformer import FFN, LAYERS, WIDTH
from h3video.nano.vae import BASE_DIM


def native_dit(width=WIDTH, layers=LAYERS, ffn=FFN):
    """Key -> shape of ComfyUI's WanModel (comfy/ldm/wan/model.py)."""
    out = {"head.modulation": (1, 2, width)}

    def linear(name, rows, columns):
        out[f"{name}.weight"], out[f"{name}.bias"] = (rows, columns), (rows,)

    out["patch_embedding.weight"], out["patch_embedding.bias"] = (width, 16, 1, 2, 2), (width,)
    linear("text_embedding.0", width, 4096)
    linear("text_embedding.2", width, width)
    linear("time_embedding.0", width, 256)
    linear("time_embedding.2", width, width)
    linear("time_projection.1", 6 * width, width)
    linear("head.head", 64, width)
    for i in range(layers):
        out[f"blocks.{i}.modulation"] = (1, 6, width)
        out[f"blocks.{i}.norm3.weight"] = out[f"blocks.{i}.norm3.bias"] = (width,)
        linear(f"blocks.{i}.ffn.0", ffn, width)
        linear(f"blocks.{i}.ffn.2", width, ffn)
        for kind in ("self_attn", "cross_attn"):
            for part in "qkvo":
                linear(f"blocks.{i}.{kind}.{part}", width, width)
            for part in "qk":
                out[f"blocks.{i}.{kind}.norm_{part}.weight"] = (width,)
    return out


def native_vae(dim=BASE_DIM):
    """Key -> shape of ComfyUI's WanVAE (comfy/ldm/wan/vae.py), dim_mult 1 2 4 4."""
    out = {}

    def conv(name, rows, columns, *kernel):
        out[f"{name}.weight"], out[f"{name}.bias"] = (rows, columns, *kernel), (rows,)

    def residual(name, before, after):
        out[f"{name}.residual.0.gamma"] = (before, 1, 1, 1)
        out[f"{name}.residual.3.gamma"] = (after, 1, 1, 1)
        conv(f"{name}.residual.2", after, before, 3, 3, 3)
        conv(f"{name}.residual.6", after, after, 3, 3, 3)
        if before != after:
            conv(f"{name}.shortcut", after, before, 1, 1, 1)

    for side in ("encoder", "decoder"):
        residual(f"{side}.middle.0", 4 * dim, 4 * dim)
        residual(f"{side}.middle.2", 4 * dim, 4 * dim)
        out[f"{side}.middle.1.norm.gamma"] = (4 * dim, 1, 1)
        conv(f"{side}.middle.1.to_qkv", 12 * dim, 4 * dim, 1, 1)
        conv(f"{side}.middle.1.proj", 4 * dim, 4 * dim, 1, 1)
    conv("conv1", 32, 32, 1, 1, 1)
    conv("conv2", 16, 16, 1, 1, 1)
    conv("encoder.conv1", dim, 3, 3, 3, 3)
    conv("encoder.head.2", 32, 4 * dim, 3, 3, 3)
    conv("decoder.conv1", 4 * dim, 16, 3, 3, 3)
    conv("decoder.head.2", 3, dim, 3, 3, 3)
    out["encoder.head.0.gamma"], out["decoder.head.0.gamma"] = (4 * dim, 1, 1, 1), (dim, 1, 1, 1)
    widths, n, before = [dim, 2 * dim, 4 * dim, 4 * dim], 0, dim
    for level, width in enumerate(widths):
        for _ in range(2):
            residual(f"encoder.downsamples.{n}", before, width)
            n, before = n + 1, width
        if level < 3:
            conv(f"encoder.downsamples.{n}.resample.1", width, width, 3, 3)
            if level > 0:
                conv(f"encoder.downsamples.{n}.time_conv", width, width, 3, 1, 1)
            n += 1
    n, before = 0, 4 * dim
    for level, width in enumerate(reversed(widths)):
        for _ in range(3):
            residual(f"decoder.upsamples.{n}", before, width)
            n, before = n + 1, width
        if level < 3:
            conv(f"decoder.upsamples.{n}.resample.1", width // 2, width, 3, 3)
            if level < 2:
                conv(f"decoder.upsamples.{n}.time_conv", 2 * width, width, 3, 1, 1)
            n, before = n + 1, width // 2
    return out


@pytest.fixture(scope="module")
def exported(tmp_path_factory):
    out = tmp_path_factory.mktemp("models")
    assert ec.main([str(out)]) == 0
    return out


@pytest.mark.parametrize(
    ("file", "native"), [(ec.DIT_FILE, native_dit), (ec.VAE_FILE, native_vae)], ids=["dit", "vae"]
)
def test_names_and_shapes(exported, file, native):
    assert {k: tuple(v.shape) for k, v in load_file(exported / file).items()} == native()


@pytest.mark.parametrize(
    ("part", "file", "name"),
    [("transformer", ec.DIT_FILE, ec.dit_key), ("vae", ec.VAE_FILE, ec.vae_key)],
    ids=["dit", "vae"],
)
def test_values_are_untouched(exported, part, file, name):
    there = load_file(exported / file)
    here = load_file(Path(nano.path()) / part / "diffusion_pytorch_model.safetensors")
    assert len(here) == len(there)
    for key, value in here.items():
        assert torch.equal(value, there[name(key)]), key


def test_unknown_names_are_refused():
    for name in (ec.dit_key, ec.vae_key):
        with pytest.raises(KeyError, match="no ComfyUI name"):
            name("blocks.0.attn3.to_x.weight")
    with pytest.raises(ValueError, match="mapping is wrong"):
        ec.rename({"a": 1, "b": 2}, lambda key: "same")


@pytest.mark.skipif("COMFYUI_PATH" not in os.environ, reason="COMFYUI_PATH is not set")
def test_same_numbers_in_comfyui(exported):
    script = Path(__file__).with_name("compare_comfyui.py")
    subprocess.run(
        [sys.executable, str(script), os.environ["COMFYUI_PATH"], str(exported)], check=True
    )
