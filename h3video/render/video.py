"""Video files through PyAV, written frame by frame: tagged colours, sound, the job in the metadata.

The same frames make the same bytes: encoders run in one thread at a constant quantiser, and the
container writes no dates and no random ids.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Protocol

from ..errors import UsageError

BT709 = 1
LIMITED = 1

SOUND_BLOCK = 1024
"""Samples that are encoded at a time: what an AAC frame holds."""

AAC_RATES = (8000, 11025, 12000, 16000, 22050, 24000, 32000, 44100, 48000, 64000, 88200, 96000)


@dataclass(frozen=True)
class Codec:
    """How one kind of file is written.

    encoders   names in FFmpeg, the first one there is used
    options    of each encoder
    pix_fmt    what frames are converted to; bits a sample
    suffixes   of files that may hold it
    tag        four characters for mp4, where players ask for other ones than FFmpeg's
    """

    name: str
    title: str
    encoders: tuple[str, ...]
    options: dict[str, dict[str, str]]
    pix_fmt: str
    bits: int
    suffixes: tuple[str, ...]
    tag: str = ""


# Constant and visually lossless: seams must not be judged through artefacts. x264's rate control
# (crf) gave other bytes for the same frames, depending on what the process had done before.
CODECS = {
    c.name: c
    for c in (
        Codec(
            "h264", "H.264", ("libx264",), {"libx264": {"qp": "16", "preset": "slow"}},
            "yuv420p", 8, (".mp4", ".mkv"),
        ),
        Codec(
            "h265", "H.265", ("libx265",),
            {"libx265": {"preset": "medium", "x265-params":
                         "qp=18:pools=none:frame-threads=1:info=0:log-level=error"}},
            "yuv420p10le", 10, (".mp4", ".mkv"), "hvc1",
        ),
        Codec(
            "av1", "AV1", ("libsvtav1", "libaom-av1"),
            {"libsvtav1": {"preset": "6", "qp": "24", "svtav1-params": "lp=1:rc=0"},
             "libaom-av1": {"crf": "20", "b": "0", "cpu-used": "4", "row-mt": "0"}},
            "yuv420p10le", 10, (".mp4", ".mkv"),
        ),
        Codec("ffv1", "FFV1", ("ffv1",), {"ffv1": {"level": "3", "slicecrc": "1", "g": "1"}},
              "bgr0", 8, (".mkv",)),
    )
}  # fmt: skip

SEQUENCES = ("png", "exr")

BY_SUFFIX = {".mp4": "h264", ".mkv": "ffv1", ".png": "png", ".exr": "exr"}


class Writer(Protocol):
    """Takes a clip's frames in order. A context manager: the file appears under its name when the
    block is left, complete; after an error nothing of it is left."""

    def __enter__(self) -> Writer: ...

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None,
        trace: TracebackType | None,
    ) -> None: ...  # fmt: skip

    def write(self, frame: Any) -> None:
        """Add a frame: numpy [H, W, 3], sRGB, uint8 or float 0..1."""
        ...


Sound = tuple[Any, int]
"""Samples float32 numpy [channels, count] in -1..1 (1 or 2 channels), and samples a second."""


def choose_codec(path: Path, codec: str | None = None) -> str:
    """The codec of an output by its name, checked without writing anything.

    path    .mp4 (h264, h265, av1), .mkv (ffv1 or those), .png or .exr (a folder of pictures)
    codec   None: by the suffix

    Raises UsageError when name and codec do not go together, or this PyAV cannot encode it.
    """
    suffix = path.suffix.lower()
    known = [*CODECS, *SEQUENCES]
    if codec is None:
        if suffix not in BY_SUFFIX:
            raise UsageError(
                f"output {path} ends in {suffix or 'nothing'}; use {', '.join(BY_SUFFIX)}"
            )
        codec = BY_SUFFIX[suffix]
    if codec not in known:
        raise UsageError(f"codec {codec!r} is unknown; use {', '.join(known)}")
    suffixes = CODECS[codec].suffixes if codec in CODECS else (f".{codec}",)
    if suffix not in suffixes:
        raise UsageError(
            f"output {path} ends in {suffix or 'nothing'}, codec {codec} is written to "
            f"{' or '.join(suffixes)}; change one of them"
        )
    if codec in CODECS:
        _encoder(CODECS[codec])
    return codec


def output_files(path: Path) -> list[Path]:
    """The files that an output consists of, as far as they are there: one, or a folder's."""
    if path.suffix.lower() in (".png", ".exr"):
        folder = path.with_suffix("")
        return sorted(folder.iterdir()) if folder.is_dir() else []
    return [path] if path.is_file() else []


