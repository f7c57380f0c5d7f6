"""What a file holds and what loads it, from its header alone; the file's name is never looked at.

A model that is not known gets a reading of its header and a stated gap, never an invented number.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any, Protocol

from .loaders import File, Loads, loads
from .signatures import Match, Shapes, match, strip_prefix
from .spec import ModelSpec


class Tensor(Protocol):
    """A tensor of a header."""

    @property
    def name(self) -> str: ...
    @property
    def shape(self) -> tuple[int, ...]: ...
    @property
    def type(self) -> str: ...
    @property
    def bytes(self) -> int: ...


class Header(Protocol):
    """What `h3video.memory.formats.read_header` returns."""

    @property
    def kind(self) -> str: ...
    @property
    def metadata(self) -> Mapping[str, Any]: ...
    @property
    def tensors(self) -> Sequence[Tensor]: ...
    @property
    def shards(self) -> tuple[str, ...]: ...


@dataclass(frozen=True)
class Detection:
    """What was found.

    spec      the catalog's entry, or None
    kind      "transformer", "text encoder", "image encoder", "vae", "lora", "mmproj", "unknown"
    title     in words
    layout    whose names the tensors have
    types     (tensors, bytes) by type, largest share first
    quant     the type of most bytes of its matrices, and the scheme where there is one
    weights   number of weights, packed ones unpacked
    loads     program -> ("yes", "no", "slow" or "unknown", why)
    problems  what a user must know: wrong labels, broken parts, types that some devices lack
    gap       what is not known, "" when everything is
    """

    spec: ModelSpec | None
    kind: str
    title: str
    layout: str
    types: dict[str, tuple[int, int]]
    quant: str
    weights: int
    loads: Loads
    problems: tuple[str, ...] = ()
    gap: str = ""
    match: Match | None = None


def detect(header: Header) -> Detection:
    """Tell a header's content by its tensors' names and shapes."""
    tensors = {t.name: t for t in header.tensors}
    scheme = _scheme(tensors)
    shapes = _unpacked(tensors, scheme, header.metadata)
    prefix, inside = strip_prefix(shapes)
    found = match(inside)
    matrices = _bytes_by_type(t for t in header.tensors if len(t.shape) >= 2)
    quant = scheme or next(iter(matrices), "")
    types = _bytes_by_type(header.tensors)
    weights = sum(prod(s) for k, s in inside.items() if not k.endswith(_BESIDE))
    if found is None:
        count = len(header.tensors)
        gap = f"not known: {count} tensors, {weights:,} values; no signature of the catalog fits"
        if not count:
            gap = "it holds no tensors"
        return Detection(None, "unknown", "unknown", "", types, quant, weights, {}, (), gap)
    file = File(header.kind, header.metadata, frozenset(types), scheme, bool(header.shards))
    problems = [*found.broken, *found.notes, *_problems(found, file, weights)]
    if prefix:
        problems.append(f"its names begin with {prefix!r}: a whole checkpoint, or part of one")
    entry = found.spec or found.encoder or found.vae
    gap = (
        "" if entry or found.kind in ("lora", "mmproj") else "no catalog entry: no sizes predicted"
    )
    return Detection(
        found.spec, found.kind, entry.title if entry else found.family, found.layout, types, quant,
        weights, loads(found, file), tuple(problems), gap, found,
    )  # fmt: skip


_BESIDE = (".weight_scale", ".weight_scale_2", ".scale_weight", ".scale_input", ".input_scale",
           ".comfy_quant", ".absmax", ".quant_map", ".nested_absmax", ".nested_quant_map",
           "scaled_fp8", ".pre_quant_scale")  # fmt: skip
"""Ends of the names of what lies beside quantized weights."""


def _scheme(tensors: Mapping[str, Tensor]) -> str:
    """How a safetensors file packs its matrices, "" where it does not."""
    names = tensors.keys()
    if any(".quant_state.bitsandbytes__nf4" in n for n in names):
        return "NF4"
    if any(n.endswith(".weight_scale_2") for n in names):
        return "NVFP4"
    scaled = [n for n in names if n.endswith((".weight_scale", ".scale_weight"))]
    kinds = set()
    for n in scaled:
        weight = tensors.get(n.rsplit(".", 1)[0] + ".weight")
        if weight is not None:
            kinds.add(weight.type)
    if "I8" in kinds:
        return "INT8"
    if "U8" in kinds:
        return "INT4"
    return "scaled fp8" if kinds & {"F8_E4M3", "F8_E5M2"} else ""


def _unpacked(
    tensors: Mapping[str, Tensor], scheme: str, metadata: Mapping[str, Any]
) -> dict[str, tuple[int, ...]]:
    """Shapes as they were before packing: two 4-bit weights a byte, or GGUF's reshaped rows."""
    out = {}
    for name, t in tensors.items():
        shape = t.shape
        original = metadata.get(f"comfy.gguf.orig_shape.{name}")
        if isinstance(original, list) and all(type(n) is int and n >= 0 for n in original):
            if len(original) <= 8 and prod(original) == prod(shape):
                shape = tuple(original)
        elif scheme in ("NVFP4", "INT4") and t.type == "U8" and name.endswith(".weight"):
            shape = (*shape[:-1], 2 * shape[-1]) if shape else shape
        out[name] = shape
    return out


def _bytes_by_type(tensors: Any) -> dict[str, tuple[int, int]]:
    out: dict[str, tuple[int, int]] = {}
    for t in tensors:
        count, size = out.get(t.type, (0, 0))
        out[t.type] = count + 1, size + t.bytes
    return dict(sorted(out.items(), key=lambda item: -item[1][1]))


def _problems(found: Match, file: File, weights: int) -> list[str]:
    out = []
    spec = found.spec
    if spec is not None:
        for dtype, why in spec.refused:
            if dtype in file.types and file.kind == "safetensors":
                out.append(f"{dtype} breaks {spec.title}: {why}; use BF16")
        if file.scheme != "NF4" and abs(weights - spec.parameters) > 0.01 * spec.parameters:
            out.append(
                f"{weights:,} weights, and {spec.name} has {spec.parameters:,}: cut, merged or a "
                "form that is not known"
            )
    fp8 = file.types & {"F8_E4M3", "F8_E5M2"}
    if fp8 and file.scheme != "NVFP4":
        out.append(f"{', '.join(sorted(fp8))}: not on Apple GPUs, where PyTorch has no float8")
    if file.scheme == "NVFP4":
        out.append("NVFP4: CUDA only")
    if file.scheme in ("INT8", "INT4"):
        out.append(
            f"{file.scheme} (ConvRot): loads on Apple GPUs and fails at step 0 on stock ComfyUI "
            "0.33 (aten::_int_mm)"
        )
    return out


__all__ = ["Detection", "Header", "Shapes", "Tensor", "detect"]
