"""Who runs the model: one file each says what it keeps resident in which phase, and why."""

from __future__ import annotations

from importlib import import_module
from typing import Protocol

from ...errors import UsageError
from ..activations import Block
from ..ask import RUNTIMES, Ask
from ..terms import Phase


class Runtime(Protocol):
    """What a runtime's module provides."""

    TITLE: str

    def phases(self, ask: Ask) -> tuple[Phase, ...]:
        """The phases of a run, in order."""

    def block(self, ask: Ask) -> Block:
        """How its code runs a transformer block."""


MODULES = {
    "comfyui": "comfyui", "diffusers": "diffusers", "h3c": "h3c", "sdcpp": "sdcpp",
    "official": "official", "vpipe": "vpipe", "h3video": "own",
}  # fmt: skip


def runtime(name: str) -> Runtime:
    """The module of a runtime. Raises UsageError for an unknown name."""
    if name not in MODULES:
        raise UsageError(f"runtime {name!r} is unknown; use {', '.join(RUNTIMES)}")
    module: Runtime = import_module(f".{MODULES[name]}", __name__)  # type: ignore[assignment]
    return module