def open_writer(
    path: Path, width: int, height: int, fps: float, comment: str = "", *,
    codec: str | None = None, sound: Sound | None = None,
) -> Writer:  # fmt: skip
    """A writer for a clip of width x height px at `fps` frames a second.

    comment   kept in the file's metadata (comment.txt beside pictures)
    codec     see choose_codec
    sound     AAC beside h264, h265 and av1; float samples beside ffv1; a .wav beside pictures
    """
    codec = choose_codec(path, codec)
    if sound is not None:
        _check_sound(sound)
    if codec in SEQUENCES:
        from .sequence import SequenceWriter

        return SequenceWriter(path, codec, width, height, fps, comment, sound)
    if CODECS[codec].pix_fmt.startswith("yuv420") and (width % 2 or height % 2):
        raise UsageError(
            f"{CODECS[codec].title} 4:2:0 needs an even size, got {width}x{height}; use codec "
            "ffv1, or png or exr pictures"
        )
    lossless = codec == "ffv1"
    if sound is not None and not lossless and sound[1] not in AAC_RATES:
        raise UsageError(
            f"AAC has no rate of {sound[1]} samples a second; use one of "
            f"{', '.join(map(str, AAC_RATES))}, or codec ffv1"
        )
    return VideoWriter(path, CODECS[codec], width, height, fps, comment, sound)


def _encoder(codec: Codec) -> str:
    """The name of an encoder of this PyAV."""
    import av
    from av.codec import Codec as Known

    for name in codec.encoders:
        try:
            Known(name, "w")
            return name
        except ValueError:  # av's own error for an unknown one is a ValueError
            continue
    raise UsageError(
        f"PyAV {av.__version__} here has no {codec.title} encoder "
        f"({' or '.join(codec.encoders)}); use another --codec, or `pip install --upgrade av`"
    )


def _check_sound(sound: Sound) -> None:
    samples, rate = sound
    if samples.ndim != 2 or samples.shape[0] not in (1, 2):
        raise UsageError(
            f"sound of shape {tuple(samples.shape)} is not [channels, samples] with 1 or 2 channels"
        )
    if rate < 1:
        raise UsageError(f"a sound of {rate} samples a second cannot be written")


class VideoWriter:
    """One stream of pictures and perhaps one of sound into a container; see `open_writer`."""

    def __init__(
        self, path: Path, codec: Codec, width: int, height: int, fps: float, comment: str,
        sound: Sound | None,
    ) -> None:  # fmt: skip
        self.path, self.codec, self.size, self.fps = path, codec, (width, height), fps
        self.comment, self.sound = comment, sound
        self.partial = path.with_name(f".{path.stem}.partial{path.suffix}")
        self.frames = self._samples = 0
        self._convert: Callable[[Any], Any] = {
            "yuv420p": _picture_8, "yuv420p10le": _picture_10, "bgr0": _picture_rgb,
        }[codec.pix_fmt]  # fmt: skip

    def __enter__(self) -> VideoWriter:
        import av

        os.environ.setdefault("SVT_LOG", "1")  # SVT-AV1 prints its settings otherwise
        mp4 = self.path.suffix.lower() == ".mp4"
        options = {"fflags": "+bitexact"}
        if mp4:
            options["movflags"] = "+faststart"
        if mp4 and self.sound is not None:  # else lengths are rounded to 1/1000 s
            options["movie_timescale"] = str(self.sound[1])
        self.out = av.open(
            str(self.partial), "w", format="mp4" if mp4 else "matroska", options=options
        )
        try:
            self._add_streams()
        except BaseException:
            self.out.close()
            self.partial.unlink(missing_ok=True)
            raise
        return self

    def _add_streams(self) -> None:
        from fractions import Fraction

        self.out.metadata["comment"] = self.comment
        name = _encoder(self.codec)
        rate = Fraction(self.fps).limit_denominator(100_000)
        stream: Any = self.out.add_stream(name, rate=rate, options=self.codec.options[name])
        stream.width, stream.height = self.size
        stream.pix_fmt = self.codec.pix_fmt
        context = stream.codec_context
        context.thread_count = 1  # with more, x264's bytes depend on the machine's load
        rgb = self.codec.pix_fmt == "bgr0"
        context.color_range = 2 if rgb else LIMITED
        context.colorspace = 0 if rgb else BT709
        context.color_primaries = context.color_trc = BT709
        if self.codec.tag and self.path.suffix.lower() == ".mp4":
            context.codec_tag = self.codec.tag
        self.video = stream
        self.audio: Any = None
        if self.sound is not None:
            samples, hertz = self.sound
            self.audio = self.out.add_stream("pcm_f32le" if rgb else "aac", rate=hertz)
            self.audio.layout = "mono" if samples.shape[0] == 1 else "stereo"
            self.audio.format = "flt" if rgb else "fltp"
            self.audio.codec_context.thread_count = 1
            if not rgb:
                self.audio.bit_rate = 192_000 if hertz >= 32_000 else 128_000

    def write(self, frame: Any) -> None:
        """Add a frame, and the sound up to its end."""
        if frame.shape != (self.size[1], self.size[0], 3):
            raise RuntimeError(
                f"a frame of {tuple(frame.shape)} came to a video of {self.size[0]}x{self.size[1]}"
            )
        picture = self._convert(frame)
        picture.pts = self.frames
        self.out.mux(self.video.encode(picture))
        self.frames += 1
        if self.sound is not None:
            self._write_sound(self.frames / self.fps)

    def _write_sound(self, until: float | None) -> None:
        """Whole blocks up to a time in seconds; None: all that is left."""
        import av
        import numpy as np

        assert self.sound is not None
        samples, rate = self.sound
        stop = samples.shape[1] if until is None else min(int(until * rate), samples.shape[1])
        while self._samples < stop:
            end = self._samples + SOUND_BLOCK
            if end > stop and until is not None:
                return
            part = np.ascontiguousarray(samples[:, self._samples : end], np.float32)
            packed = self.audio.format.name == "flt"
            if packed:
                part = np.ascontiguousarray(part.T).reshape(1, -1)
            block = av.AudioFrame.from_ndarray(
                part, format=self.audio.format.name, layout=self.audio.layout.name
            )
            block.sample_rate = rate
            block.pts = self._samples
            self.out.mux(self.audio.encode(block))
            self._samples = min(end, samples.shape[1])

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:  # fmt: skip
        try:
            try:
                if error is None:
                    self._finish()
            finally:
                self.out.close()
            if error is None:
                self._publish()
        finally:
            self.partial.unlink(missing_ok=True)

    def _finish(self) -> None:
        if not self.frames:
            raise RuntimeError("no frame came, so no video is written")
        if self.sound is not None:
            self._write_sound(None)
            self.out.mux(self.audio.encode(None))
        self.out.mux(self.video.encode(None))

    def _publish(self) -> None:
        """Give the file its name, when every frame is in it and on the disk."""
        import av

        with av.open(str(self.partial)) as written:
            stream = written.streams.video[0]
            count = sum(packet.size > 0 for packet in written.demux(stream))
        if count != self.frames:  # a full disk is not always reported by the muxer
            raise OSError(
                f"{self.path} has {count} of {self.frames} frames after writing; is the disk full?"
            )
        with open(self.partial, "rb+") as f:
            os.fsync(f.fileno())
        os.replace(self.partial, self.path)


