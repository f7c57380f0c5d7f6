"""The engine h3c against a stand-in with the command line of antirez/h3.c."""

import json
import os
import signal
import stat
import sys
import threading
import time
from pathlib import Path

import numpy as np
import pytest

av = pytest.importorskip("av")

from h3video.errors import UsageError
from h3video.render.engines import h3c
from h3video.render.engines.h3c.command import Said, Screen, check_job, chunk_command, option_flags
from h3video.render.engines.h3c.results import Incomplete, read_ppm, read_sound
from h3video.render.engines.protocol import Cancel, Cancelled, ChunkRequest, Engine, EngineDied

STAND_IN = '''#!{python}
"""Command line, files, screen and exit codes of antirez/h3.c's main.c, without the model."""
import argparse, json, os, signal, sys, time
from pathlib import Path
import numpy as np

p = argparse.ArgumentParser(allow_abbrev=False, add_help=False, prog="h3")
p.add_argument("-d", "--model-dir")
p.add_argument("-p", "--prompt")
p.add_argument("-o", "--output", default="outputs/h3.mp4")
for name in ("width", "height", "render-width", "render-height", "frames", "steps", "reuse",
             "layers", "core-reuse", "seed"):
    p.add_argument("--" + name, type=int)
for name in ("token-reduction", "ssd-streaming", "use-int8-row-fc2", "use-reference-rope",
             "profile", "info"):
    p.add_argument("--" + name, action="store_true")
p.add_argument("--first-frame")
p.add_argument("--last-frame")
p.add_argument("--frames-dir")
a = p.parse_args()
say = lambda text: (sys.stderr.write(text), sys.stderr.flush())
if not a.model_dir:
    say("Usage: h3 -d MODEL_DIR [options]\\n"); sys.exit(2)
if not (Path(a.model_dir) / "FL2VA").is_dir():
    say("h3: cannot open " + a.model_dir + "/FL2VA\\n"); sys.exit(1)
if not Path("h3_shaders.metal").is_file():  # found from the working directory, as in h3_gpu.m
    say("h3: cannot read h3_shaders.metal\\n"); sys.exit(1)
if a.info:
    print("h3-metal 0.1.0-dev"); print("Device: a stand-in"); sys.exit(0)
with open(Path(a.model_dir) / "calls.jsonl", "a") as f:
    f.write(json.dumps(sys.argv[1:]) + "\\n")
trick = (Path(a.model_dir) / "trick").read_text().split() if (
    Path(a.model_dir) / "trick").exists() else [""]
if a.frames_dir:
    os.mkdir(a.frames_dir)

def progress(phase, done, total):
    say("\\r%-25s %4d/%-4d" % (phase, done, total))
    if done >= total:
        say("\\n")

progress("tokenizer", 0, 1); progress("tokenizer", 1, 1)
for i in range(0, 51, 10):
    progress("text encoder", i, 50)
if trick[0] == "error":
    say("h3: cannot map weights: out of memory\\n" if trick[1] == "memory" else
        "h3: DiT layout contains an unknown segment\\n"); sys.exit(1)
for i in range(50):
    progress("load transformer core", i + 1, 50)
for i in range(a.steps + 1):
    progress("denoise enqueue", i, a.steps)
    progress("denoise", i, a.steps)
    if trick[0] == "die" and i == 2:
        os.kill(os.getpid(), int(trick[1]))
    if trick[0] == "hang" and i == 2:
        (Path(a.model_dir) / "pid").write_text(str(os.getpid()))
        signal.signal(signal.SIGTERM, signal.SIG_IGN if trick[1] == "deaf" else signal.SIG_DFL)
        time.sleep(60)
frames = 5 + -(-max(a.frames - 5, 0) // 17) * 17
base = np.zeros((a.height, a.width, 3), np.uint8)
if a.first_frame:
    import av
    with av.open(a.first_frame) as file:
        base = next(file.decode(video=0)).to_ndarray(format="rgb24")
for i in range(frames - (trick[0] == "short")):
    picture = (base.astype(int) + i * (a.seed % 7 + 1)).clip(0, 255).astype(np.uint8)
    with open(Path(a.frames_dir) / ("frame-%04d.ppm" % i), "wb") as f:
        f.write(b"P6\\n%d %d\\n255\\n" % (a.width, a.height) + picture.tobytes())
if a.output:
    import av
    with av.open(a.output, "w") as out:
        video = out.add_stream("libx264", rate=24)
        video.width, video.height, video.pix_fmt = a.width, a.height, "yuv420p"
        sound = out.add_stream("aac", rate=32000)
        sound.layout = "stereo"
        for i in range(frames):
            out.mux(video.encode(av.VideoFrame.from_ndarray(base, format="rgb24")))
        n = round(frames / 24 * 32000)
        tone = 0.5 * np.sin(np.arange(n) * 2 * np.pi * 440 / 32000).astype(np.float32)
        for k in range(0, n, 1024):
            part = np.ascontiguousarray(np.stack([tone, tone])[:, k:k + 1024])
            block = av.AudioFrame.from_ndarray(part, format="fltp", layout="stereo")
            block.sample_rate, block.pts = 32000, k
            out.mux(sound.encode(block))
        out.mux(sound.encode(None))
        out.mux(video.encode(None))
    say("h3: wrote %s\\n" % a.output)
'''


