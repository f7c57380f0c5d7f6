"""diffusers pipelines: everything on the device, or moved there by an offload mode.

none         all parts are on the device
model        enable_model_cpu_offload: one part at a time, the others wait in RAM
sequential   enable_sequential_cpu_offload: one layer at a time
group        enable_group_offload with streams: two blocks at a time
"""

from __future__ import annotations

from .. import parts
from ..activations import (
    Block,
    diffusers_block,
    full_scores,
    latent_terms,
    pass_terms,
    text_term,
)
from ..ask import Ask
from ..decoders import decoding, encoding_pictures
from ..terms import Phase, Term, computed

TITLE = "diffusers"

MPS_SDPA = "scaled_dot_product_attention on MPS builds the scores"


def block(ask: Ask) -> Block:
    """Blocks of diffusers' transformers."""
    return diffusers_block(ask, 4 if ask.quant.upper() in ("F32", "FP32") else 2)


def vae_dtype(ask: Ask) -> str:
    """float32 for Wan, as its documentation has it; else 16 bit."""
    if ask.vae_dtype:
        return ask.vae_dtype
    return "F32" if ask.spec.family.name.startswith("wan") else "BF16"


def place(ask: Ask) -> str:
    """Where the work is done."""
    return parts.working_place(ask)


def base(ask: Ask) -> list[Term]:
    """Resident in every phase."""
    low, high = (0.4, 0.8) if ask.machine.gpu == "cpu" else (0.8, 1.8)
    return [*parts.context(ask), parts.process(low, high, "Python with torch and diffusers")]


def others(ask: Ask, here: str) -> dict[str, list[Term]]:
    """All parts by name, where they are at work."""
    experts = [
        parts.transformer(ask, here, name=f"transformer {n + 1} {ask.quant}".replace(" 1 ", " ")
                          if ask.spec.experts == 1 else f"transformer {n + 1} {ask.quant}")
        for n in range(ask.spec.experts)
    ]  # fmt: skip
    return {
        "encoder": parts.encoders(ask, here), "vae": parts.vaes(ask, here, vae_dtype(ask)),
        **{f"expert {n + 1}": [t] for n, t in enumerate(experts)},
    }  # fmt: skip


def resident(ask: Ask, at_work: str) -> list[Term]:
    """Weights during a phase in which one part is at work."""
    here = place(ask)
    all_parts = others(ask, here)
    if ask.offload == "none" or here == "host":
        return [t for terms in all_parts.values() for t in terms]
    out: list[Term] = []
    for name, terms in all_parts.items():
        waiting = [parts.moved(t, "host", f"{t.name} (waiting)") for t in terms]
        if name != at_work:
            out += waiting
        elif ask.offload == "model":
            # accelerate's copy in RAM is given up while the part is on the device
            out += terms
        else:
            out += waiting + [_window(ask, t) for t in terms]
    return out


def _window(ask: Ask, term: Term) -> Term:
    """The weights of the layers that are on the device at once."""
    name, whole = term.name, term.bytes
    if name.startswith("transformer"):
        found = parts.counts(ask.spec)
        largest = found.tensor if ask.offload == "sequential" else found.block
    else:
        found = max(map(parts.encoder_counts, ask.encoders()), key=lambda c: c.parameters)
        largest = found.block
    parameters = found.parameters
    if "VAE" in name:
        largest, parameters = 1, 8
    count = min(whole, 2 * whole * largest // parameters)
    return computed(
        f"{name}, layers at work", "device", "weights", count,
        f"2 x the largest {'tensor' if ask.offload == 'sequential' else 'block'}",
        f"offload {ask.offload}",
    )  # fmt: skip


def phases(ask: Ask, runs: Block | None = None) -> tuple[Phase, ...]:
    """Encode, denoise (per expert), decode, save. runs: another code's block."""
    here, runs = place(ask), runs or block(ask)
    out = [Phase("encode", (*base(ask), *resident(ask, "encoder"), parts.encoding(ask, here, 2)))]
    if ask.pictures or ask.references:
        work = encoding_pictures(ask, here, vae_dtype(ask), ask.decode_tile)
        out.append(Phase("encode pictures", (*base(ask), *resident(ask, "vae"), *work)))
    for number in range(ask.spec.experts):
        terms = (
            *base(ask), *resident(ask, f"expert {number + 1}"), *parts.dequantized(ask, here),
            *parts.lora(ask, here), *pass_terms(ask, runs, here), *scores(ask, here, runs),
            latent_terms(ask, here), text_term(ask, here),
        )  # fmt: skip
        name = "denoise" if ask.spec.experts == 1 else f"denoise, expert {number + 1}"
        streamed = 0
        if ask.offload in ("sequential", "group") and here == "device":
            streamed = parts.transformer(ask, here).bytes
        out.append(Phase(name, terms, streamed))
    decode = (
        *base(ask), *resident(ask, "vae"), *decoding(ask, here, vae_dtype(ask), ask.decode_tile),
        *finished_pixels(ask, here),
    )  # fmt: skip
    out.append(Phase("decode", decode))
    waiting = [t for t in resident(ask, "vae") if t.where == "host" or ask.offload == "none"]
    out.append(parts.saving(ask, [*base(ask), *waiting]))
    return tuple(out)


def finished_pixels(ask: Ask, here: str) -> list[Term]:
    """The decoded clip, on the device in the VAE's dtype, then float32 in RAM."""
    size = 4 if vae_dtype(ask) == "F32" else 2
    return [parts.pixels(ask, here, size), parts.pixels(ask, "host", 4)]


def scores(ask: Ask, here: str, runs: Block | None = None) -> list[Term]:
    """The score matrix where the backend builds it, beside a pass of `runs` (None: diffusers')."""
    runs = runs or block(ask)
    if ask.attention == "math":
        return [full_scores(ask, here, "math attention", 1, 2, block=runs)]
    if ask.machine.gpu == "mps" and ask.attention in ("auto", "pytorch"):
        return [full_scores(ask, here, MPS_SDPA, 1, 2, block=runs)]
    return []
