"""Which device and precision `auto` means here."""

from __future__ import annotations

from ..errors import UsageError


def resolve(device: str, dtype: str) -> tuple[str, str]:
    """Device ("cpu", "cuda", "mps") and dtype name for what the user asked.

    Raises UsageError for a device that is not there.
    """
    import torch

    have = {
        "cuda": torch.cuda.is_available(),
        "mps": torch.backends.mps.is_available(),
        "cpu": True,
    }
    if device == "auto":
        device = next(d for d in ("cuda", "mps", "cpu") if have[d])
    if not have[device]:
        there = ", ".join(d for d, ok in have.items() if ok)
        raise UsageError(f"device {device} is not available here; use {there}")
    if dtype == "auto":
        fast = device != "cpu" or cpu_has_bfloat16()
        dtype = "bfloat16" if fast else "float32"
    return device, dtype


def cpu_has_bfloat16() -> bool:
    """Whether the processor multiplies bfloat16 in hardware (else float32 is faster)."""
    try:
        with open("/proc/cpuinfo") as f:
            flags = next((line for line in f if line.startswith("flags")), "")
    except OSError:
        return False
    return "amx_bf16" in flags or "avx512_bf16" in flags
