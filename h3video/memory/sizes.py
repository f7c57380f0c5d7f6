"""File sizes before download: what a converter makes of a model's tensors, in exact bytes.

GGUF files of picture and video models follow city96's patch of llama.cpp: the matrices of the
blocks get the type in the name, some of them more bits (`_M` mixes, by tensor name), embeddings and
modulation stay as they are. MiniMax-H3's names match none of the patterns, so its mixes are plain.
Where published builds of one name differ, a `Size` is a range.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache

from ..errors import UsageError
from ..models.layouts.tensor import Tensor
from ..models.spec import Encoder, ModelSpec, Vae
from .quants import BY_NAME, Quant, parse_quant

ALIGNMENT = 32
"""Bytes that every tensor of a GGUF file is padded to."""

SMALL = 1024
"""Tensors of at most this many elements stay at float32."""


@dataclass(frozen=True)
class Size:
    """Bytes of a file: the usual build's, and those of the smallest and largest known build."""

    bytes: int
    low: int
    high: int
    note: str = ""

    @property
    def exact(self) -> bool:
        """Whether all builds of this name agree."""
        return self.low == self.high


@dataclass(frozen=True)
class Recipe:
    """How a converter treats an architecture.

    keep     parts of the names of matrices that are not quantized
    rest     type of those, and of convolutions
    wide     whether tensors that the checkpoint marks as float32 stay so
    wider    parts of the names of matrices that are stored at float32
    vector   type of one-dimensional tensors
    mixes    whether the `_M` patterns match this architecture's names
    """

    keep: tuple[str, ...]
    rest: str = "F16"
    wide: bool = True
    wider: tuple[str, ...] = ()
    vector: str = "F32"
    mixes: bool = True


_WAN = ("modulation", "patch_embedding.", "text_embedding.", "time_projection.", "time_embedding.",
        "img_emb.", "head.")  # fmt: skip
_LTX = ("adaln_single.", "caption_projection.", "patchify_proj.", "proj_out.", "scale_shift_table")
_HUNYUAN = ("txt_in.", "img_in.", "time_in.", "vector_in.", "guidance_in.", "final_layer.")
_OTHERS = ("patch_embed.", "time_embedding.", "norm_out.", "proj_out.", "x_embedder.",
           "t_embedder.", "t5_y", "final_layer.", "pos_frequencies")  # fmt: skip
_H3_REST = ("condition_proj", "final_layer.", "adaln_t_table", "adaln_proj")
_H3_FULL = ("token_refiner", "condition_proj", "final_layer.")


def _recipes(spec: ModelSpec, quant: Quant) -> tuple[Recipe, ...]:
    """The known builds of a model, the usual one first."""
    name = spec.name
    if name == "minimax-h3":
        return (_h3_full(quant),)
    if name == "minimax-h3-pruned":
        # Two builds: everything outside the blocks at 16 bits, or modulation and text at 32.
        # Q4_0 files quantize the text projection, too.
        keep = _H3_REST[1:] if quant.base == "Q4_0" else _H3_REST
        lean = Recipe(keep, "BF16", mixes=False)
        rich = Recipe(_H3_REST, "BF16", mixes=False, wider=("adaln", "condition_proj"))
        return (rich, lean) if quant.base == "Q5_K" else (lean, rich)
    if spec.family.name.startswith("wan"):
        # Files made from a float16 checkpoint keep all the rest at float16, those made from a
        # float32 one (city96's 14B) at float32.
        half, full = (Recipe(_WAN, t, wide=False, vector=t) for t in ("F16", "F32"))
        return (full, half) if name.startswith("wan2.1") and "14b" in name else (half,)
    if spec.family.name.startswith("ltx"):
        # city96's files of 0.9 keep the rest at float32, those of 0.9.5 at 16 bits.
        wider = ("scale_shift_table",)
        half, full = (Recipe((*_LTX, "connector"), t, wider=wider) for t in ("BF16", "F32"))
        return (half, full) if name == "ltx-video-2b" else (half,)
    if spec.family.name.startswith("hunyuan"):
        return (Recipe((*_HUNYUAN, "byt5_in.", "vision_in.", "cond_type"), "BF16"),)
    # CogVideoX, Mochi: not known to city96's converter; others quantize the blocks.
    return (Recipe(_OTHERS, "F16", mixes=False), Recipe(_OTHERS, "F16"))


