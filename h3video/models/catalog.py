"""The published models that plans know by name.

Sizes: the publishers' configuration files, as written in docs/models.md; parameter counts follow
from them (layouts/) and are compared with the published ones in tests/models/test_catalog.py.
"""

from __future__ import annotations

import dataclasses
from functools import partial
from itertools import chain
from typing import Any

from ..errors import UsageError
from . import cogvideox, hunyuan, ltx, minimax_h3, mochi, wan
from .cogvideox import COGVIDEOX, COGVIDEOX_15
from .hunyuan import HUNYUAN, HUNYUAN_15
from .layouts import cogvideox as cogvideox_layout
from .layouts import encoders as enc
from .layouts import hunyuan as hunyuan_layout
from .layouts import ltx as ltx_layout
from .layouts import minimax_h3 as minimax_layout
from .layouts import mochi as mochi_layout
from .layouts import wan as wan_layout
from .layouts.tensor import Tensors
from .ltx import LTX, LTX2
from .minimax_h3 import MINIMAX_H3
from .mochi import MOCHI
from .spec import Encoder, ModelSpec, Vae
from .wan import WAN

__all__ = ["CATALOG", "ENCODERS", "VAES", "Encoder", "ModelSpec", "Vae", "model_spec"]


def _qwen3vl() -> Tensors:
    """Qwen3-VL-32B cut to 50 of its 64 layers, with its eyes."""
    return chain(
        enc.decoder(5120, 25600, 50, 64, 8, 128, 151936, head_norms=True),
        enc.qwen3vl_vision(5120),
    )


def _qwen25vl() -> Tensors:
    return chain(
        enc.decoder(3584, 18944, 28, 28, 4, 128, 152064, bias=True), enc.qwen25vl_vision(3584)
    )


def _gemma3() -> Tensors:
    return chain(
        enc.decoder(
            3840, 15360, 48, 16, 8, 256, 262208, head_norms=True, outer_norms=True
        ),
        enc.siglip(),
        enc.gemma3_projector(),
    )  # fmt: skip


QWEN3_VL = Encoder("qwen3-vl-32b-50", "Qwen3-VL-32B, 50 of 64 layers", 5120, 50, _qwen3vl)
UMT5 = Encoder(
    "umt5-xxl", "UMT5-XXL", 4096, 24, partial(enc.t5, vocabulary=256384, bias_everywhere=True)
)
T5 = Encoder("t5-xxl", "T5-XXL v1.1", 4096, 24, enc.t5)
GEMMA3 = Encoder("gemma-3-12b", "Gemma-3-12B", 3840, 48, _gemma3)
LLAMA3 = Encoder(
    "llava-llama-3-8b", "LLaVA-Llama-3-8B without its head", 4096, 32,
    partial(enc.decoder, 4096, 14336, 32, 32, 8, 128, 128320), dtype="F16", head=128320 * 4096,
)  # fmt: skip
QWEN25_VL = Encoder("qwen2.5-vl-7b", "Qwen2.5-VL-7B", 3584, 28, _qwen25vl, head=152064 * 3584)
CLIP_L = Encoder("clip-l", "CLIP-L text", 768, 12, enc.clip_text, dtype="F16")
BYT5 = Encoder(
    "byt5-small-glyph", "byT5-small (written words)", 1472, 12,
    partial(enc.t5, 1472, 3584, 12, 6, 64, 1510), dtype="F16", optional=True,
)  # fmt: skip
CLIP_H = Encoder(
    "clip-vision-h", "CLIP-H vision", 1280, 32, enc.clip_vision, "image", "F16", optional=False
)
SIGLIP = Encoder(
    "siglip-so400m", "SigLIP so400m vision", 1152, 27, partial(enc.siglip, positions=729), "image",
    "F16", optional=True,
)  # fmt: skip
NANO_TEXT = Encoder(
    "nano-text", "nano's text encoder", 4096, 1,
    partial(enc.t5, 4096, 32, 1, 2, 16, 72, 16, True), dtype="F16",
)  # fmt: skip

ENCODERS = {
    e.name: e
    for e in (
        QWEN3_VL, UMT5, T5, GEMMA3, LLAMA3, QWEN25_VL, CLIP_L, BYT5, CLIP_H, SIGLIP, NANO_TEXT,
    )
}  # fmt: skip

H3_VAE = Vae("minimax-h3-vae", "MiniMax-H3 video VAE", 180_337_888, 2_423_533_192, "F16")
H3_AUDIO = Vae("minimax-h3-audio-vae", "MiniMax-H3 sound VAE", 86_369_248, 64_918_072, "F32",
               "sound")  # fmt: skip
