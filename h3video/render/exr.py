"""OpenEXR files of one picture: scan lines of 16-bit floats, ZIP-compressed, BT.709 primaries.

Layout (OpenEXR file layout, openexr.com/en/latest/OpenEXRFileLayout.html), numbers little-endian:

    magic 76 2f 31 01 | version 2 | attributes, each: name\\0 type\\0 size data | \\0
    offset of every block, 8 bytes each
    blocks of 16 lines, each: first line | size | data

A block's bytes are reordered (all even ones, then all odd ones), replaced by differences, and
deflated; one that does not become smaller is stored as it is. A line holds its channels one after
the other in alphabetical order: B, G, R. Standard library and numpy.
"""

from __future__ import annotations

import struct
import zlib
from fractions import Fraction
from typing import Any

LINES = 16
"""Lines of a block with ZIP compression."""

BT709_XY = (0.64, 0.33, 0.30, 0.60, 0.15, 0.06, 0.3127, 0.3290)
"""x and y of red, green, blue and white."""

_ZIP, _HALF = 3, 1


def exr_bytes(picture: Any, fps: float = 0.0, comment: str = "") -> bytes:
    """A file's bytes.

    picture   float numpy [H, W, 3], red, green, blue, linear light
    fps       frames a second of the clip it belongs to; 0: not said
    comment   free text
    """
    import numpy as np

    height, width, _ = picture.shape
    head = _header(width, height, fps, comment)
    # [H, W, 3] -> lines of B, G, R, each a run of halfs
    halfs = np.ascontiguousarray(picture[..., ::-1].transpose(0, 2, 1)).astype("<f2")
    blocks = []
    for top in range(0, height, LINES):
        data = _compressed(halfs[top : top + LINES].tobytes())
        blocks.append(struct.pack("<ii", top, len(data)) + data)
    at, offsets = len(head) + 8 * len(blocks), []
    for block in blocks:
        offsets.append(at)
        at += len(block)
    return head + struct.pack(f"<{len(offsets)}Q", *offsets) + b"".join(blocks)


def _header(width: int, height: int, fps: float, comment: str) -> bytes:
    box = struct.pack("<iiii", 0, 0, width - 1, height - 1)
    channels = b"".join(
        name + b"\0" + struct.pack("<iB3xii", _HALF, 0, 1, 1) for name in (b"B", b"G", b"R")
    )
    attributes = [
        ("channels", "chlist", channels + b"\0"),
        ("chromaticities", "chromaticities", struct.pack("<8f", *BT709_XY)),
        ("compression", "compression", bytes([_ZIP])),
        ("dataWindow", "box2i", box),
        ("displayWindow", "box2i", box),
        ("lineOrder", "lineOrder", b"\0"),
        ("pixelAspectRatio", "float", struct.pack("<f", 1.0)),
        ("screenWindowCenter", "v2f", struct.pack("<ff", 0.0, 0.0)),
        ("screenWindowWidth", "float", struct.pack("<f", 1.0)),
    ]
    if fps > 0.0:
        rate = Fraction(fps).limit_denominator(100_000)
        value = struct.pack("<iI", rate.numerator, rate.denominator)
        attributes.append(("framesPerSecond", "rational", value))
    if comment:
        attributes.append(("comments", "string", comment.encode()))
    out = struct.pack("<II", 20000630, 2)
    for name, kind, value in attributes:
        out += name.encode() + b"\0" + kind.encode() + b"\0" + struct.pack("<i", len(value)) + value
    return out + b"\0"


def _compressed(raw: bytes) -> bytes:
    import numpy as np

    data = np.frombuffer(raw, np.uint8)
    data = np.concatenate([data[::2], data[1::2]]).astype(np.int16)
    steps = np.diff(data, prepend=data[:1] - 128) + 128
    steps[:1] = data[:1]
    packed = zlib.compress((steps & 255).astype(np.uint8).tobytes(), 4)
    return packed if len(packed) < len(raw) else raw
