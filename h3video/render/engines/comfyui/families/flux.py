"""Flux in ComfyUI, and models that are its class: pictures.

As HunyuanVideo's blocks, with the frame first in its sequence and reference pictures after it.
"""

from __future__ import annotations

from .....errors import UsageError
from .....models.family import VideoFamily
from .....models.flux import FLUX
from .....tiling.sequence import Sequence
from ...cut import frame_span
from .base import ceil_div
from .hunyuan import HunyuanFamily


class FluxFamily(HunyuanFamily):
    """See the module."""

    name = "flux"
    classes = ("Flux",)

    @property
    def video(self) -> VideoFamily:
        """The family's numbers."""
        return FLUX

    def frame(self) -> tuple[int, int, int]:
        """One latent frame, padded to whole patches."""
        x, patch = self.arguments["x"], self.model.patch_size
        return ceil_div(x.shape[-1], patch), ceil_div(x.shape[-2], patch), 1

    def _picture(self, total: int) -> Sequence:
        """The frame's tokens come first, references after them."""
        return frame_span(total, self.frame(), 0, self.name)

    def check(self) -> None:
        """Modulation by range is out of a tile's reach in ComfyUI's Flux."""
        if self.arguments.get("ref_latents") is not None:
            how = self.arguments.get("ref_latents_method") or getattr(
                self.model.params, "default_ref_method", "offset"
            )
            if how == "index_timestep_zero":
                raise UsageError(
                    "reference latents with method index_timestep_zero have no tiles; use offset, "
                    "index or uxo (FluxKontextMultiReferenceLatentMethod)"
                )
