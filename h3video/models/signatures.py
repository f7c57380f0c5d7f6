"""Which model a set of tensors is: told by their names and shapes, as loaders do it."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from math import prod

from .catalog import CATALOG, ENCODERS, VAES
from .spec import Encoder, ModelSpec, Vae

Shapes = Mapping[str, tuple[int, ...]]

PREFIXES = ("model.diffusion_model.", "diffusion_model.", "net.", "transformer.", "model.")
"""What some files put before every name of the transformer."""


@dataclass(frozen=True)
class Match:
    """What a set of tensors is.

    kind     "transformer", "text encoder", "image encoder", "vae", "lora", "mmproj"
    family   in words, also when no catalog entry fits
    layout   "original", "comfyui", "diffusers", "huggingface" or "llama.cpp": whose names these are
    spec, encoder, vae   the catalog's entry, if one fits
    notes    what the shapes leave open, or where they differ from the catalog
    broken   what is missing for any loader
    """

    kind: str
    family: str
    layout: str
    spec: ModelSpec | None = None
    encoder: Encoder | None = None
    vae: Vae | None = None
    notes: tuple[str, ...] = ()
    broken: tuple[str, ...] = ()


def match(shapes: Shapes) -> Match | None:
    """The first signature that fits, or None for a model that is not known."""
    for signature in _SIGNATURES:
        if found := signature(shapes):
            return found
    return None


def strip_prefix(shapes: Shapes) -> tuple[str, dict[str, tuple[int, ...]]]:
    """(prefix, tensors without it); other models in the same file are left out.

    The prefix is one that leads to a known transformer; "" when there is none.
    """
    for prefix in PREFIXES:
        inside = {k[len(prefix) :]: v for k, v in shapes.items() if k.startswith(prefix)}
        if inside and any(s(inside) for s in _TRANSFORMERS):
            return prefix, inside
    return "", dict(shapes)


def _layers(shapes: Shapes, prefix: str) -> int:
    """Blocks of this name: one more than the highest number."""
    pattern = re.compile(re.escape(prefix) + r"\.(\d{1,4})\.")
    return max((int(m[1]) + 1 for k in shapes if (m := pattern.match(k))), default=0)


def _width(shapes: Shapes, *names: str, axis: int = 0) -> int:
    """A side of the first of these tensors that is there, or 0."""
    for name in names:
        shape = shapes.get(name, ())
        if len(shape) > axis:
            return shape[axis]
    return 0


def _minimax_h3(s: Shapes) -> Match | None:
    if "video_patch_proj.weight" in s and "audio_patch_proj.weight" in s:
        layout, blocks, hidden = "original", "blocks", _width(s, "video_patch_proj.weight")
        fused = True
    elif "audio_proj_in.weight" in s and "token_refiner.final_norm.weight" in s:
        layout, blocks, hidden = "diffusers", "transformer_blocks", _width(s, "proj_in.weight")
        fused = False
    else:
        return None
    pruned = "adaln_t_table" in s
    spec = CATALOG["minimax-h3-pruned" if pruned else "minimax-h3"]
    notes = []
    if hidden != 5376 or _layers(s, blocks) != 50:
        fits = f"{_layers(s, blocks)} blocks of width {hidden}; the catalog's has 50 of 5376"
        return Match("transformer", "MiniMax-H3", layout, notes=(fits,))
    if pruned:
        rank = _width(s, "adaln_t_table", axis=1)
        notes.append(f"pruned (curve) form: modulation from a table of rank {rank}")
    if fused:
        notes.append(
            "rows of attn.qkv_proj are interleaved head by head in the official release and flat "
            "(q, k, v) in ComfyUI's repack, under the same names and shapes: a header cannot tell. "
            "The wrong one gives noise without an error"
        )
    return Match("transformer", "MiniMax-H3", layout, spec, notes=tuple(notes))


def _wan(s: Shapes) -> Match | None:
    if "head.modulation" in s and "blocks.0.self_attn.q.weight" in s:
        layout = "original"
        dim = _width(s, "blocks.0.self_attn.q.weight")
        ffn = _width(s, "blocks.0.ffn.0.weight")
        image, out = "img_emb.proj.1.weight" in s, _width(s, "head.head.weight") // 4
    elif "condition_embedder.time_proj.weight" in s and "blocks.0.attn1.to_q.weight" in s:
        layout = "diffusers"
        dim = _width(s, "blocks.0.attn1.to_q.weight")
        ffn = _width(s, "blocks.0.ffn.net.0.proj.weight")
        image = "condition_embedder.image_embedder.norm1.weight" in s
        out = _width(s, "proj_out.weight") // 4
    else:
        return None
    broken: tuple[str, ...] = ()
    if "patch_embedding.weight" not in s:
        broken = (
            "patch_embedding.weight is missing: it has five dimensions, which the GGUF converter "
            "cannot pass through; the step that puts it back was left out",
        )
    channels = _width(s, "patch_embedding.weight", axis=1)
    vace = _layers(s, "vace_blocks")
    shape = (dim, ffn, _layers(s, "blocks"), channels or out, out, image, bool(vace))
    name, note = _WAN.get(shape, ("", ""))
    odd = [part for part, sign in _WAN_ODDITIES.items() if any(sign in k for k in s)]
    if odd or not name:
        what = f" with {odd[0]}" if odd else ""
        gap = (
            f"dim {dim}, ffn {ffn}, {shape[2]} blocks, {channels} channels{what}: no catalog entry"
        )
        return Match("transformer", "Wan", layout, notes=(gap,), broken=broken)
    return Match(
        "transformer", "Wan", layout, CATALOG[name], notes=(note,) if note else (), broken=broken
    )


_SAME = "the same tensors as one of the two experts of Wan 2.2 text to video A14B"
_WAN = {
    (256, 768, 6, 16, 16, False, False): ("nano", ""),
    (1536, 8960, 30, 16, 16, False, False): ("wan2.1-t2v-1.3b", ""),
    (5120, 13824, 40, 16, 16, False, False): ("wan2.1-t2v-14b", _SAME),
    (5120, 13824, 40, 36, 16, True, False): ("wan2.1-i2v-14b", ""),
    (5120, 13824, 40, 36, 16, False, False): ("wan2.2-i2v-a14b", "one of its two experts"),
    (3072, 14336, 30, 48, 48, False, False): ("wan2.2-ti2v-5b", ""),
    (1536, 8960, 30, 16, 16, False, True): ("wan-vace-1.3b", ""),
    (5120, 13824, 40, 16, 16, False, True): ("wan-vace-14b", ""),
}
"""(width, feed-forward, blocks, channels in, out, image attention, VACE) -> (model, note)"""

_WAN_ODDITIES = {
    "camera control": "control_adapter.", "speech (S2V)": "casual_audio_encoder.",
    "HuMo": "audio_proj.audio_proj_glob_1", "Animate": "face_adapter.",
    "pose (SCAIL)": "patch_embedding_pose", "WanDancer": "patch_embedding_global",
    "a reference convolution": "ref_conv.",
}  # fmt: skip


def _ltx(s: Shapes) -> Match | None:
    layout = ""
    if "adaln_single.emb.timestep_embedder.linear_1.weight" in s and "patchify_proj.weight" in s:
        layout, sound = "original", "audio_adaln_single.linear.weight" in s
    elif "time_embed.emb.timestep_embedder.linear_1.weight" in s and "proj_in.weight" in s:
        layout, sound = "diffusers", "audio_time_embed.linear.weight" in s
    if not layout or "transformer_blocks.0.attn2.to_k.weight" not in s:
        return None
    dim = _width(s, "transformer_blocks.0.attn1.to_q.weight")
    layers = _layers(s, "transformer_blocks")
    family = "LTX-2" if sound else "LTX-Video"
    name = {(2048, 28, False): "ltx-video-2b", (4096, 48, False): "ltx-video-13b",
            (4096, 48, True): "ltx-2"}.get((dim, layers, sound))  # fmt: skip
    if sound and any("gate_logits" in k for k in s):
        gap = "gates in its attention: LTX-2.3 or later, which the catalog does not know"
        return Match("transformer", family, layout, notes=(gap,))
    if not name:
        gap = f"width {dim}, {layers} blocks: no catalog entry"
        return Match("transformer", family, layout, notes=(gap,))
    return Match("transformer", family, layout, CATALOG[name])


def _hunyuan(s: Shapes) -> Match | None:
    if any(k.startswith("txt_in.individual_token_refiner.blocks.0.") for k in s):
        comfy = "double_blocks.0.img_attn.qkv.weight" in s
        layout = "comfyui" if comfy else "original"
        new = any(k.startswith("vision_in.") or k.startswith("cond_type_embedding") for k in s)
        patch, double, single = "img_in.proj.weight", "double_blocks", "single_blocks"
    elif "context_embedder.token_refiner.refiner_blocks.0.attn.to_q.weight" in s:
        layout, new = "diffusers", "cond_type_embed.weight" in s
        patch, double, single = "x_embedder.proj.weight", "transformer_blocks", ""
        single = "single_transformer_blocks"
    else:
        return None
    broken = () if patch in s else (f"{patch} is missing: it has five dimensions (see Wan's)",)
    counts = (_layers(s, double), _layers(s, single))
    channels = _width(s, patch, axis=1)
    family = "HunyuanVideo 1.5" if new else "HunyuanVideo"
    name = {(True, 54, 0): "hunyuan-video-1.5", (False, 20, 40): "hunyuan-video"}.get(
        (new, *counts)
    )
    if not name:
        gap = f"{counts[0]} double and {counts[1]} single blocks: no catalog entry"
        return Match("transformer", family, layout, notes=(gap,), broken=broken)
    usual = 65 if new else 16
    notes: tuple[str, ...] = ()
    if channels not in (0, usual):
        notes = (f"{channels} channels enter instead of {usual}: a picture-to-video form",)
    return Match("transformer", family, layout, CATALOG[name], notes=notes, broken=broken)


def _cogvideox(s: Shapes) -> Match | None:
    if "patch_embed.text_proj.weight" not in s:
        return None
    if "transformer_blocks.0.norm1.linear.weight" in s:
        layout, layers = "diffusers", _layers(s, "transformer_blocks")
    elif "blocks.0.norm1.linear.weight" in s:
        layout, layers = "comfyui", _layers(s, "blocks")
    else:
        return None
    dim = _width(s, "patch_embed.text_proj.weight")
    new = len(s.get("patch_embed.proj.weight", ())) == 2
    name = {(1920, 30, False): "cogvideox-2b", (3072, 42, False): "cogvideox-5b",
            (3072, 42, True): "cogvideox1.5-5b"}.get((dim, layers, new))  # fmt: skip
    if not name:
        gap = f"width {dim}, {layers} blocks: no catalog entry"
        return Match("transformer", "CogVideoX", layout, notes=(gap,))
    return Match("transformer", "CogVideoX", layout, CATALOG[name])


def _mochi(s: Shapes) -> Match | None:
    if "t5_yproj.weight" in s and "t5_y_embedder.to_kv.weight" in s:
        layout, layers, dim = "original", _layers(s, "blocks"), _width(s, "t_embedder.mlp.0.weight")
    elif "time_embed.pooler.to_kv.weight" in s and "time_embed.caption_proj.weight" in s:
        layout, layers = "diffusers", _layers(s, "transformer_blocks")
        dim = _width(s, "time_embed.timestep_embedder.linear_1.weight")
    else:
        return None
    if (dim, layers) != (3072, 48):
        gap = f"width {dim}, {layers} blocks: no catalog entry"
        return Match("transformer", "Mochi", layout, notes=(gap,))
    return Match("transformer", "Mochi", layout, CATALOG["mochi-1"])


def _flux(s: Shapes) -> Match | None:
    comfy = "double_blocks.0.img_attn.proj.weight" in s
    if not comfy and "transformer_blocks.0.attn.norm_added_k.weight" not in s:
        return None
    gap = "a picture model: the catalog holds video models only"
    return Match("transformer", "Flux or alike", "original" if comfy else "diffusers", notes=(gap,))


def _lora(s: Shapes) -> Match | None:
    marks = ("lora_a.", "lora_b.", "lora_up.", "lora_down.", "lora.up.", "lora.down.")
    count = sum(any(m in k.lower() for m in marks) for k in s)
    if count * 3 < len(s) or not count:
        return None
    return Match("lora", "LoRA", "", notes=(f"{count // 2} layers are changed",))


def _t5(s: Shapes) -> Match | None:
    for layout, attention, words, blocks in (
        ("huggingface", "encoder.block.0.layer.0.SelfAttention.q.weight",
         ("shared.weight", "encoder.embed_tokens.weight"), "encoder.block"),
        ("llama.cpp", "enc.blk.0.attn_q.weight", ("token_embd.weight",), "enc.blk"),
    ):  # fmt: skip
        if attention in s:
            found = _encoder(s, words, _layers(s, blocks))
            return Match("text encoder", "T5", layout, encoder=found)
    return None


def _language(s: Shapes) -> Match | None:
    """Llama, Qwen, Gemma: as ComfyUI and transformers name them, or llama.cpp."""
    for start in (
        "model.language_model.",
        "language_model.model.",
        "model.",
        "language_model.",
        "",
    ):
        if f"{start}layers.0.self_attn.q_proj.weight" in s:
            layers = _layers(s, f"{start}layers")
            found = _encoder(s, (f"{start}embed_tokens.weight",), layers)
            notes = _cut(s, f"{start}embed_tokens.weight", layers)
            return Match(
                "text encoder", "language model", "huggingface", encoder=found, notes=notes
            )
    if "blk.0.attn_q.weight" in s and "token_embd.weight" in s:
        layers = _layers(s, "blk")
        found = _encoder(s, ("token_embd.weight",), layers)
        notes = _cut(s, "token_embd.weight", layers)
        return Match("text encoder", "language model", "llama.cpp", encoder=found, notes=notes)
    return None


def _cut(s: Shapes, words: str, layers: int) -> tuple[str, ...]:
    """MiniMax-H3 runs 50 of Qwen3-VL-32B's 64 layers: the whole model is a fifth too large."""
    if s.get(words) == (151936, 5120) and layers == 64:
        return ("all 64 layers of Qwen3-VL-32B: MiniMax-H3 runs 50 of them",)
    return ()


