"""The engine comfyui against a server that fails in every way; tests/comfy has the real one."""

import importlib.util
import json
import threading
import time
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("PIL")
pytest.importorskip("av")

from h3video.errors import UsageError
from h3video.render.engines import comfyui_server
from h3video.render.engines.comfyui_server import follow
from h3video.render.engines.comfyui_server.server import Server
from h3video.render.engines.comfyui_server.websocket import WebSocket, WebSocketError
from h3video.render.engines.comfyui_server.workflow import load_workflow
from h3video.render.engines.protocol import Cancel, Cancelled, ChunkRequest, Engine, EngineDied

_spec = importlib.util.spec_from_file_location(
    "fake_comfyui", Path(__file__).with_name("fake_comfyui.py")
)
fake_comfyui = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(fake_comfyui)

GRAPH = {
    "1": {"class_type": "KSampler", "inputs": {"seed": 1, "steps": 9, "cfg": 3.0},
          "_meta": {"title": "seed, steps, cfg"}},
    "2": {"class_type": "CLIPTextEncode", "inputs": {"text": "old", "clip": ["7", 0]},
          "_meta": {"title": "positive"}},
    "3": {"class_type": "CLIPTextEncode", "inputs": {"text": "ugly", "clip": ["7", 0]},
          "_meta": {"title": "Negative.text"}},
    "4": {"class_type": "EmptyLatent", "inputs": {"length": 9, "width": 1, "height": 1},
          "_meta": {"title": "frames.length, width, height"}},
    "5": {"class_type": "LoadImage", "inputs": {"image": "mine.png"},
          "_meta": {"title": "first_frame.image"}},
    "8": {"class_type": "PreviewImage", "inputs": {}, "_meta": {"title": "Preview"}},
    "9": {"class_type": "SaveImage", "inputs": {}, "_meta": {"title": "result"}},
}  # fmt: skip


@pytest.fixture
def comfy(monkeypatch):
    monkeypatch.setattr(follow, "LOOK", 0.5)
    made = []

    def start(*plan, **more):
        made.append(fake_comfyui.FakeComfy(plan or ("good",), **more))
        return made[-1]

    yield start
    for server in made:
        server.stop()


def engine(server, tmp_path, graph=None, **options):
    path = tmp_path / "graph.json"
    path.write_text(json.dumps(graph or GRAPH))
    document = {"chunks": [{"prompt": "a fox", "negative": ""}]}
    known = {"workflow": str(path), "server": server.url}
    return comfyui_server.open_engine(document, known | options)


def request(index=0, **other):
    known = dict(
        index=index, frames=5, latent_frames=2, start=index * 4, latent_start=0, width=64,
        height=32, fps=16, prompt="a fox", negative="", steps=4, cfg=1.5, seed=40,
    )  # fmt: skip
    return ChunkRequest(**{**known, **other})


def ignore(phase, share):
    pass


def test_a_chunk_fills_the_titled_inputs_and_comes_back(comfy, tmp_path):
    server, told = comfy(), []
    made = engine(server, tmp_path)
    assert isinstance(made, Engine) and made.continuity == "first-frame"
    result = made.generate(request(negative="fog"), lambda *a: told.append(a), Cancel())
    nodes = server.prompts[0]
    assert nodes["1"]["inputs"] == {"seed": 40, "steps": 4, "cfg": 1.5}
    assert nodes["2"]["inputs"] == {"text": "a fox", "clip": ["7", 0]}
    assert nodes["3"]["inputs"]["text"] == "fog"
    assert nodes["4"]["inputs"] == {"length": 5, "width": 64, "height": 32}
    assert nodes["5"]["inputs"]["image"] == "mine.png"  # no first frame was given
    assert result.frames.shape == (5, 32, 64, 3)
    assert result.frames[:, 0, 0, 0].tolist() == [0, 1, 2, 3, 4]
    assert result.sound is None
    assert sum(s for p, s in told if "node 1" in p) == pytest.approx(1.0)


def test_the_next_chunk_starts_from_a_picture(comfy, tmp_path):
    server = comfy()
    made = engine(server, tmp_path)
    picture = np.full((32, 64, 3), 77, np.uint8)
    result = made.generate(request(1, first_frame=picture), ignore, Cancel())
    name = server.prompts[0]["5"]["inputs"]["image"]
    assert np.array_equal(server.uploads[name], picture) and name.startswith("h3video/")
    assert (result.frames[..., 2] == 77).all() and (result.frames[..., 1] == 41).all()


def test_same_seed_for_all_chunks_if_asked(comfy, tmp_path):
    server = comfy()
    engine(server, tmp_path).generate(request(3, noise="chunk"), ignore, Cancel())
    assert server.prompts[0]["1"]["inputs"]["seed"] == 40


