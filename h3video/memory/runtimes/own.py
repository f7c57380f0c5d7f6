"""`h3video render`: one phase at a time, only its parts loaded (render/engines/wan.py)."""

from __future__ import annotations

from .. import parts
from ..activations import Block, diffusers_block, latent_terms, pass_terms, text_term
from ..ask import Ask
from ..decoders import decoding
from ..terms import Phase, Term
from . import diffusers

TITLE = "h3video render"


def block(ask: Ask) -> Block:
    """Its denoiser is diffusers'."""
    return diffusers_block(ask, 4 if ask.quant.upper() in ("F32", "FP32") else 2)


def phases(ask: Ask) -> tuple[Phase, ...]:
    """Encode, denoise with all experts loaded, decode in float32 off the CPU, save."""
    here = parts.working_place(ask)
    base = diffusers.base(ask)
    experts = [
        parts.transformer(ask, here, name=f"transformer {n + 1}") for n in range(ask.spec.experts)
    ]
    denoise: list[Term] = [
        *base, *experts, *pass_terms(ask, block(ask), here), *diffusers.scores(ask, here),
        latent_terms(ask, here), text_term(ask, here),
    ]  # fmt: skip
    dtype = "F32" if here == "device" else ask.vae_dtype or "BF16"
    vae = parts.vaes(ask, here, dtype)
    decode = [
        *base, *vae, *decoding(ask, here, dtype, ask.decode_tile),
        parts.pixels(ask, here, 4 if dtype == "F32" else 2), parts.pixels(ask, "host", 1),
    ]  # fmt: skip
    return (
        Phase("encode", (*base, *parts.encoders(ask, here), parts.encoding(ask, here, 2))),
        Phase("denoise", tuple(denoise)),
        Phase("decode", tuple(decode)),
        parts.saving(ask, base, 1),
    )
