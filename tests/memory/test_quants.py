"""Types in bytes against gguf-py, and names of quantizations."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from h3video.errors import UsageError
from h3video.memory.quants import (
    GGUF_TYPES,
    QUANTS,
    REMOVED_TYPES,
    SAFETENSORS_TYPES,
    parse_quant,
)


def test_every_type_of_gguf_py():
    gguf = pytest.importorskip("gguf")
    official = gguf.constants.GGML_QUANT_SIZES
    assert {int(k): (k.name, *v) for k, v in official.items()} == {
        i: (t.name, t.block, t.bytes) for i, t in GGUF_TYPES.items()
    }
    assert not set(REMOVED_TYPES) & {int(k) for k in official}


def test_every_number_up_to_the_last_is_known():
    assert set(GGUF_TYPES) | set(REMOVED_TYPES) == set(range(max(GGUF_TYPES) + 1))


@pytest.mark.parametrize(
    ("name", "bits"),
    [
        ("Q4_0", 4.5), ("Q4_1", 5.0), ("Q5_0", 5.5), ("Q5_1", 6.0), ("Q8_0", 8.5),
        ("Q2_K", 2.625), ("Q3_K", 3.4375), ("Q4_K", 4.5), ("Q5_K", 5.5), ("Q6_K", 6.5625),
        ("Q8_K", 9.125), ("IQ1_S", 1.5625), ("IQ1_M", 1.75), ("IQ2_XXS", 2.0625),
        ("IQ2_XS", 2.3125), ("IQ2_S", 2.5625), ("IQ3_XXS", 3.0625), ("IQ3_S", 3.4375),
        ("IQ4_NL", 4.5), ("IQ4_XS", 4.25), ("TQ1_0", 1.6875), ("TQ2_0", 2.0625),
        ("MXFP4", 4.25), ("NVFP4", 4.5), ("Q1_0", 1.125), ("F32", 32), ("BF16", 16),
    ],
)  # fmt: skip
def test_bits_a_weight(name, bits):
    """Section 3.1 of the facts."""
    assert next(t for t in GGUF_TYPES.values() if t.name == name).bits == bits


@given(st.sampled_from(sorted(GGUF_TYPES)), st.integers(1, 5), st.integers(1, 40))
def test_whole_blocks(number, rows, blocks):
    kind = GGUF_TYPES[number]
    shape = (rows, blocks * kind.block)
    assert kind.size(shape) == rows * blocks * kind.bytes
    if kind.block > 1:
        with pytest.raises(UsageError, match="rows are not multiples of"):
            kind.size((rows, blocks * kind.block + 1))


def test_packed_safetensors_types():
    assert SAFETENSORS_TYPES["F4"].size((3, 8)) == 12
    assert SAFETENSORS_TYPES["F6_E2M3"].size((4,)) == 3
    assert SAFETENSORS_TYPES["F8_E4M3"].size((3, 7)) == 21
    assert SAFETENSORS_TYPES["F32"].size(()) == 4


@pytest.mark.parametrize(
    ("asked", "name"),
    [
        ("q4_k_m", "Q4_K_M"), ("Q4-K-M", "Q4_K_M"), ("fp8", "F8_E4M3"), ("bf16", "BF16"),
        ("fp16", "F16"), ("ud-q3_k_xl", "UD-Q3_K_XL"), ("UD_Q2_K_XL", "UD-Q2_K_XL"),
        ("int8_convrot", "INT8"), ("nvfp4", "NVFP4"), ("Q8", "Q8_0"), ("IQ1_S", "IQ1_S"),
    ],
)  # fmt: skip
def test_names(asked, name):
    assert parse_quant(asked).name == name


@pytest.mark.parametrize("name", QUANTS)
def test_every_name_is_found(name):
    assert parse_quant(name) is QUANTS[name]
    assert parse_quant(name.lower()) is QUANTS[name]


def test_an_unknown_name_says_what_is_near():
    with pytest.raises(UsageError, match=r"'Q4_K_N' is not known; did you mean .*Q4_K_[SM]"):
        parse_quant("Q4_K_N")
    with pytest.raises(UsageError, match="known: F32, F16"):
        parse_quant("@@")
