"""Decode latents crop by crop and blend the pixels with the cells' weights."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from .crops import CropPlan


def decode_crops(
    plan: CropPlan,
    latents: Tensor,
    decode: Callable[[Tensor], Tensor],
    on_tile: Callable[[float], None] | None = None,
) -> Tensor:
    """Decode latents with a function that decodes a crop of them.

    latents    [B, C, T, rows, columns]
    decode     [B, C, T, crop_rows, crop_columns] -> [B, 3, F, pixel rows, pixel columns]
    on_tile    called after each crop with the share of the frame it was

    Returns [B, 3, F, height, width] in decode's dtype. With one crop that is exactly
    `decode(latents)`; else a float32 sum of weighted crops is held beside one crop.
    """
    if tuple(latents.shape[-2:]) != (plan.rows, plan.columns):
        raise RuntimeError(
            f"latents are {latents.shape[-1]}x{latents.shape[-2]}, the plan is for "
            f"{plan.columns}x{plan.rows}"
        )
    if len(plan.tiles) == 1:
        whole = decode(latents)
        if on_tile is not None:
            on_tile(1.0)
        return whole
    out: Tensor | None = None
    dtype = latents.dtype
    for tile, weights in zip(plan.tiles, plan.weights()):
        right, bottom = tile.left + plan.crop_columns, tile.top + plan.crop_rows
        crop = decode(latents[..., tile.top : bottom, tile.left : right].contiguous())
        if out is None:
            dtype = crop.dtype
            out = torch.zeros(
                (*crop.shape[:-2], plan.height, plan.width), dtype=torch.float32, device=crop.device
            )
        frame = torch.zeros(plan.height * plan.width, dtype=torch.float32)
        frame[torch.as_tensor(weights.points)] = torch.as_tensor(weights.weight)
        unit = plan.unit
        rows = slice(tile.top * unit, bottom * unit)
        columns = slice(tile.left * unit, right * unit)
        weight = frame.view(plan.height, plan.width)[rows, columns].to(crop.device)
        # Frame by frame, so that no second float32 copy of the crop is ever held.
        for f in range(crop.shape[2]):
            out[:, :, f, rows, columns].addcmul_(crop[:, :, f].float(), weight)
        if on_tile is not None:
            on_tile(1.0 / len(plan.tiles))
    assert out is not None
    return out.to(dtype)
