"""Chunks in a workflow: a server that is killed goes on at the first missing chunk."""

import contextlib
import hashlib
import importlib
import json
import shutil
import sys
import threading
import time

import pytest
from comfy_harness import server as harness
from conftest import furnished_server
from graphs import node

torch = pytest.importorskip("torch")

from h3video.errors import UsageError
from h3video.tiling.chunks import plan_chunks

WIDTH, HEIGHT = 64, 48


@pytest.fixture(scope="module")
def own(comfyui, tmp_path_factory):
    """A server that may be killed: always on the same port."""
    base = tmp_path_factory.mktemp("chunks")
    server = furnished_server(comfyui, base)
    port = harness.free_port()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(harness, "free_port", lambda: port)
        server.start()
        yield server
        server.stop()
        assert "IMPORT FAILED" not in server.log()


def picture(colour):
    return node("EmptyImage", width=WIDTH, height=HEIGHT, batch_size=9, color=colour)


def plan_node(folder, **more):
    known = dict(frames=25, chunk_frames=9, family="wan", folder=folder, index=-1,
                 continuity="first-frame")  # fmt: skip
    return node("H3ChunkPlan", **{**known, **more})


def chain(folder, seconds=0.0, colours=(0x400000, 0x404000, 0x404040)):
    """Three chunks in one workflow, each made from the one before and saved, then joined."""
    prompt = {"1": plan_node(folder)}
    for k, colour in enumerate(colours):
        prompt[f"{k}1"] = picture(colour)
        made = [f"{k}1", 0]
        if k:
            prompt[f"{k}4"] = node("ImageBatch", image1=[f"{k - 1}3", 0], image2=made)
            prompt[f"{k}5"] = node("ImageFromBatch", image=[f"{k}4", 0], batch_index=8, length=9)
            made = [f"{k}5", 0]
        prompt[f"{k}2"] = node("TestSleep", images=made, seconds=seconds)
        prompt[f"{k}3"] = node("H3ChunkSave", value=[f"{k}2", 0], chunks=["1", 0],
                               content="images", index=k)  # fmt: skip
    prompt["40"] = node("H3ChunkJoin", chunks=["1", 0], join="cell", after=["23", 0])
    prompt["41"] = node("TestImageStats", images=["40", 0])
    return prompt


def one_by_one(folder, colour=0x306090, **more):
    """One chunk a run: the first that is missing."""
    return {
        "1": plan_node(folder, **more),
        "2": picture(colour),
        "3": node("TestSleep", images=["2", 0], seconds=0.0),
        "4": node("H3ChunkSave", value=["3", 0], chunks=["1", 0], content="images"),
        "5": node("H3ChunkJoin", chunks=["1", 0], join="fade", after=["4", 0]),
        "6": node("SaveImage", images=["5", 0], filename_prefix=folder.replace("/", "_")),
    }


def report(run, node_id):
    return run.outputs[node_id]["text"][0]


def pieces(server, folder):
    found = sorted((server.base / "output" / folder / "pieces").glob("*.safetensors"))
    return {p.name: hashlib.sha256(p.read_bytes()).hexdigest() for p in found}


def test_a_finished_chunk_is_not_made_again(own):
    first = own.run(chain("h3_chunks/a")).expect()
    assert {"02", "12", "22"} <= set(first.executed)
    assert [report(first, n) for n in ("03", "13", "23")] == [
        f"chunk {k} (images): saved" for k in range(3)
    ]
    assert "25 frames of 3 chunks" in report(first, "40")
    again = own.run(chain("h3_chunks/a")).expect()
    assert not {"01", "02", "12", "22"} & set(again.executed)
    assert report(again, "03") == "chunk 0 (images): was finished"