@pytest.fixture
def place(tmp_path):
    """The stand-in with its shaders, and a model folder."""
    binary = tmp_path / "bin" / "h3"
    binary.parent.mkdir()
    binary.write_text(STAND_IN.replace("{python}", sys.executable))
    binary.chmod(binary.stat().st_mode | stat.S_IXUSR)
    (binary.parent / "h3_shaders.metal").write_text("kernel")
    model = tmp_path / "MiniMax-H3"
    (model / "FL2VA").mkdir(parents=True)
    (model / "FL2VA" / "part.safetensors").write_bytes(b"weights")
    return binary, model


def document(model, chunks=1, **settings):
    known = {"width": 64, "height": 32, "fps": 24, "steps": 4, "cfg": 1.0, "seed": 3}
    return {
        "model": {"file": str(model)}, "settings": {**known, **settings},
        "plan": {"chunks": [{"frames": 22}] * chunks},
        "chunks": [{"prompt": "a fox", "negative": ""}] * chunks,
    }  # fmt: skip


def request(index=0, first_frame=None, **other):
    known = dict(
        index=index, frames=22, latent_frames=7, start=index * 21, latent_start=index * 7, width=64,
        height=32, fps=24, prompt="a fox", negative="", steps=4, cfg=1.0, seed=3,
        first_frame=first_frame,
    )  # fmt: skip
    return ChunkRequest(**{**known, **other})


def engine(place, **options):
    binary, model = place
    return h3c.open_engine(document(model), {"binary": str(binary), **options})


def calls(place):
    return [json.loads(line) for line in (place[1] / "calls.jsonl").read_text().splitlines()]


def ignore(phase, share):
    pass


def test_it_is_an_engine(place):
    made = engine(place)
    assert isinstance(made, Engine)
    assert (made.name, made.continuity, made.gives) == ("h3c", *h3c.traits({}))


def test_chunks_are_chained_by_their_last_picture(place):
    made, told = engine(place), []
    first = made.generate(request(), lambda *a: told.append(a), Cancel())
    assert first.frames.shape == (22, 32, 64, 3) and first.frames.dtype == np.uint8
    assert first.frames[:, 0, 0, 0].tolist() == [i * 4 for i in range(22)]  # seed 3: 4 a frame
    assert first.sound.rate == 32_000 and first.sound.samples.shape == (2, 29_333)
    second = made.generate(request(1, first.frames[-1]), ignore, Cancel())
    assert np.array_equal(second.frames[0], first.frames[-1])  # bit for bit
    assert second.frames[1, 0, 0, 0] - second.frames[0, 0, 0, 0] == 5  # a seed of its own
    one, two = calls(place)
    assert "--first-frame" not in one and "--first-frame" in two
    assert two[two.index("--seed") + 1] == "4"
    for phase in ("text encoder", "load transformer core", "denoise"):
        assert sum(s for p, s in told if p == phase) == pytest.approx(1.0), phase
    assert not [p for p, _ in told if "enqueue" in p]
    assert not list(Path(os.environ.get("TMPDIR", "/tmp")).glob("h3video-h3c-*/frames"))


def test_sound_is_the_programs(place):
    sound = engine(place).generate(request(), ignore, Cancel()).sound
    spectrum = np.abs(np.fft.rfft(sound.samples[0]))
    assert abs(np.argmax(spectrum) * 32_000 / sound.samples.shape[1] - 440.0) < 2.0


