"""Inputs of the network whose crop is more than a slice: keyframes, guides, packed layouts.

One function per name of ComfyUI's `model_conds`, which gives the value for a crop.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor

from ....errors import UsageError
from ....tiling.latent_crops import LatentBox
from .latents import LatentLayout, crop

H3_PATCH = 2
"""Latents that a token of MiniMax-H3 covers each way."""


@dataclass(frozen=True)
class Frame:
    """What a crop of a guide needs to know of the frame.

    unit   px of a latent
    memo   what was made for a crop, for the next step
    """

    layout: LatentLayout
    unit: int
    memo: dict[Any, Any] = field(default_factory=dict)


def minimax_payload(payload: dict[str, Any], frame: Frame, box: LatentBox) -> dict[str, Any]:
    """MiniMax-H3: keyframes lie on the frame's grid and are cropped, references are whole.

    The packed layout holds every token's position; video and keyframe tokens keep the frame's.
    """
    found = dict(payload)
    keyframes, refs = payload.get("keyframes"), payload.get("refs")
    if keyframes:
        keyframes = [_keyframe(k, frame, box) for k in keyframes]
        found["keyframes"] = keyframes
    if "cond_video_latents" in payload:
        own = [k["latent"] for k in keyframes or () if k.get("latent") is not None]
        found["cond_video_latents"] = own + [r["latent"] for r in refs or () if "latent" in r]
    layout = payload.get("layout")
    if layout is not None:
        key = (id(layout), box)
        if key not in frame.memo:  # the layout itself is kept, so that its id stays its own
            frame.memo[key] = layout, _h3_layout(layout, frame, box, keyframes, refs)
        found["layout"] = frame.memo[key][1]
    return found


def _keyframe(keyframe: dict[str, Any], frame: Frame, box: LatentBox) -> dict[str, Any]:
    latent = keyframe.get("latent")
    if latent is None:
        return keyframe
    if tuple(latent.shape[-2:]) != (frame.layout.rows, frame.layout.columns):
        raise UsageError(
            f"a keyframe of {latent.shape[-1]}x{latent.shape[-2]} latents does not lie on the "
            f"frame's {frame.layout.columns}x{frame.layout.rows}; encode it at the frame's size"
        )
    return {**keyframe, "latent": crop(latent, box)}


def _h3_layout(whole: Any, frame: Frame, box: LatentBox, keyframes: Any, refs: Any) -> Any:
    """The layout of a crop with the frame's positions."""

    def even(n: int) -> int:
        return -(-n // H3_PATCH) * H3_PATCH

    text, frames, _, _, audio = whole.signature
    found = type(whole)(
        text, frames, even(box.rows), even(box.columns), audio, keyframes=keyframes, refs=refs
    )
    rows, columns = even(frame.layout.rows) // H3_PATCH, even(frame.layout.columns) // H3_PATCH
    high, wide = even(box.rows) // H3_PATCH, even(box.columns) // H3_PATCH
    top = min(box.top // H3_PATCH, rows - high)
    left = min(box.left // H3_PATCH, columns - wide)
    positions = []
    for (start, stop, kind), (first, last, _) in zip(whole.segments, found.segments):
        part = whole.position_ids[start:stop]
        if kind in ("video", "cond"):
            grid = part.reshape(-1, rows, columns, part.shape[-1])
            part = grid[:, top : top + high, left : left + wide].reshape(-1, part.shape[-1])
        if len(part) != last - first:
            raise RuntimeError(f"segment {kind} has {len(part)} positions, {last - first} rows")
        positions.append(part)
    found.position_ids = torch.cat(positions)
    return found


def keyframe_idxs(coords: Tensor, frame: Frame, box: LatentBox) -> Tensor:
    """LTX: px coordinates [B, 3, tokens(, 2)] of guide frames that follow the clip's.

    The network counts a crop's own tokens from its corner, so the guides are moved along.
    """
    layout = frame.layout
    spatial = layout.rows * layout.columns
    if coords.shape[2] % spatial:
        raise UsageError(
            f"conditioning 'keyframe_idxs' has {coords.shape[2]} tokens, not a multiple of the "
            f"frame's {layout.columns}x{layout.rows}; encode the guides at the frame's size"
        )
    if coords.shape[2] == 0:
        return coords
    grid = coords.unflatten(2, (-1, layout.rows, layout.columns))
    part = grid[:, :, :, box.top : box.top + box.rows, box.left : box.left + box.columns]
    moved = part.flatten(2, 4).clone()
    moved[:, 1] -= box.top * frame.unit
    moved[:, 2] -= box.left * frame.unit
    return moved


def guide_attention_entries(entries: Any, frame: Frame, box: LatentBox) -> Any:
    """LTX: how many tokens each guide has, and where it counts."""
    return [_entry(e, frame, box) for e in entries] if entries else entries


def _entry(entry: dict[str, Any], frame: Frame, box: LatentBox) -> dict[str, Any]:
    layout = frame.layout
    spatial = layout.rows * layout.columns
    frames, rows, columns = entry["latent_shape"]
    coarser = layout.rows // rows if rows else 0
    if (
        entry["pre_filter_count"] % spatial
        or coarser < 1
        or (rows * coarser, columns * coarser) != (layout.rows, layout.columns)
    ):
        raise UsageError(
            f"a guide of {columns}x{rows} latents with {entry['pre_filter_count']} tokens does not "
            f"lie on the frame's {layout.columns}x{layout.rows}; encode it at the frame's size"
        )
    if entry.get("pixel_mask") is not None:
        raise UsageError(
            "a guide with an attention mask cannot be cropped; remove the mask or use tiles=tokens"
        )
    _, _, wide, high = box.scaled(1 / coarser)
    return {
        **entry,
        "pre_filter_count": entry["pre_filter_count"] // spatial * box.rows * box.columns,
        "latent_shape": [frames, high, wide],
    }


def generated_keyframes(slots: Any, frame: Frame, box: LatentBox) -> Any:
    """LTX: slots of whole latent frames, counted in tokens of a frame."""
    if not slots:
        return slots
    return {**slots, "tokens_per_frame": box.rows * box.columns}


def effnet(latent: Tensor, frame: Frame, box: LatentBox) -> Tensor:
    """Stable Cascade: the prior's latent, which stage B stretches over its own by the corners."""
    size = (frame.layout.rows, frame.layout.columns)
    whole = torch.nn.functional.interpolate(
        latent.float(), size=size, mode="bilinear", align_corners=True
    )
    return crop(whole, box).to(latent.dtype)


GUIDES: dict[str, Callable[[Any, Frame, LatentBox], Any]] = {
    "minimax_payload": minimax_payload,
    "keyframe_idxs": keyframe_idxs,
    "guide_attention_entries": guide_attention_entries,
    "generated_keyframes": generated_keyframes,
    "effnet": effnet,
}
