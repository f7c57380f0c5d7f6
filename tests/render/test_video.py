"""Files of every kind: frames and sound come back, colours are tagged, equal input makes equal
bytes, and what goes wrong leaves nothing behind."""

import hashlib
import os
import subprocess
import sys
import wave
from pathlib import Path

import numpy as np
import pytest

av = pytest.importorskip("av")

from h3video.errors import UsageError
from h3video.render import video
from h3video.render.exr import exr_bytes
from h3video.render.sequence import linear
from h3video.render.video import choose_codec, open_writer, read_mp4, write_mp4

ROOT = Path(__file__).parents[2]
KINDS = [("a.mp4", "h264"), ("a.mp4", "h265"), ("a.mp4", "av1"), ("a.mkv", "ffv1"),
         ("a.mkv", "h264"), ("a.png", "png"), ("a.exr", "exr")]  # fmt: skip


def clip(frames=21, height=64, width=96):
    y, x = np.mgrid[0:height, 0:width]
    return np.stack(
        [np.stack([x * 2 + f, y * 3, x + y + 3 * f], -1) % 256 for f in range(frames)]
    ).astype(np.uint8)


def sound(count=30_011, rate=24_000):
    wave_ = np.sin(np.arange(count) / 20.0) * 0.5
    return np.stack([wave_, wave_ * 0.5]).astype(np.float32), rate


def make(path, codec, frames=None, with_sound=True, fps=16, comment="a job"):
    frames = clip() if frames is None else frames
    _, height, width, _ = frames.shape
    with open_writer(path, width, height, fps, comment, codec=codec,
                     sound=sound() if with_sound else None) as out:  # fmt: skip
        for frame in frames:
            out.write(frame)
    return path if path.suffix in (".mp4", ".mkv") else path.with_suffix("")


def digest(path):
    files = sorted(path.iterdir()) if path.is_dir() else [path]
    return hashlib.sha256(b"".join(f.read_bytes() for f in files)).hexdigest()


@pytest.mark.parametrize(("name", "codec"), KINDS)
def test_equal_frames_make_equal_bytes(name, codec, tmp_path):
    (tmp_path / "one").mkdir()
    first = make(tmp_path / "one" / name, codec)
    make(tmp_path / "other.mp4", "h264", clip(9, 32, 32))  # what the process did before
    (tmp_path / "two").mkdir()
    second = make(tmp_path / "two" / name, codec)
    assert digest(first) == digest(second)
    assert sorted(p.name for p in first.parent.iterdir()) == [first.name]


LOSS = {"h264": (12, 1.8), "h265": (12, 2.2), "av1": (12, 2.6), "ffv1": (0, 0.0)}


@pytest.mark.parametrize(("name", "codec"), [k for k in KINDS if k[1] in LOSS])
def test_frames_come_back_with_tags_and_comment(name, codec, tmp_path):
    back, facts = read_mp4(make(tmp_path / name, codec))
    apart = np.abs(back.astype(int) - clip())
    most, mean = LOSS[codec]
    assert apart.max() <= most and apart.mean() <= mean
    assert facts["fps"] == 16 and facts["comment"] == "a job"
    assert facts["colorspace"] == (0 if codec == "ffv1" else 1)
    assert facts["color_range"] == (2 if codec == "ffv1" else 1)
    with av.open(str(tmp_path / name)) as file:
        context = file.streams.video[0].codec_context
        assert context.color_primaries == context.color_trc == 1
        if codec == "h265":
            assert context.codec_tag == "hvc1" and context.pix_fmt == "yuv420p10le"


@pytest.mark.parametrize(("name", "codec"), [k for k in KINDS if k[1] in LOSS])
def test_sound_is_as_long_as_it_was(name, codec, tmp_path):
    make(tmp_path / name, codec)
    samples, rate = sound()
    with av.open(str(tmp_path / name)) as file:
        stream = file.streams.audio[0]
        assert stream.rate == rate and stream.channels == 2
        if stream.duration is not None:
            assert stream.duration * stream.time_base == pytest.approx(
                samples.shape[1] / rate, abs=1e-9
            )
        decoded = np.concatenate([f.to_ndarray() for f in file.decode(stream)], -1)
    if codec == "ffv1":
        assert np.array_equal(decoded.reshape(-1, 2).T, samples)
    else:
        assert 0 <= decoded.shape[1] - samples.shape[1] < 2048  # players cut at the duration
        assert np.abs(decoded[:, 2048:28000] - samples[:, 2048:28000]).max() < 0.05