def test_a_server_killed_while_it_works_goes_on_at_the_first_missing_chunk(own):
    whole = own.run(chain("h3_chunks/whole")).expect()
    prompt = chain("h3_chunks/killed", seconds=1.5)
    stopped = threading.Thread(target=lambda: own_run_ignoring_death(own, prompt))
    stopped.start()
    place = own.base / "output" / "h3_chunks/killed" / "journal.jsonl"
    wait(lambda: place.exists() and place.read_text().count('"done"') >= 1)
    own.process.kill()  # SIGKILL
    own.process.wait()
    stopped.join(60)
    before = pieces(own, "h3_chunks/killed")
    done = place.read_text().count('"done"')
    assert 1 <= done < 3
    own.start()
    resumed = own.run(prompt).expect()
    made = {n for n in ("02", "12", "22") if n in resumed.executed}
    assert made == {"02", "12", "22"} - {f"{k}2" for k in range(done)}
    after = pieces(own, "h3_chunks/killed")
    assert all(after[name] == digest for name, digest in before.items() if int(name[7:11]) < done)
    assert report(resumed, "40") == report(whole, "40")
    # TestSleep's seconds are in the graph that made a chunk, so only the pictures are compared.
    assert resumed.outputs["41"] == whole.outputs["41"]


def own_run_ignoring_death(server, prompt):
    with contextlib.suppress(Exception):  # the connection ends with the server
        server.run(prompt)


def wait(condition, seconds=120):
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.02)


def test_each_run_makes_the_next_chunk_and_the_last_one_joins(own):
    folder = "h3_chunks/steps"
    for k in range(3):
        run = own.run(one_by_one(folder)).expect()
        assert f"chunk {k}: frames" in report(run, "1") and "<- this run" in report(run, "1")
        assert report(run, "4") == f"chunk {k} (images): saved"
        assert ("6" in run.outputs) == (k == 2)
        if k < 2:
            assert f"{k + 1} of 3 chunks are there, missing" in report(run, "5")
    saved = run.outputs["6"]["images"]
    assert len(saved) == 25
    run = own.run(one_by_one(folder)).expect()
    assert report(run, "4") == "chunk 2 (images): was finished" and "3" not in run.executed


def test_other_settings_stop_it_by_name_and_redo_makes_what_depends_on_it(own):
    folder = "h3_chunks/changed"
    own.run(chain(folder)).expect()
    other = chain(folder)
    other["01"]["inputs"]["color"] = 0x000040
    run = own.run(other)
    assert run.status == "error"
    assert "color of EmptyImage was 4194304, is 64" in run.message()
    assert "set if_changed to redo" in run.message()
    for save in ("03", "13", "23"):
        other[save]["inputs"]["if_changed"] = "redo"
    before = pieces(own, folder)
    run = own.run(other).expect()
    # Each is made from the one before: all three, although only the first one's nodes changed.
    assert {"02", "12", "22"} <= set(run.executed)
    after = pieces(own, folder)
    assert after["images-0000.safetensors"] != before["images-0000.safetensors"]


def test_a_damaged_or_deleted_chunk_is_made_again(own):
    folder = "h3_chunks/damaged"
    own.run(chain(folder)).expect()
    before = pieces(own, folder)
    file = own.base / "output" / folder / "pieces" / "images-0001.safetensors"
    data = bytearray(file.read_bytes())
    data[-9] ^= 1
    file.write_bytes(data)
    for k in range(2):
        run = own.run(chain(folder)).expect()
        told = [report(run, n).split(": ")[1] for n in ("03", "13", "23")]
        assert told == ["was finished", "saved", "was finished"], k
        assert pieces(own, folder) == before
        file.unlink()


def test_latents_are_saved_and_loaded_in_another_run(own):
    folder = "h3_chunks/latents"
    plan = plan_node(folder, content="latents", frames=9, chunk_frames=9, continuity="none")
    save = {
        "1": plan,
        "2": node("EmptyHunyuanLatentVideo", width=64, height=48, length=["1", 2], batch_size=1),
        "3": node("H3ChunkSave", value=["2", 0], chunks=["1", 0], content="latents"),
        "4": node("TestLatentStats", samples=["3", 0]),
    }
    first = own.run(save).expect()
    assert "2" in first.executed
    load = {
        "1": plan,
        "2": node("H3ChunkLoad", chunks=["1", 0], content="latents", offset=0),
        "3": node("TestLatentStats", samples=["2", 0]),
    }
    assert own.run(load).expect().outputs["3"] == first.outputs["4"]
    again = own.run(save).expect()
    assert report(again, "3") == "chunk 0 (latents): was finished" and "2" not in again.executed


