"""What each model family allows and costs: legal sizes, tokens, work and memory a token."""

from .family import DenoiserShape, VideoFamily
from .wan import WAN

__all__ = ["WAN", "DenoiserShape", "VideoFamily", "family_of"]

FAMILIES = {WAN.name: WAN}


def family_of(transformer_class: str) -> VideoFamily | None:
    """The family of a diffusers transformer class, or None when it is unknown."""
    for family in FAMILIES.values():
        if transformer_class in family.transformer_classes:
            return family
    return None