@pytest.mark.parametrize("fps", [23.976, 29.97, 24, 12.5])
def test_odd_rates(fps, tmp_path):
    make(tmp_path / "a.mp4", "h264", fps=fps)
    _, facts = read_mp4(tmp_path / "a.mp4")
    assert facts["fps"] == pytest.approx(fps, abs=1e-4)


def test_pictures(tmp_path):
    from PIL import Image

    folder = make(tmp_path / "a.png", None)
    names = [f"{i:06d}.png" for i in range(1, 22)]
    assert sorted(p.name for p in folder.iterdir()) == [*names, "comment.txt", "sound.wav"]
    for i, name in enumerate(names):
        with Image.open(folder / name) as picture:
            assert np.array_equal(np.asarray(picture), clip()[i])
            assert "srgb" in picture.info
    assert (folder / "comment.txt").read_text() == "a job"
    with wave.open(str(folder / "sound.wav")) as file:
        assert (file.getnchannels(), file.getframerate(), file.getnframes()) == (2, 24_000, 30_011)
        data = np.frombuffer(file.readframes(30_011), "<i2").reshape(-1, 2).T
    assert np.abs(data / 32767.0 - sound()[0]).max() < 1e-4


def halfs(path):
    """What FFmpeg reads in an EXR file: [H, W, 3]."""
    with av.open(str(path)) as file:
        frame = next(iter(file.decode(video=0)))
    assert frame.format.name == "gbrpf16le"
    planes = [
        np.frombuffer(bytes(p), np.float16).reshape(frame.height, -1)[:, : frame.width]
        for p in frame.planes
    ]
    return np.stack([planes[2], planes[0], planes[1]], -1)


@pytest.mark.parametrize("size", [(64, 96), (1, 1), (17, 5), (33, 250)])
def test_another_reader_reads_our_exr(size, tmp_path):
    picture = np.random.default_rng(0).random((*size, 3), np.float32) * 4.0 - 0.5
    (tmp_path / "a.exr").write_bytes(exr_bytes(picture, 23.976, "note"))
    assert np.array_equal(halfs(tmp_path / "a.exr"), picture.astype(np.float16))
    flat = np.zeros((*size, 3), np.float32)  # deflates to less, noise does not
    (tmp_path / "b.exr").write_bytes(exr_bytes(flat))
    assert not halfs(tmp_path / "b.exr").any()


def test_exr_sequences_are_linear_light(tmp_path):
    frames = np.random.default_rng(0).random((2, 20, 30, 3), np.float32)
    folder = make(tmp_path / "a.exr", None, frames)
    assert np.array_equal(halfs(folder / "000002.exr"), linear(frames[1]).astype(np.float16))
    assert linear(np.float32([0.0, 0.5, 1.0])) == pytest.approx([0.0, 0.21404, 1.0], abs=1e-5)


def test_float_frames_are_the_same_as_bytes(tmp_path):
    as_float = clip(5).astype(np.float32) / 255.0
    a = make(tmp_path / "a.mkv", "ffv1", clip(5))
    b = make(tmp_path / "b.mkv", "ffv1", as_float)
    assert digest(a) == digest(b)


# ---- what goes wrong ----


@pytest.mark.parametrize(
    ("name", "codec", "says"),
    [
        ("a.gif", None, "ends in .gif; use .mp4, .mkv, .png, .exr"),
        ("a", None, "ends in nothing"),
        ("a.mp4", "ffv1", "codec ffv1 is written to .mkv"),
        ("a.png", "h264", "codec h264 is written to .mp4 or .mkv"),
        ("a.mp4", "divx", "codec 'divx' is unknown; use h264, h265, av1, ffv1, png, exr"),
    ],
)
def test_names_and_codecs_must_agree(name, codec, says, tmp_path):
    with pytest.raises(UsageError, match=says):
        choose_codec(tmp_path / name, codec)
    assert not list(tmp_path.iterdir())


def test_a_missing_encoder_is_named(monkeypatch, tmp_path):
    gone = {**video.CODECS, "av1": video.Codec(
        "av1", "AV1", ("libnot", "libneither"), {}, "yuv420p10le", 10, (".mp4",))}  # fmt: skip
    monkeypatch.setattr(video, "CODECS", gone)
    with pytest.raises(UsageError, match=r"PyAV .* has no AV1 encoder \(libnot or libneither\)"):
        choose_codec(tmp_path / "a.mp4", "av1")


