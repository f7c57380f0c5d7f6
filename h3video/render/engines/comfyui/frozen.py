"""Frozen latents at the right noise level, for models that have their own idea of it.

ComfyUI asks a model what a frozen latent looks like at a step. Most give it the step's noise.
Some give the clean latent, since they know frozen frames by another way: LTX by a timestep for
every token, which serves frozen cells as well; Wan 2.2 5B, Cosmos and HunyuanVideo by whole frames,
which says nothing about a part of a frame, so frozen cells get the step's noise there.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from .latents import LatentLayout

BY_TOKEN = {"LTXV", "LTXAV"}
"""Models that take a timestep for every token from the mask."""


def by_token(model: Any) -> bool:
    """Whether a BaseModel is told by token what is frozen."""
    return any(kind.__name__ in BY_TOKEN for kind in type(model).__mro__)


def frozen_guider(guider: Any, user_mask: Tensor | None) -> Any:
    """A guider whose model noises frozen cells; the same object where it does so anyway.

    user_mask   the crop's denoise mask without the cells: where it is 0 the model's own way rules
    """
    import comfy.model_base

    model = guider.inner_model
    own = getattr(type(model), "scale_latent_inpaint", None)
    if by_token(model) or own is comfy.model_base.BaseModel.scale_latent_inpaint:
        return guider
    return _Guider(guider, _Model(model, user_mask))


def mask_conds(model: Any, conds: list[Any], mask: Tensor | None, layout: LatentLayout) -> Any:
    """A crop's conditioning with its denoise mask, for models that take it by token."""
    if mask is None or not by_token(model):
        return conds
    import comfy.conds

    parts = layout.split(mask)
    named = {"denoise_mask": comfy.conds.CONDRegular(parts[0])}
    if len(parts) > 1:
        named["audio_denoise_mask"] = comfy.conds.CONDRegular(parts[1])
    return [
        group and [{**c, "model_conds": {**c["model_conds"], **named}} for c in group]
        for group in conds
    ]


class _Model:
    """A BaseModel that answers one question in its own way."""

    def __init__(self, model: Any, user_mask: Tensor | None) -> None:
        self._model = model
        self._user_mask = user_mask

    def __getattr__(self, name: str) -> Any:
        return getattr(self._model, name)

    def scale_latent_inpaint(
        self, sigma: Tensor, noise: Tensor, latent_image: Tensor, **options: Any
    ) -> Tensor:
        """Frozen latents at a step: with its noise, or the model's way where the user's mask is."""
        column = sigma.reshape([sigma.shape[0]] + [1] * (noise.ndim - 1))
        noised = self._model.model_sampling.noise_scaling(column, noise, latent_image)
        if self._user_mask is None:
            return noised
        kept = self._model.scale_latent_inpaint(
            sigma=sigma, noise=noise, latent_image=latent_image, **options
        )
        return torch.where(self._user_mask < 1.0, kept, noised)


class _Guider:
    """A guider whose model is a `_Model`; calls go to the real one."""

    def __init__(self, guider: Any, model: _Model) -> None:
        self._guider = guider
        self.inner_model = model

    def __getattr__(self, name: str) -> Any:
        return getattr(self._guider, name)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self._guider(*args, **kwargs)
