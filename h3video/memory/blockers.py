"""What cannot run whatever the memory is, and what to do instead."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from .activations import MAX_ELEMENTS, largest_tensor
from .ask import Ask
from .flags import check_flags
from .parts import encoder_quant
from .quants import parse_quant
from .runtimes import runtime


@dataclass(frozen=True)
class Blocker:
    """One reason that a run would fail: what, why, the remedy."""

    what: str
    why: str
    remedy: str

    def text(self) -> str:
        """One line."""
        return f"{self.what}: {self.why}; {self.remedy}"

    def to_json(self) -> dict[str, Any]:
        """As plain data."""
        return {"what": self.what, "why": self.why, "remedy": self.remedy}


PORTABLE = "use a GGUF quantization (Q8_0 to Q4_K_M) or BF16"


def blockers(ask: Ask) -> tuple[Blocker, ...]:
    """All of them, the surest first."""
    return (
        *_dtypes(ask), *_runtime(ask), *_sizes(ask),
        *(Blocker(n.flag, n.why, "leave it out") for n in check_flags(ask) if n.fatal),
    )  # fmt: skip


def _dtypes(ask: Ask) -> Iterator[Blocker]:
    quants = [("transformer", parse_quant(ask.quant).name)]
    # A Mac runs ComfyUI's text encoder on the CPU, where these types work but for int8's product.
    place = "device" if ask.runtime != "comfyui" or ask.has_flag("--gpu-only") else "host"
    for e in ask.encoders():
        name = parse_quant(encoder_quant(ask, e)).name
        if place == "device" or name == "NVFP4":
            quants.append((e.title, name))
    for what, name in quants:
        if ask.machine.gpu == "mps":
            why = MPS_REFUSES.get(name)
            if why is not None:
                yield Blocker(f"{what} in {name}", why, PORTABLE)
        elif name == "NVFP4" and ask.machine.gpu == "rocm":
            yield Blocker(f"{what} in NVFP4", "its kernels are CUDA's", PORTABLE)
    refused = dict(ask.spec.refused)
    half = ask.has_flag("--force-fp16", "--fp16-unet") and "F16" in refused
    if parse_quant(ask.quant).name in refused or half:
        yield Blocker(
            f"{ask.spec.name} in float16", refused[parse_quant(ask.quant).name if not half
                                                   else "F16"],
            "use BF16 (leave --force-fp16 and --fp16-unet out) or a GGUF quantization",
        )  # fmt: skip


MPS_REFUSES = {
    "F8_E4M3": "Metal has no float8: `Trying to convert Float8_e4m3fn to the MPS backend`",
    "F8_E5M2": "Metal has no float8: `Trying to convert Float8_e5m2 to the MPS backend`",
    "NVFP4": "its kernels are CUDA's",
    "INT8": "ConvRot needs aten::_int_mm, which MPS lacks: it loads and fails at step 0",
    "INT4": "ConvRot needs integer products that MPS lacks",
    "NF4": "bitsandbytes needs CUDA",
}


def _runtime(ask: Ask) -> Iterator[Blocker]:
    family, name = ask.spec.family.name, ask.runtime
    if name in ("h3c", "vpipe"):
        title = "h3.c" if name == "h3c" else "vpipe"
        if family != "minimax-h3":
            yield Blocker(title, f"runs MiniMax-H3 only, not {ask.spec.name}", "use ComfyUI")
        if ask.machine.gpu != "mps":
            yield Blocker(title, f"needs Metal; {ask.machine.name} has none", "use ComfyUI")
        if parse_quant(ask.quant).name != "BF16":
            yield Blocker(
                title, f"reads BF16 safetensors, not {ask.quant}",
                "leave --quant out, with --ssd-streaming where BF16 is too large",
            )  # fmt: skip
        area = ask.spec.max_area
        if name == "h3c" and area and ask.width * ask.height > area:
            yield Blocker(
                f"{ask.width}x{ask.height}", f"h3.c takes at most {area:,} px (1344x768)",
                "use 1344x768 or less",
            )  # fmt: skip
    if name == "h3video" and not family.startswith("wan"):
        yield Blocker("h3video render", f"renders Wan, not {family}", "use ComfyUI with H3HexTiles")
    if name == "official" and parse_quant(ask.quant).kind != "plain":
        yield Blocker("the publisher's code", f"does not read {ask.quant}", "use BF16")
    if name == "diffusers" and family == "minimax-h3" and "pruned" in ask.spec.name:
        yield Blocker(
            "diffusers", "has no curve form of MiniMax-H3", "use ComfyUI, or the full one"
        )


def _sizes(ask: Ask) -> Iterator[Blocker]:
    if ask.machine.gpu != "mps":
        return
    largest = largest_tensor(ask, runtime(ask.runtime).block(ask))
    if largest < MAX_ELEMENTS:
        return
    most = ask.rows * MAX_ELEMENTS // largest
    yield Blocker(
        f"{ask.rows:,} tokens at once",
        f"a tensor of {largest:,} elements passes Metal's 2^31 = {MAX_ELEMENTS:,}",
        f"use tiles or fewer frames: at most about {most:,} tokens",
    )  # fmt: skip


def warnings(ask: Ask) -> tuple[str, ...]:
    """What works but not as hoped."""
    notes = [f"{n.flag} {n.why}" for n in check_flags(ask) if not n.fatal]
    quant = parse_quant(ask.quant)
    if ask.runtime == "comfyui" and quant.kind in ("gguf", "dynamic"):
        if quant.base.startswith(("IQ1", "IQ2", "IQ3", "TQ")):
            notes.append(
                f"{quant.name}: ComfyUI-GGUF has no fast dequantizer for {quant.base} and falls "
                "back to numpy on the CPU, which is very slow"
            )
        if ask.spec.family.name == "minimax-h3":
            notes.append(
                "ComfyUI-GGUF refuses files of architecture minimax_h3 until its pull request 476; "
                "files labelled wan load, but their text encoders differ by layout (issue 471)"
            )
    if ask.machine.gpu == "cuda" and quant.name == "NVFP4" and not ask.machine.nvfp4:
        notes.append("NVFP4 is native on Blackwell cards only; elsewhere it is unpacked, slowly")
    if ask.machine.gpu in ("cuda", "rocm"):
        largest = largest_tensor(ask, runtime(ask.runtime).block(ask))
        if largest >= MAX_ELEMENTS:
            notes.append(
                f"a tensor of {largest:,} elements passes 2^31; some CUDA kernels fail there"
            )
    area = ask.spec.max_area
    if area and ask.width * ask.height > area and ask.runtime != "h3c":
        notes.append(
            f"{ask.width}x{ask.height} is more than the {area:,} px that {ask.spec.name} was "
            "trained for; subjects may repeat without tiles from a smaller clip"
        )
    notes += _pressure(ask)
    return tuple(notes)


def _pressure(ask: Ask) -> list[str]:
    m, notes = ask.machine, []
    if m.swap is not None and m.swap > 2 * 2**30:
        notes.append(f"{m.swap / 2**30:.1f} GiB are swapped out already; close programs first")
    if m.compressed is not None and m.compressed > m.ram // 10:
        notes.append(
            f"{m.compressed / 2**30:.1f} GiB of memory are compressed: free pages tell too little"
        )
    return notes