def test_sizes_and_sounds_are_checked_before_writing(tmp_path):
    with pytest.raises(UsageError, match="needs an even size, got 97x64"):
        open_writer(tmp_path / "a.mp4", 97, 64, 16)
    open_writer(tmp_path / "a.mkv", 97, 63, 16)
    with pytest.raises(UsageError, match="AAC has no rate of 40000"):
        open_writer(tmp_path / "a.mp4", 96, 64, 16, sound=(sound()[0], 40_000))
    with pytest.raises(UsageError, match="1 or 2 channels"):
        open_writer(tmp_path / "a.mp4", 96, 64, 16, sound=(np.zeros((6, 9), np.float32), 48_000))
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(("name", "codec"), KINDS)
def test_an_error_leaves_nothing_and_keeps_the_old_file(name, codec, tmp_path):
    made = make(tmp_path / name, codec, clip(3), with_sound=False)
    before = digest(made)

    class Stop(Exception):
        pass

    with pytest.raises(Stop), open_writer(tmp_path / name, 96, 64, 16, codec=codec) as out:
        out.write(clip(1)[0])
        raise Stop
    assert digest(made) == before and list(tmp_path.iterdir()) == [made]
    for frames, says in (
        ([], "no frame came"),
        ([np.zeros((5, 5, 3), np.uint8)], r"a frame of \(5, 5, 3\)"),
    ):
        writer = open_writer(tmp_path / name, 96, 64, 16, codec=codec)
        with pytest.raises(RuntimeError, match=says), writer as out:
            for frame in frames:
                out.write(frame)
    assert digest(made) == before and list(tmp_path.iterdir()) == [made]


def test_folders_with_other_things_are_left_alone(tmp_path):
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "holiday.png").write_bytes(b"mine")
    with pytest.raises(UsageError, match=r"holds other files \(holiday.png\)"):
        make(tmp_path / "a.png", None)
    assert (tmp_path / "a" / "holiday.png").read_bytes() == b"mine"
    (tmp_path / "b").write_text("a file")
    with pytest.raises(UsageError, match="is a file"):
        make(tmp_path / "b.png", None)


def test_a_shorter_sequence_replaces_a_longer_one(tmp_path):
    make(tmp_path / "a.png", None, clip(9))
    folder = make(tmp_path / "a.png", None, clip(4), with_sound=False)
    assert len(list(folder.glob("*.png"))) == 4 and not (folder / "sound.wav").exists()


FULL = """
import resource, signal, sys
import numpy as np
from pathlib import Path
from h3video.render.video import open_writer
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv[3]), resource.RLIM_INFINITY))
dice = np.random.default_rng(0)
try:
    with open_writer(Path(sys.argv[1]), 96, 64, 16, codec=sys.argv[2]) as out:
        for _ in range(12):
            out.write(dice.integers(0, 256, (64, 96, 3), np.uint8))
except OSError as e:
    print("refused", type(e).__name__)
"""


@pytest.mark.skipif(sys.platform == "win32", reason="limits of a process are POSIX")
@pytest.mark.parametrize("most", [0, 3000, 60_000])
@pytest.mark.parametrize(
    ("name", "codec"), [("a.mp4", "h264"), ("a.mkv", "ffv1"), ("a.png", "png")]
)
def test_a_disk_that_is_full_is_an_error_and_no_video(name, codec, most, tmp_path):
    if codec == "png" and most == 60_000:
        pytest.skip("a picture is smaller")
    run = subprocess.run(
        [sys.executable, "-c", FULL, str(tmp_path / name), codec, str(most)], cwd=ROOT,
        capture_output=True, text=True, env={**os.environ, "PYTHONPATH": str(ROOT)},
    )  # fmt: skip
    assert run.stdout.startswith("refused"), run.stdout + run.stderr
    assert list(tmp_path.iterdir()) == []


def test_write_mp4_is_the_same_writer(tmp_path):
    write_mp4(tmp_path / "a.mp4", clip(5), 16, "a job")
    assert digest(tmp_path / "a.mp4") == digest(
        make(tmp_path / "b.mp4", "h264", clip(5), with_sound=False)
    )
