"""From a prompt to files, on the embedded model at small sizes."""

import json
import os
import signal
import subprocess
import sys
import time

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from h3video.cli.main import main
from h3video.render.latents import load_latents, read_job
from h3video.render.video import read_mp4, write_mp4

PROMPT = "a red circle moves left over blue waves"
SMALL = ["--width", "160", "--height", "96", "--frames", "9", "--steps", "2", "--dtype", "float32",
         "--device", "cpu"]  # fmt: skip


def render(path, *arguments):
    assert main(["render", PROMPT, "-o", str(path), *SMALL, *map(str, arguments)]) == 0
    latents = path.with_name(f"{path.stem}.latents.safetensors")
    return load_latents(latents)


@pytest.fixture(scope="module")
def tiled(tmp_path_factory):
    path = tmp_path_factory.mktemp("tiled") / "a.mp4"
    return path, render(path, "--hex-res", 3, "--seed", 5)


def test_the_video_is_what_was_asked(tiled):
    path, _ = tiled
    frames, facts = read_mp4(path)
    assert frames.shape == (9, 96, 160, 3)
    assert facts["fps"] == 16 and facts["codec"] == "h264" and facts["pix_fmt"] == "yuv420p"
    assert facts["color_range"] == 1 and facts["colorspace"] == 1  # limited, BT.709
    job = json.loads(facts["comment"])
    assert job["prompt"] == PROMPT and job["seed"] == 5 and job["hex_res"] == 3
    assert job["version"] and job["model"] == "nano"


def test_pictures_and_latents_lie_beside_it(tiled):
    from PIL import Image

    path, latents = tiled
    with Image.open(path.with_suffix(".png")) as sheet:
        assert sheet.width >= 960 and sheet.height > 500
    assert latents.shape == (1, 16, 3, 12, 20) and latents.dtype == torch.float32
    job, steps = read_job(path.with_name("a.latents.safetensors"))
    assert steps == job.steps == 2
    assert not [p for p in path.parent.iterdir() if "partial" in p.name]


def test_same_seed_and_plan_same_bytes(tiled, tmp_path):
    path, latents = tiled
    again = tmp_path / "b.mp4"
    assert torch.equal(render(again, "--hex-res", 3, "--seed", 5), latents)
    assert again.read_bytes() == path.read_bytes()
    assert not torch.equal(render(again, "--hex-res", 3, "--seed", 6), latents)


def test_decode_finishes_from_latents(tiled, tmp_path):
    path, _ = tiled
    out = tmp_path / "again.mp4"
    kept = path.with_name("a.latents.safetensors")
    arguments = ["decode", str(kept), "-o", str(out), "--dtype", "float32", "--device", "cpu"]
    assert main(arguments) == 0
    assert out.read_bytes() == path.read_bytes()


def test_shape_none_is_the_untiled_pipeline(tmp_path):
    from diffusers import WanPipeline

    from h3video import nano

    latents = render(tmp_path / "n.mp4", "--shape", "none", "--seed", 3)
    pipe = WanPipeline.from_pretrained(nano.path(), torch_dtype=torch.float32)
    pipe.set_progress_bar_config(disable=True)
    plain = pipe(
        PROMPT, width=160, height=96, num_frames=9, num_inference_steps=2, guidance_scale=4.0,
        generator=torch.Generator().manual_seed(3), output_type="latent",
    ).frames  # fmt: skip
    assert torch.equal(latents, plain)


def test_json_bill(tmp_path, capsys):
    out = tmp_path / "j.mp4"
    assert main(["render", PROMPT, "-o", str(out), *SMALL, "--hex-res", "3", "--json"]) == 0
    bill = json.loads(capsys.readouterr().out)
    assert [p["name"] for p in bill["phases"]] == ["encode", "denoise", "decode", "save"]
    assert all(p["seconds"] > 0 and p["host_peak_bytes"] > 0 for p in bill["phases"])
    sizes = bill["tile_sizes"]
    assert bill["tokens_per_tile"] == sizes[0]["tokens"]
    assert bill["tiles"] == sum(s["tiles"] for s in sizes)
    assert bill["tokens_per_pass"] == sum(s["tokens"] * s["tiles"] for s in sizes)
    assert bill["files"]["video"] == str(out)


def test_text_bill_and_unknown_words(tmp_path, capsys):
    assert main(["render", "a banana moves left over blue waves", "-o", str(tmp_path / "x.mp4"),
                 *SMALL, "--shape", "none"]) == 0  # fmt: skip
    shown = capsys.readouterr()
    assert "nano does not know 'banana'" in shown.err
    assert "peak memory" in shown.out and "tokens" in shown.out and "x.mp4" in shown.out


@pytest.mark.skipif(os.name == "nt", reason="needs POSIX signals")
@pytest.mark.parametrize("phase", ["denoise", "decode"])
def test_ctrl_c_stops_and_says_what_was_kept(tmp_path, phase):
    out = tmp_path / "c.mp4"
    steps = "200" if phase == "denoise" else "1"
    size = ["--width", "480", "--height", "288", "--frames", "17"]
    process = subprocess.Popen(
        [sys.executable, "-m", "h3video", "render", PROMPT, "-o", str(out), *SMALL, *size,
         "--steps", steps],
        stderr=subprocess.PIPE, text=True, env={**os.environ, "PYTHONUNBUFFERED": "1"},
    )  # fmt: skip
    seen = ""
    for char in iter(lambda: process.stderr.read(1), ""):
        seen += char
        # past the first finished step (2 passes), or into the decoder's bar
        if phase == "denoise" and (" 2%|" in seen or " 3%|" in seen):
            break
        if phase == "decode" and "decode:" in seen:
            break
    asked = time.monotonic()
    process.send_signal(signal.SIGINT)
    rest = process.communicate(timeout=60)[1]
    assert process.returncode == 130, seen + rest
    assert time.monotonic() - asked < 30
    assert not out.exists()
    kept = tmp_path / "c.latents.safetensors"
    assert kept.exists() and str(kept) in rest
    job, done = read_job(kept)
    if phase == "denoise":
        assert 1 <= done < 200 and f"stopped after step {done} of 200" in rest
    else:
        assert done == job.steps and "h3video decode" in rest


def test_seed_does_not_depend_on_the_plan(tmp_path):
    """With one step from pure noise the noise is what differs from the prediction."""
    one = render(tmp_path / "1.mp4", "--steps", 1, "--shape", "none", "--seed", 9)
    two = render(tmp_path / "2.mp4", "--steps", 1, "--hex-res", 3, "--halo", 96, "--seed", 9)
    other = render(tmp_path / "3.mp4", "--steps", 1, "--shape", "none", "--seed", 10)
    assert (one - two).norm() < 0.5 * (one - other).norm()


def test_videos_round_trip(tmp_path):
    frames = np.zeros((5, 64, 96, 3), np.uint8)
    frames[..., 0], frames[:, :, 48:, 1] = 200, 180
    path = tmp_path / "v.mp4"
    write_mp4(path, frames, 24, "note")
    back, facts = read_mp4(path)
    assert facts["fps"] == 24 and facts["comment"] == "note"
    inner = np.abs(back.astype(int) - frames)[:, 4:-4, 4:44]
    assert inner.max() <= 4  # right matrix and range: colours come back
    with pytest.raises(ValueError, match="even size"):
        write_mp4(tmp_path / "o.mp4", np.zeros((1, 5, 5, 3), np.uint8), 16, "")
    assert list(tmp_path.iterdir()) == [path]
