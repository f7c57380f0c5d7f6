"""What a VAE holds beside its weights while it encodes or decodes.

Elements a pixel: counted on the model classes with real widths by benchmarks/vae_memory.py (live
tensors, so without a convolution's workspace) as the low end, and what ComfyUI 0.33 reserves for
the same work, where it reserves more, as the high end.
"""

from __future__ import annotations

from dataclasses import dataclass

from .ask import Ask
from .terms import Term
from .units import Range

DTYPE_BYTES = {"F32": 4, "F16": 2, "BF16": 2}


@dataclass(frozen=True)
class Decoder:
    """Elements that are alive at a VAE's worst moment.

    pixel       elements a pixel of the frame, whatever the length is
    clip        elements a pixel and frame of the clip (or of `frames` of it)
    frames      frames handled at once, 0: all of them
    reserve     what ComfyUI reserves: elements a pixel, and a pixel and frame
    encode      elements a pixel of encoding a picture; what ComfyUI reserves for it
    constant    elements whatever the size is
    """

    pixel: float
    clip: float
    frames: int
    reserve: tuple[float, float]
    encode: tuple[float, float]
    constant: int = 0


DECODERS = {
    "minimax-h3-vae": Decoder(0, 9.5, 19, (0, 9.5), (161.5, 161.5), 270_000_000),
    "wan2.1-vae": Decoder(5060, 3, 0, (7000, 3), (3330, 6000)),
    "wan2.2-vae": Decoder(5430, 3, 0, (8000, 3), (2500, 3300)),
    "nano-vae": Decoder(855, 3, 0, (1200, 3), (580, 1000)),
    "ltx-video-vae": Decoder(0, 50.5, 0, (0, 75), (50, 80)),
    "ltx-video-0.9.7-vae": Decoder(0, 50.5, 0, (0, 75), (50, 80)),
    "ltx-2-vae": Decoder(0, 50.5, 0, (0, 75), (50, 80)),
    "hunyuan-video-vae": Decoder(0, 1190, 16, (0, 1400), (1000, 1400)),
    "hunyuan-video-1.5-vae": Decoder(10000, 3, 0, (14400, 3), (8000, 12600)),
    "cogvideox-vae": Decoder(22500, 3, 0, (22500, 3), (1000, 1400)),
    "mochi-vae": Decoder(0, 833, 0, (0, 1000), (100, 400)),
}

FALLBACK = Decoder(0, 1000, 0, (0, 2800), (500, 1500))

WIDE = 0.93
"""Elements of a float32 VAE against those of a 16-bit one, whose norms make float32 copies.

Counted: 0.97 for Wan 2.1; calibration row 41 (docs/ledger.md) allows at most 0.92.
"""

OWN_TILE = 256
"""MiniMax-H3's VAE always decodes tiles of 256 px: it was trained so."""


def decoding(ask: Ask, where: str, dtype: str, tile: int | None = None) -> list[Term]:
    """Activations of decoding the clip, in tiles of `tile` px (None: the frame whole)."""
    return _work(ask, where, dtype, tile, False)


def encoding_pictures(ask: Ask, where: str, dtype: str, tile: int | None = None) -> list[Term]:
    """Activations of encoding given pictures."""
    return _work(ask, where, dtype, tile, True)


def _work(ask: Ask, where: str, dtype: str, tile: int | None, encode: bool) -> list[Term]:
    found = ask.vaes()
    if not found:
        return []
    d = DECODERS.get(found[0].name, FALLBACK)
    width, height = ask.width, ask.height
    if tile is not None and found[0].name != "minimax-h3-vae":
        width, height = min(tile, width), min(tile, height)
    pixels = width * height
    frames = min(ask.frames, d.frames) if d.frames else ask.frames
    size: float = DTYPE_BYTES.get(dtype, 2)
    if size == 4:
        size *= WIDE
    if encode:
        counts = [pixels * e * size + d.constant * size for e in d.encode]
        text = f"{width}x{height} x {d.encode[0]:g} elements"
    else:
        pairs = ((d.pixel, d.clip), d.reserve)
        counts = [(pixels * (p + c * frames) + d.constant) * size for p, c in pairs]
        text = f"{width}x{height} x ({d.pixel:g} + {d.clip:g} x {frames} frames) elements"
    more = f" + {d.constant:,} elements" if d.constant else ""
    name = "VAE encoding" if encode else "VAE decoding"
    span = Range(int(min(counts)), int(max(counts)))
    source = "live tensors counted (benchmarks/vae_memory.py); top of the range: ComfyUI's reserve"
    formula = f"{text}{more} x {size:g} B"
    return [Term(name, where, "activations", span, "range", formula, source, 0, int(counts[0]))]
