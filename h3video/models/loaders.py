"""Which programs load a file, and which refuse it or mistake it: for the layouts and types that
are known to matter. What was not looked up is said to be unknown.

Sources: ComfyUI 0.33's and ComfyUI-GGUF's (2025-12-18) code, diffusers 0.42's list of single files,
h3.c's README; city96/ComfyUI-GGUF issue 471 and PR 476.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from .signatures import Match

YES, NO, SLOW, UNKNOWN = "yes", "no", "slow", "unknown"

GGUF_PICTURE = ("flux", "sd1", "sdxl", "sd3", "aura", "hidream", "cosmos", "ltxv", "hyvid", "wan",
                "lumina2", "qwen_image")  # fmt: skip
GGUF_TEXT = ("t5", "t5encoder", "llama", "qwen2vl", "qwen3", "qwen3vl")
"""Architectures that ComfyUI-GGUF accepts in `general.architecture`."""

FAST_TYPES = frozenset((
    "F32", "F16", "BF16", "Q8_0", "Q5_1", "Q5_0", "Q4_1", "Q4_0", "Q6_K", "Q5_K", "Q4_K", "Q3_K",
    "Q2_K", "IQ4_NL", "IQ4_XS",
))  # fmt: skip
"""GGUF types that ComfyUI-GGUF and diffusers unpack in PyTorch."""

_BY_KEYS = {  # family -> what ComfyUI-GGUF tells it by in a file without an architecture
    "Wan": "wan", "LTX-Video": "ltxv", "HunyuanVideo": "hyvid",
}  # fmt: skip
_SINGLE_FILE = ("Wan", "MiniMax-H3", "LTX-Video", "LTX-2", "HunyuanVideo", "Mochi")
"""Families whose transformer diffusers 0.42 loads from one file."""

Loads = dict[str, tuple[str, str]]
"""program -> (yes, no, slow or unknown; why)"""


@dataclass(frozen=True)
class File:
    """What loaders look at: format, label, types and whether it is split into shards."""

    kind: str
    metadata: Mapping[str, Any]
    types: frozenset[str]
    scheme: str
    sharded: bool = False

    @property
    def architecture(self) -> str | None:
        """`general.architecture`, or None."""
        value = self.metadata.get("general.architecture")
        return value if isinstance(value, str) else None


def loads(found: Match, file: File) -> Loads:
    """What loads a file of this content, program by program."""
    if found.broken:
        return dict.fromkeys(("ComfyUI", "ComfyUI-GGUF", "diffusers"), (NO, found.broken[0]))
    if found.kind == "transformer":
        out = {
            "ComfyUI": _comfyui(found, file),
            "ComfyUI-GGUF": _comfyui_gguf(found, file),
            "diffusers": _diffusers(found, file),
            "sd.cpp": _sd_cpp(found, file),
        }
        if found.family == "MiniMax-H3":
            out["h3.c"] = _h3c(found, file)
        return out
    if found.kind in ("text encoder", "mmproj") and file.kind == "gguf":
        return {"ComfyUI": _NO_GGUF, "ComfyUI-GGUF": _text_gguf(found, file)}
    if found.kind in ("text encoder", "image encoder", "vae"):
        return {"ComfyUI": _comfyui_part(found, file), "diffusers": _diffusers_part(found, file)}
    return {}


_NO_GGUF = (NO, "ComfyUI itself reads no GGUF; use the node pack ComfyUI-GGUF")


def _comfyui(found: Match, file: File) -> tuple[str, str]:
    if file.kind == "gguf":
        return _NO_GGUF
    if found.layout == "diffusers" and found.family != "CogVideoX":
        return NO, "diffusers' names; use ComfyUI's repack of this model or the original file"
    if found.layout == "diffusers":
        return NO, "diffusers' names; ComfyUI wants blocks.0.q.weight and so on"
    if file.sharded:
        return NO, "one file is wanted, not shards"
    if file.scheme == "NF4":
        return NO, "bitsandbytes' NF4 is for diffusers"
    return YES, ""


def _comfyui_part(found: Match, file: File) -> tuple[str, str]:
    """A text encoder, image encoder or VAE as safetensors."""
    entry = found.encoder or found.vae
    if entry is None:
        return UNKNOWN, "not looked up"
    if entry.name == "nano-text":
        return NO, "no loader for one this small; the node pack encodes nano's prompts"
    if found.vae and found.layout == "diffusers":
        wan = entry.name.startswith(("wan", "nano"))
        return (NO, "diffusers' names") if wan else (UNKNOWN, "diffusers' names: not looked up")
    if file.sharded:
        return NO, "one file is wanted, not shards"
    return YES, ""


def _diffusers_part(found: Match, file: File) -> tuple[str, str]:
    if file.scheme and file.scheme != "NF4":
        return NO, f"{file.scheme} as ComfyUI stores it"
    if found.layout in ("diffusers", "huggingface"):
        return YES, "in a model folder with its config.json"
    return UNKNOWN, "not looked up"


def _comfyui_gguf(found: Match, file: File) -> tuple[str, str]:
    if file.kind != "gguf":
        return NO, "not a GGUF file"
    label = file.architecture
    if label in (None, "pig", "cow"):
        if found.family not in _BY_KEYS or found.layout == "diffusers":
            return NO, f"no architecture in its metadata, and {found.family} is not told by names"
        if found.family == "HunyuanVideo" and found.layout != "original":
            return NO, "no architecture in its metadata, and told only by Tencent's own names"
        return _speed(file, "no architecture in its metadata: compatibility mode, by names")
    if label not in GGUF_PICTURE:
        accepted = "'wan'" if found.family == "MiniMax-H3" else f"one of {', '.join(GGUF_PICTURE)}"
        return NO, f"architecture {label!r} is refused; files labelled {accepted} are let in"
    if found.layout == "diffusers":
        return NO, "diffusers' names"
    wrong = found.family == "MiniMax-H3" or _BY_KEYS.get(found.family, label) != label
    note = f"labelled {label!r}, which it is not: let in, and told by its tensors" if wrong else ""
    return _speed(file, note)


def _speed(file: File, note: str) -> tuple[str, str]:
    slow = sorted(file.types - FAST_TYPES)
    if slow:
        return SLOW, f"{', '.join(slow)} is unpacked by numpy on the CPU" + (note and f"; {note}")
    return YES, note


def _diffusers(found: Match, file: File) -> tuple[str, str]:
    if found.spec is not None and found.spec.name == "minimax-h3-pruned":
        return NO, "its class knows the full model only, no curve form"
    if file.kind == "gguf":
        if not file.types <= FAST_TYPES:
            return NO, f"no {', '.join(sorted(file.types - FAST_TYPES))} in its GGUF reader"
        if found.family not in _SINGLE_FILE:
            return NO, f"no single-file loading of {found.family}"
        config = " and an explicit config" if found.layout == "diffusers" else ""
        return YES, f"the transformer alone, from_single_file with GGUFQuantizationConfig{config}"
    if file.scheme in ("INT8", "INT4", "NVFP4", "scaled fp8"):
        return NO, f"{file.scheme} as ComfyUI stores it"
    if found.layout == "diffusers":
        return YES, "in a model folder with its config.json"
    if found.family in _SINGLE_FILE:
        return YES, "from_single_file"
    return NO, f"no single-file loading of {found.family}"


def _sd_cpp(found: Match, file: File) -> tuple[str, str]:
    spec = found.spec.name if found.spec else ""
    if file.kind == "gguf" and spec in ("minimax-h3-pruned", "wan2.2-ti2v-5b"):
        return YES, "seen running"
    return UNKNOWN, "not looked up"


def _h3c(found: Match, file: File) -> tuple[str, str]:
    if file.kind == "gguf":
        return NO, "h3.c reads BF16 safetensors only"
    if not file.types <= {"BF16", "F32"}:
        return NO, "h3.c reads BF16 only"
    if found.spec is None or found.spec.name != "minimax-h3" or found.layout != "original":
        return NO, "h3.c reads the official release only"
    if not file.sharded:
        return UNKNOWN, "the official release comes in shards: this may be a repack (flat qkv)"
    return YES, "if it is the official release, not a repack"


def _text_gguf(found: Match, file: File) -> tuple[str, str]:
    if found.kind == "mmproj":
        return YES, "beside its text model, under a name that begins alike"
    label = file.architecture
    if label in (None, "pig", "cow"):
        return NO, "no architecture in its metadata: use the safetensors file"
    if label not in GGUF_TEXT:
        return NO, f"architecture {label!r} is refused; accepted: {', '.join(GGUF_TEXT)}"
    note = ""
    if found.layout == "llama.cpp" and label in ("qwen2vl", "qwen3vl"):
        note = "llama.cpp's layout: its eyes are in a separate mmproj file, which is wanted, too"
    return _speed(file, note)