def test_the_example_workflow(own):
    """As a user runs it: once for every chunk; the last run saves the video."""
    from comfy_harness.pack import ROOT

    file = ROOT / "workflows" / "tests" / "long_chunks.json"
    prompt = json.loads(file.read_text(encoding="utf-8"))
    first = own.run(prompt).expect()
    assert "16" not in first.outputs and "1 of 2 chunks" in report(first, "14")
    second = own.run(prompt).expect()
    assert second.outputs["16"]["images"] and "17 frames of 2 chunks" in report(second, "14")


# ---- in this process ----


@pytest.fixture(scope="module")
def nodes(comfyui, tmp_path_factory):
    sys.path.insert(0, str(comfyui))
    import comfy.cli_args

    comfy.cli_args.args.cpu = True
    import folder_paths

    folder_paths.set_output_directory(str(tmp_path_factory.mktemp("output")))
    return importlib.import_module("h3video.nodes")


def clip(folder, index=0, frames=25, fps=24.0, continuity="first-frame"):
    from h3video.models import FAMILIES
    from h3video.nodes.chunk_store import ChunkClip

    plan = plan_chunks(frames, FAMILIES["wan"], 9, None, continuity)
    return ChunkClip(plan, folder, index, fps)


def same(a, b):
    if isinstance(a, dict):
        return a.keys() == b.keys() and all(same(a[k], b[k]) for k in a)
    if getattr(a, "is_nested", False):
        return all(same(x, y) for x, y in zip(a.unbind(), b.unbind()))
    return torch.equal(a, b) if hasattr(a, "shape") else a == b


def values():
    from comfy.nested_tensor import NestedTensor

    video, sound = torch.randn(1, 24, 7, 4, 6), torch.randn(1, 32, 2, 37)
    yield "latents", {"samples": torch.randn(1, 16, 3, 4, 6).half(), "batch_index": [0, 1]}
    yield (
        "latents",
        {"samples": NestedTensor([video, sound]), "noise_mask": torch.rand(1, 1, 7, 4, 6)},
    )
    yield "images", torch.rand(9, 16, 24, 3)
    yield "audio", {"waveform": torch.randn(1, 2, 4000).clamp(-1, 1), "sample_rate": 32_000}


def test_values_come_back_bit_for_bit(nodes):
    from h3video.nodes.chunk_store import load_value, save_value

    for i, (kind, value) in enumerate(values()):
        store = clip("h3_chunks/values").store()
        save_value(store, kind, i, value, [], continues=False)
        found, _ = load_value(clip("h3_chunks/values").store(), kind, i)
        assert same(found, value), kind


def test_saving_the_same_again_writes_nothing(nodes):
    from h3video.nodes.chunk_store import save_value

    store = clip("h3_chunks/idle").store()
    value = torch.rand(9, 16, 24, 3)
    save_value(store, "images", 0, value, [{"class": "A", "title": "", "inputs": {}}])
    path = store.path("images", 0)
    stamp = path.stat().st_mtime_ns
    save_value(clip("h3_chunks/idle").store(), "images", 0, value,
               [{"class": "A", "title": "", "inputs": {}}])  # fmt: skip
    assert path.stat().st_mtime_ns == stamp


def test_eight_bit_images_are_what_is_passed_on(nodes):
    from h3video.nodes.chunk_store import load_value, save_value

    store, value = clip("h3_chunks/eight").store(), torch.rand(9, 16, 24, 3)
    save_value(store, "images", 0, value, [], eight_bit=True)
    found, _ = load_value(store, "images", 0)
    assert torch.equal(found, (value * 255).round() / 255.0)
    assert store.path("images", 0).stat().st_size < value.numel() + 4096


