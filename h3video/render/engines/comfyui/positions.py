"""Where a crop lies, told to networks that take an offset for their rotary positions.

ComfyUI's `rope_options` scale and shift the positions of rows and columns, in tokens; Flux's are
moved by a patch. A crop that is shifted by its corner has the full frame's coordinates. Networks
that are not listed here count from the crop's own corner.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from ....tiling.latent_crops import LatentBox
from .geometry import latent_patch, network_name

SHIFTED = {
    ("comfy.ldm.wan.model", "WanModel"), ("comfy.ldm.wan.model", "VaceWanModel"),
    ("comfy.ldm.wan.model", "CameraWanModel"), ("comfy.ldm.wan.model", "HumoWanModel"),
    ("comfy.ldm.wan.model", "WanModel_S2V"), ("comfy.ldm.wan.model_animate", "AnimateWanModel"),
    ("comfy.ldm.flux.model", "Flux"), ("comfy.ldm.lumina.model", "NextDiT"),
    ("comfy.ldm.kandinsky5.model", "Kandinsky5"), ("comfy.ldm.ernie.model", "ErnieImageModel"),
}  # fmt: skip
"""Networks that shift by whole tokens. Others (SCAIL, Animate 2, PixelDiT, ...) read the options
in ways of their own."""

KANDINSKY_WIDE = 14080
"""Latents of a frame from which Kandinsky 5's large model stretches its positions."""


def takes_offset(model: Any) -> bool:
    """Whether this BaseModel's network can be told where a crop lies."""
    return network_name(model) in SHIFTED


def crop_options(
    model: Any, box: LatentBox, model_options: dict[str, Any], references: int = 0,
    local: bool = False,
) -> dict[str, Any]:  # fmt: skip
    """A crop's model options: the given ones with `h3video_crop` and, where known, the offset.

    references   tokens of references that follow the frame's and must stay where they are
    local        leave the crop's own positions, for comparison
    """
    given = model_options.get("transformer_options", {})
    options = {**given, "h3video_crop": box}
    if takes_offset(model) and not local:
        patch = latent_patch(model)
        scales = _scales(model, box, given.get("rope_options"))
        shifts = {"y": box.top / patch * scales["y"], "x": box.left / patch * scales["x"]}
        if network_name(model)[1] == "Flux":
            own = math.ceil(box.rows / patch) * math.ceil(box.columns / patch)
            patches = {k: list(v) for k, v in given.get("patches", {}).items()}
            patches["post_input"] = [
                *patches.get("post_input", []), _move(own if references else None, shifts)
            ]  # fmt: skip
            options["patches"] = patches
        else:
            options["rope_options"] = _rope(given.get("rope_options"), scales, shifts)
    return {**model_options, "transformer_options": options}


def _rope(given: Any, scales: dict[str, float], shifts: dict[str, float]) -> dict[str, float]:
    """Rotary options with a crop's shift on top of what is given."""
    rope = dict(given or {})
    for axis, shift in shifts.items():
        rope[f"scale_{axis}"] = scales[axis]
        rope[f"shift_{axis}"] = rope.get(f"shift_{axis}", 0.0) + shift
    rope.setdefault("scale_t", scales["t"])
    return rope


def _scales(model: Any, box: LatentBox, given: Any) -> dict[str, float]:
    """Tokens per step along each axis, as the network would take them for the whole frame."""
    own = {"t": 1.0, "y": 1.0, "x": 1.0}
    if given is None and network_name(model)[1] == "Kandinsky5":
        network = model.diffusion_model
        factors = network.rope_scale_factor
        if network.model_dim == 4096 and box.frame_rows * box.frame_columns >= KANDINSKY_WIDE:
            factors = (1.0, 3.16, 3.16)
        own = {axis: 1.0 / f for axis, f in zip("tyx", factors)}
    return {axis: float((given or {}).get(f"scale_{axis}", own[axis])) for axis in "tyx"}


def _move(own: int | None, shifts: dict[str, float]) -> Callable[[dict[str, Any]], dict[str, Any]]:
    """A Flux patch that moves the first `own` tokens (None: all) to where the crop lies.

    Flux's own options would move references, too, in some versions.
    """

    def move(args: dict[str, Any]) -> dict[str, Any]:
        ids = args["img_ids"].clone()
        ids[:, :own, 1] += shifts["y"]
        ids[:, :own, 2] += shifts["x"]
        return {**args, "img_ids": ids}

    return move


def reference_tokens(conds: Any, patch: int) -> int:
    """Tokens of Flux-like references in these conditionings; 0 where areas make that unsure."""
    most = 0
    for group in conds:
        for cond in group or ():
            found = cond.get("model_conds", {}).get("ref_latents")
            if found is None:
                continue
            if "area" in cond:
                return 0
            most = max(
                most,
                sum(
                    math.ceil(r.shape[-2] / patch) * math.ceil(r.shape[-1] / patch)
                    for r in found.cond
                ),
            )
    return most