WAN_VAE = Vae("wan2.1-vae", "Wan 2.1 VAE", 53_596_928, 73_295_603, "F32")
WAN22_VAE = Vae("wan2.2-vae", "Wan 2.2 VAE", 149_637_088, 555_051_580, "F16")
LTX_VAE = Vae("ltx-video-vae", "LTX-Video VAE 0.9", 180_404_353, 238_789_552)
LTX_VAE_13B = Vae("ltx-video-0.9.7-vae", "LTX-Video VAE 0.9.7", 694_098_881, 552_814_897)
LTX2_VAE = Vae("ltx-2-vae", "LTX-2 video VAE", 694_098_881, 528_380_976)
LTX2_AUDIO = Vae("ltx-2-audio-vae", "LTX-2 sound VAE and vocoder", 21_333_008, 87_508_196,
                 kind="sound")  # fmt: skip
HUNYUAN_VAE = Vae("hunyuan-video-vae", "HunyuanVideo VAE", 100_342_464, 146_136_339, "F16")
HUNYUAN_15_VAE = Vae("hunyuan-video-1.5-vae", "HunyuanVideo 1.5 VAE", 389_324_544, 871_309_571,
                     "F16")  # fmt: skip
COG_VAE = Vae("cogvideox-vae", "CogVideoX VAE", 92_215_456, 123_368_451)
MOCHI_VAE = Vae("mochi-vae", "Mochi VAE", 97_222_016, 362_526_595)
NANO_VAE = Vae("nano-vae", "nano's VAE", 1_539_168, 2_063_203, "F16")

VAES = {
    v.name: v
    for v in (
        H3_VAE, H3_AUDIO, WAN_VAE, WAN22_VAE, LTX_VAE, LTX_VAE_13B, LTX2_VAE, LTX2_AUDIO,
        HUNYUAN_VAE, HUNYUAN_15_VAE, COG_VAE, MOCHI_VAE, NANO_VAE,
    )
}  # fmt: skip


def _heads(count: int, width: int, layers: int, **more: Any) -> dict[str, Any]:
    return {
        "num_attention_heads": count, "attention_head_dim": width, "num_layers": layers, **more
    }  # fmt: skip


def _h3(name: str, title: str, rank: int, *aliases: str) -> ModelSpec:
    return ModelSpec(
        name, title, MINIMAX_H3, minimax_h3.shape(5376, 14336, 56, 128, 50), 24,
        partial(minimax_layout.tensors, rank=rank), (QWEN3_VL,), (H3_VAE, H3_AUDIO), passes=1,
        text_inside=True, sound_rate=80.0, sound_inside=True,
        refused=(("F16", "its activations overflow float16: black pictures, NaN sound"),),
        comfy_factor=0.114, comfy_packed=True, max_area=768 * 1344, aliases=aliases,
    )  # fmt: skip


