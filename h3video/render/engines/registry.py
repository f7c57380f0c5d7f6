"""Engines by name: which module opens each. Importing this loads none of them."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from ...errors import UsageError
from .protocol import FIRST_FRAME, Engine

MODULES = {"diffusers": ".diffusers_engine", "comfyui": ".comfyui_server", "h3c": ".h3c"}

FAMILY = {"h3c": "minimax-h3"}
"""Engines that run one family only."""


def options_of(name: str) -> dict[str, str]:
    """Options that an engine takes, with a line of help each. Raises UsageError."""
    return dict(_module(name).OPTIONS)


def traits(name: str, options: dict[str, str]) -> tuple[str, str]:
    """(continuity, gives) of an engine before there is a job; see Engine. Raises UsageError."""
    module = _module(name)
    if hasattr(module, "traits"):
        continuity, gives = module.traits(options)
        return continuity, gives
    return FIRST_FRAME, "frames"


def open_engine(document: dict[str, Any]) -> Engine:
    """The engine of a job document; in a worker process if the job says so. Raises UsageError."""
    told = document["engine"]
    if told.get("worker"):
        from .worker import WorkerEngine

        return WorkerEngine(document)
    engine: Engine = _module(told["name"]).open_engine(document, told.get("options", {}))
    return engine


def _module(name: str) -> Any:
    if name not in MODULES:
        raise UsageError(f"engine {name!r} is unknown; use {', '.join(MODULES)}")
    try:
        return import_module(MODULES[name], __package__)
    except ModuleNotFoundError as e:
        if e.name and "h3video" in e.name.split("."):
            raise UsageError(f"engine {name} is not in this installation") from None
        raise UsageError(
            f"engine {name} needs the package {e.name}; install it with "
            '`pip install "h3video[diffusers]"`'
        ) from None
