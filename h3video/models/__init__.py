"""What each model family allows and costs: legal sizes, tokens, work and memory a token."""

from .cogvideox import COGVIDEOX, COGVIDEOX_15
from .family import DenoiserShape, VideoFamily
from .flux import FLUX
from .hunyuan import HUNYUAN, HUNYUAN_15
from .ltx import LTX, LTX2
from .minimax_h3 import MINIMAX_H3
from .mochi import MOCHI
from .wan import WAN

__all__ = [
    "COGVIDEOX",
    "COGVIDEOX_15",
    "FLUX",
    "HUNYUAN",
    "HUNYUAN_15",
    "LTX",
    "LTX2",
    "MINIMAX_H3",
    "MOCHI",
    "WAN",
    "DenoiserShape",
    "VideoFamily",
    "family_of",
]

FAMILIES = {
    family.name: family
    for family in (
        WAN, MINIMAX_H3, LTX, LTX2, HUNYUAN, HUNYUAN_15, COGVIDEOX, COGVIDEOX_15, MOCHI, FLUX,
    )
}  # fmt: skip


def family_of(transformer_class: str) -> VideoFamily | None:
    """The family of a diffusers transformer class, or None when it is unknown."""
    for family in FAMILIES.values():
        if transformer_class in family.transformer_classes:
            return family
    return None