def _h3_full(quant: Quant) -> Recipe:
    """The full MiniMax-H3's builds by type, as the published sizes tell them apart.

    Q5_0 and Q4_0 files quantize every matrix; K mixes below Q6_K the text projection, too.
    """
    if quant.base in ("Q5_0", "Q4_0"):
        return Recipe((), "BF16", wide=False, vector="F16", mixes=False)
    if quant.base in ("Q5_K", "Q4_K", "Q3_K"):
        return Recipe(("token_refiner", "final_layer."), "BF16", mixes=False)
    return Recipe(_H3_FULL, "BF16", mixes=False)


_VALUE = ("attn_v.weight", ".to_v.weight", ".v.weight")
_FUSED = ("attn_qkv.weight", "attn.qkv.weight")
_DOWN = ("ffn_down", ".ffn.2.weight", ".ff.net.2.weight")


class _Mixer:
    """The type of one matrix after the other; counts the value projections seen so far."""

    def __init__(self, quant: Quant) -> None:
        self.quant = quant
        self.values = 0

    def type_of(self, name: str) -> str:
        """The type that city96's rules give a matrix of this name."""
        base, mix = self.quant.base, self.quant.mix
        if any(p in name for p in _VALUE):
            self.values += 1
            return self._value(base, mix, self.values - 1)
        if any(p in name for p in _FUSED):
            more = {("Q3_K", "M"): "Q4_K", ("Q3_K", "L"): "Q4_K", ("Q4_K", "M"): "Q5_K",
                    ("Q5_K", "M"): "Q6_K"}  # fmt: skip
            return more.get((base, mix), base)
        if any(p in name for p in _DOWN):
            more = {("Q3_K", "M"): "Q4_K", ("Q3_K", "L"): "Q5_K", ("Q4_K", "S"): "Q5_K",
                    ("Q4_K", "M"): "Q6_K", ("Q5_K", "M"): "Q6_K", ("Q4_0", ""): "Q4_1",
                    ("Q5_0", ""): "Q5_1"}  # fmt: skip
            return more.get((base, mix), base)
        return base

    @staticmethod
    def _value(base: str, mix: str, seen: int) -> str:
        if base == "Q2_K" and not mix:
            return "Q3_K"
        if (base, mix) == ("Q3_K", "M"):
            return "Q5_K" if seen < 2 else "Q4_K"
        if (base, mix) == ("Q3_K", "L"):
            return "Q5_K"
        if (base, mix) in (("Q4_K", "M"), ("Q5_K", "M")):
            return "Q6_K"
        if (base, mix) == ("Q4_K", "S") and seen < 4:
            return "Q5_K"
        return base


def gguf_types(
    tensors: Iterable[Tensor], quant: Quant, recipe: Recipe
) -> Iterator[tuple[Tensor, str]]:
    """Every tensor with the type that a converter gives it."""
    mixer = _Mixer(quant)
    for t in tensors:
        yield t, _gguf_type(t, mixer, recipe)


def _gguf_type(t: Tensor, mixer: _Mixer, recipe: Recipe) -> str:
    kept = any(part in t.name for part in recipe.keep)
    if any(part in t.name for part in recipe.wider) or (recipe.wide and t.wide):
        return "F32"
    if len(t.shape) == 1 or t.elements <= SMALL:
        # The pruned form's 96768 modulation biases are stored like their matrices.
        return recipe.rest if kept and "adaln" in t.name else recipe.vector
    if kept or len(t.shape) > 2:
        return recipe.rest
    kind = mixer.type_of(t.name) if recipe.mixes else mixer.quant.base
    block = BY_NAME[kind].block
    if t.shape[-1] % block == 0:
        return kind
    # MiniMax-H3's rows of 2688 are stored reshaped; elsewhere the patch falls back to float16.
    return kind if "adaln" in t.name and t.elements % block == 0 else "F16"