def test_options_become_flags(place):
    flags = ["--reuse", "2", "--layers", "45", "--ssd-streaming"]
    made = engine(place, reuse="2", layers="45", **{"ssd-streaming": "yes"})
    made.generate(request(), ignore, Cancel())
    line = calls(place)[0]
    assert all(flag in line for flag in flags)
    assert line[line.index("--width") + 1] == "64" and line[line.index("-p") + 1] == "a fox"


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"reuse": "4"}, "reuse '4' is out of range 1..3"),
        ({"layers": "x"}, "layers 'x' is out of range 35..50"),
        ({"speed": "2"}, "has no option speed; use binary, model, reuse"),
        ({"token-reduction": "1"}, "neither yes nor no"),
        ({"reuse": "2", "core-reuse": "4"}, "cannot combine reuse with core-reuse"),
        ({"ssd-streaming": "yes", "int8-row-fc2": "yes"}, "cannot combine ssd-streaming"),
        ({"render-size": "100x64"}, "no WxH in multiples of 32"),
    ],
)
def test_wrong_options_are_refused(options, says):
    with pytest.raises(UsageError, match=says):
        option_flags(options)


@pytest.mark.parametrize(
    ("size", "says"),
    [
        ((60, 32, 22, 24, 4), "width 60 is not a multiple of 32"),
        ((1344, 800, 22, 24, 4), "1,075,200 pixels, h3.c takes 1,032,192"),
        ((64, 32, 379, 24, 4), "379 frames is out of range 5..362"),
        ((64, 32, 22, 16, 4), "fps 16 is not 24"),
        ((64, 32, 22, 24, 1), "steps 1 is out of range 2..1000"),
    ],
)
def test_what_h3c_would_refuse_is_refused_before(size, says):
    with pytest.raises(UsageError, match=says):
        check_job(*size)


def test_what_is_missing_is_named(place, tmp_path):
    binary, model = place
    with pytest.raises(UsageError, match="program nowhere of engine h3c is not there"):
        h3c.open_engine(document(model), {"binary": "nowhere"})
    with pytest.raises(UsageError, match=r"model folder .*gone is not there"):
        h3c.open_engine(document(tmp_path / "gone"), {"binary": str(binary)})
    told = document(model)
    told["chunks"][0] = {"prompt": "a fox", "negative": "blurry"}
    with pytest.raises(UsageError, match="knows no negative prompt"):
        h3c.open_engine(told, {"binary": str(binary)})
    (tmp_path / "empty").mkdir()
    made = h3c.open_engine(document(tmp_path / "empty"), {"binary": str(binary)})
    with pytest.raises(UsageError, match=r"does not run with .*cannot open .*FL2VA"):
        made.identity()


def test_identity_sees_the_program_and_the_model_change(place):
    binary, model = place
    before = engine(place).identity()
    assert before["program_version"] == "h3-metal 0.1.0-dev"
    assert engine(place).identity() == before
    (model / "FL2VA" / "part.safetensors").write_bytes(b"Weights")
    after = engine(place).identity()
    assert after["model"] != before["model"] and after["program"] == before["program"]
    (binary.parent / "h3_shaders.metal").write_text("other")
    assert engine(place).identity()["shaders"] != before["shaders"]


@pytest.mark.parametrize(
    ("trick", "error", "says"),
    [
        ("error memory", MemoryError, "failed .1.: cannot map weights: out of memory"),
        ("error other", RuntimeError, "DiT layout contains an unknown segment"),
        ("die 9", EngineDied, "ended by SIGKILL .the system does that when memory runs out"),
        ("die 11", EngineDied, "ended by SIGSEGV$"),
        ("short", Incomplete, "wrote 21 frames, 22 were asked for"),
    ],
)
def test_a_program_that_fails_is_understood(place, trick, error, says):
    (place[1] / "trick").write_text(trick)
    with pytest.raises(error, match=says):
        engine(place).generate(request(), ignore, Cancel())


def gone(pid):
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    return Path(f"/proc/{pid}/stat").read_text().split()[2] == "Z"


@pytest.mark.parametrize("how", ["polite", "deaf"])
def test_a_stop_ends_the_program(place, how, monkeypatch):
    from h3video.render.engines.h3c import process

    monkeypatch.setattr(process, "PATIENCE", 0.5)
    (place[1] / "trick").write_text(f"hang {how}")
    cancel = Cancel()
    timer = threading.Thread(target=lambda: (wait_for(place[1] / "pid"), cancel.set()))
    timer.start()
    started = time.monotonic()
    with pytest.raises(Cancelled):
        engine(place).generate(request(), ignore, cancel)
    timer.join()
    assert time.monotonic() - started < 30
    assert gone(int((place[1] / "pid").read_text()))