_WHOLE = {"qwen3-vl-32b-50": 64}
"""Layers of encoders that are cut."""


def _encoder(s: Shapes, words: tuple[str, ...], layers: int) -> Encoder | None:
    """The catalog's encoder with these word embeddings and layers (Gemma's rounds its words)."""
    shape = next((s[w] for w in words if w in s), (0, 0))
    if len(shape) != 2:
        return None
    for encoder in ENCODERS.values():
        table = next((t.shape for t in encoder.tensors() if t.part == "embeddings"), (0, 0))
        close = abs(table[0] - shape[0]) <= 512 and table[-1] == shape[1]
        if (
            encoder.kind == "text"
            and close
            and layers in (encoder.layers, _WHOLE.get(encoder.name))
        ):
            return encoder
    return None


def _clip(s: Shapes) -> Match | None:
    text = "text_model.encoder.layers.0.self_attn.q_proj.weight" in s
    if not text and "vision_model.encoder.layers.0.self_attn.q_proj.weight" not in s:
        return None
    kind = "text_model" if text else "vision_model"
    key = (_width(s, f"{kind}.encoder.layers.0.self_attn.q_proj.weight"),
           _layers(s, f"{kind}.encoder.layers"))  # fmt: skip
    name = {(768, 12): "clip-l", (1280, 32): "clip-vision-h", (1152, 27): "siglip-so400m"}.get(key)
    encoder = ENCODERS[name] if name and (name == "clip-l") == text else None
    part = "text encoder" if text else "image encoder"
    return Match(part, "CLIP or SigLIP", "huggingface", encoder=encoder)


