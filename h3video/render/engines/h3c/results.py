"""What antirez/h3.c leaves behind: numbered PPM pictures, and an mp4 whose sound is wanted."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ....tiling.sound import fit_sound, sample_at
from ..protocol import ChunkRequest, Sound


class Incomplete(RuntimeError):
    """The program ended well but its files are not what it was asked for."""


def read_frames(folder: Path, request: ChunkRequest) -> Any:
    """frame-0000.ppm and so on as uint8 numpy [frames, H, W, 3]. Raises Incomplete."""
    import numpy as np

    out = np.empty((request.frames, request.height, request.width, 3), np.uint8)
    found = sorted(folder.glob("frame-*.ppm"))
    if len(found) != request.frames:
        raise Incomplete(f"h3 wrote {len(found)} frames, {request.frames} were asked for")
    for f in range(request.frames):
        out[f] = read_ppm(folder / f"frame-{f:04d}.ppm", request.width, request.height)
    return out


def read_ppm(path: Path, width: int, height: int) -> Any:
    """A binary PPM of this size: uint8 numpy [H, W, 3]. Raises Incomplete."""
    import numpy as np

    try:
        data = path.read_bytes()
    except OSError as e:
        raise Incomplete(f"{path.name} is missing ({e.strerror})") from None
    head = f"P6\n{width} {height}\n255\n".encode()
    if not data.startswith(head) or len(data) != len(head) + width * height * 3:
        raise Incomplete(f"{path.name} is no {width}x{height} picture, or cut off")
    return np.frombuffer(data, np.uint8, offset=len(head)).reshape(height, width, 3)


def write_png(picture: Any, path: Path) -> None:
    """The first frame, for --first-frame."""
    from PIL import Image

    Image.fromarray(picture).save(path)


def read_sound(path: Path, frames: int, fps: float) -> Sound | None:
    """The sound of a video of `frames` frames, to the sample as long; None without any."""
    import av
    import numpy as np

    with av.open(str(path)) as file:
        if not file.streams.audio:
            return None
        stream = file.streams.audio[0]
        rate = int(stream.rate)
        resampler = av.AudioResampler(format="fltp", layout=stream.layout.name, rate=rate)
        parts = [
            part.to_ndarray()
            for frame in (*file.decode(stream), None)
            for part in resampler.resample(frame)
        ]
    if not parts:
        return None
    samples = np.concatenate(parts, 1).astype(np.float32, copy=False)
    if samples.shape[0] > 2:
        samples = samples[:2]
    return Sound(fit_sound(samples, sample_at(frames, rate, fps), rate), rate)
