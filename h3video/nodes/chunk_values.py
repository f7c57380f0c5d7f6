"""LATENT, IMAGE and AUDIO as named tensors with metadata, and back; nested latents, too."""

from __future__ import annotations

import json
import logging
from typing import Any

from ..errors import UsageError

log = logging.getLogger("h3video")

KINDS = ("latents", "images", "audio")


def to_tensors(kind: str, value: Any) -> tuple[dict[str, Any], dict[str, Any]]:
    """Tensors by name, and what else there is as plain data.

    kind   latents: {"samples": [B, C, T, h, w], ...} | images: [F, H, W, C] | audio:
           {"waveform": [B, channels, n], "sample_rate"}

    Raises UsageError when the value is of another kind.
    """
    found = kind_of(value)
    if found != kind:
        raise UsageError(f"content is {kind}, but {found} came; set it to {found}")
    if kind == "images":
        return {"images": value}, {}
    if kind == "audio":
        return {"waveform": value["waveform"]}, {"sample_rate": int(value["sample_rate"])}
    samples = value["samples"]
    nested = bool(getattr(samples, "is_nested", False))
    parts = list(samples.unbind()) if nested else [samples]
    tensors = {f"samples{i}": part for i, part in enumerate(parts)}
    rest: dict[str, Any] = {}
    for name, entry in value.items():
        if name == "samples":
            continue
        if hasattr(entry, "detach") and not getattr(entry, "is_nested", False):
            tensors[f"entry_{name}"] = entry
        else:
            try:
                rest[name] = json.loads(json.dumps(entry))
            except (TypeError, ValueError):
                log.warning("%s of the latent cannot be kept on disk and is left out", name)
    return tensors, {"parts": len(parts), "nested": nested, "rest": rest}


def from_tensors(kind: str, tensors: dict[str, Any], told: dict[str, Any]) -> Any:
    """What `to_tensors` was given."""
    if kind == "images":
        images = tensors["images"]
        return images.float() / 255.0 if str(images.dtype) == "torch.uint8" else images
    if kind == "audio":
        return {"waveform": tensors["waveform"], "sample_rate": told["sample_rate"]}
    parts = [tensors[f"samples{i}"] for i in range(told["parts"])]
    samples: Any = parts[0]
    if told["nested"]:
        from comfy.nested_tensor import NestedTensor

        samples = NestedTensor(parts)
    entries = {
        name.removeprefix("entry_"): tensor
        for name, tensor in tensors.items()
        if name.startswith("entry_")
    }
    return {**told["rest"], **entries, "samples": samples}


def kind_of(value: Any) -> str:
    """latents, images or audio. Raises UsageError for anything else."""
    if isinstance(value, dict) and "samples" in value:
        return "latents"
    if isinstance(value, dict) and "waveform" in value:
        return "audio"
    if hasattr(value, "ndim") and value.ndim == 4:
        return "images"
    raise UsageError(f"{type(value).__name__} is neither latents, images nor audio")


def in_bytes(images: Any) -> Any:
    """Images as uint8: a quarter of the disk, what a video file keeps at most."""
    import torch

    return (images.float() * 255.0).round().clamp(0, 255).to(torch.uint8)