@pytest.mark.parametrize("folder", ["", "..", "../x", "/etc/x", "a/../../b", "."])
def test_folders_outside_of_the_output_are_refused(nodes, folder):
    with pytest.raises(UsageError, match="folder"):
        clip(folder).store()


def test_wrong_kinds_are_named(nodes):
    from h3video.nodes.chunk_values import to_tensors

    with pytest.raises(UsageError, match="content is images, but audio came"):
        to_tensors("images", {"waveform": torch.zeros(1, 1, 4), "sample_rate": 8000})
    with pytest.raises(UsageError, match="list is neither latents"):
        to_tensors("images", [1])


@pytest.mark.parametrize("frames", [9, 17, 25, 57])
def test_joined_clips_are_as_long_as_planned_with_their_sound(nodes, frames):
    from h3video.nodes.chunk_join import join_audio, join_images
    from h3video.nodes.chunk_store import save_value
    from h3video.tiling.join import JoinSettings
    from h3video.tiling.sound import sample_at

    folder = f"h3_chunks/join{frames}"
    whole = torch.rand(frames + 8, 32, 48, 3)
    chunks = clip(folder, frames=frames)
    rate = 8000
    tone = torch.sin(torch.arange(rate * 4) / 9.0).repeat(2, 1)
    for c in chunks.plan.chunks:
        save_value(chunks.store(), "images", c.index, whole[c.start : c.stop], [])
        a, b = sample_at(c.start, rate, 24.0), sample_at(c.stop, rate, 24.0)
        sound = {"waveform": tone[None, :, a : b + 3], "sample_rate": rate}  # codecs round up
        save_value(chunks.store(), "audio", c.index, sound, [])
    images, lines = join_images(chunks, JoinSettings("cell"))
    assert torch.equal(images, whole[:frames]) and len(lines) == len(chunks.plan.chunks) - 1
    audio = join_audio(chunks)
    total = sample_at(frames, rate, 24.0)
    assert audio["sample_rate"] == rate and audio["waveform"].shape == (1, 2, total)
    assert torch.allclose(audio["waveform"][0], tone[:, :total], atol=1e-6)


def test_load_gives_the_last_pictures_of_the_chunk_before(nodes):
    from h3video.nodes.chunk_load import H3ChunkLoad
    from h3video.nodes.chunk_store import save_value

    value = torch.rand(9, 16, 24, 3)
    save_value(clip("h3_chunks/load").store(), "images", 0, value, [])
    out = H3ChunkLoad.execute(clip("h3_chunks/load", 1), "images", -1, 1)
    assert torch.equal(out.args[0], value[-1:]) and out.args[1] is True
    first = H3ChunkLoad.execute(clip("h3_chunks/load", 0), "images", otherwise="start")
    assert first.args == ("start", False)
    assert H3ChunkLoad.check_lazy_status(clip("h3_chunks/load", 0), "images") == ["otherwise"]
    assert H3ChunkLoad.check_lazy_status(clip("h3_chunks/load", 1), "images") == []
    with pytest.raises(UsageError, match="is the first"):
        H3ChunkLoad.execute(clip("h3_chunks/load", 0), "images")
    with pytest.raises(UsageError, match=r"chunk 1 .images. .* is not there: not finished"):
        H3ChunkLoad.execute(clip("h3_chunks/load", 2), "images")


def test_a_chunk_of_another_length_is_named(nodes):
    from h3video.nodes.chunk_join import join_images
    from h3video.nodes.chunk_store import save_value
    from h3video.tiling.join import JoinSettings

    chunks = clip("h3_chunks/short", frames=9)
    save_value(chunks.store(), "images", 0, torch.rand(8, 32, 48, 3), [])
    with pytest.raises(UsageError, match="has 8 frames, its chunk 9; was `length`"):
        join_images(chunks, JoinSettings())
    shutil.rmtree(chunks.store().folder)
