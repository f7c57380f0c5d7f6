"""Control nets of one crop: copies that see the crop of the full-size hint.

A control net scales its hint to the latent that it is given. On a crop it would squeeze the whole
picture into it; so every crop gets a copy of the chain whose hint is the crop of the hint scaled
to the frame. Weights are shared; copies live as long as the sampling.
"""

from __future__ import annotations

import copy
from typing import Any

from torch import Tensor

from ....errors import UsageError
from ....tiling.latent_crops import LatentBox
from .latents import LatentLayout

KNOWN = {"ControlNet", "ControlLora", "ControlNetSD35", "QwenFunControlNet", "T2IAdapter"}
"""Classes of comfy.controlnet whose use of a hint is known."""


class ControlCrops:
    """Copies of control nets for the crops of a latent."""

    def __init__(self, layout: LatentLayout) -> None:
        self.layout = layout
        self._copies: dict[tuple[int, LatentBox], tuple[Any, Any]] = {}
        self._hints: dict[int, tuple[Any, tuple[Tensor | None, list[Tensor], float]]] = {}

    def check(self, control: Any) -> None:
        """Raise UsageError if a chain has a member whose hint cannot be cropped."""
        while control is not None:
            kind = type(control)
            if kind.__name__ not in KNOWN or kind.__module__ != "comfy.controlnet":
                raise UsageError(
                    f"control {kind.__name__} of {kind.__module__} is not known to crop tiles: how "
                    "it uses its hint is not known; use one of ComfyUI's own control nets, or "
                    "tiles=tokens"
                )
            if self.layout.packed:
                raise UsageError(
                    f"control {kind.__name__} cannot be used on a packed video and audio latent; "
                    "remove it"
                )
            control = control.previous_controlnet

    def crop(self, control: Any, box: LatentBox) -> Any:
        """The chain of `control` for a crop; the same object for the same crop."""
        key = id(control), box
        if key not in self._copies:  # the original is kept, so that its id stays its own
            self._copies[key] = control, self._copy(control, box)
        return self._copies[key][1]

    def release(self) -> None:
        """Drop the copies and what they computed; scaled hints stay."""
        for _, made in self._copies.values():
            _forget(made)
        self._copies.clear()

    def close(self) -> None:
        """Drop everything."""
        self.release()
        self._hints.clear()

    def _copy(self, control: Any, box: LatentBox) -> Any:
        # A shallow copy also has what ComfyUI set before sampling: steps, weights, sampling.
        made = copy.copy(control)
        _forget(made)
        hint, concat, factor = self._full_hint(control)
        if hint is not None:
            left, top, columns, rows = box.scaled(factor)
            made.cond_hint_original = hint[..., top : top + rows, left : left + columns]
            made.extra_concat_orig = [
                c[..., top : top + rows, left : left + columns] for c in concat
            ]
            if getattr(control, "vae", None) is not None:  # the hint is a latent already
                made.vae, made.latent_format = None, None
                made.preprocess_image = _same
        if control.previous_controlnet is not None:
            made.previous_controlnet = self.crop(control.previous_controlnet, box)
        clones = getattr(control, "multigpu_clones", None)
        if clones:
            made.multigpu_clones = {device: self._copy(c, box) for device, c in clones.items()}
        return made

    def _full_hint(self, control: Any) -> tuple[Tensor | None, list[Tensor], float]:
        """The hint for the whole frame, what is concatenated to it, its points per latent."""
        key = id(control)
        if key not in self._hints:
            self._hints[key] = control, _scale_hint(control, self.layout)
        return self._hints[key][1]


def _scale_hint(control: Any, layout: LatentLayout) -> tuple[Tensor | None, list[Tensor], float]:
    """The hint as ComfyUI would scale (and encode) it for the whole frame."""
    import comfy.utils

    original = control.cond_hint_original
    if original is None:
        return None, [], 1.0
    factor = control.compression_ratio
    vae = getattr(control, "vae", None)
    pixels = factor * (vae.spacial_compression_encode() if vae is not None else 1)
    width, height = layout.columns * pixels, layout.rows * pixels
    if hasattr(control, "scale_image_to"):  # adapters round up to their own patch
        width, height = control.scale_image_to(width, height)
    hint = comfy.utils.common_upscale(original, width, height, control.upscale_algorithm, "center")
    if vae is not None:
        hint = _encode(control, hint)
    concat = [
        comfy.utils.common_upscale(
            c.to(hint.device), hint.shape[-1], hint.shape[-2], control.upscale_algorithm, "center"
        )
        for c in control.extra_concat_orig
    ]
    return hint, concat, float(factor)


def _encode(control: Any, hint: Tensor) -> Tensor:
    """A hint in the control net's latent space; models stay loaded as they were."""
    import comfy.model_management

    loaded = comfy.model_management.loaded_models(only_currently_used=True)
    encoded = control.vae.encode(control.preprocess_image(hint).movedim(1, -1))
    comfy.model_management.load_models_gpu(loaded)
    if control.latent_format is not None:
        encoded = control.latent_format.process_in(encoded)
    return encoded


def _forget(made: Any) -> None:
    """Drop what a copy computed from a hint."""
    made.cond_hint = None
    made.extra_concat = None
    if hasattr(made, "control_input"):
        made.control_input = None


def _same(image: Tensor) -> Tensor:
    return image
