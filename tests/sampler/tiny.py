"""Tiny random models of every family in ComfyUI's own classes, and one way to sample them.

Only importable inside ComfyUI, see conftest.py.
"""

from __future__ import annotations

import dataclasses

import comfy.model_patcher
import comfy.sample
import comfy.samplers
import comfy.supported_models
import torch
from comfy.ldm.flux.model import FluxParams
from comfy.ldm.hunyuan_video.model import HunyuanVideoParams

SIZE = {"wan": (16, 3, 24, 40), "minimax_h3": (24, 7, 24, 40), "ltx": (128, 3, 12, 20),
        "ltxav": (128, 3, 12, 20), "hunyuan": (16, 3, 24, 40), "flux": (16, 48, 64)}  # fmt: skip
"""Latents of a small clip: [C, T, H, W] (a picture: [C, H, W]). None divides into tiles evenly."""

WAN = dict(image_model="wan2.1", model_type="t2v", patch_size=(1, 2, 2), in_dim=16, out_dim=16,
           dim=128, ffn_dim=256, num_heads=2, num_layers=3, text_dim=32, text_len=16, freq_dim=64,
           qk_norm=True, cross_attn_norm=True)  # fmt: skip


def patcher(model):
    """Random but tame weights, and a ModelPatcher on the CPU."""
    generator = torch.Generator().manual_seed(5)
    with torch.no_grad():
        for name, value in sorted(model.diffusion_model.named_parameters()):
            if value.ndim > 1:
                spread = 1.0 / max(1, value[0].numel()) ** 0.5
                value.copy_(torch.randn(value.shape, generator=generator) * spread)
            elif name.endswith("weight"):
                value.fill_(1.0)
            else:
                value.copy_(torch.randn(value.shape, generator=generator) * 0.05)
    model.eval()
    cpu = torch.device("cpu")
    return comfy.model_patcher.ModelPatcher(model, load_device=cpu, offload_device=cpu)


def build(config_class, unet, dtype=torch.float32):
    """A ComfyUI base model from one of its configurations."""
    config = config_class({**unet})
    config.unet_config = {**config.unet_config, **unet, "dtype": dtype}
    config.unet_config.pop("disable_unet_model_creation", None)
    config.set_inference_dtype(dtype, None)
    return config.get_model({}, "", device="cpu")


def known(parameters, unet):
    """What this ComfyUI's parameters have fields for."""
    names = {f.name for f in dataclasses.fields(parameters)}
    return {k: v for k, v in unet.items() if k in names or k == "image_model"}


def wan(dtype=torch.float32, **changes):
    """Wan 2.1 text to video."""
    unet = {**WAN, **changes}
    kind = comfy.supported_models.WAN21_T2V
    if unet["model_type"] == "i2v":
        kind = comfy.supported_models.WAN21_I2V
    if unet["model_type"] == "vace":
        kind = comfy.supported_models.WAN21_Vace
    if unet["model_type"] == "camera":
        kind = comfy.supported_models.WAN21_Camera
    return patcher(build(kind, unet, dtype))


def minimax_h3(dtype=torch.float32, **changes):
    """MiniMax-H3 (ComfyUI 0.33 on)."""
    unet = dict(image_model="minimax_h3", hidden_size=192, num_layers=3,
                token_refiner_num_layers=1, num_attention_heads=2, attention_head_dim=128,
                ffn_hidden_size=256, text_dim=32, time_embed_hidden_size=64, time_embed_dim=32,
                rope_inv_freq_len=16) | changes  # fmt: skip
    model = build(comfy.supported_models.MiniMaxH3, unet, dtype)
    out = patcher(model)
    inner = model.diffusion_model
    count = len(inner.rope.inv_freq)
    inner.rope.inv_freq.copy_(1 / 10000 ** (torch.arange(count) / count))
    return out


def ltx(dtype=torch.float32, **changes):
    """LTX-Video."""
    unet = dict(image_model="ltxv", in_channels=128, cross_attention_dim=128,
                attention_head_dim=32, num_attention_heads=4, caption_channels=32,
                num_layers=3) | changes  # fmt: skip
    return patcher(build(comfy.supported_models.LTXV, unet, dtype))


def ltxav(dtype=torch.float32, **changes):
    """LTX-2 (ComfyUI 0.33)."""
    unet = dict(image_model="ltxav", in_channels=128, audio_in_channels=128,
                cross_attention_dim=128, audio_cross_attention_dim=64, attention_head_dim=32,
                audio_attention_head_dim=16, num_attention_heads=4, audio_num_attention_heads=4,
                caption_channels=32, num_layers=3, connector_attention_head_dim=16,
                connector_num_attention_heads=2, connector_num_layers=1) | changes  # fmt: skip
    return patcher(build(comfy.supported_models.LTXAV, unet, dtype))


