"""The parts of a model as terms: how many bytes each is, and by which file or formula."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache

from ..models.layouts.tensor import Tensor
from ..models.spec import Encoder, ModelSpec, Vae
from . import sizes
from .ask import Ask
from .quants import parse_quant
from .sizes import Size
from .terms import Phase, Term, computed, ranged, weights
from .units import GIB, Range, gib

PUBLISHED = "h3video/memory/sizes.py, from the model's shapes"

# Advice plans dozens of variants of one ask: what only depends on the model is computed once.
transformer_bytes = lru_cache(sizes.transformer_bytes)
encoder_bytes = lru_cache(sizes.encoder_bytes)
vae_bytes = lru_cache(sizes.vae_bytes)
largest_tensor = lru_cache(sizes.largest_tensor)


@dataclass(frozen=True)
class Counts:
    """Weights of a transformer: all, its largest block's, its largest tensor's."""

    parameters: int
    block: int
    tensor: int


@lru_cache
def counts(spec: ModelSpec) -> Counts:
    """The weights that streaming is about."""
    tensors: tuple[Tensor, ...] = spec.tensors()
    return Counts(
        spec.parameters, max(spec.blocks().values(), default=spec.parameters),
        max(t.elements for t in tensors),
    )  # fmt: skip


@lru_cache
def encoder_counts(one: Encoder) -> Counts:
    """The same of an encoder; its layers are its blocks."""
    return Counts(one.parameters, one.layer_parameters, one.layer_parameters)


def transformer(
    ask: Ask, where: str, *, quant: str | None = None, elastic: bool = False, name: str = ""
) -> Term:
    """One expert's weights as its file has them."""
    label = name or f"transformer {quant or ask.quant}"
    if quant is None and ask.files.transformer is not None:
        count = ask.files.transformer
        return weights(
            label, where, Range.exactly(count), count, "bytes of its tensors", ask.files.source,
            elastic,
        )  # fmt: skip
    size = transformer_bytes(ask.spec, quant or ask.quant)
    billions = counts(ask.spec).parameters / 1e9
    formula = f"{billions:.2f}B weights as {quant or ask.quant}: {gib(size.bytes)}"
    return _sized(label, where, size, formula, elastic)


def _sized(label: str, where: str, size: Size, formula: str, elastic: bool) -> Term:
    return weights(
        label, where, Range(size.low, size.high), size.bytes, f"{formula} {size.note}".strip(),
        PUBLISHED, elastic,
    )  # fmt: skip


def encoder_quant(ask: Ask, encoder: Encoder) -> str:
    """What the encoder is quantized to: as asked, else as its runtime's users have it.

    ComfyUI and sd.cpp: like the transformer where that is quantized. Others, and image encoders:
    as published.
    """
    if encoder.kind != "text":
        return encoder.dtype
    if ask.encoder_quant is not None:
        return ask.encoder_quant
    kind = parse_quant(ask.quant).kind
    if (
        ask.runtime in ("comfyui", "sdcpp")
        and kind != "plain"
        and encoder_counts(encoder).parameters > 10**9
    ):
        return "INT4" if ask.quant.upper() == "NF4" else ask.quant
    return encoder.dtype


def encoder(ask: Ask, one: Encoder, where: str, elastic: bool = False) -> Term:
    """An encoder's weights."""
    quant = encoder_quant(ask, one)
    known = dict(ask.files.encoders)
    label = f"{'text' if one.kind == 'text' else 'image'} encoder {quant}"
    if one.name in known:
        count = known[one.name]
        return weights(
            label, where, Range.exactly(count), count, "bytes of its tensors", ask.files.source,
            elastic,
        )  # fmt: skip
    size = _loaded(one, quant, ask.runtime)
    formula = f"{one.title}: {encoder_counts(one).parameters / 1e9:.2f}B weights as {quant}"
    return _sized(label, where, size, formula, elastic)


@lru_cache
def _loaded(one: Encoder, quant: str, runtime: str) -> Size:
    """An encoder in memory. A GGUF file is a whole language model: its head is not loaded, and
    ComfyUI-GGUF unpacks the words' embeddings to float16."""
    size = encoder_bytes(one, quant)
    if one.kind != "text" or parse_quant(quant).kind not in ("gguf", "dynamic"):
        return size
    bits = 6.5625 / 8  # Q6_K: what the mixes give heads and embeddings
    change = -int(one.head * bits)
    words = max(
        (t.elements for t in one.tensors() if len(t.shape) == 2 and t.shape[0] >= 65536), default=0
    )
    if runtime == "comfyui":
        change += int(words * (2 - bits))
    return Size(size.bytes + change, size.low + change, size.high + change, size.note)


def encoders(ask: Ask, where: str, elastic: bool = False) -> list[Term]:
    """All encoders that the job needs."""
    return [encoder(ask, one, where, elastic) for one in ask.encoders()]


def layer_bytes(ask: Ask, one: Encoder) -> int:
    """Bytes of the encoder's largest layer: what stays when it is streamed."""
    whole = encoder(ask, one, "host").bytes
    found = encoder_counts(one)
    return int(whole * found.block / found.parameters)


