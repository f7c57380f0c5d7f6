"""Socket types of ours and small helpers that every node uses."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from comfy_api.latest import io

Cells = io.Custom("H3_CELLS")
"""A GridCells object: a grid of cells with overlap and focus."""

Layout = io.Custom("H3_LAYOUT")
"""A ClipLayout object: how a clip was cut into tiles."""

Clip = io.Custom("IMAGE,LATENT")
"""What the tile nodes take and give: a batch of images, or video latents."""

PACKAGES = {"PIL": "Pillow", "av": "av"}
"""Package on PyPI by the module that is missing."""


def advanced(socket: Any) -> Any:
    """Mark an input as one that is rarely needed; older ComfyUIs show it like any other."""
    if hasattr(socket, "advanced"):
        socket.advanced = True
    else:
        socket.extra_dict["advanced"] = True
    return socket


def says_what_to_install(execute: Callable[..., Any]) -> Callable[..., Any]:
    """Turn a missing package into a message that says how to get it."""

    @functools.wraps(execute)
    def wrapped(cls: Any, *args: Any, **kwargs: Any) -> Any:
        try:
            return execute(cls, *args, **kwargs)
        except ModuleNotFoundError as e:
            module = (e.name or "").split(".")[0]
            name = PACKAGES.get(module, module)
            raise RuntimeError(
                f"{cls.__name__} needs the Python package {name}, which is not installed; run "
                f"`python -m pip install {name}` in ComfyUI's environment and restart it"
            ) from e

    return wrapped