@pytest.mark.parametrize(
    ("plan", "error", "says"),
    [
        ("error", RuntimeError, r"seed, steps, cfg \(node 1\) failed on the server: ValueError"),
        ("oom", MemoryError, "OutOfMemoryError: Allocation on device"),
        ("interrupted", Cancelled, "interrupted on the server"),
        ("empty", UsageError, "saved no pictures and no video"),
    ],
)
def test_what_a_server_reports_is_understood(comfy, tmp_path, plan, error, says):
    with pytest.raises(error, match=says):
        engine(comfy(plan), tmp_path).generate(request(), ignore, Cancel())


def test_a_refused_workflow_is_named_with_the_servers_words(comfy, tmp_path):
    server = comfy()
    server.refuse = {
        "error": {"message": "Prompt outputs failed validation"},
        "node_errors": {"4": {"errors": [
            {"message": "Value not in list", "details": "length: 5 not in [1]"}]}},
    }  # fmt: skip
    with pytest.raises(UsageError, match=r"frames.length, width, height \(node 4\): Value not in"):
        engine(server, tmp_path).generate(request(), ignore, Cancel())
    assert len(server.prompts) == 1


def test_events_that_are_missed_do_not_matter(comfy, tmp_path):
    result = engine(comfy("silent"), tmp_path).generate(request(), ignore, Cancel())
    assert len(result.frames) == 5


def test_a_cut_connection_is_made_again_and_nothing_is_done_twice(comfy, tmp_path):
    server = comfy("hang")
    timer = threading.Thread(target=lambda: cut_and_let_go(server))
    timer.start()
    result = engine(server, tmp_path).generate(request(), ignore, Cancel())
    timer.join()
    assert len(result.frames) == 5 and len(server.prompts) == 1


def cut_and_let_go(server):
    wait(lambda: server.queue)
    for _ in range(2):
        time.sleep(0.2)
        server.drop()
    time.sleep(0.2)
    prompt_id = next(iter(server.queue))
    server.done[prompt_id] = {
        "outputs": server.results(server.prompts[0]), "status": {"completed": True},
    }  # fmt: skip


def test_a_restarted_server_is_given_the_chunk_again(comfy, tmp_path):
    server = comfy("hang", "good")

    def restart():
        wait(lambda: server.queue)
        server.stop()
        time.sleep(0.7)
        server.start()

    timer = threading.Thread(target=restart)
    timer.start()
    result = engine(server, tmp_path).generate(request(), ignore, Cancel())
    timer.join()
    assert len(result.frames) == 5 and len(server.prompts) == 2
    assert server.prompts[0] == server.prompts[1]


def test_a_server_that_dies_of_the_chunk_every_time_is_given_up(comfy, tmp_path, monkeypatch):
    monkeypatch.setattr(follow, "TRIES", 2)
    server = comfy(*["hang"] * 9)
    over = threading.Event()

    def kill():
        while not over.is_set():
            if server.queue:
                server.stop()
                server.start()
            time.sleep(0.02)

    timer = threading.Thread(target=kill)
    timer.start()
    try:
        with pytest.raises(EngineDied, match="restarted 2 times during this chunk"):
            engine(server, tmp_path).generate(request(), ignore, Cancel())
    finally:
        over.set()
        timer.join()


def test_a_server_that_stays_away_is_given_up(comfy, tmp_path):
    server = comfy("hang")
    timer = threading.Thread(target=lambda: (wait(lambda: server.queue), server.stop()))
    timer.start()
    with pytest.raises(EngineDied, match=r"is gone for 0\.5 s"):
        engine(server, tmp_path, patience="0.5").generate(request(), ignore, Cancel())
    timer.join()
    server.start()


def test_a_stop_interrupts_our_prompt_and_no_other(comfy, tmp_path):
    server, cancel = comfy("hang"), Cancel()
    server.queue["someone else's"] = {}
    threading.Thread(target=lambda: (wait(lambda: server.prompts), cancel.set())).start()
    with pytest.raises(Cancelled):
        engine(server, tmp_path).generate(request(), ignore, cancel)
    assert len(server.interrupts) == 1 and server.interrupts[0] is not None
    assert "someone else's" in server.queue and len(server.queue) == 1


def test_ctrl_c_interrupts_it_too(comfy, tmp_path):
    server = comfy("hang")

    def press(phase, share):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        engine(server, tmp_path).generate(request(), press, Cancel())
    assert len(server.interrupts) == 1


def wait(condition):
    end = time.monotonic() + 20
    while not condition() and time.monotonic() < end:
        time.sleep(0.01)


def test_no_server_is_said_before_any_work(comfy, tmp_path):
    server = comfy()
    server.stop()
    made = engine(server, tmp_path)
    with pytest.raises(UsageError, match="no ComfyUI answers at"):
        made.identity()
    with pytest.raises(UsageError, match="no ComfyUI answers at"):
        made.generate(request(), ignore, Cancel())
    server.start()


def test_other_sizes_and_lengths_are_refused(comfy, tmp_path):
    with pytest.raises(UsageError, match="makes 48x32 px, the job is for 64x32"):
        engine(comfy(size=(48, 32)), tmp_path).generate(request(), ignore, Cancel())
    graph = json.loads(json.dumps(GRAPH))
    graph["4"]["_meta"]["title"] = "width, height"
    graph["6"] = {"class_type": "Note", "inputs": {"value": 1}, "_meta": {"title": "frames"}}
    with pytest.raises(UsageError, match="made 9 frames, 5 were asked for"):
        engine(comfy(), tmp_path, graph).generate(request(), ignore, Cancel())


