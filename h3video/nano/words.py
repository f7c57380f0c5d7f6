"""The words of the captions and what they mean: palettes, shapes, textures, directions."""

from __future__ import annotations

RGB = tuple[int, int, int]

COLOURS: dict[str, RGB] = {
    "red": (214, 40, 40), "orange": (247, 127, 0), "yellow": (250, 209, 60),
    "green": (56, 162, 70), "cyan": (50, 196, 205), "blue": (44, 84, 205),
    "purple": (128, 56, 178), "pink": (240, 120, 178), "white": (242, 242, 240),
    "black": (24, 24, 28),
}  # fmt: skip
"""Colours of the moving shape, sRGB."""

GROUNDS: dict[str, RGB] = {
    "blue": (52, 96, 176), "green": (78, 146, 84), "grey": (128, 130, 134),
    "brown": (142, 100, 66), "purple": (116, 82, 150), "teal": (46, 132, 132),
    "sand": (206, 180, 130), "pink": (206, 136, 158),
}  # fmt: skip
"""Middle colours of the ground, sRGB; the texture goes darker and lighter from there."""

CLASH: dict[str, frozenset[str]] = {
    "blue": frozenset({"blue", "purple"}), "green": frozenset({"green"}), "grey": frozenset(),
    "brown": frozenset({"orange", "red"}), "purple": frozenset({"purple", "blue", "pink"}),
    "teal": frozenset({"cyan", "green", "blue"}), "sand": frozenset({"yellow", "white", "orange"}),
    "pink": frozenset({"pink", "red", "purple"}),
}  # fmt: skip
"""Shape colours that are hard to see on a ground; such pairs are not drawn."""

SHAPES = ("circle", "square", "triangle", "star", "ring", "diamond")
TEXTURES = ("waves", "stripes", "checks", "dots", "clouds")
DIRECTIONS = {"left": (-1, 0), "right": (1, 0), "up": (0, -1), "down": (0, 1)}
SIZES = {"small": 0.14, "": 0.20, "big": 0.27}
"""Radius of the shape as a share of the frame's shorter side."""

VERBS = ("moves", "moving", "flies", "goes")
JOINS = ("over", "on", "above")
ARTICLES = ("a", "an", "the", "shape", "slowly", "background")

WORDS: tuple[str, ...] = tuple(
    dict.fromkeys(
        [*ARTICLES, *COLOURS, *GROUNDS, *SHAPES, *TEXTURES, *DIRECTIONS]
        + [s for s in SIZES if s]
        + [*VERBS, *JOINS]
    )
)
"""Every word of the vocabulary; its order is part of the trained weights."""
