"""Storage types of weights in bytes, exactly, and the names under which files are published.

A tensor type packs a block of elements into a number of bytes (ggml's types) or stores them one by
one (safetensors). A quantization is what stands in a file's name: a type for the large matrices
and a rule for the rest, which sizes.py applies.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

from ..errors import UsageError


@dataclass(frozen=True)
class TensorType:
    """`block` elements of a row take `bytes` bytes; `id` is ggml's number, or None."""

    name: str
    block: int
    bytes: int
    id: int | None = None

    @property
    def bits(self) -> float:
        """Bits a weight."""
        return 8 * self.bytes / self.block

    def fits(self, shape: Sequence[int]) -> bool:
        """Whether rows of this shape are whole blocks; the last number is the row's length."""
        return self.block == 1 or (bool(shape) and shape[-1] % self.block == 0)

    def size(self, shape: Sequence[int]) -> int:
        """Bytes of a tensor. Raises UsageError when its rows are not whole blocks."""
        if not self.fits(shape):
            raise UsageError(
                f"shape {tuple(shape)} cannot be {self.name}: its rows are not multiples of "
                f"{self.block}; use a type with smaller blocks"
            )
        return prod(shape) // self.block * self.bytes


def _ggml(text: str) -> dict[int, TensorType]:
    rows = (line.split() for line in text.strip().splitlines())
    return {int(i): TensorType(name, int(n), int(b), int(i)) for i, name, n, b in rows}


GGUF_TYPES = _ggml("""
    0 F32 1 4
    1 F16 1 2
    2 Q4_0 32 18
    3 Q4_1 32 20
    6 Q5_0 32 22
    7 Q5_1 32 24
    8 Q8_0 32 34
    9 Q8_1 32 40
    10 Q2_K 256 84
    11 Q3_K 256 110
    12 Q4_K 256 144
    13 Q5_K 256 176
    14 Q6_K 256 210
    15 Q8_K 256 292
    16 IQ2_XXS 256 66
    17 IQ2_XS 256 74
    18 IQ3_XXS 256 98
    19 IQ1_S 256 50
    20 IQ4_NL 32 18
    21 IQ3_S 256 110
    22 IQ2_S 256 82
    23 IQ4_XS 256 136
    24 I8 1 1
    25 I16 1 2
    26 I32 1 4
    27 I64 1 8
    28 F64 1 8
    29 IQ1_M 256 56
    30 BF16 1 2
    34 TQ1_0 256 54
    35 TQ2_0 256 66
    39 MXFP4 32 17
    40 NVFP4 64 36
    41 Q1_0 128 18
""")
"""ggml's types by their number in a file (gguf-py 0.19)."""

REMOVED_TYPES = {
    4: "Q4_2", 5: "Q4_3", 31: "Q4_0_4_4", 32: "Q4_0_4_8", 33: "Q4_0_8_8",
    36: "IQ4_NL_4_4", 37: "IQ4_NL_4_8", 38: "IQ4_NL_8_8",
}  # fmt: skip
"""Numbers of types that ggml has dropped: no current program reads them."""

SAFETENSORS_TYPES = {
    t.name: t
    for t in (
        TensorType("F64", 1, 8), TensorType("F32", 1, 4), TensorType("F16", 1, 2),
        TensorType("BF16", 1, 2), TensorType("F8_E4M3", 1, 1), TensorType("F8_E5M2", 1, 1),
        TensorType("F8_E4M3FNUZ", 1, 1), TensorType("F8_E5M2FNUZ", 1, 1),
        TensorType("F8_E8M0", 1, 1), TensorType("F6_E2M3", 4, 3), TensorType("F6_E3M2", 4, 3),
        TensorType("F4", 2, 1), TensorType("I64", 1, 8), TensorType("I32", 1, 4),
        TensorType("I16", 1, 2), TensorType("I8", 1, 1), TensorType("U64", 1, 8),
        TensorType("U32", 1, 4), TensorType("U16", 1, 2), TensorType("U8", 1, 1),
        TensorType("BOOL", 1, 1), TensorType("C64", 1, 8),
    )
}  # fmt: skip
"""The types of safetensors headers by name."""

BY_NAME = {t.name: t for t in (*SAFETENSORS_TYPES.values(), *GGUF_TYPES.values())}


