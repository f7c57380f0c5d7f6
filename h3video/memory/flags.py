"""ComfyUI's command line: flags that exist, flags that do nothing on a device, and lost ones.

From `comfy/cli_args.py` of 0.33 and what `comfy/model_management.py` does with them.
"""

from __future__ import annotations

from dataclasses import dataclass

from .ask import Ask

_KNOWN = """
--gpu-only --highvram --lowvram --novram --cpu --reserve-vram --vram-headroom
--disable-smart-memory --enable-dynamic-vram --disable-dynamic-vram --fast-disk
--async-offload --disable-async-offload --disable-pinned-memory --disable-nvml-pressure
--cpu-vae --fp16-vae --bf16-vae --fp32-vae --fp16-unet --bf16-unet --fp32-unet --fp64-unet
--fp8_e4m3fn-unet --fp8_e5m2-unet --fp8_e8m0fnu-unet --fp8_e4m3fn-text-enc
--fp8_e5m2-text-enc --fp16-text-enc --bf16-text-enc --fp32-text-enc --force-fp16 --force-fp32
--cache-ram --cache-classic --cache-lru --cache-none --high-ram --mmap-torch-files
--disable-mmap --fp16-intermediates --use-split-cross-attention --use-quad-cross-attention
--use-pytorch-cross-attention --use-sage-attention --use-flash-attention --use-ck-attention
--disable-xformers --force-upcast-attention --dont-upcast-attention --preview-method
--preview-size --force-channels-last --fast --deterministic --listen --port --base-directory
--output-directory --input-directory --temp-directory --user-directory --cuda-device
--default-device --directml --disable-ipex-optimize --supports-fp8-compute --auto-launch
--disable-auto-launch --disable-metadata --disable-all-custom-nodes --whitelist-custom-nodes
--disable-api-nodes --multi-user --verbose --log-stdout --front-end-version --front-end-root
--enable-cors-header --max-upload-size --tls-keyfile --tls-certfile --database-url
--extra-model-paths-config --enable-manager --default-hashing-function
--enable-compress-response-body --comfy-api-base --dont-print-server
--quick-test-for-ci --windows-standalone-build --oneapi-device-selector
"""

KNOWN = frozenset(_KNOWN.split())

LOST = {
    "--normal-vram": "it never existed; --normalvram did until May 2026, and is the default",
    "--normalvram": "it was removed in May 2026; it was the default",
    "--smart-vram": "it never existed; smart memory is on unless --disable-smart-memory",
    "--medvram": "it is another program's",
}

_LOADED_WHOLE = "on a Mac the memory state is SHARED whatever is given: models are loaded whole"

IDLE_ON_MPS = {
    "--lowvram": _LOADED_WHOLE, "--novram": _LOADED_WHOLE, "--highvram": _LOADED_WHOLE,
    "--enable-dynamic-vram": "dynamic VRAM needs an NVIDIA or recent AMD card",
    "--disable-dynamic-vram": "there is no dynamic VRAM on a Mac",
    "--async-offload": "nothing is offloaded on a Mac", "--cuda-device": "there is no CUDA device",
    "--disable-pinned-memory": "memory is pinned for CUDA only",
    "--use-sage-attention": "SageAttention needs CUDA",
    "--use-flash-attention": "FlashAttention needs CUDA",
}  # fmt: skip

IDLE_ON_CUDA = {
    "--lowvram": "with dynamic VRAM it does nothing (its own help says so)",
}


@dataclass(frozen=True)
class FlagNote:
    """A remark about one flag; `fatal` when ComfyUI would not start."""

    flag: str
    fatal: bool
    why: str


def check_flags(ask: Ask) -> tuple[FlagNote, ...]:
    """Remarks about the ask's flags, for ComfyUI."""
    if ask.runtime != "comfyui":
        return ()
    idle = {"mps": IDLE_ON_MPS, "cuda": IDLE_ON_CUDA}.get(ask.machine.gpu, {})
    notes = []
    for given in ask.flags:
        if not given.startswith("--"):
            continue
        flag = given.split("=")[0]
        if flag not in KNOWN:
            import difflib

            near = difflib.get_close_matches(flag, sorted(KNOWN), 2, 0.7)
            hint = LOST.get(flag) or (f"near it: {', '.join(near)}" if near else "no such flag")
            notes.append(FlagNote(flag, True, f"unknown, ComfyUI exits at start ({hint})"))
        elif flag in idle and not (flag == "--lowvram" and ask.has_flag("--disable-dynamic-vram")):
            notes.append(FlagNote(flag, False, f"does nothing here: {idle[flag]}"))
    return tuple(notes)
