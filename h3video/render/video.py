"""Video files through PyAV: H.264, 8-bit 4:2:0, tagged colours, the job in the metadata."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

QUANTISER = "16"
"""Constant, and visually lossless: seams must not be judged through artefacts. x264's rate control
(crf) gave other bytes for the same frames, depending on what the process had done before."""


def write_mp4(path: Path, frames: Any, fps: int, comment: str) -> None:
    """Write frames as an mp4.

    frames    uint8 numpy [F, H, W, 3], sRGB; height and width even
    fps       frames per second
    comment   text kept in the file's `comment` tag

    BT.709, limited range, tagged so that players do not guess. The file appears
    under its name only when it is complete.
    """
    import av

    count, height, width, _ = frames.shape
    if height % 2 or width % 2:
        raise ValueError(f"H.264 4:2:0 needs an even size, got {width}x{height}")
    partial = path.with_name(f".{path.stem}.partial{path.suffix}")
    try:
        with av.open(str(partial), "w", format="mp4", options={"movflags": "+faststart"}) as out:
            out.metadata["comment"] = comment
            stream = out.add_stream("h264", rate=fps, options={"qp": QUANTISER, "preset": "slow"})
            stream.width, stream.height, stream.pix_fmt = width, height, "yuv420p"
            context = stream.codec_context
            context.thread_count = 1  # with more, x264's bytes depend on the machine's load
            context.color_range = 1  # limited
            context.colorspace = context.color_primaries = context.color_trc = 1  # BT.709
            for i in range(count):
                picture = av.VideoFrame.from_ndarray(yuv420(frames[i]), format="yuv420p")
                picture.pts = i
                out.mux(stream.encode(picture))
            out.mux(stream.encode(None))
        with open(partial, "rb") as f:
            os.fsync(f.fileno())
        os.replace(partial, path)
    finally:
        partial.unlink(missing_ok=True)


def yuv420(frame: Any) -> Any:
    """BT.709 limited-range 4:2:0 of an sRGB frame: uint8 [H, W, 3] -> uint8 [H * 3 / 2, W].

    Done here and not by swscale, whose bytes were seen to differ between equal frames.
    """
    import numpy as np

    rgb = frame.astype(np.float32) / 255.0
    height, width, _ = frame.shape
    luma = rgb @ np.array([0.2126, 0.7152, 0.0722], np.float32)
    quarters = rgb.reshape(height // 2, 2, width // 2, 2, 3).mean((1, 3))
    middle = quarters @ np.array([0.2126, 0.7152, 0.0722], np.float32)
    blue = 128.0 + 224.0 * (quarters[..., 2] - middle) / 1.8556
    red = 128.0 + 224.0 * (quarters[..., 0] - middle) / 1.5748
    planes = [16.0 + 219.0 * luma, blue, red]
    flat = np.concatenate([np.rint(p).clip(0, 255).astype(np.uint8).ravel() for p in planes])
    return flat.reshape(height * 3 // 2, width)


def read_mp4(path: Path) -> tuple[Any, dict[str, Any]]:
    """Frames uint8 numpy [F, H, W, 3] and facts (fps, pix_fmt, colours, comment) of a video."""
    import av
    import numpy as np

    with av.open(str(path)) as source:
        stream = source.streams.video[0]
        context = stream.codec_context
        frames = [f.to_ndarray(format="rgb24") for f in source.decode(stream)]
        facts = {
            "fps": float(stream.average_rate or 0),
            "codec": context.name,
            "pix_fmt": context.pix_fmt,
            "color_range": int(context.color_range),
            "colorspace": int(context.colorspace),
            "comment": source.metadata.get("comment", ""),
        }
    return np.stack(frames), facts
