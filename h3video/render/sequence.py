"""A clip as a folder of numbered pictures, PNG or EXR, with its sound and the job beside them."""

from __future__ import annotations

import os
import re
import shutil
import wave
from pathlib import Path
from types import TracebackType
from typing import Any

from ..errors import UsageError
from .exr import exr_bytes
from .video import Sound, as_bytes, as_floats

OURS = re.compile(r"\d{6}\.(png|exr)|sound\.wav|comment\.txt")
"""Names of files in a folder that this module wrote; one with other files is left alone."""


class SequenceWriter:
    """`out.png` makes the folder `out` with 000001.png and so on; see video.open_writer.

    Pictures are collected in a folder beside it, which gets the name when it is complete. EXR
    pictures are 16-bit floats in linear light (BT.709 primaries), PNG is sRGB as frames are.
    """

    def __init__(
        self, path: Path, kind: str, width: int, height: int, fps: float, comment: str,
        sound: Sound | None,
    ) -> None:  # fmt: skip
        self.folder, self.kind, self.size = sequence_folder(path), kind, (width, height)
        self.fps, self.comment, self.sound = fps, comment, sound
        self.partial = self.folder.with_name(f".{self.folder.name}.partial")
        self.frames = 0

    def __enter__(self) -> SequenceWriter:
        check_folder(self.folder)
        shutil.rmtree(self.partial, ignore_errors=True)  # of a process that was killed
        self.partial.mkdir(parents=True)
        return self

    def write(self, frame: Any) -> None:
        """Add a frame."""
        if frame.shape != (self.size[1], self.size[0], 3):
            raise RuntimeError(
                f"a frame of {tuple(frame.shape)} came to pictures of {self.size[0]}x{self.size[1]}"
            )
        self.frames += 1
        if self.kind == "exr":
            data = exr_bytes(linear(as_floats(frame)), self.fps, self.comment)
        else:
            data = _png_bytes(as_bytes(frame))
        self._put(f"{self.frames:06d}.{self.kind}", data)

    def _put(self, name: str, data: bytes) -> None:
        with open(self.partial / name, "wb") as f:
            f.write(data)
            f.flush()
            os.fsync(f.fileno())

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:  # fmt: skip
        try:
            if error is not None:
                return
            if not self.frames:
                raise RuntimeError("no frame came, so no picture is written")
            if self.comment:
                self._put("comment.txt", self.comment.encode())
            if self.sound is not None:
                self._put("sound.wav", wav_bytes(*self.sound))
            self._publish()
        finally:
            shutil.rmtree(self.partial, ignore_errors=True)

    def _publish(self) -> None:
        _sync(self.partial)
        old = self.folder.with_name(f".{self.folder.name}.old")
        shutil.rmtree(old, ignore_errors=True)
        if self.folder.exists():
            os.replace(self.folder, old)
        os.replace(self.partial, self.folder)
        _sync(self.folder.parent)
        shutil.rmtree(old, ignore_errors=True)


def sequence_folder(path: Path) -> Path:
    """The folder of the pictures of an output: clips/out.png -> clips/out."""
    return path.with_suffix("")


def check_folder(folder: Path) -> None:
    """Raise UsageError if the folder holds anything that `SequenceWriter` did not write."""
    if not folder.exists():
        return
    if not folder.is_dir():
        raise UsageError(f"{folder} is a file; pictures need a folder of that name")
    other = sorted(p.name for p in folder.iterdir() if not OURS.fullmatch(p.name))
    if other:
        raise UsageError(
            f"folder {folder} holds other files ({', '.join(other[:3])}); choose another output"
        )


def linear(frame: Any) -> Any:
    """Linear light of an sRGB frame (IEC 61966-2-1): float32 [H, W, 3]."""
    import numpy as np

    low = frame <= 0.04045
    bent = np.power(np.maximum(frame + 0.055, 0.0) / 1.055, 2.4, dtype=np.float32)
    return np.where(low, frame / 12.92, bent).astype(np.float32)


def wav_bytes(samples: Any, rate: int) -> bytes:
    """A .wav file of 16-bit samples: float [channels, count] in -1..1."""
    import io

    import numpy as np

    whole = np.rint(np.clip(samples, -1.0, 1.0) * 32767.0).astype("<i2")
    buffer = io.BytesIO()
    with wave.open(buffer, "wb") as out:
        out.setnchannels(whole.shape[0])
        out.setsampwidth(2)
        out.setframerate(rate)
        out.writeframes(np.ascontiguousarray(whole.T).tobytes())
    return buffer.getvalue()


def _png_bytes(frame: Any) -> bytes:
    import io

    from PIL import Image
    from PIL.PngImagePlugin import PngInfo

    note = PngInfo()
    note.add(b"sRGB", b"\0")  # the colour space of frames, perceptual intent
    buffer = io.BytesIO()
    Image.fromarray(frame).save(buffer, "PNG", pnginfo=note, compress_level=4)
    return buffer.getvalue()


def _sync(folder: Path) -> None:
    """Have a folder's names on the disk, where the system knows how."""
    if os.name != "posix":
        return
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