def test_release_frees_the_servers_memory(comfy, tmp_path):
    server = comfy()
    made = engine(server, tmp_path)
    made.release()
    assert not server.freed
    made.release(everything=True)
    assert server.freed == [{"unload_models": True, "free_memory": True}]


# ---- workflows ----


def without(*titles):
    graph = json.loads(json.dumps(GRAPH))
    for node in graph.values():
        if node["_meta"]["title"] in titles:
            del node["_meta"]
    return graph


@pytest.mark.parametrize(
    ("graph", "says"),
    [
        (without("positive"), "no node titled positive; .* the title positive.text"),
        (without("frames.length, width, height"), "no node titled frames"),
        ({"nodes": [], "links": []}, "is a saved graph; export it in ComfyUI with File > Export"),
        ({"1": 2}, "is not in API format"),
        ([], "is not in API format"),
        ({**GRAPH, "2": {**GRAPH["2"], "_meta": {"title": "positive.words"}}},
         "titled 'positive.words' .CLIPTextEncode. has no input words; it has text, clip"),
        ({**GRAPH, "2": {"class_type": "X", "inputs": {"a": 1}, "_meta": {"title": "positive"}}},
         "not clear which input of X takes positive; write it into the title: positive.INPUT"),
    ],
)  # fmt: skip
def test_workflows_that_do_not_do_are_refused(graph, says, tmp_path):
    (tmp_path / "a.json").write_text(json.dumps(graph))
    with pytest.raises(UsageError, match=says):
        load_workflow(tmp_path / "a.json")


def test_files_that_are_no_workflow(tmp_path):
    with pytest.raises(UsageError, match="cannot be read"):
        load_workflow(tmp_path / "none.json")
    (tmp_path / "a.json").write_text("{")
    with pytest.raises(UsageError, match="is no JSON"):
        load_workflow(tmp_path / "a.json")


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({}, "needs --engine-option workflow=FILE"),
        ({"workflow": "a", "port": "1"}, "has no option port; use workflow, server, patience"),
    ],
)
def test_wrong_options(options, says):
    with pytest.raises(UsageError, match=says):
        comfyui_server.traits(options)


def test_what_would_be_ignored_is_refused(tmp_path):
    (tmp_path / "a.json").write_text(json.dumps(without("Negative.text", "first_frame.image")))
    options = {"workflow": str(tmp_path / "a.json")}
    assert comfyui_server.traits(options) == ("none", "frames")
    chunk = {"prompt": "a", "negative": "fog"}
    with pytest.raises(UsageError, match="no node titled negative"):
        comfyui_server.open_engine({"chunks": [chunk]}, options)
    image = {"chunks": [{**chunk, "negative": ""}], "inputs": {"image": {"file": "x.png"}}}
    with pytest.raises(UsageError, match="no node titled first_frame, so --image"):
        comfyui_server.open_engine(image, options)


def test_identity_sees_what_is_not_filled_in(comfy, tmp_path):
    server = comfy()
    before = engine(server, tmp_path).identity()["workflow"]["nodes"]
    other = json.loads(json.dumps(GRAPH))
    other["1"]["inputs"]["seed"] = 99  # filled in for every chunk
    assert engine(server, tmp_path, other).identity()["workflow"]["nodes"] == before
    other["1"]["inputs"]["sampler_name"] = "euler"
    assert engine(server, tmp_path, other).identity()["workflow"]["nodes"] != before


def test_addresses():
    assert Server("127.0.0.1:8188").url == "http://127.0.0.1:8188"
    assert Server("https://a.b/c/").socket_url("x") == "wss://a.b/c/ws?clientId=x"
    for bad in ("ftp://a", "http://", ""):
        with pytest.raises(UsageError, match="is no address"):
            Server(bad)


# ---- the websocket itself ----


def test_websocket_messages_in_pieces(comfy):
    server = comfy()
    socket = WebSocket(server.url.replace("http", "ws") + "/ws?clientId=1")
    wait(lambda: server.sockets)
    assert socket.receive(0.05) is None
    for size in (3, 200, 70_000):
        if size < 60_000:
            server.send("note", text="x" * size)
        else:
            server.sockets[0].sendall(
                bytes([129, 127]) + (size + 2).to_bytes(8, "big") + b'"' + b"y" * size + b'"'
            )
        message = None
        while message is None:
            message = socket.receive(1.0)
        assert len(message) > size
    server.drop()
    with pytest.raises((WebSocketError, OSError)):
        for _ in range(20):
            socket.receive(0.1)
    socket.close()
    socket.close()


def test_a_server_that_speaks_no_websocket(comfy):
    with pytest.raises(WebSocketError, match="to a websocket"):
        WebSocket(comfy().url.replace("http", "ws") + "/queue")
