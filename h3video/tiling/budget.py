"""How large a tile may be: a share of the frame, or bytes."""

from __future__ import annotations

import re

from ..errors import UsageError

DEFAULT_SHARE = 1.0 / 3.0
"""Without a budget a tile holds at most a third of the frame's tokens."""

_UNITS = {
    "B": 1, "KB": 10**3, "MB": 10**6, "GB": 10**9, "TB": 10**12,
    "KIB": 2**10, "MIB": 2**20, "GIB": 2**30, "TIB": 2**40,
}  # fmt: skip


def parse_budget(text: str | float | int | None) -> float | int | None:
    """A budget as a person writes it: None, a share of the frame, or a size in bytes.

    "0.25" or "25%"      -> 0.25, the share of the frame's tokens that a tile may hold
    "512MiB", "1.5 GB"   -> bytes (int) that the activations of a step may take
    a float or an int is taken as share (0..1] or bytes (above 1)

    Raises UsageError for anything else.
    """
    if text is None or text == "auto":
        return None
    if isinstance(text, (int, float)):
        value = float(text)
        if 0.0 < value <= 1.0:
            return value
        if value > 1.0 and value == int(value):
            return int(value)
        raise UsageError(
            f"budget {text} is neither a share in (0, 1] nor a number of bytes; "
            "use for example 0.25, 25% or 512MiB"
        )
    match = re.fullmatch(r"\s*([0-9]*\.?[0-9]+)\s*(%|[KMGT]?i?B)?\s*", text, re.IGNORECASE)
    if not match:
        raise UsageError(f"budget {text!r} is not understood; use for example 0.25, 25% or 512MiB")
    number, unit = float(match.group(1)), (match.group(2) or "").upper()
    if unit == "%":
        if not 0.0 < number <= 100.0:
            raise UsageError(f"budget {text!r} is not in (0 %, 100 %]; use for example 25%")
        return number / 100.0
    if unit:
        if number <= 0.0:
            raise UsageError(f"budget {text!r} must be above 0; use for example 512MiB")
        return max(2, int(number * _UNITS[unit]))
    return parse_budget(number)
