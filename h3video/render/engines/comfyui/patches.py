"""Model patches that hold a picture of the whole frame, which nothing would cut to a crop.

A control patch or a masked adapter scales its picture to the latent that it sees. On a crop it
would squeeze the whole picture into it and look almost right, so it is refused by name.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from torch import Tensor

from ....errors import UsageError
from .conds import scale_to
from .latents import LatentLayout

PICTURES = ("image", "mask", "hint", "encoded_image", "inpaint_image", "control_latent")
"""Names under which patches keep a picture, whatever its size."""

SMALL = 4096
"""Values of a tensor that is no picture."""


def refuse_pictures(model_options: dict[str, Any], layout: LatentLayout) -> None:
    """Raise UsageError for the first patch or wrapper that holds a picture of the frame."""
    for where, patch in _patches(model_options):
        owner = getattr(patch, "__self__", patch)
        if str(type(owner).__module__).startswith("h3video"):
            continue
        for name, value in _held(patch, owner):
            if isinstance(value, Tensor) and _is_picture(name, value, layout):
                kind = type(owner).__name__ if owner is patch else patch.__qualname__
                kind = getattr(patch, "__qualname__", kind)
                raise UsageError(
                    f"the model patch {kind} ({where}) holds {name!r} of shape "
                    f"{list(value.shape)}, a picture of the whole frame that crop tiles cannot "
                    "cut; remove the node that adds it, or use tiles=tokens"
                )


def refuse_caches(model_options: dict[str, Any], names: tuple[str, ...]) -> None:
    """Raise UsageError for a step cache of these classes of ComfyUI.

    EasyCache compares a call of the network with the one before, which with tiles is of another
    place; LazyCache a prediction with the one before, which in a walk is of another cell.
    """
    cache = model_options.get("transformer_options", {}).get("easycache")
    if type(cache).__name__ in names:
        name = type(cache).__name__.removesuffix("Holder")
        raise UsageError(
            f"{name} would take one tile's step for another's; remove the {name} node from the "
            "model"
        )


def _is_picture(name: str, value: Tensor, layout: LatentLayout) -> bool:
    if value.ndim < 3 or value.numel() < SMALL:
        return False
    if name in PICTURES:
        return True
    shapes = [value.shape[-2:], value.shape[-3:-1]]  # also images, whose channels come last
    return value.ndim >= 4 and any(scale_to(s, layout) is not None for s in shapes)


def _patches(model_options: dict[str, Any]) -> Iterator[tuple[str, Any]]:
    options = model_options.get("transformer_options", {})
    for kind, patches in options.get("patches", {}).items():
        yield from ((kind, p) for p in patches)
    for kind, places in options.get("patches_replace", {}).items():
        yield from ((f"{kind} {place}", p) for place, p in places.items())
    for kind, keys in options.get("wrappers", {}).items():
        yield from ((kind, w) for wrappers in keys.values() for w in wrappers)
    if "model_function_wrapper" in model_options:
        yield "model_function_wrapper", model_options["model_function_wrapper"]


def _held(patch: Any, owner: Any) -> Iterator[tuple[str, Any]]:
    """(name, value) of what a patch holds: attributes of its object, variables it closes over."""
    yield from getattr(owner, "__dict__", {}).items()
    code = getattr(patch, "__code__", None)
    for name, cell in zip(
        getattr(code, "co_freevars", ()), getattr(patch, "__closure__", None) or ()
    ):
        try:
            yield name, cell.cell_contents
        except ValueError:  # a variable that was never set
            continue
