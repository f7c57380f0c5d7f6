"""Common machines: what `--machine` understands, and how much of it programs can use.

Sources: Apple's and the vendors' data sheets for sizes; Metal's recommendedMaxWorkingSetSize
as logged by llama.cpp, ollama, llmfit and ds4 users, collected in docs/ledger.md. It depends on
the macOS version and the RAM, so the table gives a range; on a Mac itself it is queried.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from ..errors import UsageError
from .units import GIB, MIB, Range

MACS = {  # chip -> GB of RAM it is sold with
    "m1": (8, 16), "m1pro": (16, 32), "m1max": (32, 64), "m1ultra": (64, 128),
    "m2": (8, 16, 24), "m2pro": (16, 32), "m2max": (32, 64, 96), "m2ultra": (64, 128, 192),
    "m3": (8, 16, 24), "m3pro": (18, 36), "m3max": (36, 48, 64, 96, 128),
    "m3ultra": (96, 256, 512),
    "m4": (16, 24, 32), "m4pro": (24, 48, 64), "m4max": (36, 48, 64, 128),
    "m5": (16, 24, 32), "m5pro": (24, 48, 64), "m5max": (36, 48, 64, 128),
    "m5ultra": (96, 128, 192, 256, 512),
}  # fmt: skip


def working_set(ram: int) -> Range:
    """Metal's recommendedMaxWorkingSetSize for a Mac with `ram` bytes, over macOS versions.

    Two thirds on older macOS for small machines, three quarters for larger ones; newer versions
    give 74 % of 24 GB, 81 % of 64 GB, 84 % of 128 GB.
    """
    size = ram / GIB
    if size < 20:
        return Range(int(ram * 2 / 3), int(ram * 0.74))
    if size < 34:
        return Range(int(ram * 2 / 3), int(ram * 0.75))
    if size < 40:
        return Range(int(ram * 0.75), int(ram * 0.75))
    if size < 120:
        return Range(int(ram * 0.75), int(ram * 0.81))
    return Range(int(ram * 0.75), int(ram * 0.84))


@dataclass(frozen=True)
class Card:
    """A graphics card: MiB as its driver reports them, and what its tensor cores take."""

    mib: int
    maker: str
    fp8: bool = False
    nvfp4: bool = False
    bf16: bool = True
    flash: bool = True


def _nvidia(mib: int, generation: str) -> Card:
    return Card(
        mib, "nvidia", fp8=generation in ("ada", "hopper", "blackwell"),
        nvfp4=generation == "blackwell", bf16=generation != "turing",
        flash=generation != "turing",
    )  # fmt: skip


CARDS = {
    "rtx2060": _nvidia(6144, "turing"), "rtx2080ti": _nvidia(11264, "turing"),
    "rtx2080ti-22gb": _nvidia(22528, "turing"), "t4": _nvidia(15360, "turing"),
    "rtx3060": _nvidia(12288, "ampere"), "rtx3070": _nvidia(8192, "ampere"),
    "rtx3080": _nvidia(10240, "ampere"), "rtx3080ti": _nvidia(12288, "ampere"),
    "rtx3090": _nvidia(24576, "ampere"), "rtx3090ti": _nvidia(24564, "ampere"),
    "a10": _nvidia(23028, "ampere"), "a40": _nvidia(46068, "ampere"),
    "a6000": _nvidia(49140, "ampere"), "a100-40gb": _nvidia(40960, "ampere"),
    "a100-80gb": _nvidia(81920, "ampere"), "a100": _nvidia(81920, "ampere"),
    "rtx4060": _nvidia(8188, "ada"), "rtx4060ti": _nvidia(8188, "ada"),
    "rtx4060ti-16gb": _nvidia(16380, "ada"), "rtx4070": _nvidia(12282, "ada"),
    "rtx4070ti": _nvidia(12282, "ada"), "rtx4070tisuper": _nvidia(16376, "ada"),
    "rtx4080": _nvidia(16376, "ada"), "rtx4090": _nvidia(24564, "ada"),
    "rtx4090-48gb": _nvidia(49140, "ada"), "l4": _nvidia(23034, "ada"),
    "l40s": _nvidia(46068, "ada"), "rtx6000ada": _nvidia(49140, "ada"),
    "h20": _nvidia(97871, "hopper"), "h100": _nvidia(81559, "hopper"),
    "h200": _nvidia(143771, "hopper"),
    "rtx5060": _nvidia(8151, "blackwell"), "rtx5060ti-16gb": _nvidia(16311, "blackwell"),
    "rtx5070": _nvidia(12227, "blackwell"), "rtx5070ti": _nvidia(16303, "blackwell"),
    "rtx5080": _nvidia(16303, "blackwell"), "rtx5090": _nvidia(32607, "blackwell"),
    "rtxpro6000": _nvidia(97887, "blackwell"), "b200": _nvidia(183359, "blackwell"),
    "rx6800xt": Card(16368, "amd", bf16=False), "rx6900xt": Card(16368, "amd", bf16=False),
    "rx7800xt": Card(16368, "amd"), "rx7900xt": Card(20464, "amd"),
    "rx7900xtx": Card(24560, "amd"), "rx9070xt": Card(16304, "amd", fp8=True),
    "mi300x": Card(196592, "amd", fp8=True),
}  # fmt: skip


MAKERS = ("nvidia", "geforce", "amd", "radeon", "laptop", "gpu", "graphics")
"""Words of a card's full name that say nothing about which it is."""


def find_mac(name: str) -> tuple[str, int] | None:
    """(chip, bytes of RAM) of `m1max-64gb`; None when it does not look like a Mac.

    Raises UsageError for a Mac that is not sold.
    """
    match = re.fullmatch(r"(m[1-9])[-_ ]?(pro|max|ultra)?[-_ ]?(?:(\d+)\s*gb)?", name.lower())
    if not match:
        return None
    chip = match.group(1) + (match.group(2) or "")
    if chip not in MACS:
        raise UsageError(f"machine {name!r}: no chip {chip} is known; use {', '.join(MACS)}")
    sizes = MACS[chip]
    legal = ", ".join(f"{chip}-{size}gb" for size in sizes)
    if match.group(3) is None:
        raise UsageError(f"machine {name!r} needs its memory; use {legal}")
    if int(match.group(3)) not in sizes:
        raise UsageError(f"machine {name!r}: an {chip} is sold as {legal}")
    return chip, int(match.group(3)) * GIB


def find_card(name: str) -> tuple[str, Card] | None:
    """(name, card) of `rtx4090` or `RTX 4090`; None when it is not in the table."""
    words = [w for w in re.split(r"[\s_]+", name.lower()) if w not in MAKERS]
    key = "".join(words)
    key = re.sub(r"(?<=[a-z])-(?=\d)", "", key)
    if key in CARDS:
        return key, CARDS[key]
    bare = re.sub(r"-?(\d+)gb$", "", key)
    stated = re.search(r"-?(\d+)gb$", key)
    for known, card in CARDS.items():
        same = re.sub(r"-(\d+)gb$", "", known) == bare
        if same and stated and abs(card.mib * MIB / GIB - int(stated.group(1))) < 1.5:
            return known, card
    return None


def names() -> list[str]:
    """Every name of the table."""
    macs = [f"{chip}-{size}gb" for chip, sizes in MACS.items() for size in sizes]
    return [*macs, *CARDS]
