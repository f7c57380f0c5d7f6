"""What memory does from chunk to chunk: watermarks, leaks, and whether an error is about memory.

Standard library only.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from itertools import pairwise

from ..memory import format_bytes

CHUNKS = 5
"""A watermark that rises over so many chunks in a row is a leak."""

LEAST_GROWTH = 32 << 20
"""... if it has grown by this many bytes over them,"""

LEAST_SHARE = 0.02
"""... and by this part of the first: allocators settle within less."""

WORDS = (
    "out of memory", "can't allocate memory", "cannot allocate memory", "not enough memory",
    "failed to allocate", "invalid buffer size", "alloc_failed",
)  # fmt: skip
"""How backends (CUDA, cuBLAS, MPS, the CPU's allocator) say that memory has run out."""


def out_of_memory(error: BaseException) -> bool:
    """Whether an exception means that memory has run out."""
    if isinstance(error, MemoryError) or type(error).__name__ == "OutOfMemoryError":
        return True
    text = str(error).lower()
    return isinstance(error, (RuntimeError, OSError)) and any(w in text for w in WORDS)


def host_now() -> int | None:
    """Bytes of this process that are in memory now; None where the system does not tell."""
    try:
        with open("/proc/self/statm") as f:
            return int(f.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except OSError:
        return None


@dataclass
class Watermarks:
    """Peaks of the chunks so far, in bytes, by what was measured ("host", "device")."""

    peaks: dict[str, list[int]] = field(default_factory=dict)
    _told: set[str] = field(default_factory=set)

    def add(self, host: int | None, device: int | None) -> list[str]:
        """Take a chunk's peaks; returns a sentence for each leak that shows now, each once."""
        found = []
        for name, peak in (("host", host), ("device", device)):
            if peak is None:
                continue
            rising = self.peaks.setdefault(name, [])
            rising.append(peak)
            if name not in self._told and is_leak(rising):
                self._told.add(name)
                found.append(leak_text(name, rising[-CHUNKS:]))
        return found


def is_leak(peaks: list[int]) -> bool:
    """Whether the last five peaks rise, and by more than an allocator's settling."""
    last = peaks[-CHUNKS:]
    if len(last) < CHUNKS or any(b <= a for a, b in pairwise(last)):
        return False
    return last[-1] - last[0] >= max(LEAST_GROWTH, LEAST_SHARE * last[0])


def leak_text(name: str, peaks: list[int]) -> str:
    """What is told of a leak."""
    shown = ", ".join(format_bytes(p) for p in peaks)
    grown = (peaks[-1] - peaks[0]) / (len(peaks) - 1)
    return (
        f"{name} memory rises from chunk to chunk ({shown}): {format_bytes(grown)} are not given "
        "back each time. Finished chunks are safe; --worker starts the engine anew after a crash"
    )
