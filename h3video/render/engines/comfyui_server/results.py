"""A chunk's pictures and sound from the files that a workflow's nodes have saved."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterable
from typing import Any

from ....errors import UsageError
from ....tiling.sound import fit_sound, sample_at
from ..protocol import Sound

VIDEOS = (".mp4", ".webm", ".mkv", ".mov", ".avi", ".gif", ".webp")
PICTURES = (".png", ".jpg", ".jpeg", ".bmp", ".tif", ".tiff")
SOUNDS = (".flac", ".wav", ".mp3", ".opus", ".ogg", ".m4a")

File = dict[str, str]


def files_of(output: dict[str, Any]) -> list[File]:
    """Files in a node's output, whatever it calls the list, in order."""
    found = []
    for entry in output.values():
        if isinstance(entry, list):
            found += [f for f in entry if isinstance(f, dict) and "filename" in f]
    return found


def choose(outputs: dict[str, Any], wanted: Iterable[str], kinds: tuple[str, ...]) -> list[File]:
    """Files of these kinds: of the nodes that are wanted, or of the first node that has some.

    Files that a node has kept come before those that are only for showing.
    """
    names = [n for n in wanted if n in outputs] or sorted(outputs, key=lambda n: (len(n), n))
    chosen: list[File] = []
    for kept in (True, False):
        for name in names:
            chosen = [
                f for f in files_of(outputs[name])
                if f["filename"].lower().endswith(kinds)
                and (f.get("type", "output") == "output") == kept
            ]  # fmt: skip
            if chosen:
                return chosen
    return chosen


def read_pictures(
    files: list[File], load: Callable[[File], bytes], width: int, height: int
) -> tuple[Any, bytes | None]:
    """Frames uint8 numpy [F, H, W, 3], and the video file they came from, if it was one.

    Raises UsageError when they are of another size.
    """
    import numpy as np

    if files[0]["filename"].lower().endswith(VIDEOS):
        data = load(files[0])
        frames = _video_frames(data)
    else:
        data = None
        frames = [_picture(load(f)) for f in files]
    if frames[0].shape != (height, width, 3):
        raise UsageError(
            f"the workflow makes {frames[0].shape[1]}x{frames[0].shape[0]} px, the job is for "
            f"{width}x{height}; title its nodes width and height, or give its size to the job"
        )
    return np.stack(frames), data


def _video_frames(data: bytes) -> list[Any]:
    import av

    with av.open(io.BytesIO(data)) as file:
        return [f.to_ndarray(format="rgb24") for f in file.decode(video=0)]


def _picture(data: bytes) -> Any:
    import numpy as np
    from PIL import Image

    with Image.open(io.BytesIO(data)) as picture:
        return np.asarray(picture.convert("RGB"))


def read_sound(data: bytes, frames: int, fps: float) -> Sound | None:
    """The sound of a file, as long as `frames` frames; None if it has none."""
    import av
    import numpy as np

    with av.open(io.BytesIO(data)) as file:
        if not file.streams.audio:
            return None
        stream = file.streams.audio[0]
        rate = int(stream.rate)
        layout = "mono" if stream.channels == 1 else "stereo"
        resampler = av.AudioResampler(format="fltp", layout=layout, rate=rate)
        parts = [
            part.to_ndarray()
            for frame in (*file.decode(stream), None)
            for part in resampler.resample(frame)
        ]
    if not parts:
        return None
    samples = np.concatenate(parts, 1).astype(np.float32, copy=False)
    return Sound(fit_sound(samples, sample_at(frames, rate, fps), rate), rate)
