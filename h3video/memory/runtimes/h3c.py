"""antirez/h3.c: MiniMax-H3 on Metal, BF16 safetensors, phases load and free.

The text encoder is streamed (three layers resident), AdaLN is computed once for all steps and
freed, `--layers N` loads N blocks, `--ssd-streaming` holds two. Attention goes through MPSGraph,
which builds the full score matrix.
"""

from __future__ import annotations

from functools import lru_cache

from ...models.spec import ModelSpec
from .. import parts
from ..activations import Block, full_scores, h3c_block, latent_terms, pass_terms
from ..ask import Ask
from ..terms import Phase, Term, computed
from ..units import GIB, Range, gib

TITLE = "h3.c"
STEPS = 20


def block(ask: Ask) -> Block:
    """Its arena."""
    return h3c_block(ask)


def block_bytes(ask: Ask) -> int:
    """One block in BF16 without AdaLN."""
    return _block_bytes(ask.spec)


@lru_cache
def _block_bytes(spec: ModelSpec) -> int:
    whole = max(spec.blocks().values(), default=0)
    adaln = [t.elements for t in spec.tensors() if t.name.startswith("blocks.0.adaln")]
    return 2 * (whole - sum(adaln))


def base(ask: Ask) -> list[Term]:
    """Resident in every phase."""
    out = [parts.process(0.1, 0.4, "a C program, Metal's shaders")]
    if "preview" in ask.resident:
        size = Range(9 * GIB, 11 * GIB)
        out.append(Term(
            "preview VAE", "device", "weights", size, "range", "--show keeps a float32 VAE",
            "h3.c README: roughly 10 GiB",
        ))  # fmt: skip
    return out


def transformer(ask: Ask) -> list[Term]:
    """The blocks that are resident, and AdaLN's results for all steps."""
    layers = ask.layers or ask.spec.denoiser.layers
    one = block_bytes(ask)
    held = 2 if ask.streaming else layers
    name = "two blocks BF16" if ask.streaming else f"{layers} blocks BF16"
    d = ask.spec.denoiser.hidden
    adaln = STEPS * layers * 18 * d * 2
    return [
        computed(name, "device", "weights", held * one, f"{held} x {gib(one)}", "h3_dit.c"),
        computed("AdaLN results", "device", "weights", adaln,
                 f"{STEPS} steps x {layers} blocks x 18 x {d} x 2 B", "h3_dit_schedule.c"),
    ]  # fmt: skip


def scores(ask: Ask) -> list[Term]:
    """The full matrix, 112 x rows^2 bytes for 56 heads."""
    return [full_scores(ask, "device", "h3_gpu.m: MPSGraph attention; h3.c issue 67", 1, 1)]


def vae_terms(ask: Ask) -> list[Term]:
    """float32 weights, and a tile's activations: 256 px, 7 latent frames, hidden 2048."""
    rows = 7 * (256 // 16) ** 2 + 5
    count = rows * 4 * (5 * 2048 + 6 * 2048 + 3 * 4 * 2048 * 2)
    return [
        *[parts.vae(ask, v, "device", "F32" if v.kind == "video" else v.dtype)
          for v in ask.spec.vaes],
        computed("VAE tile", "device", "activations", count,
                 f"{rows:,} rows x 4 B x (11 x 2048 + 24 x 2048)", "h3_video_vae.c"),
    ]  # fmt: skip


def encoder(ask: Ask) -> list[Term]:
    """Three layers of the text encoder."""
    out = []
    for one in ask.encoders():
        layer = 2 * parts.encoder_counts(one).block
        out.append(computed(
            "text encoder, 3 layers", "device", "weights", 3 * layer, f"3 x {gib(layer)}",
            "h3_text_encoder.c: a ring of layers",
        ))  # fmt: skip
    return out


def phases(ask: Ask) -> tuple[Phase, ...]:
    """Encode, denoise, decode, save."""
    streamed = block_bytes(ask) * (ask.layers or ask.spec.denoiser.layers) if ask.streaming else 0
    denoise = (
        *base(ask), *transformer(ask), *pass_terms(ask, block(ask), "device"), *scores(ask),
        latent_terms(ask, "device"),
    )  # fmt: skip
    return (
        Phase("encode", (*base(ask), *encoder(ask), parts.encoding(ask, "device", 2))),
        Phase("denoise", denoise, streamed),
        Phase("decode", (*base(ask), *vae_terms(ask), parts.pixels(ask, "host", 4))),
        parts.saving(ask, base(ask), 1),
    )