def wait_for(path):
    while not (path.exists() and path.read_text()):
        time.sleep(0.02)


def test_ctrl_c_ends_the_program(place, monkeypatch):
    (place[1] / "trick").write_text("hang polite")

    def press():
        wait_for(place[1] / "pid")
        signal.raise_signal(signal.SIGINT)

    timer = threading.Thread(target=press)
    timer.start()
    with pytest.raises(KeyboardInterrupt):
        engine(place).generate(request(), ignore, Cancel())
    timer.join()
    assert gone(int((place[1] / "pid").read_text()))


def test_a_job_from_the_shell(place, tmp_path, capsys):
    """Three chunks with sound, joined to what was asked for; a lost one alone is made again."""
    from h3video.cli.main import main
    from h3video.render.video import read_mp4

    binary, model = place
    command = ["render", "a fox", "--engine", "h3c", "--width", "64", "--height", "32"]
    command += ["--frames", "57", "--chunk-frames", "22", "--steps", "4", "--codec", "ffv1"]
    command += ["--engine-option", f"binary={binary}", "--engine-option", f"model={model}"]
    command += ["-o", str(tmp_path / "out.mkv")]
    assert main(command) == 0, capsys.readouterr().err
    frames, _ = read_mp4(tmp_path / "out.mkv")
    assert frames.shape == (57, 32, 64, 3) and len(calls(place)) == 3
    with av.open(str(tmp_path / "out.mkv")) as file:
        assert sum(f.samples for f in file.decode(audio=0)) == 57 * 32_000 // 24
    (tmp_path / "out.mkv").unlink()
    (tmp_path / "out.job" / "pieces" / "frames-0001.safetensors").unlink()
    assert main(["resume", str(tmp_path / "out.job")]) == 0, capsys.readouterr().err
    again, _ = read_mp4(tmp_path / "out.mkv")
    assert len(calls(place)) == 4 and np.array_equal(frames, again)


# ---- the screen ----


def test_the_screen_in_pieces_of_any_size():
    line = "".join(f"\r{'denoise':25s} {i:4d}/{20:<4d}" for i in range(21)) + "\n"
    text = f"\r{'text encoder':25s} {0:4d}/{50:<4d}" + line + "h3: wrote out.mp4\n"
    want = [Said("text encoder", 0, 50), *(Said("denoise", i, 20) for i in range(21)),
            Said(text="h3: wrote out.mp4")]  # fmt: skip
    for size in (1, 2, 3, 7, 30, 31, 64, 10_000):
        screen, found = Screen(), []
        for k in range(0, len(text), size):
            found += screen.feed(text[k : k + size])
        assert [*found, *screen.end()] == want, size


def test_progress_is_heard_before_its_line_ends():
    assert list(Screen().feed(f"\r{'denoise':25s} {3:4d}/{20:<4d}")) == [Said("denoise", 3, 20)]


def test_paths_and_prompts_are_never_taken_for_progress():
    screen = Screen()
    said = list(screen.feed("h3: cannot write frame 3 to /tmp/12/34\nh3: frame 1/22 via kitty\n"))
    assert [s.phase for s in said] == ["", ""]


def test_a_prompt_goes_in_as_one_argument(tmp_path):
    wild = 'a "fox"; rm -rf $HOME\n--steps 1'
    line = chunk_command(Path("h3"), tmp_path, [], request(prompt=wild), tmp_path)
    assert line[line.index("-p") + 1] == wild


# ---- files ----


def test_cut_pictures_are_refused(tmp_path):
    good = b"P6\n4 2\n255\n" + bytes(24)
    (tmp_path / "a.ppm").write_bytes(good)
    assert read_ppm(tmp_path / "a.ppm", 4, 2).shape == (2, 4, 3)
    for bad in (good[:-1], good + b"x", good.replace(b"4 2", b"2 4"), b""):
        (tmp_path / "a.ppm").write_bytes(bad)
        with pytest.raises(Incomplete):
            read_ppm(tmp_path / "a.ppm", 4, 2)


def test_a_video_without_sound(tmp_path):
    from h3video.render.video import write_mp4

    write_mp4(tmp_path / "a.mp4", np.zeros((3, 32, 32, 3), np.uint8), 24, "")
    assert read_sound(tmp_path / "a.mp4", 3, 24) is None
