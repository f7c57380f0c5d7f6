"""The publishers' own code. Wan-AI's generate.py: float32 residuals, rotary embedding in float64.

`--offload_model True` moves the transformer off the device before decoding, `--t5_cpu` runs the
text encoder on the CPU (else it visits the device for encoding), the float32 VAE stays on the
device throughout. Wan 2.1 loads the transformer in float32 whatever the file holds; Wan 2.2 in
bfloat16 with `--convert_model_dtype`. Tencent's sample_video.py and Genmo's demos decode in tiles
unless told otherwise. Other families: as diffusers without tricks.
"""

from __future__ import annotations

from .. import parts
from ..activations import (
    Block,
    diffusers_block,
    latent_terms,
    official_hunyuan_block,
    official_wan_block,
    pass_terms,
)
from ..ask import Ask
from ..decoders import decoding
from ..terms import Phase, Term
from . import diffusers

TITLE = "the publisher's code"

TILES = {"hunyuan-video": 256, "mochi": 240}
"""Px of a decoded tile: hyvideo's sample_tile; Genmo's four by two of 848x480, fades included."""


def block(ask: Ask) -> Block:
    """Blocks as Wan-AI or Tencent wrote them."""
    if ask.spec.family.name.startswith("wan"):
        return official_wan_block(ask)
    if ask.spec.family.name == "hunyuan-video":
        return official_hunyuan_block(ask)
    return diffusers_block(ask)


def loaded_quant(ask: Ask) -> str:
    """The dtype of the transformer in memory."""
    if ask.spec.name.startswith(("wan2.1", "wan-vace")) and ask.quant.upper() in ("BF16", "F16"):
        return "F32"
    return ask.quant


def phases(ask: Ask) -> tuple[Phase, ...]:
    """Encode, denoise (per expert), decode, save."""
    if not ask.spec.family.name.startswith("wan"):
        tile = ask.decode_tile or TILES.get(ask.spec.family.name)
        return diffusers.phases(ask.but(decode_tile=tile), block(ask))
    here = parts.working_place(ask)
    base = [*parts.context(ask), parts.process(1.0, 2.0, "Python with torch")]
    t5 = "host" if ask.has_flag("--t5_cpu") else here
    text = parts.encoders(ask, t5)
    vae = parts.vaes(ask, here, "F32")
    experts = [
        parts.transformer(ask, here, quant=loaded_quant(ask),
                          name=f"transformer {n + 1} {loaded_quant(ask)}")
        for n in range(ask.spec.experts)
    ]  # fmt: skip
    offloads = ask.offload != "none" or ask.has_flag("--offload_model")
    waiting = [parts.moved(t, "host", f"{t.name} (waiting)") for t in text]
    out = [Phase("encode", (*base, *text, *vae, parts.encoding(ask, t5, 2), *_away(experts)))]
    for number, expert in enumerate(experts):
        rest = _away([e for e in experts if e is not expert])
        terms: list[Term] = [
            *base, *(waiting if offloads else text), *vae, expert, *rest,
            *pass_terms(ask, block(ask), here), *diffusers.scores(ask, here, block(ask)),
            latent_terms(ask, here),
        ]  # fmt: skip
        name = "denoise" if len(experts) == 1 else f"denoise, expert {number + 1}"
        out.append(Phase(name, tuple(terms)))
    held = _away(experts) if offloads else experts
    out.append(
        Phase(
            "decode",
            (*base, *(waiting if offloads else text), *vae, *held,
             *decoding(ask, here, "F32", None)),
        )
    )  # fmt: skip
    out.append(parts.saving(ask, [*base, *waiting, *_away(experts)]))
    return tuple(out)


def _away(experts: list[Term]) -> list[Term]:
    return [parts.moved(e, "host", f"{e.name} (waiting)") for e in experts]
