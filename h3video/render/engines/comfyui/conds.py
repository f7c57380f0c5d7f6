"""Conditioning of one crop: every input cropped exactly, passed whole for a reason, or refused.

ComfyUI hands a model lists of dicts. What reaches the network is in their `model_conds`; `area`,
`mask`, `control` and `gligen` say where and how. Whatever is not known and might belong to a place
in the frame is refused by name, with what was found: a crop that is wrong looks almost right.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

from torch import Tensor

from ....errors import UsageError
from ....tiling.latent_crops import LatentBox
from .areas import Places, refuse_packed_places
from .controls import ControlCrops
from .geometry import latent_patch, latent_unit, network_name
from .guides import GUIDES, Frame
from .latents import LatentLayout

Conds = Sequence[list[dict[str, Any]] | None]

WHOLE = {
    # text and what goes with it
    "c_crossattn", "crossattn_controlnet", "attention_mask", "text_embedding_mask",
    "encoder_hidden_states_t5", "text_embedding_mask_t5", "encoder_hidden_states_llama3",
    "t5xxl_ids", "t5xxl_weights", "clip", "clip_text", "clip_text_pooled", "txt_byt5",
    "context_pose", "time_context", "num_tokens", "unprocessed_ltxav_embeds",
    # numbers about the whole picture
    "y", "guidance", "guiding_frame_index", "frame_rate", "fps", "ofs", "sca", "crp",
    "image_meta_size", "c_size", "c_ar", "num_video_frames", "degrade_sigma", "disable_time_r",
    "vace_strength", "pose_strength", "reference_strength", "audio_inject_scale", "ref_mask_flag",
    "ref_latents_method",
    # pictures that the network looks at as a whole
    "clip_fea", "clip_fea_pose", "clip_fea_ref", "clip_img", "siglip_feats", "face_pixel_values",
    # references with positions of their own
    "ref_latents", "ref_latent", "ref_contexts", "reference_motion",
    # sound
    "audio_embed", "audio_denoise_mask", "ref_audio",
}  # fmt: skip
"""Inputs of ComfyUI's own models that belong to no place in the frame, so every crop has them."""

WHOLE_FOR = {("HumoWanModel", "reference_latent"), ("WanModel_S2V", "reference_latent")}
"""... and those where it depends on the network: these two give references their own positions;
elsewhere the reference is one more frame of the clip, with its rows and columns."""

COARSER = {"pose_latents", "lq_latent"}
"""Inputs that may be coarser than the latent by a whole number."""


