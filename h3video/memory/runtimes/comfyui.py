"""ComfyUI 0.33: what its model management keeps where, from comfy/model_management.py.

NVIDIA cards: dynamic VRAM pages weights in from RAM, so only activations and the layers at work
must fit; what is more is streamed. Macs: the state is SHARED, a model is always loaded whole, the
text encoder runs on the CPU, and moving a model off the device copies it inside the same RAM.
Finished models stay until RAM runs short (the RAM-pressure cache, the default since 0.33), or for
good with --cache-classic, --cache-lru and --high-ram; --cache-none drops them at once.
"""

from __future__ import annotations

from .. import parts
from ..activations import (
    Block,
    comfyui_block,
    full_scores,
    latent_terms,
    pass_terms,
    split_scores,
    sub_quadratic,
    sub_quadratic_block,
    text_term,
)
from ..ask import Ask
from ..decoders import decoding, encoding_pictures
from ..quants import parse_quant
from ..terms import Phase, Term, computed
from ..units import gib

TITLE = "ComfyUI"

MPS_SDPA = "PyTorch's attention on MPS builds the scores through MPSGraph"


HALF_FIRST = ("wan", "hunyuan-video-1.5")
"""Families whose first dtype in comfy/supported_models.py is float16: that is what they run in."""


def block(ask: Ask) -> Block:
    """Blocks of comfy/ldm, with the attention that this machine takes."""
    bytes_ = dtype_bytes(ask)
    found = comfyui_block(ask, bytes_)
    if chunked(ask):
        return sub_quadratic_block(found, ask, bytes_, upcast(ask))
    return found


def dtype_bytes(ask: Ask) -> int:
    """Bytes of an activation."""
    return 4 if ask.has_flag("--fp32-unet", "--force-fp32") else 2


def upcast(ask: Ask) -> bool:
    """Whether scores of 16-bit states are computed in float32: float16 on macOS 14.5 and later."""
    half = ask.spec.family.name.startswith(HALF_FIRST) and not ask.has_flag("--bf16-unet")
    half = half or ask.has_flag("--fp16-unet", "--force-fp16")
    forced = ask.machine.gpu == "mps" or ask.has_flag("--force-upcast-attention")
    kept = ask.has_flag("--dont-upcast-attention")
    return dtype_bytes(ask) == 2 and half and forced and not kept


def chunked(ask: Ask) -> bool:
    """Whether attention computes the scores of some queries at a time."""
    kind = attention(ask)
    on_mps = ask.machine.gpu == "mps"
    return kind in ("sub-quadratic", "split") or (on_mps and kind in ("flash", "sage"))


def attention(ask: Ask) -> str:
    """The attention backend that ComfyUI takes on this machine."""
    flags = {
        "--use-pytorch-cross-attention": "pytorch", "--use-quad-cross-attention": "sub-quadratic",
        "--use-split-cross-attention": "split", "--use-sage-attention": "sage",
        "--use-flash-attention": "flash", "--use-ck-attention": "flash",
    }  # fmt: skip
    if ask.attention != "auto":
        return ask.attention
    for flag, name in flags.items():
        if ask.has_flag(flag):
            return name
    return "pytorch" if ask.machine.gpu in ("cuda", "rocm") else "sub-quadratic"


def pages(ask: Ask) -> bool:
    """Whether weights are paged or loaded in part: a card, and no flag against it."""
    return ask.machine.gpu in ("cuda", "rocm") and not ask.has_flag("--highvram", "--gpu-only")


def keeps(ask: Ask) -> bool:
    """Whether finished models stay for good."""
    return ask.has_flag("--cache-classic", "--cache-lru", "--high-ram")


def encoder_place(ask: Ask) -> str:
    """The text encoder runs on the card; on a Mac on the CPU unless --gpu-only."""
    if ask.machine.gpu == "mps":
        return "device" if ask.has_flag("--gpu-only") else "host"
    return parts.working_place(ask)


def vae_place(ask: Ask) -> str:
    """The VAE runs on the device unless --cpu-vae."""
    return "host" if ask.has_flag("--cpu-vae") else parts.working_place(ask)


def vae_dtype(ask: Ask) -> str:
    """float32 where the card has no bfloat16, else 16 bit."""
    for flag, dtype in (("--fp32-vae", "F32"), ("--bf16-vae", "BF16"), ("--fp16-vae", "F16")):
        if ask.has_flag(flag):
            return dtype
    return ask.vae_dtype or ("BF16" if ask.machine.bf16 else "F32")


def base(ask: Ask) -> list[Term]:
    """Resident in every phase."""
    return [*parts.context(ask), parts.process(1.0, 2.2, "ComfyUI started, no model"),
            *kept(ask)]  # fmt: skip


def kept(ask: Ask) -> list[Term]:
    """What a person says stays loaded."""
    if "preview" not in ask.resident:
        return []
    return [computed(
        "preview", parts.working_place(ask), "activations", 2**20, "latent2rgb: one frame",
        "ComfyUI --preview-method latent2rgb is nearly free",
    )]  # fmt: skip


def finished(ask: Ask, terms: list[Term], part: str) -> list[Term]:
    """Models whose work is done: kept until RAM runs short, for good, or gone.

    On a Mac they stay on the device until RAM is short; smart memory off moves (copies) them.
    """
    if part in ask.resident:
        return [parts.moved(t, t.where, f"{t.name} (kept)", False) for t in terms]
    if ask.has_flag("--cache-none"):
        return []
    stays = ask.machine.gpu == "mps" and not ask.has_flag("--disable-smart-memory")
    return [
        parts.moved(
            t, t.where if stays and not keeps(ask) else "host", f"{t.name} (cached)", not keeps(ask)
        )
        for t in terms
    ]  # fmt: skip


