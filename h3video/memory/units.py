"""Bytes as people write them. GB is 10^9, GiB is 2^30; nothing here mixes the two."""

from __future__ import annotations

import re
from dataclasses import dataclass

from ..errors import UsageError

KIB, MIB, GIB = 2**10, 2**20, 2**30
GB = 10**9

_UNITS = {
    "B": 1, "KB": 10**3, "MB": 10**6, "GB": 10**9, "TB": 10**12,
    "KIB": 2**10, "MIB": 2**20, "GIB": 2**30, "TIB": 2**40,
}  # fmt: skip


@dataclass(frozen=True)
class Range:
    """Bytes that are known only as a range; `low == high` where they are exact."""

    low: int
    high: int

    def __post_init__(self) -> None:
        if not 0 <= self.low <= self.high:
            raise UsageError(f"range {self.low}..{self.high} bytes is not ascending from 0")

    @classmethod
    def exactly(cls, count: float) -> Range:
        """A range of one value."""
        return cls(int(count), int(count))

    def scaled(self, low: float, high: float) -> Range:
        """Both ends by a factor each."""
        return Range(int(self.low * low), int(self.high * high))

    def text(self) -> str:
        """`48.0 GiB`, or `48.0-51.8 GiB`."""
        if self.high - self.low < 0.05 * GIB:
            return gib(self.low)
        return f"{self.low / GIB:.1f}-{self.high / GIB:.1f} GiB"


def parse_size(text: str, what: str = "size") -> int:
    """Bytes of `16GB`, `15.5 GiB`, `800MB`; a number without a unit is refused.

    Raises UsageError: sizes without a unit have been the most common mistake of all.
    """
    match = re.fullmatch(r"\s*([0-9]*\.?[0-9]+)\s*([KMGT]?i?B)\s*", text, re.IGNORECASE)
    if not match:
        raise UsageError(f"{what} {text!r} is not understood; write a unit, for example 64GB")
    count = float(match.group(1)) * _UNITS[match.group(2).upper()]
    if count < 1 or count > 2**50:
        raise UsageError(f"{what} {text!r} is out of range; use 1B to 1024TiB")
    return int(count)


def parse_memory(text: str, what: str) -> int:
    """Bytes of installed memory: a vendor's `64GB` of RAM or of a card is 64 GiB.

    Raises UsageError, see parse_size.
    """
    match = re.fullmatch(r"\s*([0-9]*\.?[0-9]+)\s*GB\s*", text, re.IGNORECASE)
    if match:
        return parse_size(f"{match.group(1)}GiB", what)
    return parse_size(text, what)


def gib(count: float) -> str:
    """`12.3 GiB`, and `85 MiB` where that says more."""
    if abs(count) >= 0.95 * GIB:
        return f"{count / GIB:.1f} GiB"
    return f"{count / MIB:.0f} MiB" if abs(count) >= MIB else f"{count / KIB:.0f} KiB"
