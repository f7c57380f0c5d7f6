"""Seconds and peak memory of each phase of a run. Standard library only.

The host figure is the process's peak resident set: on Linux it is reset at the
start of every phase (/proc/self/clear_refs), elsewhere it is the highest so
far. The device figure comes from whoever knows the device.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any


def format_bytes(count: float | None) -> str:
    """Bytes for people, in binary units: 1.50 GiB, 12.0 MiB; an en dash when unknown."""
    if count is None:
        return "-"
    for unit, size in (("GiB", 2**30), ("MiB", 2**20), ("KiB", 2**10)):
        if count >= size:
            return f"{count / size:.2f} {unit}" if unit == "GiB" else f"{count / size:.1f} {unit}"
    return f"{count:.0f} B"


@dataclass
class Phase:
    """One phase: name, seconds, peaks in bytes (None where the machine does not tell)."""

    name: str
    seconds: float
    host_peak: int | None
    device_peak: int | None

    def to_json(self) -> dict[str, Any]:
        """The phase as plain data."""
        return {
            "name": self.name, "seconds": round(self.seconds, 3),
            "host_peak_bytes": self.host_peak, "device_peak_bytes": self.device_peak,
        }  # fmt: skip


class PhaseMeter:
    """Measures phases one after the other.

    reset_device, device_peak   called at a phase's start and end; None without a device
    """

    def __init__(
        self,
        reset_device: Callable[[], None] | None = None,
        device_peak: Callable[[], int | None] | None = None,
    ) -> None:
        self.phases: list[Phase] = []
        self._reset_device = reset_device
        self._device_peak = device_peak

    @contextmanager
    def phase(self, name: str) -> Iterator[None]:
        """Measure the body; a phase that raises is kept, too."""
        reset_host_peak()
        if self._reset_device is not None:
            self._reset_device()
        started = time.perf_counter()
        try:
            yield
        finally:
            device = self._device_peak() if self._device_peak is not None else None
            self.phases.append(Phase(name, time.perf_counter() - started, host_peak(), device))


def reset_host_peak() -> None:
    """Start a new host peak where the system can (Linux); else do nothing."""
    try:
        with open("/proc/self/clear_refs", "w") as f:
            f.write("5")
    except OSError:
        pass


def host_peak() -> int | None:
    """Peak resident set of this process in bytes since the last reset; None if unknown."""
    try:
        with open("/proc/self/status") as f:
            for line in f:
                if line.startswith("VmHWM:"):
                    return int(line.split()[1]) * 1024
    except OSError:
        pass
    try:
        import resource
    except ImportError:  # Windows
        return None
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024