def _gguf_bytes(tensors: tuple[Tensor, ...], quant: Quant, recipe: Recipe) -> int:
    total = 64  # magic, version, counts, the architecture's name
    for t, kind in gguf_types(tensors, quant, recipe):
        kept = BY_NAME[kind]
        size = t.elements // kept.block * kept.bytes
        total += -(-size // ALIGNMENT) * ALIGNMENT
        total += len(t.name) + 24 + 8 * len(t.shape)  # its line in the header
    return total


def _plain_bytes(tensors: Iterable[Tensor], dtype: str) -> int:
    """A safetensors file in one dtype; what the checkpoint keeps at float32 stays so."""
    width = BY_NAME[dtype].bytes
    return sum(t.elements * (max(width, 4) if t.wide else width) + 110 for t in tensors)


def _scaled_bytes(tensors: Iterable[Tensor], quant: Quant, keep: tuple[str, ...]) -> int:
    """A safetensors file with the blocks' matrices at `quant.bits` and the rest at 16 bits."""
    total = 0.0
    for t in tensors:
        rest = len(t.shape) != 2 or any(part in t.name for part in keep)
        if t.wide:
            total += 4 * t.elements
        elif rest:
            total += 2 * t.elements
        else:
            total += t.elements * quant.bits / 8 + t.shape[0] * quant.row
        total += 110
    return round(total)


def transformer_bytes(spec: ModelSpec, quant: str | Quant) -> Size:
    """Size in bytes of the file of one transformer (an A14B has two of these).

    quant   a published name ("Q4_K_M", "BF16", "fp8", "UD-Q3_K_XL") or a `Quant`
    Raises UsageError for a name that is not known.
    """
    return _transformer(spec, parse_quant(quant) if isinstance(quant, str) else quant)


@lru_cache(maxsize=512)
def _transformer(spec: ModelSpec, quant: Quant) -> Size:
    tensors = spec.tensors()
    if quant.kind == "plain":
        return _same(_plain_bytes(tensors, quant.base))
    if quant.kind == "dynamic":
        return _between(_transformer(spec, q) for q in _neighbours(quant))
    if quant.kind == "scaled":
        return _scaled(spec, tensors, quant)
    all_builds = [_gguf_bytes(tensors, quant, r) for r in _recipes(spec, quant)]
    note = ""
    if len(set(all_builds)) > 1:
        note = "published builds of this name differ in what they keep at 16 or 32 bits"
    if spec.family.name in ("cogvideox", "cogvideox-1.5", "mochi"):
        note = "no common converter: plain matrices, or the usual mix"
    if quant.base.endswith("_K") and spec.denoiser.hidden % 256:
        note = (
            f"rows of {spec.denoiser.hidden} are no multiple of 256: K types leave them at 16 "
            "bits; Q8_0, Q5_0 and Q4_0 do not"
        )
    if spec.name == "minimax-h3" and quant.base == "Q2_K":
        note = "the published file of this name is a mix of types, larger than its Q3_K"
        return Size(all_builds[0], min(all_builds), round(17.43 * 2**30), note)
    return Size(all_builds[0], min(all_builds), max(all_builds), note)


def _scaled(spec: ModelSpec, tensors: tuple[Tensor, ...], quant: Quant) -> Size:
    if not spec.name.startswith("minimax-h3"):
        # fp8 files hold every matrix at 8 bits (Comfy-Org's 14B of Wan 2.2: 13.31 GiB)
        keep = () if quant.base.startswith("F8") else _recipes(spec, quant)[0].keep
        return _same(_scaled_bytes(tensors, quant, keep))
    full = spec.name == "minimax-h3"
    # "rich" leaves the modulation at 16 bits, "lean" does not.
    lean = _scaled_bytes(tensors, quant, _H3_FULL)
    rich = _scaled_bytes(tensors, quant, ("token_refiner", *_H3_REST))
    if quant.name == "NF4" and full:
        return _same(_scaled_bytes(tensors, quant, ()))
    if quant.name == "NVFP4" and full:
        core = tuple(t for t in tensors if "adaln" not in t.name)
        note = "published files of this name hold anything from no modulation to all at 16 bits"
        return Size(lean, _scaled_bytes(core, quant, ("condition_proj",)), rich, note)
    if quant.name == "INT4":
        wide = _scaled(spec, tensors, parse_quant("INT8")).bytes
        low = lean if full else rich
        return Size((low + wide) // 2, low, wide, "published files mix 4 and 8 bits")
    return _same(lean if full and quant.name == "INT8" else rich)


_UP = {"IQ1_S": "IQ2_XXS", "IQ1_M": "IQ2_XS", "IQ2_XXS": "IQ3_XXS", "IQ2_S": "IQ3_S",
       "IQ3_XXS": "Q4_K", "Q2_K": "Q3_K", "Q3_K": "Q4_K", "Q4_K": "Q5_K", "Q5_K": "Q6_K",
       "Q6_K": "Q8_0", "Q8_0": "F16"}  # fmt: skip


def _neighbours(quant: Quant) -> tuple[Quant, Quant]:
    """unsloth's dynamic files choose a type for every matrix: between this type and the next."""
    return parse_quant(quant.base), parse_quant(_UP[quant.base])


def _between(sizes: Iterable[Size]) -> Size:
    low, high = sorted(sizes, key=lambda s: s.bytes)
    note = "chosen matrix by matrix: not predictable exactly; read the file's header"
    return Size((low.bytes + high.bytes) // 2, low.low, high.high, note)


def _same(size: int) -> Size:
    return Size(size, size, size)


_FALLBACK = {"Q2_K": "Q4_0", "Q3_K": "Q4_0", "Q4_K": "Q5_0", "Q5_K": "Q5_1", "Q6_K": "Q8_0"}
"""What stock llama.cpp stores instead of a K type when a row is not whole blocks."""

TOKENIZER = 36
"""Bytes of metadata a word of the vocabulary: its text, score and type, and merges."""

_WORDS = ("model.embed_tokens.weight", "shared.weight")


def encoder_bytes(encoder: Encoder, quant: str | Quant) -> Size:
    """Size in bytes of the file of a text or image encoder.

    GGUF files are whole language models from stock llama.cpp: head and tokenizer are in them, the
    mixes give word embeddings and some layers more bits, and eyes are a separate mmproj file at
    float16. MiniMax-H3's encoder alone is published with every matrix at the type in the name and
    with its eyes; there `low` is the file without fallbacks, `high` the one with mixes. Otherwise
    `high` includes the mmproj file. Files of other types have neither head nor tokenizer.
    Raises UsageError for an unknown name.
    """
    return _encoder(encoder, parse_quant(quant) if isinstance(quant, str) else quant)


@lru_cache(maxsize=256)
def _encoder(encoder: Encoder, quant: Quant) -> Size:
    tensors = encoder.tensors()
    if quant.kind == "plain":
        return _same(_plain_bytes(tensors, quant.base))
    if quant.kind == "dynamic":
        return _between(_encoder(encoder, q) for q in _neighbours(quant))
    if quant.kind == "scaled":
        size = _scaled_bytes(tensors, quant, ("visual.", "vision_", "embed", "shared."))
        if quant.name == "NVFP4":  # whose files hold the word embeddings at 8 bits
            size -= sum(t.elements for t in tensors if "embed_tokens" in t.name)
        return _same(size)
    return _encoder_gguf(encoder, quant)


def _encoder_gguf(encoder: Encoder, quant: Quant) -> Size:
    apart = encoder.kind == "text"
    text = tuple(t for t in encoder.tensors() if not apart or t.part != "vision")
    eyes = tuple(t for t in encoder.tensors() if apart and t.part == "vision")
    tied = encoder.head == 0
    mixed = sum(_llama_bytes(t, quant, encoder.layers, tied) for t in text)
    mixed += round(encoder.head * BY_NAME[_outer(quant.base)].bits / 8)
    mixed += sum(TOKENIZER * t.shape[0] for t in text if t.name in _WORDS)
    if not eyes:
        return _same(mixed)
    float16 = sum(2 * t.elements + 100 for t in eyes)
    whole = (*text, *eyes)
    if encoder.name == "qwen3-vl-32b-50":
        usual, low, high = (
            sum(_plain_gguf(t, quant.base, way) for t in whole) for way in ("", "none", "F16")
        )
        note = "builds differ in how they store vision, and in mixes: read the file's header"
        return Size(usual, low, max(high, mixed + float16), note)
    note = f"its eyes are a file of their own (mmproj), {float16:,} bytes at float16"
    return Size(mixed, mixed, mixed + float16, note)


def _more_bits(layer: int, layers: int) -> bool:
    """Layers that llama.cpp gives more bits: the first and last eighth, every third between."""
    eighth = layers // 8
    return layer < eighth or layer >= 7 * layers // 8 or (layer - eighth) % 3 == 2


def _outer(base: str) -> str:
    """The type of a language model's head, which may be its word embeddings."""
    return base if base == "Q8_0" else "Q6_K"


def _llama_type(name: str, base: str, mix: str, layers: int, tied: bool) -> str:
    """The type that stock llama.cpp gives a matrix of a language model."""
    layer = next((int(w) for w in name.split(".") if w.isdigit()), 0)
    if name in _WORDS:
        return _outer(base) if tied else base
    value = name.endswith((".v.weight", "v_proj.weight"))
    if value or name.endswith((".wo.weight", "down_proj.weight")):
        if (base, mix) in (("Q4_K", "M"), ("Q5_K", "M")):
            return "Q6_K" if _more_bits(layer, layers) else base
        if (base, mix) == ("Q3_K", "M"):
            return "Q5_K" if layer < (2 if value else layers // 16) else "Q4_K"
        if (base, mix) == ("Q4_K", "S"):
            return "Q5_K" if layer < (4 if value else layers // 8) else base
        return {("Q2_K", ""): "Q3_K", ("Q3_K", "L"): "Q5_K"}.get((base, mix), base)
    if name.endswith("o_proj.weight"):  # T5's has a name that the rule does not know
        more = {("Q2_K", ""): "Q3_K", ("Q3_K", "M"): "Q4_K", ("Q3_K", "L"): "Q5_K"}
        return more.get((base, mix), base)
    return base


def _llama_bytes(t: Tensor, quant: Quant, layers: int, tied: bool) -> int:
    if len(t.shape) == 1 or "relative_attention_bias" in t.name:
        return len(t.name) + 40 + 4 * t.elements
    kind = _llama_type(t.name, quant.base, quant.mix, layers, tied)
    return _stored(t, kind, _FALLBACK.get(kind, "F16"))


def _plain_gguf(t: Tensor, base: str, fallback: str) -> int:
    if len(t.shape) == 1 or t.elements <= SMALL:
        return len(t.name) + 40 + 4 * t.elements
    if len(t.shape) > 2 or "pos" in t.name:
        return len(t.name) + 40 + 2 * t.elements
    return _stored(t, base, base if fallback == "none" else fallback or _FALLBACK.get(base, "F16"))


def _stored(t: Tensor, kind: str, fallback: str) -> int:
    """Bytes of a matrix and its line in the header; rows that are not whole blocks fall back."""
    if t.shape[-1] % BY_NAME[kind].block:
        kind = fallback
    return len(t.name) + 40 + round(t.elements * BY_NAME[kind].bits / 8)


def vae_bytes(vae: Vae, dtype: str | None = None) -> Size:
    """Size in bytes of an autoencoder's file in `dtype` (None: as published).

    fp8 files ("fp8mix") keep the encoding half at 16 bits. Raises UsageError for a type in which
    no autoencoder is published.
    """
    quant = parse_quant(dtype or vae.dtype)
    if quant.kind == "plain":
        return _same(round(vae.parameters * quant.bits / 8))
    if quant.base.startswith("F8"):
        return _same(2 * vae.encoder + vae.decoder)
    raise UsageError(f"{vae.name} is not published as {quant.name}; use F32, F16, BF16 or fp8")


def largest_tensor(spec: ModelSpec) -> Tensor:
    """The largest matrix that GGUF files quantize: ComfyUI-GGUF keeps one copy of it at 16 bits."""
    quant = parse_quant("Q8_0")
    types = gguf_types(spec.tensors(), quant, _recipes(spec, quant)[0])
    return max((t for t, kind in types if kind == "Q8_0"), key=lambda t: t.elements)