class CondCrops:
    """Crops the conditioning of one sampling.

    model    ComfyUI's BaseModel
    layout   of the latent
    device   of the latent

    `check` refuses; `crop` makes a crop's conditioning; `close` drops the copies of control nets.
    """

    def __init__(self, model: Any, layout: LatentLayout, device: Any) -> None:
        self.layout = layout
        self.patch = latent_patch(model)
        self.network = network_name(model)[1]
        self.frame = Frame(layout, latent_unit(model))
        self.controls = ControlCrops(layout)
        self.places = Places(layout, device)

    def check(self, conds: Conds, boxes: Sequence[LatentBox]) -> None:
        """Raise UsageError for the first input that cannot be cropped to these boxes."""
        for group in conds:
            for cond in group or ():
                if self.layout.packed:
                    refuse_packed_places(cond)
                self.controls.check(cond.get("control"))
                for box in boxes:
                    self._model_conds(cond, box)

    def crop(self, conds: Conds, box: LatentBox, seen: LatentBox | None = None) -> list[Any]:
        """The conditioning of a crop, in lists like the given ones.

        seen   the part of the frame that counts (None: the whole crop); what the user placed
               outside of it is left out
        """
        return [None if group is None else self._group(group, box, seen or box) for group in conds]

    def release(self) -> None:
        """Drop what was made for crops that do not come again."""
        self.controls.release()
        self.frame.memo.clear()

    def close(self) -> None:
        """Forget everything that was made for crops."""
        self.controls.close()
        self.places.close()
        self.frame.memo.clear()

    def _group(self, group: list[dict[str, Any]], box: LatentBox, seen: LatentBox) -> list[Any]:
        found = []
        for cond in group:
            local = cond if self.layout.packed else self.places.crop(cond, box, seen)
            if local is None:
                continue
            local = {**local, "model_conds": self._model_conds(cond, box)}
            if local.get("control") is not None:
                local["control"] = self.controls.crop(local["control"], box)
            found.append(local)
        return found

    def _model_conds(self, cond: dict[str, Any], box: LatentBox) -> dict[str, Any]:
        values = cond.get("model_conds", {})
        return {name: self._value(name, value, box) for name, value in values.items()}

    def _value(self, name: str, value: Any, box: LatentBox) -> Any:
        """One input of the network for a crop."""
        if not hasattr(value, "cond") or not hasattr(value, "_copy_with"):
            raise UsageError(
                f"conditioning {name!r} is a {type(value).__name__}, which crop tiles do not know; "
                "remove the node that adds it, or use tiles=tokens"
            )
        if name == "latent_shapes":
            return value._copy_with([list(s) for s in self.layout.cropped(box).shapes])
        if name in GUIDES:
            return value._copy_with(GUIDES[name](value.cond, self.frame, box))
        if name in WHOLE or (self.network, name) in WHOLE_FOR:
            self._not_by_token(name, value.cond)
            return value
        if isinstance(value.cond, Tensor):
            return value._copy_with(self._tensor(name, value.cond, box))
        if isinstance(value.cond, (list, tuple)) and _all_tensors(value.cond):
            return value._copy_with([self._tensor(name, t, box) for t in value.cond])
        self._nothing_spatial(name, value.cond)
        return value

    def _tensor(self, name: str, values: Tensor, box: LatentBox) -> Tensor:
        """A tensor cropped, or as it is where it belongs to no place."""
        factor = scale_to(values.shape, self.layout)
        if values.ndim <= 3 or factor is None:
            self._belongs_nowhere(name, values)
            return values
        if factor < 1 and name not in COARSER:
            self._refuse(name, values.shape, "is coarser than the latent")
        left, top, columns, rows = box.scaled(float(factor))
        return values[..., top : top + rows, left : left + columns]

    def _belongs_nowhere(self, name: str, values: Tensor) -> None:
        """Raise unless a tensor's shape says that it is no picture and no list of tokens."""
        if values.ndim >= 4:
            self._refuse(name, values.shape, "fits neither the latent nor a multiple of it")
        self._not_by_token(name, values)
        if tuple(values.shape[-2:]) == (self.layout.rows, self.layout.columns):
            self._refuse(name, values.shape, "may be a map of the frame or a sequence")

    def _not_by_token(self, name: str, values: Any) -> None:
        """Refuse a list with an entry for every token of the frame, under whatever name."""
        if not isinstance(values, Tensor) or values.ndim > 3:
            return
        rows, columns, frames = self.layout.rows, self.layout.columns, self.layout.frames
        tokens = math.ceil(rows / self.patch) * math.ceil(columns / self.patch)
        counts = {rows * columns, rows * columns * frames, tokens, tokens * frames} - {1}
        # One value for every channel of a batch entry is common; a sequence has a longer axis.
        if values.ndim == 3 and any(n in counts for n in values.shape[1:2]) and name not in WHOLE:
            self._refuse(name, values.shape, "has as many entries as the frame has tokens")
        if name == "attention_mask" and values.ndim == 3 and values.shape[-1] > tokens:
            self._refuse(name, values.shape, "covers the frame's tokens, too")

    def _nothing_spatial(self, name: str, value: Any) -> None:
        """Refuse tensors hidden in lists and dicts, unless they are small."""
        for found in _tensors_in(value):
            if found.ndim >= 4 or scale_to(found.shape, self.layout) is not None:
                self._refuse(name, found.shape, "is inside a value that crop tiles do not know")

    def _refuse(self, name: str, shape: Sequence[int], why: str) -> None:
        raise UsageError(
            f"conditioning {name!r} of shape {list(shape)} {why}: how to crop it from a latent of "
            f"{self.layout.rows} rows and {self.layout.columns} columns is not known; remove the "
            "node that adds it, or use tiles=tokens"
        )


def scale_to(shape: Sequence[int], layout: LatentLayout) -> Fraction | None:
    """How much finer a picture of this shape is than the latent: n, 1/n, or None if neither."""
    if len(shape) < 2:
        return None
    rows, columns = int(shape[-2]), int(shape[-1])
    if rows < 1 or columns < 1:
        return None
    factor = Fraction(rows, layout.rows)
    same = factor == Fraction(columns, layout.columns)
    return factor if same and 1 in (factor.numerator, factor.denominator) else None


def _all_tensors(values: Any) -> bool:
    return len(values) > 0 and all(isinstance(v, Tensor) for v in values)


def _tensors_in(value: Any) -> list[Tensor]:
    if isinstance(value, Tensor):
        return [value]
    if isinstance(value, dict):
        return [t for v in value.values() for t in _tensors_in(v)]
    if isinstance(value, (list, tuple)):
        return [t for v in value for t in _tensors_in(v)]
    return []