@dataclass(frozen=True)
class Quant:
    """What a file's name says about its weights.

    base     type of the large matrices
    kind     "plain" (one type), "gguf", "dynamic" (unsloth's UD files), "scaled" (fp8, int8, ...)
    mix      "S", "M" or "L" for the K mixes that give some matrices more bits, else ""
    bits     bits a weight of the large matrices, scales of blocks included
    row      bytes beside each of their rows (a scale)
    """

    name: str
    base: str
    kind: str
    bits: float
    mix: str = ""
    row: int = 0


def _quants() -> dict[str, Quant]:
    out = [Quant(n, n, "plain", BY_NAME[n].bits) for n in ("F32", "F16", "BF16")]
    out += [
        Quant("F8_E4M3", "F8_E4M3", "scaled", 8.0),
        Quant("F8_E5M2", "F8_E5M2", "scaled", 8.0),
        Quant("INT8", "I8", "scaled", 8.0, row=4),
        Quant("INT4", "U8", "scaled", 4.0, row=4),
        Quant("NVFP4", "NVFP4", "scaled", 4.5),
        # 4 bits, an 8-bit scale every 64 weights, a 32-bit one every 256 of those
        Quant("NF4", "U8", "scaled", 4 + 8 / 64 + 32 / (64 * 256)),
    ]
    plain = (
        "Q8_0 Q5_1 Q5_0 Q4_1 Q4_0 Q6_K Q5_K Q4_K Q3_K Q2_K IQ4_NL IQ4_XS IQ3_S IQ3_XXS IQ2_S "
        "IQ2_XS IQ2_XXS IQ1_M IQ1_S TQ2_0 TQ1_0 MXFP4 Q1_0"
    )
    out += [Quant(n, n, "gguf", BY_NAME[n].bits) for n in plain.split()]
    for base, mixes in (("Q5_K", "SM"), ("Q4_K", "SM"), ("Q3_K", "SML"), ("Q2_K", "S")):
        out += [Quant(f"{base}_{m}", base, "gguf", BY_NAME[base].bits, m) for m in mixes]
    for base in ("Q2_K", "Q3_K", "Q4_K", "Q5_K", "Q6_K", "Q8_K"):
        real = "Q8_0" if base == "Q8_K" else base
        out.append(Quant(f"UD-{base}_XL", real, "dynamic", BY_NAME[real].bits, "L"))
    for base in ("IQ1_S", "IQ1_M", "IQ2_XXS", "IQ2_M", "IQ3_XXS"):
        real = "IQ2_S" if base == "IQ2_M" else base
        out.append(Quant(f"UD-{base}", real, "dynamic", BY_NAME[real].bits, "L"))
    return {q.name: q for q in out}


QUANTS = _quants()
"""Every quantization by its published name."""

_ALIASES = {
    "FP32": "F32", "FP16": "F16", "FP8": "F8_E4M3", "F8": "F8_E4M3", "FP8_SCALED": "F8_E4M3",
    "FP8_E4M3": "F8_E4M3", "FP8_E4M3FN": "F8_E4M3", "FP8_E4M3FN_SCALED": "F8_E4M3",
    "FP8_E5M2": "F8_E5M2", "INT8_CONVROT": "INT8", "I8": "INT8", "INT4_CONVROT": "INT4",
    "NVFP4_AWQ": "NVFP4", "FP4": "NVFP4", "BNB_NF4": "NF4", "Q8": "Q8_0", "Q6": "Q6_K",
    "Q6_K_L": "Q6_K", "Q2_K_M": "Q2_K",
}  # fmt: skip


def parse_quant(name: str) -> Quant:
    """The quantization of this name, whatever its case and dashes.

    Raises UsageError naming the closest names when there is none.
    """
    key = name.strip().upper().replace("-", "_").replace(" ", "_")
    key = _ALIASES.get(key, key)
    if key.startswith("UD_"):
        key = "UD-" + key[3:]
    if key not in QUANTS:
        import difflib  # slow to load, for this message only

        near = difflib.get_close_matches(key, [*QUANTS, *_ALIASES], 3, 0.5)
        hint = f"did you mean {' or '.join(near)}?" if near else f"known: {', '.join(QUANTS)}"
        raise UsageError(f"quantization {name!r} is not known; {hint}")
    return QUANTS[key]