def _wan(
    name: str, title: str, dim: int, ffn: int, layers: int, channels: int, *aliases: str,
    image: bool = False, vace: int = 0, vae: Vae = WAN_VAE, **more: Any,
) -> ModelSpec:  # fmt: skip
    five = vae is WAN22_VAE
    out = 48 if five else 16
    config = _heads(dim // 128, 128, layers, ffn_dim=ffn)
    factor = dim / 2222 * (1.2 if vace else 1.0)
    return ModelSpec(
        name, title, wan.with_vae(WAN, 16 if five else 8), wan.denoiser_shape(config), out,
        partial(wan_layout.tensors, dim, ffn, layers, channels, out, image, vace),
        (UMT5, CLIP_H) if image else (UMT5,), (vae,), comfy_factor=factor,
        pictures=int(channels == 36), aliases=aliases, **more,
    )  # fmt: skip


def _ltx(name: str, title: str, head: int, layers: int, vae: Vae, *aliases: str) -> ModelSpec:
    dim = 32 * head
    return ModelSpec(
        name, title, LTX, ltx.denoiser_shape(_heads(32, head, layers)), 128,
        partial(ltx_layout.ltx_video, dim, layers), (T5,), (vae,), text_tokens=256,
        comfy_factor=dim / 2048 * 5.5, aliases=aliases,
    )  # fmt: skip


def _cogvideox(name: str, title: str, heads: int, layers: int, *aliases: str) -> ModelSpec:
    new = name.startswith("cogvideox1.5")
    return ModelSpec(
        name, title, COGVIDEOX_15 if new else COGVIDEOX,
        cogvideox.denoiser_shape(_heads(heads, 64, layers)), 16,
        partial(cogvideox_layout.tensors, 64 * heads, layers, patch_time=2 if new else 0),
        (T5,), (COG_VAE,), text_tokens=226, text_inside=True,
        dtype="F16" if name.endswith("2b") else "BF16", aliases=aliases,
    )  # fmt: skip


_LTX2 = ModelSpec(
    "ltx-2", "LTX-2 19B, picture and sound", LTX2, ltx.denoiser_shape(_heads(32, 128, 48)), 128,
    ltx_layout.ltx_2, (GEMMA3,), (LTX2_VAE, LTX2_AUDIO), text_tokens=1024, sound_rate=25.0,
    comfy_factor=0.077, comfy_packed=True, aliases=("ltx2", "ltx-2-19b", "ltxav"),
)  # fmt: skip
_HUNYUAN = ModelSpec(
    "hunyuan-video", "HunyuanVideo 13B", HUNYUAN,
    hunyuan.denoiser_shape(_heads(24, 128, 20, mlp_ratio=4.0, num_single_layers=40)), 16,
    partial(hunyuan_layout.tensors, 3072, 20, 40, 16, 16, 2, 4096), (LLAMA3, CLIP_L),
    (HUNYUAN_VAE,), passes=1, text_tokens=256, text_inside=True, comfy_factor=1.8,
    aliases=("hunyuanvideo", "hyvid", "hunyuan"),
)  # fmt: skip
_HUNYUAN_15 = ModelSpec(
    "hunyuan-video-1.5", "HunyuanVideo 1.5 8.3B", HUNYUAN_15,
    hunyuan.denoiser_shape(_heads(16, 128, 54, mlp_ratio=4.0), text_tokens=1000), 32,
    partial(hunyuan_layout.tensors, 2048, 54, 0, 65, 32, 1, 3584, version_15=True),
    (QWEN25_VL, BYT5, SIGLIP), (HUNYUAN_15_VAE,), text_tokens=1000, text_inside=True,
    comfy_factor=4.0, aliases=("hunyuanvideo-1.5", "hunyuan-1.5"),
)  # fmt: skip
_MOCHI = ModelSpec(
    "mochi-1", "Mochi 1 10B", MOCHI, mochi.denoiser_shape(_heads(24, 128, 48)), 12,
    mochi_layout.tensors, (T5,), (MOCHI_VAE,), text_tokens=256, text_inside=True,
    comfy_factor=2.0, aliases=("mochi", "mochi-1-preview"),
)  # fmt: skip
_NANO = dataclasses.replace(
    _wan("nano", "nano, the embedded model", 256, 768, 6, 16, vae=WAN_VAE),
    encoders=(NANO_TEXT,), vaes=(NANO_VAE,), dtype="F16", text_tokens=512,
)  # fmt: skip

CATALOG: dict[str, ModelSpec] = {
    spec.name: spec
    for spec in (
        _h3("minimax-h3", "MiniMax-H3 33B, picture and sound", 0, "h3", "minimax-h3-33b"),
        _h3("minimax-h3-pruned", "MiniMax-H3 pruned (curve form) 20B", 8, "h3-pruned",
            "minimax-h3-20b"),
        _wan("wan2.1-t2v-1.3b", "Wan 2.1 text to video 1.3B", 1536, 8960, 30, 16, "wan-1.3b"),
        _wan("wan2.1-t2v-14b", "Wan 2.1 text to video 14B", 5120, 13824, 40, 16, "wan-14b"),
        _wan("wan2.1-i2v-14b", "Wan 2.1 image to video 14B", 5120, 13824, 40, 36, image=True),
        _wan("wan-vace-1.3b", "Wan 2.1 VACE 1.3B", 1536, 8960, 30, 16, "wan2.1-vace-1.3b", vace=15),
        _wan("wan-vace-14b", "Wan 2.1 VACE 14B", 5120, 13824, 40, 16, "wan2.1-vace-14b", vace=8),
        _wan("wan2.2-t2v-a14b", "Wan 2.2 text to video A14B", 5120, 13824, 40, 16, "wan2.2",
             experts=2),
        _wan("wan2.2-i2v-a14b", "Wan 2.2 image to video A14B", 5120, 13824, 40, 36, experts=2),
        _wan("wan2.2-ti2v-5b", "Wan 2.2 text and image to video 5B", 3072, 14336, 30, 48,
             "wan-5b", "wan2.2-5b", vae=WAN22_VAE),
        _ltx("ltx-video-2b", "LTX-Video 2B", 64, 28, LTX_VAE, "ltx", "ltxv", "ltx-video"),
        _ltx("ltx-video-13b", "LTX-Video 13B", 128, 48, LTX_VAE_13B, "ltxv-13b"),
        _LTX2, _HUNYUAN, _HUNYUAN_15,
        _cogvideox("cogvideox-2b", "CogVideoX 2B", 30, 30),
        _cogvideox("cogvideox-5b", "CogVideoX 5B", 48, 42, "cogvideox"),
        _cogvideox("cogvideox1.5-5b", "CogVideoX 1.5 5B", 48, 42, "cogvideox-1.5"),
        _MOCHI, _NANO,
    )
}  # fmt: skip

_ALIASES = {alias: spec for spec in CATALOG.values() for alias in spec.aliases}


def model_spec(name: str) -> ModelSpec:
    """The model of this name or alias, whatever its case and underscores.

    Raises UsageError naming the closest names when there is none.
    """
    key = name.strip().lower().replace("_", "-").replace(" ", "-")
    spec = CATALOG.get(key) or _ALIASES.get(key)
    if spec is None:
        import difflib  # slow to load, for this message only

        known = [*CATALOG, *_ALIASES]
        near = difflib.get_close_matches(key, known, 3, 0.4)
        hint = f"did you mean {' or '.join(near)}?" if near else f"known: {', '.join(CATALOG)}"
        raise UsageError(f"model {name!r} is not known; {hint}")
    return spec