def write_mp4(path: Path, frames: Any, fps: float, comment: str) -> None:
    """Write frames, uint8 numpy [F, H, W, 3], as an H.264 mp4; see `open_writer`."""
    _, height, width, _ = frames.shape
    with open_writer(path, width, height, fps, comment, codec="h264") as out:
        for frame in frames:
            out.write(frame)


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
            "comment": source.metadata.get("comment", source.metadata.get("COMMENT", "")),
        }
    return np.stack(frames), facts


# ---- frames as encoders take them ----


def as_bytes(frame: Any) -> Any:
    """A frame as uint8: float frames are 0..1."""
    import numpy as np

    if frame.dtype == np.uint8:
        return frame
    return np.rint(frame * np.float32(255.0)).clip(0, 255).astype(np.uint8)


def as_floats(frame: Any) -> Any:
    """A frame as float32 0..1."""
    import numpy as np

    if frame.dtype == np.uint8:
        return frame.astype(np.float32) / 255.0
    return frame.astype(np.float32, copy=False)


def yuv420(frame: Any) -> Any:
    """BT.709 limited-range 4:2:0 of an sRGB frame: [H, W, 3] -> uint8 [H * 3 / 2, W].

    Done here and not by swscale, whose bytes were seen to differ between equal frames.
    """
    import numpy as np

    return _yuv(frame, 1, np.uint8)


def _yuv(frame: Any, scale: int, dtype: Any) -> Any:
    import numpy as np

    rgb = as_floats(frame)
    height, width, _ = frame.shape
    luma = rgb @ np.array([0.2126, 0.7152, 0.0722], np.float32)
    quarters = rgb.reshape(height // 2, 2, width // 2, 2, 3).mean((1, 3))
    middle = quarters @ np.array([0.2126, 0.7152, 0.0722], np.float32)
    blue = 128.0 + 224.0 * (quarters[..., 2] - middle) / 1.8556
    red = 128.0 + 224.0 * (quarters[..., 0] - middle) / 1.5748
    most = 256 * scale - 1
    planes = [16.0 + 219.0 * luma, blue, red]
    flat = np.concatenate([np.rint(p * scale).clip(0, most).astype(dtype).ravel() for p in planes])
    return flat.reshape(height * 3 // 2, width)


def _picture_8(frame: Any) -> Any:
    import av

    return av.VideoFrame.from_ndarray(yuv420(frame), format="yuv420p")


def _picture_10(frame: Any) -> Any:
    import av
    import numpy as np

    return av.VideoFrame.from_ndarray(_yuv(frame, 4, np.uint16), format="yuv420p10le")


def _picture_rgb(frame: Any) -> Any:
    """Blue, green, red and a byte of nothing for every pixel."""
    import av
    import numpy as np

    height, width, _ = frame.shape
    picture = av.VideoFrame(width, height, "bgr0")
    plane = picture.planes[0]
    lines = np.zeros((height, plane.line_size), np.uint8)
    pixels = lines[:, : 4 * width].reshape(height, width, 4)
    pixels[..., :3] = as_bytes(frame)[..., ::-1]
    plane.update(lines.tobytes())
    return picture
