"""The exact flags and environment for a plan, and why each."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from .ledger import Ledger
from .units import GIB


@dataclass(frozen=True)
class Setting:
    """One flag, variable or option, and why."""

    kind: str
    text: str
    why: str

    def to_json(self) -> dict[str, Any]:
        """As plain data."""
        return {"kind": self.kind, "text": self.text, "why": self.why}


def settings(ledger: Ledger) -> tuple[Setting, ...]:
    """What to set before starting. Nothing that does nothing."""
    ask = ledger.ask
    found: list[Setting] = []
    if ask.machine.gpu == "mps" and ask.runtime in ("comfyui", "diffusers", "official", "h3video"):
        found.append(
            Setting(
                "environment", "PYTORCH_ENABLE_MPS_FALLBACK=1",
                "operators that MPS lacks run on the CPU; it must be set before torch is imported",
            )
        )  # fmt: skip
        found += _watermarks(ledger)
    if ask.runtime == "comfyui":
        found += _comfyui(ledger)
    if ask.runtime == "diffusers" and ask.offload != "none":
        calls = {
            "model": "pipe.enable_model_cpu_offload()",
            "sequential": "pipe.enable_sequential_cpu_offload()",
            "group": "pipe.transformer.enable_group_offload(..., offload_type='block_level', "
            "num_blocks_per_group=1, use_stream=True)",
        }
        found.append(Setting("call", calls[ask.offload], "one part of the weights at a time"))
    if ask.runtime in ("h3c",) and ask.streaming:
        found.append(Setting("flag", "--ssd-streaming", "two blocks in memory instead of all"))
    if ask.tiled and ask.tiles is not None and ask.runtime == "comfyui":
        inputs = ", ".join(f"{k}={v}" for k, v in ask.tiles.settings)
        found.append(Setting("node", f"H3 Hex Tiles ({inputs})", "a step needs a tile's memory"))
    return tuple(found)


def _watermarks(ledger: Ledger) -> list[Setting]:
    """Both ratios or none: HIGH below 1.4 alone raises "invalid low watermark ratio"."""
    machine = ledger.ask.machine
    assert machine.metal is not None
    place = next((p for p in ledger.places(ledger.worst[0]) if p.name == "device"), None)
    if place is None or place.needed < 0.6 * machine.metal.low:
        return []
    worst = ledger.worst[0]
    cap = min(machine.metal.high, machine.ram_limit.high - worst.needed("host"))
    high = cap / machine.metal.high
    if cap < place.needed:  # a cap would only stop it earlier
        return []
    return [
        Setting(
            "environment",
            f"PYTORCH_MPS_HIGH_WATERMARK_RATIO={high:.2f} "
            f"PYTORCH_MPS_LOW_WATERMARK_RATIO={max(0.4, high - 0.1):.2f}",
            "without them PyTorch stops at 1.7 x the working set "
            f"({machine.default_watermark / GIB:.0f} GiB), and macOS swaps long before; HIGH "
            "alone below 1.4 is refused at start",
        )
    ]  # fmt: skip


def _comfyui(ledger: Ledger) -> list[Setting]:
    ask, found = ledger.ask, []
    total = sum(t.needed for t in ledger.phase("denoise").terms)
    if ask.machine.gpu == "mps" and total > 0.6 * ask.machine.ram_limit.low:
        if not ask.has_flag("--disable-smart-memory"):
            found.append(
                Setting(
                    "flag", "--disable-smart-memory",
                    "models that are not at work leave the device when another is loaded",
                )
            )  # fmt: skip
        if not ask.has_flag("--cache-none"):
            found.append(
                Setting(
                    "flag", "--cache-none",
                    "the only one that frees the text encoder: on a Mac moving is copying",
                )
            )  # fmt: skip
    if ask.decode_tile:
        found.append(
            Setting("node", f"VAE Decode (Tiled), {ask.decode_tile} px", "decode a part at a time")
        )
    for flag in ask.flags:
        if flag.startswith("--use-"):
            found.append(Setting("flag", flag, "as given"))
    return found
