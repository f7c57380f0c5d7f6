"""vpipe: MiniMax-H3 on Metal in BF16; blocks resident as far as they fit, the rest streamed.

AdaLN is computed once and freed (its reports of resident blocks equal blocks x size), the text
encoder is streamed, attention has a kernel of its own and builds no score matrix.
"""

from __future__ import annotations

from .. import parts
from ..activations import Block, h3c_block, latent_terms, pass_terms
from ..ask import Ask
from ..terms import Phase
from . import h3c

TITLE = "vpipe"


def block(ask: Ask) -> Block:
    """Close to h3.c's arena; its own is not published."""
    return h3c_block(ask)


def phases(ask: Ask) -> tuple[Phase, ...]:
    """Encode, denoise, decode, save."""
    streamed = h3c.block_bytes(ask) * ask.spec.denoiser.layers if ask.streaming else 0
    denoise = (
        *h3c.base(ask), *h3c.transformer(ask), *pass_terms(ask, block(ask), "device"),
        latent_terms(ask, "device"),
    )  # fmt: skip
    return (
        Phase("encode", (*h3c.base(ask), *h3c.encoder(ask), parts.encoding(ask, "device", 2))),
        Phase("denoise", denoise, streamed),
        Phase("decode", (*h3c.base(ask), *h3c.vae_terms(ask), parts.pixels(ask, "host", 4))),
        parts.saving(ask, h3c.base(ask), 1),
    )
