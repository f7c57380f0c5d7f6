"""Video files through PyAV: H.264, 8-bit 4:2:0, tagged colours, the job in the metadata."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

CRF = "16"
"""Visually lossless for most clips; the tiles' seams must not be judged through artefacts."""


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
            stream = out.add_stream("h264", rate=fps, options={"crf": CRF, "preset": "slow"})
            stream.width, stream.height, stream.pix_fmt = width, height, "yuv420p"
            context = stream.codec_context
            context.thread_count = 1  # with more, x264's bytes depend on the machine's load
            context.color_range = 1  # limited
            context.colorspace = context.color_primaries = context.color_trc = 1  # BT.709
            for i in range(count):
                picture = av.VideoFrame.from_ndarray(frames[i], format="rgb24")
                picture = picture.reformat(
                    format="yuv420p", dst_colorspace="ITU709", src_color_range="JPEG",
                    dst_color_range="MPEG",
                )  # fmt: skip
                picture.pts = i
                out.mux(stream.encode(picture))
            out.mux(stream.encode(None))
        with open(partial, "rb") as f:
            os.fsync(f.fileno())
        os.replace(partial, path)
    finally:
        partial.unlink(missing_ok=True)


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
