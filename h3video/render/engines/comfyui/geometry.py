"""What a model of ComfyUI says about its frame: the px of a latent, the latents of a token."""

from __future__ import annotations

from typing import Any

UNITS = {
    "LTXV": 32, "LTXAV": 32, "Wan22": 16, "Flux2": 16, "HunyuanImage21": 32,
    "HunyuanVideo15": 16, "SC_Prior": 42, "SC_B": 4, "ChromaRadiance": 1,
}  # fmt: skip
"""Px of a latent by ComfyUI's latent format, for versions whose formats do not say it."""

UNKNOWN_PATCH = 8
"""Latents that crops keep to for a model that names no patch: what most UNets halve to."""


def latent_unit(model: Any) -> int:
    """Px of the frame that one latent of this BaseModel covers."""
    latent_format = getattr(model, "latent_format", None)
    told = getattr(latent_format, "spacial_downscale_ratio", None)
    return int(told or UNITS.get(type(latent_format).__name__, 8))


def latent_patch(model: Any) -> int:
    """Latents that one token of this BaseModel covers each way; for a UNet, its coarsest step."""
    network = getattr(model, "diffusion_model", None)
    for name in ("patch_size", "patch_spatial"):
        size = getattr(network, name, None)
        if size is None:
            size = getattr(getattr(network, "patchifier", None), name, None)
        if isinstance(size, (tuple, list)) and size:
            return max(1, int(size[-1]))
        if isinstance(size, int):
            return max(1, size)
    config = getattr(getattr(model, "model_config", None), "unet_config", None) or {}
    levels = config.get("channel_mult")
    return 2 ** (len(levels) - 1) if levels else UNKNOWN_PATCH


def network_name(model: Any) -> tuple[str, str]:
    """(module, class name) of a BaseModel's network."""
    kind = type(getattr(model, "diffusion_model", None))
    return kind.__module__, kind.__name__