def encoding(ask: Ask, where: str, bytes_: int = 4) -> Term:
    """Activations of encoding a prompt: a decoder layer over its tokens, both passes at once.

    Hidden states, q, k, v, a gated feed-forward 5 times as wide, and the scores of all heads.
    """
    one = max(ask.encoders(), key=lambda e: encoder_counts(e).parameters)
    tokens = ask.tokens.text + ask.reference_tokens // 4
    count = 2 * tokens * one.hidden * 20 * bytes_ + 2 * 64 * tokens * tokens * bytes_
    return computed(
        "encoding", where, "activations", count,
        f"2 x {tokens} tokens x {one.hidden} x 20 x {bytes_} B, and scores of 64 heads",
        "shapes of a decoder layer",
    )  # fmt: skip


def vae(ask: Ask, one: Vae, where: str, dtype: str, elastic: bool = False) -> Term:
    """A VAE's weights as they lie in memory, in the dtype that it runs in."""
    known = dict(ask.files.vaes)
    label = f"{'video' if one.kind == 'video' else 'sound'} VAE {dtype}"
    if one.name in known:
        width = {"F32": 4}.get(dtype, 2) / {"F32": 4}.get(one.dtype, 2)
        count = int(known[one.name] * width)
        return weights(
            label, where, Range.exactly(count), count, f"bytes of its tensors, as {dtype}",
            ask.files.source, elastic,
        )  # fmt: skip
    size = vae_bytes(one, dtype)
    return _sized(label, where, size, f"{one.parameters / 1e6:.0f}M weights as {dtype}", elastic)


def vaes(ask: Ask, where: str, dtype: str, elastic: bool = False) -> list[Term]:
    """Video and sound VAEs; the sound's stays in its published dtype."""
    return [
        vae(ask, one, where, dtype if one.kind == "video" else one.dtype, elastic)
        for one in ask.spec.vaes
    ]  # fmt: skip


def dequantized(ask: Ask, where: str) -> list[Term]:
    """A GGUF's largest matrix as float16: loaders keep one such copy to compute with."""
    if parse_quant(ask.quant).kind not in ("gguf", "dynamic"):
        return []
    largest = largest_tensor(ask.spec)
    return [computed(
        "a dequantized matrix", where, "weights", 2 * largest.elements,
        f"{largest.name}: {largest.elements:,} elements x 2 B", "ComfyUI-GGUF",
    )]  # fmt: skip


def lora(ask: Ask, where: str) -> list[Term]:
    """LoRA files, kept beside the weights."""
    if not ask.lora:
        return []
    return [computed("LoRA", where, "weights", ask.lora, f"{gib(ask.lora)} of files", "given")]


def pixels(ask: Ask, where: str, bytes_: int = 4, copies: float = 1.0) -> Term:
    """The finished clip's pixels."""
    count = ask.pixels * 3 * bytes_ * copies
    return computed(
        "pixels", where, "pixels", count,
        f"{ask.width}x{ask.height}x{ask.frames} x 3 x {bytes_} B x {copies:g}", "shapes",
    )  # fmt: skip


def process(low: float, high: float, source: str) -> Term:
    """The program itself, its libraries and caches, in GiB."""
    return ranged(
        "program", "host", "runtime", low * GIB, high * GIB,
        f"{low:g} to {high:g} GiB: Python, its libraries, allocators", source,
    )  # fmt: skip


def context(ask: Ask) -> list[Term]:
    """What the driver takes on a card before the first tensor: kernels, the CUDA context."""
    if ask.machine.gpu == "mps":
        return [ranged(
            "MPS pools", "device", "runtime", 0.5 * GIB, 2.0 * GIB,
            "0.5 to 2 GiB: heaps kept for reuse and MPSGraph's scratch ('other allocations')",
            "PyTorch's MPSAllocator.mm; reports of out-of-memory messages",
        )]  # fmt: skip
    if ask.machine.gpu not in ("cuda", "rocm"):
        return []
    return [ranged(
        "CUDA context", "device", "runtime", 0.35 * GIB, 0.6 * GIB,
        "0.35 to 0.6 GiB: context, kernels, libraries' workspaces", "NVIDIA's driver",
    )]  # fmt: skip


def working_place(ask: Ask) -> str:
    """Where the work is done: on the device, or without one on the host."""
    return "host" if ask.machine.gpu == "cpu" else "device"


def moved(term: Term, where: str, name: str | None = None, elastic: bool | None = None) -> Term:
    """The same bytes somewhere else."""
    keep = term.elastic if elastic is None else (term.size.high if elastic else 0)
    return replace(term, where=where, name=name or term.name, elastic=keep)


def saving(ask: Ask, base: list[Term], bytes_: int = 4) -> Phase:
    """Writing the file: the pixels, a frame in 8 bits, the encoder's queue."""
    queue = computed(
        "video encoder", "host", "pixels", 40 * ask.width * ask.height * 3,
        f"40 frames x {ask.width}x{ask.height} x 3 B", "an H.264 encoder's lookahead",
    )  # fmt: skip
    return Phase("save", (*base, pixels(ask, "host", bytes_), queue))
