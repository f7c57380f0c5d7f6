"""The machine a plan is for: memory, graphics, and how much of both a program may use.

Named (`m1max-64gb`, `rtx4090`), put together (`64 GB of RAM and an MPS GPU`) or probed. Probing
asks the system itself (/proc, sysctl, NVML, Metal through ctypes) and imports nothing.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from ..errors import UsageError
from .machines import Card, find_card, find_mac, names, working_set
from .units import GIB, MIB, Range, parse_memory

GPUS = ("mps", "cuda", "rocm", "cpu")

DEFAULT_RAM = 32 * GIB
"""RAM beside a card that is named without it; a server's card (40 GiB and more) has twice its."""


def _usual_ram(vram: int) -> int:
    return 2 * vram if vram >= 39 * GIB else DEFAULT_RAM


@dataclass(frozen=True)
class Machine:
    """What a plan may use.

    gpu           mps | cuda | rocm | cpu
    ram           bytes of RAM
    vram          bytes of the card; 0 where graphics share the RAM, or there are none
    metal         bytes that Metal lets one program hold (a range where it was not queried)
    system        macos | linux | windows
    in_use        bytes of RAM that other programs hold, None when not probed
    swap, compressed   bytes already swapped or compressed, None when not probed
    wired_limit   macOS iogpu.wired_limit_mb in bytes, None when default or unknown
    fp8, nvfp4, bf16, flash   what the graphics processor can do natively
    source        table | stated | probed
    assumed       whether nobody said how much RAM there is
    """

    name: str
    gpu: str
    ram: int
    vram: int = 0
    metal: Range | None = None
    system: str = "linux"
    in_use: int | None = None
    swap: int | None = None
    compressed: int | None = None
    wired_limit: int | None = None
    fp8: bool = False
    nvfp4: bool = False
    bf16: bool = True
    flash: bool = True
    source: str = "table"
    assumed: bool = False

    @property
    def unified(self) -> bool:
        """Whether graphics and programs share the RAM."""
        return self.gpu in ("mps", "cpu")

    @property
    def system_share(self) -> Range:
        """RAM that the system and other programs hold.

        Measured when probed; else 4 to 8 GiB on macOS (WindowServer, a browser), 1.5 to 4 GiB
        elsewhere, and never more than a third of a small machine.
        """
        if self.in_use is not None:
            return Range.exactly(min(self.in_use, self.ram))
        low, high = (4 * GIB, 8 * GIB) if self.system == "macos" else (3 * GIB // 2, 4 * GIB)
        return Range(min(low, self.ram // 6), min(high, self.ram // 3))

    @property
    def ram_limit(self) -> Range:
        """RAM for one program before the system compresses or swaps."""
        taken = self.system_share
        return Range(self.ram - taken.high, self.ram - taken.low)

    @property
    def device_limit(self) -> Range:
        """Bytes that the graphics processor can hold for one program.

        A card: all of it but what the desktop and the driver take (0.2 to 0.8 GiB). A Mac: Metal's
        working set. Without graphics: the RAM.
        """
        if self.gpu == "mps":
            assert self.metal is not None
            return self.metal
        if self.gpu in ("cuda", "rocm"):
            return Range(self.vram - 8 * GIB // 10, self.vram - 2 * GIB // 10)
        return self.ram_limit

    @property
    def default_watermark(self) -> int:
        """Where PyTorch itself stops on MPS by default: 1.7 x the working set."""
        assert self.metal is not None
        return int(1.7 * self.metal.high)

    def text(self) -> str:
        """One line for people."""
        ram = f"{self.ram / GIB:.0f} GiB RAM"
        if self.gpu == "mps":
            assert self.metal is not None
            how = "queried" if self.source == "probed" else "from a table"
            return f"{self.name}: {ram}, Metal may hold {self.metal.text()} ({how})"
        if self.gpu == "cpu":
            return f"{self.name}: {ram}, no graphics processor"
        how = " (assumed; say --ram)" if self.assumed else ""
        return f"{self.name}: {self.vram / GIB:.1f} GiB on the card, {ram}{how}"

    def to_json(self) -> dict[str, Any]:
        """The machine as plain data."""
        metal, device, host = self.metal, self.device_limit, self.ram_limit
        return {
            "name": self.name, "gpu": self.gpu, "ram_bytes": self.ram, "vram_bytes": self.vram,
            "metal_bytes": None if metal is None else [metal.low, metal.high],
            "device_limit_bytes": [device.low, device.high],
            "ram_limit_bytes": [host.low, host.high],
            "swap_bytes": self.swap, "compressed_bytes": self.compressed,
            "wired_limit_bytes": self.wired_limit, "source": self.source,
        }  # fmt: skip


def mac(name: str, ram: int) -> Machine:
    """A Mac with `ram` bytes."""
    return Machine(name, "mps", ram, metal=working_set(ram), system="macos", flash=False)


def with_card(name: str, card: Card, ram: int) -> Machine:
    """A machine with a card and `ram` bytes of RAM."""
    gpu = "cuda" if card.maker == "nvidia" else "rocm"
    return Machine(
        name, gpu, ram, vram=card.mib * MIB, fp8=card.fp8, nvfp4=card.nvfp4, bf16=card.bf16,
        flash=card.flash,
    )  # fmt: skip


def find_machine(
    name: str | None = None, ram: str | None = None, gpu: str | None = None, vram: str | None = None
) -> Machine:
    """The machine that a person describes.

    name   `m1max-64gb`, `rtx4090`, or None
    ram, gpu, vram   put together or override: `64GB`, `mps`, `16GB`
    Nothing given: the present machine.
    Raises UsageError naming what is missing or unknown.
    """
    if gpu is not None and gpu not in GPUS:
        raise UsageError(f"gpu {gpu!r} is unknown; use {', '.join(GPUS)}")
    size = None if ram is None else parse_memory(ram, "ram")
    card_size = None if vram is None else parse_memory(vram, "vram")
    if name is not None:
        return _named(name, size, gpu, card_size)
    if size is None and gpu is None and card_size is None:
        from .probe import probe

        return probe()
    return _stated(size, gpu, card_size)


def _named(name: str, ram: int | None, gpu: str | None, vram: int | None) -> Machine:
    found_mac = find_mac(name)
    if found_mac is not None:
        chip, size = found_mac
        if gpu not in (None, "mps", "cpu") or vram is not None:
            raise UsageError(f"machine {name!r} has no graphics card; leave --gpu and --vram out")
        made = mac(f"{chip}-{size // GIB}gb", ram or size)
        return replace(made, gpu="cpu", metal=None) if gpu == "cpu" else made
    found_card = find_card(name)
    if found_card is None:
        import difflib

        near = difflib.get_close_matches(name.lower(), names(), 4, 0.4)
        raise UsageError(
            f"machine {name!r} is unknown; near it: {', '.join(near) or 'nothing'}. Or state it: "
            "--ram 64GB --gpu mps, --ram 32GB --gpu cuda --vram 16GB"
        )
    known, card = found_card
    usual = _usual_ram(card.mib * MIB)
    made = replace(with_card(known, card, ram or usual), assumed=ram is None)
    made = replace(made, vram=vram) if vram is not None else made
    return replace(made, gpu=gpu) if gpu is not None else made


def _stated(ram: int | None, gpu: str | None, vram: int | None) -> Machine:
    gpu = gpu or ("cuda" if vram is not None else "cpu")
    if gpu in ("cuda", "rocm"):
        if vram is None:
            raise UsageError(f"gpu {gpu} needs the card's memory; add for example --vram 16GB")
        return Machine(
            f"{vram / GIB:.0f} GB {gpu} card", gpu, ram or _usual_ram(vram), vram=vram,
            source="stated", assumed=ram is None,
        )  # fmt: skip
    if vram is not None:
        raise UsageError(f"gpu {gpu} has no memory of its own; leave --vram out or use --gpu cuda")
    if ram is None:
        raise UsageError(f"gpu {gpu} needs the machine's memory; add for example --ram 64GB")
    if gpu == "mps":
        return replace(mac(f"{ram / GIB:.0f} GB Mac", ram), source="stated")
    return Machine(f"{ram / GIB:.0f} GB without graphics", "cpu", ram, source="stated")