def on_device(ask: Ask, terms: list[Term]) -> list[Term]:
    """Weights that are at work. On a card all but two of a model's blocks can be paged."""
    if not pages(ask):
        return terms
    floor = _two_blocks(ask)
    out = []
    for t in terms:
        least = min(t.bytes, floor if t.name.startswith("transformer") else t.bytes // 16)
        out.append(
            Term(t.name, t.where, t.kind, t.size, t.basis, f"{t.formula}; {gib(least)} at least",
                 t.source, max(0, t.bytes - least), t.usual)
        )  # fmt: skip
    return out


def _two_blocks(ask: Ask) -> int:
    """Bytes of the block at work and the next one."""
    whole = parts.transformer(ask, "device").bytes
    found = parts.counts(ask.spec)
    return min(whole, int(2 * whole * found.block / found.parameters))


def phases(ask: Ask) -> tuple[Phase, ...]:
    """Encode, denoise (per expert), VAE, save."""
    place, dtype = parts.working_place(ask), vae_dtype(ask)
    text = parts.encoders(ask, encoder_place(ask))
    vae = parts.vaes(ask, vae_place(ask), dtype)
    done_text = finished(ask, text, "encoder")
    out = [
        Phase(
            "encode",
            (*base(ask), *on_device(ask, text), parts.encoding(ask, encoder_place(ask))),
        )
    ]
    done: list[Term] = list(done_text)
    if ask.pictures or ask.references:
        work = encoding_pictures(ask, vae_place(ask), dtype, ask.decode_tile)
        out.append(Phase("encode pictures", (*base(ask), *done, *on_device(ask, vae), *work)))
        done += finished(ask, vae, "vae")
    elif "vae" in ask.resident:
        done += finished(ask, vae, "vae")
    for number in range(ask.spec.experts):
        out.append(_denoise(ask, place, number, done))
        done += finished(ask, _transformer(ask, place, number), "transformer")
    done = [t for t in done if "VAE" not in t.name]
    out.append(_decode(ask, vae, dtype, done))
    out.append(parts.saving(ask, [*base(ask), *done, *finished(ask, vae, "vae")]))
    return tuple(out)


def _transformer(ask: Ask, place: str, number: int) -> list[Term]:
    name = f"transformer {ask.quant}"
    if ask.spec.experts > 1:
        name = f"transformer {number + 1} {ask.quant}"
    return [parts.transformer(ask, place, name=name)]


def _denoise(ask: Ask, place: str, number: int, done: list[Term]) -> Phase:
    weights = _transformer(ask, place, number)
    terms = [
        *base(ask), *done, *on_device(ask, weights), *parts.dequantized(ask, place),
        *parts.lora(ask, place), *pass_terms(ask, block(ask), place), latent_terms(ask, place),
        text_term(ask, place),
    ]  # fmt: skip
    terms += scores(ask, place, terms)
    name = "denoise" if ask.spec.experts == 1 else f"denoise, expert {number + 1}"
    notes: tuple[str, ...] = ()
    if (ask.passes or ask.spec.passes) == 2:
        more = sum(t.bytes for t in terms if t.kind == "activations")
        notes = (
            f"ComfyUI runs both passes as one batch where {gib(more)} more are free, and one after "
            "the other where not",
        )
    return Phase(name, tuple(terms), notes=notes)


def scores(ask: Ask, place: str, terms: list[Term]) -> list[Term]:
    """What attention adds, by backend."""
    kind, runs = attention(ask), block(ask)
    if kind == "math":
        return [full_scores(ask, place, "math attention", 1, 2, block=runs)]
    if kind == "pytorch" and ask.machine.gpu == "mps":
        return [full_scores(ask, place, MPS_SDPA, 1, 2, block=runs)]
    if not chunked(ask):
        return []
    limit = ask.machine.ram_limit.low if ask.machine.unified else ask.machine.device_limit.low
    used = sum(
        t.bytes for t in terms if t.elastic == 0 and (ask.machine.unified or t.where == "device")
    )
    bytes_ = 4 if upcast(ask) else dtype_bytes(ask)
    count = split_scores if kind == "split" else sub_quadratic
    return [count(ask, place, limit - used, bytes_, runs)]


def _decode(ask: Ask, vae: list[Term], dtype: str, done: list[Term]) -> Phase:
    own = ask.spec.family.name == "minimax-h3"
    notes = ("its VAE always works in tiles of 256 px",) if own else ()
    if ask.machine.gpu == "mps" and ask.decode_tile is None and not own:
        notes = (
            "on MPS ComfyUI does not fall back to tiled decoding (an out-of-memory there is a "
            "RuntimeError that it does not recognise), and 3D convolutions over whole frames have "
            "taken 86 to 140 GiB beside the tensors in reports (issues 9308, 15029), which no "
            "formula here foresees: VAE Decode (Tiled) is the safe choice",
        )
    terms = (
        *base(ask), *done, *on_device(ask, vae),
        *decoding(ask, vae_place(ask), dtype, ask.decode_tile), parts.pixels(ask, "host"),
    )  # fmt: skip
    return Phase("decode", terms, notes=notes)


def is_gguf(ask: Ask) -> bool:
    """Whether the transformer is a GGUF file."""
    return parse_quant(ask.quant).kind in ("gguf", "dynamic")
