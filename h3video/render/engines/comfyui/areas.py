"""Where in the frame a prompt acts: `area`, `mask` and GLIGEN boxes of a conditioning, cropped.

ComfyUI fades an area over 8 latents at its inner edges, as seen from the whole frame. A crop that
cut the area would fade it at other places, so the fade is worked out for the frame and handed over
as a mask.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from ....errors import UsageError
from ....tiling.latent_crops import LatentBox
from .latents import LatentLayout, crop

MEMORY = 4096
"""Most answers about masks that are kept."""

FADE = 8
"""Latents over which ComfyUI fades an area (at most a quarter of it)."""


def refuse_packed_places(cond: dict[str, Any]) -> None:
    """Raise UsageError for places on a packed latent, which ComfyUI itself gets wrong."""
    for name in ("area", "mask", "gligen"):
        if name in cond:
            raise UsageError(
                f"a conditioning with {name!r} cannot be used on a packed video and audio latent: "
                "ComfyUI takes the flat latent for a picture; use H3 Region Prompts"
            )


class Places:
    """Crops where conditionings act on a latent.

    layout, device   of the latent
    """

    def __init__(self, layout: LatentLayout, device: Any) -> None:
        self.dims = layout.shapes[0][2:]
        self.device = device
        self._reaches: dict[tuple[int, LatentBox], tuple[Tensor, bool]] = {}

    def close(self) -> None:
        """Forget which masks reach where."""
        self._reaches.clear()

    def crop(self, cond: dict[str, Any], box: LatentBox, seen: LatentBox) -> dict[str, Any] | None:
        """A conditioning moved into a crop: area, mask and boxes; None if it acts elsewhere.

        seen   the part of the frame that counts; what does not reach it is left out
        """
        local = dict(cond)
        area = None
        if cond.get("area") is not None:
            area = _full_area(cond["area"], self.dims)
            window = _overlap(area, self.dims, box)
            if window is None or _overlap(area, self.dims, seen) is None:
                return None
            local["area"] = window
        if cond.get("mask") is not None:
            if not self._mask_reaches(cond["mask"], seen):
                return None
            local["mask"] = crop(cond["mask"], box)
        elif area is not None:
            fade = _fade(area, self.dims, box)
            if fade is not None:
                local["mask"] = fade.to(self.device)
                local.pop("mask_strength", None)
        if cond.get("gligen") is not None:
            local["gligen"] = _boxes(cond["gligen"], box)
        return local

    def _mask_reaches(self, mask: Tensor, seen: LatentBox) -> bool:
        """Whether a mask is above 0 anywhere there; asked once, since the answer is waited for."""
        key = id(mask), seen
        if key not in self._reaches:
            if len(self._reaches) >= MEMORY:
                self._reaches.clear()
            # The mask is kept, so that its id stays its own.
            self._reaches[key] = mask, bool((crop(mask, seen) != 0).any())
        return self._reaches[key][1]


Area = tuple[int, ...]
"""Sizes, then starts, of every axis from the frames (if any) to the columns."""


def _full_area(area: Any, dims: tuple[int, ...]) -> Area:
    """An area for every axis of the latent, cut at the frame's edges."""
    half = len(area) // 2
    sizes, starts = list(area[:half]), list(area[half:])
    missing = len(dims) - half
    if missing >= 0:  # an area of rows and columns lasts through all frames
        sizes = [*dims[:missing], *sizes]
        starts = [0] * missing + starts
    else:
        sizes, starts = sizes[: len(dims)], starts[: len(dims)]
    sizes = [min(int(s), d - int(a)) for s, a, d in zip(sizes, starts, dims)]
    return (*sizes, *(int(a) for a in starts))


def _overlap(area: Area, dims: tuple[int, ...], box: LatentBox) -> Area | None:
    """An area's part in a box, in the box's own rows and columns."""
    n = len(dims)
    sizes, starts = list(area[:n]), list(area[n:])
    for axis, corner, length in ((n - 2, box.top, box.rows), (n - 1, box.left, box.columns)):
        first = max(starts[axis], corner)
        last = min(starts[axis] + sizes[axis], corner + length)
        if last <= first:
            return None
        sizes[axis], starts[axis] = last - first, first - corner
    return (*sizes, *starts)


def _fade(area: Area, dims: tuple[int, ...], box: LatentBox) -> Tensor | None:
    """The frame's fade of an area over a crop: float32 [1, ...dims of the crop]; None if flat."""
    n = len(dims)
    profiles = [_profile(area[i], area[n + i], dims[i]) for i in range(n)]
    profiles[-2] = profiles[-2][box.top : box.top + box.rows]
    profiles[-1] = profiles[-1][box.left : box.left + box.columns]
    if all(bool(((p == 0) | (p == 1)).all()) for p in profiles):
        return None
    fade = torch.ones((), dtype=torch.float32)
    for p in profiles:
        fade = fade[..., None] * p
    return fade[None]


def _profile(size: int, start: int, length: int) -> Tensor:
    """An area's weight along one axis of the frame: float32 [length]."""
    inside = torch.ones(size, dtype=torch.float32)
    steps = min(FADE, size // 4)
    ramp = torch.arange(1, steps + 1, dtype=torch.float32) / max(steps, 1)
    if start != 0:
        inside[:steps] *= ramp
    if start + size < length:
        inside[size - steps :] *= ramp.flip(0)
    full = torch.zeros(length, dtype=torch.float32)
    full[start : start + size] = inside
    return full


def _boxes(gligen: Any, box: LatentBox) -> Any:
    """GLIGEN's boxes (embedding, height, width, top, left) in latents, cut to a crop."""
    kind, model, places, *rest = gligen
    found = []
    for embedding, height, width, top, left, *more in places:
        y0, y1 = max(top, box.top), min(top + height, box.top + box.rows)
        x0, x1 = max(left, box.left), min(left + width, box.left + box.columns)
        if y1 > y0 and x1 > x0:
            found.append((embedding, y1 - y0, x1 - x0, y0 - box.top, x0 - box.left, *more))
    # With no box left ComfyUI's own way to say so is another kind of entry.
    return (kind if found else "empty", model, found, *rest)
