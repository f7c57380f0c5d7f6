"""The engine comfyui with a real ComfyUI: the nano model, a restart, a whole job from the shell."""

import json
import threading
import time

import numpy as np
import pytest
from comfy_harness import server as harness
from conftest import furnished_server
from graphs import NANO, latent, loaders, node, text

pytest.importorskip("av")

from h3video.render.engines import comfyui_server
from h3video.render.engines.protocol import Cancel, Cancelled, ChunkRequest


@pytest.fixture(scope="module")
def own(comfyui, tmp_path_factory):
    server = furnished_server(comfyui, tmp_path_factory.mktemp("engine"))
    port = harness.free_port()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(harness, "free_port", lambda: port)
        server.start()
        yield server
        server.stop()


def nano_graph():
    """Text to video with the embedded model, nodes titled for chunks; pictures are kept as PNG."""
    prompt = loaders(NANO) | {
        "5": text("old words", "positive.text"), "6": text("", "negative.text"), "7": latent(NANO),
        "9": node("VAEDecode", samples=["8", 0], vae=["3", 0]),
        "10": node("SaveImage", "result", images=["9", 0], filename_prefix="chunk"),
    }  # fmt: skip
    prompt["7"]["_meta"] = {"title": "frames, width, height"}
    prompt["8"] = node(
        "KSampler", "seed, steps, cfg", model=["4", 0], positive=["5", 0], negative=["6", 0],
        latent_image=["7", 0], seed=0, steps=1, cfg=1.0, sampler_name="euler", scheduler="simple",
        denoise=1.0,
    )  # fmt: skip
    return prompt


def chain_graph(seconds=0.0):
    """A clip that is its first frame, again and again: shows what a chunk was started from."""
    return {
        "1": node("LoadImage", "first_frame", image="h3video_frame.png"),
        "2": node("ImageScale", "width, height", image=["1", 0], upscale_method="nearest-exact",
                  width=8, height=8, crop="disabled"),
        "3": node("TestSleep", images=["2", 0], seconds=seconds),
        "4": node("RepeatImageBatch", "frames.amount", image=["3", 0], amount=1),
        "5": node("SaveImage", "result", images=["4", 0], filename_prefix="chain"),
        "6": node("KSampler", "seed", seed=0),  # not connected, so never run
        "7": node("CLIPTextEncode", "positive", text=""),
    }  # fmt: skip


def engine(server, tmp_path, graph):
    path = tmp_path / "graph.json"
    path.write_text(json.dumps(graph))
    document = {"chunks": [{"prompt": "a", "negative": ""}]}
    return comfyui_server.open_engine(document, {"workflow": str(path), "server": server.url})


def request(**other):
    known = dict(
        index=0, frames=5, latent_frames=2, start=0, latent_start=0, width=64, height=48, fps=16,
        prompt="a red circle moves left", negative="", steps=2, cfg=2.0, seed=7,
    )  # fmt: skip
    return ChunkRequest(**{**known, **other})


def test_the_nano_model_makes_a_chunk(own, tmp_path):
    made, told = engine(own, tmp_path, nano_graph()), []
    assert "class_type" in made.identity()["workflow"]["nodes"]["8"]
    first = made.generate(request(), lambda *a: told.append(a), Cancel())
    assert first.frames.shape == (5, 48, 64, 3) and first.frames.std() > 5
    assert sum(s for p, s in told if "node 8" in p) == pytest.approx(1.0)
    again = made.generate(request(), lambda *a: None, Cancel())
    other = made.generate(request(index=1), lambda *a: None, Cancel())
    assert np.array_equal(first.frames, again.frames)
    assert not np.array_equal(first.frames, other.frames)
    made.release(everything=True)


def test_a_server_that_is_killed_and_started_again(own, tmp_path):
    made = engine(own, tmp_path, chain_graph(seconds=3.0))
    picture = np.random.default_rng(0).integers(0, 256, (48, 64, 3), np.uint8)

    def kill():
        while not own.json("/queue")["queue_running"]:
            time.sleep(0.05)
        own.process.kill()
        own.process.wait()
        own.start()

    timer = threading.Thread(target=kill)
    timer.start()
    result = made.generate(request(first_frame=picture), lambda *a: None, Cancel())
    timer.join()
    assert (result.frames == picture).all()


def test_a_stop_interrupts_the_server(own, tmp_path):
    made, cancel = engine(own, tmp_path, chain_graph(seconds=60.0)), Cancel()

    def stop():
        while not own.json("/queue")["queue_running"]:
            time.sleep(0.05)
        cancel.set()

    threading.Thread(target=stop).start()
    with pytest.raises(Cancelled):
        made.generate(request(seed=99), lambda *a: None, cancel)
    end = time.monotonic() + 20
    while own.json("/queue")["queue_running"] and time.monotonic() < end:
        time.sleep(0.05)
    assert not own.json("/queue")["queue_running"]


def test_a_job_from_the_shell(own, tmp_path, capsys):
    """Three chunks, each from the last picture of the one before, joined to a video."""
    from h3video.cli.main import main
    from h3video.render.video import read_mp4

    graph = tmp_path / "chain.json"
    graph.write_text(json.dumps(chain_graph()))
    command = [
        "render", "a red circle", "--engine", "comfyui", "--family", "wan", "--width", "64",
        "--height", "48", "--frames", "20", "--chunk-frames", "9", "--seed", "3", "--codec", "ffv1",
        "--engine-option", f"workflow={graph}", "--engine-option", f"server={own.url}",
        "-o", str(tmp_path / "out.mkv"),
    ]  # fmt: skip
    assert main(command) == 0, capsys.readouterr().err
    frames, facts = read_mp4(tmp_path / "out.mkv")
    assert frames.shape == (20, 48, 64, 3) and facts["codec"] == "ffv1"
    assert (frames == frames[0]).all() and frames[0].std() > 10
    assert len(list((tmp_path / "out.job" / "pieces").glob("frames-*.safetensors"))) == 3
