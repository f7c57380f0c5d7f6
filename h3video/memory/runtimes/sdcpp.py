"""stable-diffusion.cpp: ggml graphs in float32 beside quantized weights.

All parts are resident on the device by default. `--offload-to-cpu` (offload model) keeps the
weights in RAM and brings one part at a time; with `--stream-layers` (offload group) blocks come one
by one; `--clip-on-cpu` and `--vae-on-cpu` keep those parts off the device. Without `--diffusion-fa`
the score matrix is built, in float32.
"""

from __future__ import annotations

from .. import parts
from ..activations import Block, full_scores, ggml_block, latent_terms, pass_terms
from ..ask import Ask
from ..terms import Phase, Term, computed
from ..units import gib

TITLE = "sd.cpp"


def block(ask: Ask) -> Block:
    """ggml graphs."""
    return ggml_block(ask)


def on_cpu(ask: Ask, part: str) -> bool:
    """Whether a flag or the ask keeps a part on the CPU."""
    flags = {"encoder": ("--clip-on-cpu", "--te-on-cpu"), "vae": ("--vae-on-cpu",)}[part]
    return ask.has_flag(*flags)


def pool(ask: Ask) -> list[Term]:
    """What cuBLAS needs where a quantized matrix meets many rows: the matrix as float16, its input.

    On Metal quantized matrices are multiplied as they are.
    """
    if ask.machine.gpu not in ("cuda", "rocm"):
        return []
    shape = ask.spec.denoiser
    matrix = shape.hidden * shape.ffn * 2
    rows = ask.rows * max(shape.hidden, shape.ffn // 2) * 2
    return [computed(
        "ggml's pool", "device", "activations", matrix + rows,
        f"{shape.hidden} x {shape.ffn} x 2 B as float16, and its input's {gib(rows)}", "ggml-cuda",
    )]  # fmt: skip


def resident(ask: Ask, at_work: str) -> list[Term]:
    """Weights in a phase."""
    here = parts.working_place(ask)
    all_parts = {
        "encoder": parts.encoders(ask, "host" if on_cpu(ask, "encoder") else here),
        "transformer": [
            parts.transformer(ask, here, name=f"transformer {n + 1} {ask.quant}")
            for n in range(ask.spec.experts)
        ],
        "vae": _vaes(ask, "host" if on_cpu(ask, "vae") else here),
    }
    out: list[Term] = []
    for name, terms in all_parts.items():
        for t in terms:
            if ask.offload == "none" or t.where == "host":
                out.append(t)
                continue
            out.append(parts.moved(t, "host", f"{t.name} (params in RAM)"))
            if name != at_work:
                continue
            if ask.offload in ("group", "sequential") and name == "transformer":
                found = parts.counts(ask.spec)
                count = min(t.bytes, 2 * t.bytes * found.block // found.parameters)
                out.append(computed(
                    f"{t.name}, two blocks", here, "weights", count, "--stream-layers", "sd.cpp",
                ))  # fmt: skip
            else:
                out.append(t)
    return out


def _vaes(ask: Ask, where: str) -> list[Term]:
    """Video VAE in float16; of the sound's only the decoder is loaded."""
    out = []
    for one in ask.spec.vaes:
        if one.kind == "video":
            out.append(parts.vae(ask, one, where, "F16"))
        else:
            count = 4 * one.decoder
            out.append(computed("sound decoder F32", where, "weights", count,
                                f"{one.decoder / 1e6:.0f}M weights x 4 B", "sd.cpp"))  # fmt: skip
    return out


def phases(ask: Ask) -> tuple[Phase, ...]:
    """Encode, denoise, decode, save."""
    here = parts.working_place(ask)
    base = [*parts.context(ask), parts.process(0.2, 0.6, "a C++ program and its context")]
    flash = ask.has_flag("--diffusion-fa", "--fa") or ask.attention in ("flash", "auto")
    scores = []
    if not flash:
        why = "ggml without flash attention"
        scores = [full_scores(ask, here, why, 1, 1, 4, block(ask))]
    denoise = (
        *base, *resident(ask, "transformer"), *parts.lora(ask, here),
        *pass_terms(ask, block(ask), here), *pool(ask), *scores, latent_terms(ask, "host"),
    )  # fmt: skip
    text_place = "host" if on_cpu(ask, "encoder") else here
    vae_place = "host" if on_cpu(ask, "vae") else here
    streamed = parts.transformer(ask, here).bytes if ask.offload in ("group", "sequential") else 0
    return (
        Phase("encode", (*base, *resident(ask, "encoder"), parts.encoding(ask, text_place))),
        Phase("denoise", denoise, streamed),
        Phase(
            "decode",
            (*base, *resident(ask, "vae"), *decoding(ask, vae_place), parts.pixels(ask, "host")),
        ),
        parts.saving(ask, [*base, *[t for t in resident(ask, "vae") if t.where == "host"]], 1),
    )


def decoding(ask: Ask, where: str) -> list[Term]:
    """A VAE graph: float32 throughout."""
    if ask.spec.family.name == "minimax-h3":
        rows = 7 * 16 * 16 + 5
        count = rows * 4 * (2 * 2048 + 2 * 4 * 2048 * 2)
        return [computed(
            "VAE tile", where, "activations", count,
            f"{rows:,} rows x 4 B x (2 x 2048 + 4 x 8192)", "sd.cpp minimax_h3_vae.hpp",
        )]  # fmt: skip
    from ..decoders import decoding as general

    return general(ask, where, "F32", ask.decode_tile)
