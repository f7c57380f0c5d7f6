"""Decoding in crops, for the VAEs whose decoder looks no further than a crop's margin."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .attach import HexTiling

log = logging.getLogger("h3video")

CROPPED = ("AutoencoderKLWan", "AutoencoderKLLTXVideo", "AutoencoderKLLTX2Video")
"""Convolutions and norms of single latents only: a crop with a margin decodes as the whole does."""

WHOLE = {
    "AutoencoderKLHunyuanVideo": (
        "its group norms and attention run over the whole picture, crops would differ in colour; "
        "vae.enable_tiling() is diffusers' own way"
    ),
    "AutoencoderKLHunyuanVideo15": (
        "its attention runs over the whole picture; vae.enable_tiling() is diffusers' own way"
    ),
    "AutoencoderKLMiniMaxH3": "it decodes in tiles of its own, in the size that it was trained on",
}
"""Why a VAE is left as it is."""


def wrap_vae(tiling: HexTiling, vae: Any) -> bool:
    """Wrap a VAE's `_decode`: crops, blended with hexagonal weights. False: left as it is."""
    name = type(vae).__name__
    reason = WHOLE.get(name, f"{name} is not known to decode crops as it decodes the whole")
    if name in CROPPED:
        reason = "its decoder draws noise" if _draws_noise(vae) else ""
    if reason:
        log.info("the VAE is not tiled: %s", reason)
        return False
    tiling.wrappers.wrap(vae, "_decode", lambda original: _cropped(tiling, original))
    return True


def _cropped(tiling: HexTiling, original: Any) -> Any:
    from diffusers.models.autoencoders.vae import DecoderOutput

    from ....tiling.decode import decode_crops

    def _decode(z: Any, *args: Any, return_dict: bool = True, **kwargs: Any) -> Any:
        unit = tiling.family.vae_space
        plan = tiling.crop_plan(z.shape[-1] * unit, z.shape[-2] * unit)
        sample = decode_crops(
            plan, z, lambda crop: original(crop, *args, return_dict=False, **kwargs)[0],
            lambda share: tiling.report("decode", share),
        )  # fmt: skip
        return DecoderOutput(sample=sample) if return_dict else (sample,)

    return _decode


def _draws_noise(vae: Any) -> bool:
    inject = getattr(vae.config, "decoder_inject_noise", None) or ()
    return any(inject) if isinstance(inject, (list, tuple)) else bool(inject)