def _mmproj(s: Shapes) -> Match | None:
    if "v.blk.0.attn_q.weight" in s or "v.blk.0.attn_qkv.weight" in s:
        return Match("mmproj", "llama.cpp's eyes of a vision model", "llama.cpp")
    return None


_HALVES = ("encoder.", "decoder.", "quant_conv", "post_quant_conv", "conv1.", "conv2.",
           "per_channel_statistics", "pre_block.", "mean_proj", "logs_proj", "dec_in_proj",
           "latents_", "vae.")  # fmt: skip


def _vae(s: Shapes) -> Match | None:
    inside = [k for k in s if k.startswith(_HALVES)]
    both = any(k.startswith("encoder.") for k in s) and any(k.startswith("decoder.") for k in s)
    if not both or len(inside) < 0.9 * len(s):
        return None
    count = sum(prod(s[k]) for k in inside)
    near = min(VAES.values(), key=lambda v: abs(v.parameters - count))
    sound = "pre_block.attn.zero_k_bias" in s
    diffusers = any(".down_blocks.0.resnets." in k or ".up_blocks.0.resnets." in k for k in s)
    layout = "diffusers" if diffusers else ""
    family = "MiniMax-H3 sound" if sound else "autoencoder"
    if abs(near.parameters - count) > 0.005 * count:
        gap = f"{count:,} weights: no catalog entry"
        return Match("vae", family, layout, notes=(gap,))
    return Match("vae", near.title, layout, vae=near)


_TRANSFORMERS: tuple[Callable[[Shapes], Match | None], ...] = (
    _minimax_h3, _wan, _ltx, _hunyuan, _cogvideox, _mochi, _flux,
)  # fmt: skip
_SIGNATURES = (_lora, *_TRANSFORMERS, _t5, _mmproj, _language, _clip, _vae)