def hunyuan(dtype=torch.float32, **changes):
    """HunyuanVideo 1.0."""
    unet = dict(image_model="hunyuan_video", in_channels=16, out_channels=16, patch_size=[1, 2, 2],
                vec_in_dim=16, context_in_dim=32, hidden_size=128, mlp_ratio=2.0, num_heads=2,
                depth=2, depth_single_blocks=2, axes_dim=[16, 24, 24], theta=256, qkv_bias=True,
                guidance_embed=True, byt5=False, meanflow=False,
                use_cond_type_embedding=False, vision_in_dim=None,
                meanflow_sum=False) | changes  # fmt: skip
    unet = known(HunyuanVideoParams, unet)
    return patcher(build(comfy.supported_models.HunyuanVideo, unet, dtype))


def flux(dtype=torch.float32, **changes):
    """Flux."""
    unet = dict(image_model="flux", in_channels=16, out_channels=16, patch_size=2, vec_in_dim=16,
                context_in_dim=32, hidden_size=128, mlp_ratio=2.0, num_heads=2, depth=2,
                depth_single_blocks=2, axes_dim=[16, 24, 24], theta=10000, qkv_bias=True,
                guidance_embed=True, txt_ids_dims=[], global_modulation=False,
                mlp_silu_act=False, ops_bias=True, default_ref_method="offset",
                ref_index_scale=1.0, yak_mlp=False, txt_norm=False) | changes  # fmt: skip
    return patcher(build(comfy.supported_models.Flux, known(FluxParams, unet), dtype))


FAMILIES = ("wan", "minimax_h3", "ltx", "ltxav", "hunyuan", "flux")
NEW = ("minimax_h3", "ltxav")
"""Not in ComfyUI 0.3.75."""


def family_parameters():
    """pytest parameters, the new families marked."""
    import pytest

    return [
        pytest.param(f, marks=[pytest.mark.comfy_min("0.33")] if f in NEW else [])
        for f in FAMILIES
    ]


def text_width(family):
    """Channels of a prompt's embedding."""
    return 64 if family == "ltxav" else 32


def prompt(family, tokens=7, seed=1, **options):
    """A conditioning with a random embedding."""
    generator = torch.Generator().manual_seed(seed)
    embedding = torch.randn(1, tokens, text_width(family), generator=generator)
    pooled = torch.randn(1, 16, generator=generator)
    if family in ("ltx", "ltxav"):
        options = {"attention_mask": torch.ones(1, tokens, dtype=torch.long), "frame_rate": 25,
                   **options}  # fmt: skip
    return [[embedding, {"pooled_output": pooled, "guidance": 3.5, **options}]]


def latent(family, seed=3, size=None):
    """An empty latent and noise for it; packed where the family has sound."""
    generator = torch.Generator().manual_seed(seed)
    shape = (1, *(size or SIZE[family]))
    if family == "minimax_h3":
        return nested(torch.zeros(shape), torch.zeros(1, 32, 2, 11)), nested(
            torch.randn(shape, generator=generator), torch.randn(1, 32, 2, 11, generator=generator)
        )
    if family == "ltxav":
        return nested(torch.zeros(shape), torch.zeros(1, 8, 9, 16)), nested(
            torch.randn(shape, generator=generator), torch.randn(1, 8, 9, 16, generator=generator)
        )
    return torch.zeros(shape), torch.randn(shape, generator=generator)


def nested(*parts):
    """Several streams as one latent."""
    import comfy.nested_tensor

    return comfy.nested_tensor.NestedTensor(parts)


def sample(model, family, positive=None, negative=None, steps=2, cfg=1.0, sampler="euler",
           scheduler="simple", noise_mask=None, size=None, callback=None, denoise=1.0):  # fmt: skip
    """What a KSampler node would give: a list of streams."""
    start, noise = latent(family, size=size)
    positive = prompt(family) if positive is None else positive
    negative = prompt(family, seed=2) if negative is None else negative
    with torch.inference_mode():
        out = comfy.sample.sample(
            model, noise, steps, cfg, sampler, scheduler, positive, negative, start,
            denoise=denoise, noise_mask=noise_mask, callback=callback, disable_pbar=True, seed=11,
        )  # fmt: skip
    return list(out.unbind()) if getattr(out, "is_nested", False) else [out]
