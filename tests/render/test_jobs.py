"""Jobs on an engine without a model: what is made, kept, refused, made again."""

import errno
import importlib.util
import json
import os
import sys
from pathlib import Path

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from h3video.cli.main import main
from h3video.errors import UsageError
from h3video.models import MINIMAX_H3, WAN
from h3video.render import memory_watch
from h3video.render.document import agree, load_document, make_document
from h3video.render.engines import registry
from h3video.render.engines.protocol import Cancel, Cancelled, EngineDied
from h3video.render.files import Files
from h3video.render.fingerprint import differences, fields
from h3video.render.jobs import find_jobs, look, redo, run_job
from h3video.render.store import PieceStore
from h3video.render.video import read_mp4
from h3video.tiling.chunks import plan_chunks


def load_fake():
    if "fake_engine" not in sys.modules:
        spec = importlib.util.spec_from_file_location(
            "fake_engine", Path(__file__).with_name("fake_engine.py")
        )
        sys.modules["fake_engine"] = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(sys.modules["fake_engine"])
    return sys.modules["fake_engine"]


@pytest.fixture
def fake(monkeypatch):
    found = load_fake()
    found.reset()
    monkeypatch.setitem(registry.MODULES, "fake", "fake_engine")
    return found


def document(folder, frames=41, chunk=17, overlap=4, family=WAN, prompts=None, join="cell",
             codec="h264", suffix=".mp4", **options):  # fmt: skip
    continuity = options.get("continuity", "latents")
    plan = plan_chunks(frames, family, chunk, overlap, continuity)
    texts = prompts or [(f"chunk {c.index}", "no") for c in plan.chunks]
    settings = {"width": 32, "height": 32, "fps": 16, "steps": 2, "cfg": 3.0, "seed": 7,
                "seeds": "field", "dtype": "float32", "device": "cpu", "hex_res": 3,
                "family": family.name}  # fmt: skip
    engine = {"name": "fake", "options": options, "worker": False,
              "gives": options.get("gives", "latents")}  # fmt: skip
    merge = {"join": join, "join_colour": "off", "codec": codec}
    return make_document(settings, engine, plan, texts, folder / f"out{suffix}", "fake",
                         merge=merge)  # fmt: skip


def run(folder, doc=None, **more):
    return run_job(folder / "out.job", doc, quiet=True, **more)


def made(outcome):
    return [f"{kind}{k}" for kind, k in outcome.made]


ALL = ["latents0", "latents1", "latents2", "frames0", "frames1", "frames2", "merged0"]


# ---- an undisturbed job ----


@pytest.mark.parametrize(
    ("frames", "chunks"), [(13, 1), (17, 1), (23, 2), (27, 2), (41, 3), (39, 3), (83, 7), (89, 7)]
)
def test_frames_are_exactly_what_was_asked(tmp_path, fake, frames, chunks):
    outcome = run(tmp_path, document(tmp_path, frames))
    assert outcome.bill["chunks"] == chunks
    assert len(read_mp4(tmp_path / "out.mp4")[0]) == frames
    assert look(tmp_path / "out.job", thorough=True).finished


def test_all_is_sampled_before_the_first_is_decoded(tmp_path, fake):
    outcome = run(tmp_path, document(tmp_path))
    assert made(outcome) == ALL
    assert fake.CALLS == [("generate", 0), ("generate", 1), ("generate", 2), ("decode", 0),
                          ("decode", 1), ("decode", 2)]  # fmt: skip


def test_a_finished_job_does_nothing(tmp_path, fake):
    run(tmp_path, document(tmp_path))
    before = (tmp_path / "out.mp4").read_bytes(), (tmp_path / "out.job/journal.jsonl").read_bytes()
    fake.CALLS.clear()
    for doc in (None, document(tmp_path)):
        assert made(run(tmp_path, doc)) == []
    after = (tmp_path / "out.mp4").read_bytes(), (tmp_path / "out.job/journal.jsonl").read_bytes()
    assert before == after and not fake.CALLS


def test_the_head_is_the_end_of_the_chunk_before(tmp_path, fake):
    run(tmp_path, document(tmp_path))
    store = PieceStore(tmp_path / "out.job")
    a, b, c = (store.get("latents", k)[0]["latents"] for k in range(3))
    assert torch.equal(a[:, :, -2:], b[:, :, :2]) and torch.equal(b[:, :, -2:], c[:, :, :2])


def test_an_engine_that_gives_frames_continues_from_the_last_picture(tmp_path, fake):
    doc = document(tmp_path, 60, 22, None, MINIMAX_H3, continuity="first-frame", gives="frames",
                   sound="8000")  # fmt: skip
    outcome = run(tmp_path, doc)
    assert made(outcome) == ["frames0", "frames1", "frames2", "merged0"]
    store = PieceStore(tmp_path / "out.job")
    a, b = (store.get("frames", k, "numpy")[0]["frames"] for k in range(2))
    assert np.array_equal(a[-1], b[0]) and not np.array_equal(b[0], b[1])
    assert {p.kind for p in store.pieces()} == {"frames", "sound", "merged"}
    assert len(read_mp4(tmp_path / "out.mp4")[0]) == 60


@pytest.mark.parametrize("frames", [22, 37, 41, 128, 130])
def test_sound_is_as_long_as_the_frames_to_the_sample(tmp_path, fake, frames):
    import av

    doc = document(tmp_path, frames, 22, None, MINIMAX_H3, continuity="first-frame",
                   gives="frames", sound="48000", codec="ffv1", suffix=".mkv")  # fmt: skip
    run(tmp_path, doc)
    with av.open(str(tmp_path / "out.mkv")) as f:
        parts = [a.to_ndarray() for a in f.decode(f.streams.audio[0])]
    samples = np.concatenate([p.reshape(-1, 2) for p in parts])
    assert len(samples) == frames * 48000 // 16
    expected = 0.5 * np.sin(2 * np.pi * 220 * np.arange(len(samples)) / 48000)
    inner = slice(0, len(samples) - 100)
    assert np.abs(samples[inner, 0] - expected[inner]).max() < 2e-3  # joined without a seam


def test_latents_of_a_chunk_can_be_lost_when_it_is_decoded(tmp_path, fake):
    run(tmp_path, document(tmp_path))
    video = (tmp_path / "out.mp4").read_bytes()
    for file in (tmp_path / "out.job/pieces").glob("latents-*"):
        file.unlink()
    (tmp_path / "out.mp4").unlink()
    assert made(run(tmp_path)) == ["merged0"]
    assert (tmp_path / "out.mp4").read_bytes() == video


# ---- pieces that are lost or harmed ----


@pytest.mark.parametrize(
    ("lost", "again"),
    [
        (["frames-0001"], ["frames1", "merged0"]),
        (["latents-0001"], []),  # its frames are there: nobody needs it
        (["latents-0001", "frames-0001"], ["latents1", "frames1", "merged0"]),
        (["latents-0000", "frames-0001"], ["frames1", "merged0"]),
        (["frames-0000", "frames-0002"], ["frames0", "frames2", "merged0"]),
    ],
)
@pytest.mark.parametrize("how", ["gone", "flipped", "cut"])
def test_only_what_is_needed_is_made_again(tmp_path, fake, lost, again, how):
    run(tmp_path, document(tmp_path))
    video = (tmp_path / "out.mp4").read_bytes()
    for name in lost:
        path = tmp_path / f"out.job/pieces/{name}.safetensors"
        data = path.read_bytes()
        path.unlink()
        if how != "gone":
            path.write_bytes(data[:-9] if how == "cut" else data[:-1] + bytes([data[-1] ^ 4]))
    status = look(tmp_path / "out.job", thorough=True)
    assert all(status.pieces[name].startswith("damaged") for name in lost)
    (tmp_path / "out.mp4").unlink()
    outcome = run(tmp_path)
    assert made(outcome) == again or (not again and made(outcome) == ["merged0"])
    assert (tmp_path / "out.mp4").read_bytes() == video
    assert look(tmp_path / "out.job").finished


def test_a_changed_video_file_is_made_again(tmp_path, fake):
    run(tmp_path, document(tmp_path))
    video = (tmp_path / "out.mp4").read_bytes()
    (tmp_path / "out.mp4").write_bytes(b"cut while it was copied")
    assert made(run(tmp_path)) == ["merged0"]
    assert (tmp_path / "out.mp4").read_bytes() == video


def test_another_join_or_output_is_only_joined_anew(tmp_path, fake):
    run(tmp_path, document(tmp_path))
    assert made(run(tmp_path, document(tmp_path, join="cut"))) == ["merged0"]
    doc = document(tmp_path, join="cut")
    doc["output"] = str(tmp_path / "other.mp4")
    assert made(run(tmp_path, doc)) == ["merged0"]
    assert (tmp_path / "other.mp4").read_bytes() == (tmp_path / "out.mp4").read_bytes()
    doc = document(tmp_path, join="cut", codec="png", suffix=".png")
    assert made(run(tmp_path, doc)) == ["merged0"]
    assert len(list((tmp_path / "out").glob("*.png"))) == 41 and made(run(tmp_path, doc)) == []


# ---- redo ----


def test_redo_makes_the_chunk_and_what_depends_on_it(tmp_path, fake):
    run(tmp_path, document(tmp_path))
    video = (tmp_path / "out.mp4").read_bytes()
    redo(tmp_path / "out.job", 1, {}, say=lambda text: None)
    assert made(run(tmp_path)) == ["latents1", "latents2", "frames1", "frames2", "merged0"]
    assert (tmp_path / "out.mp4").read_bytes() == video
    redo(tmp_path / "out.job", 2, {}, say=lambda text: None)
    assert made(run(tmp_path)) == ["latents2", "frames2", "merged0"]


def test_redo_alone_where_chunks_do_not_depend(tmp_path, fake):
    doc = document(tmp_path, continuity="none", gives="frames")
    run(tmp_path, doc)
    redo(tmp_path / "out.job", 0, {"seed": 99}, say=lambda text: None)
    assert made(run(tmp_path)) == ["frames0", "merged0"]


def test_redo_with_wishes_and_the_old_command_afterwards(tmp_path, fake):
    run(tmp_path, document(tmp_path))
    old = PieceStore(tmp_path / "out.job").piece("latents", 2).sha256
    redo(tmp_path / "out.job", 2, {"seed": 99, "prompt": "other"}, say=lambda text: None)
    run(tmp_path)
    new = PieceStore(tmp_path / "out.job").piece("latents", 2).sha256
    assert new != old
    assert load_document(tmp_path / "out.job")["chunks"][2] == {
        "prompt": "other", "negative": "no", "seed": 99}  # fmt: skip
    # the command that began the job does not know of the wish, and does not undo it
    assert made(run(tmp_path, document(tmp_path))) == []
    assert look(tmp_path / "out.job").finished


def test_redo_refuses_chunks_that_are_not_there(tmp_path, fake):
    run(tmp_path, document(tmp_path))
    with pytest.raises(UsageError, match=r"chunk 4 is out of range: the job has chunks 1\.\.3"):
        redo(tmp_path / "out.job", 3, {})


# ---- what must not change ----


def changed(value):
    if isinstance(value, bool):
        return not value
    if isinstance(value, (int, float)):
        return value + 1
    if isinstance(value, str):
        return value + "x"
    if isinstance(value, list):
        return [*value, 0.25]
    return "set"


def with_field(doc, name, value):
    """The document with one field, by its dotted name, set."""
    doc = json.loads(json.dumps(doc))
    parts = name.split(".")
    at = doc
    while parts:
        # Keys may hold dots themselves (file names): take the longest that is there.
        n = 1
        if isinstance(at, dict):
            n = next(n for n in range(len(parts), 0, -1) if ".".join(parts[:n]) in at)
        key = int(parts[0]) if isinstance(at, list) else ".".join(parts[:n])
        parts = parts[n:]
        if not parts:
            at[key] = value
        else:
            at = at[key]
    return doc


def full_document(folder, fake):
    return {**document(folder), **fake.FakeEngine({}, {}).identity()}


def test_every_field_changed_alone_is_refused_by_name(tmp_path, fake):
    doc = full_document(tmp_path, fake)
    names = fields(doc)
    kinds = {n.split(".")[0] for n in names}
    assert kinds >= {"settings", "engine", "model", "lora", "sampler", "sigmas", "tiles", "inputs",
                     "plan", "chunks", "regions", "windows", "gguf"}  # fmt: skip
    assert len(names) > 50
    for i, (name, value) in enumerate(names.items()):
        other = with_field(doc, name, changed(value))
        assert [d[0] for d in differences(names, fields(other))] == [name]
        folder = tmp_path / f"job{i}"
        folder.mkdir()
        store = PieceStore(folder)
        assert agree(store, doc, []) == [] and agree(store, doc, []) == []
        with pytest.raises(UsageError) as refused:
            agree(store, other, [])
        shown = str(refused.value)
        assert f"{name} was " in shown and "is " in shown and "--allow" in shown
        if not isinstance(value, (list, dict)) and len(str(value)) < 40:
            told = shown.partition(f"{name} was ")[2]
            old, _, new = told.partition(", is ")
            assert json.loads(old) == value if value is not None else old == "not set"
            assert new.startswith(json.dumps(changed(value)))
        # the word that the message names allows it, and it is told in the journal
        word = shown.rpartition("--allow ")[2].split("`")[0]
        assert agree(store, other, [word])[0].startswith(f"{name} is now ")
        assert agree(store, other, []) == []


def test_fields_that_may_change(tmp_path, fake):
    doc = full_document(tmp_path, fake)
    store = PieceStore(tmp_path)
    agree(store, doc, [])
    for name in ("created", "output", "versions.torch", "engine.worker", "model.file",
                 "lora.0.file", "merge.join"):  # fmt: skip
        assert agree(store, with_field(doc, name, "other"), []) == [], name


def test_allow_keeps_finished_pieces_and_uses_the_new_value_for_the_rest(tmp_path, fake):
    fake.FAIL[("generate", 1)] = [RuntimeError("stop here")]
    with pytest.raises(RuntimeError, match="stop here"):
        run(tmp_path, document(tmp_path))
    other = document(tmp_path, prompts=[("new", "no")] * 3)
    refused = r'chunks.0.prompt was "chunk 0", is "new".*--allow prompt'
    with pytest.raises(UsageError, match=refused):
        run(tmp_path, other)
    first = PieceStore(tmp_path / "out.job").piece("latents", 0).sha256
    assert made(run(tmp_path, other, allow=["prompt"])) == ALL[1:]
    assert PieceStore(tmp_path / "out.job").piece("latents", 0).sha256 == first
    assert PieceStore(tmp_path / "out.job").events("allow")[0]["field"] == "chunks.0.prompt"


def test_allow_of_nothing_is_an_error(tmp_path, fake):
    run(tmp_path, document(tmp_path))
    (tmp_path / "out.mp4").unlink()
    with pytest.raises(UsageError, match="--allow colour names no field of this job"):
        run(tmp_path, allow=["colour"])


def test_a_job_file_changed_by_hand_is_seen(tmp_path, fake):
    fake.FAIL[("generate", 1)] = [RuntimeError("stop here")]
    with pytest.raises(RuntimeError):
        run(tmp_path, document(tmp_path))
    path = tmp_path / "out.job/job.json"
    path.write_text(path.read_text().replace('"cfg": 3.0', '"cfg": 4.5'))
    with pytest.raises(UsageError, match=r"settings.cfg was 3.0, is 4.5"):
        run(tmp_path)
    path.write_text("{")
    with pytest.raises(UsageError, match="cannot be read"):
        run(tmp_path)


def test_a_model_file_that_changed_is_refused(tmp_path, fake):
    fake.FAIL[("generate", 1)] = [RuntimeError("stop here")]
    with pytest.raises(RuntimeError):
        run(tmp_path, document(tmp_path))
    files = {"a.safetensors": {"bytes": 3, "sha256": "zz"}}
    fake.IDENTITY["model"] = {"file": "moved", "files": files}
    with pytest.raises(UsageError, match=r'model.files.a.safetensors.sha256 was "ab", is "zz"'):
        run(tmp_path)


# ---- errors while working ----


def test_a_broken_chunk_is_never_kept(tmp_path, fake, monkeypatch):
    real = fake.FakeEngine.generate

    def broken(self, request, progress, cancel):
        out = real(self, request, progress, cancel)
        if request.index == 1:
            out.latents[0, 1, 2] = float("nan")
        return out

    monkeypatch.setattr(fake.FakeEngine, "generate", broken)
    with pytest.raises(RuntimeError, match=r"chunk 2 \(latents\) is broken: .* NaN"):
        run(tmp_path, document(tmp_path))
    status = look(tmp_path / "out.job")
    assert status.pieces["latents-0000"] == "done" and status.pieces["latents-0001"] == "missing"


@pytest.mark.parametrize("shape", [(16, 32, 32, 3), (17, 32, 16, 3)])
def test_frames_of_another_size_are_refused(tmp_path, fake, monkeypatch, shape):
    def other(self, latents, request, progress, cancel):
        return fake.ChunkResult(frames=np.zeros(shape, np.uint8))

    monkeypatch.setattr(fake.FakeEngine, "decode", other)
    with pytest.raises(RuntimeError, match=r"chunk 1 came as .* wanted are \(17, 32, 32, 3\)"):
        run(tmp_path, document(tmp_path))


def test_ctrl_c_keeps_what_is_finished_and_says_how_to_go_on(tmp_path, fake, capsys):
    fake.FAIL[("generate", 1)] = [KeyboardInterrupt()]
    with pytest.raises(KeyboardInterrupt):
        run(tmp_path, document(tmp_path))
    err = capsys.readouterr().err
    assert "1 of 7 pieces are finished and kept" in err and "h3video resume" in err
    assert made(run(tmp_path)) == ALL[1:]


def test_cancel_from_another_thread(tmp_path, fake):
    cancel = Cancel()
    cancel.set()
    with pytest.raises(Cancelled):
        cancel.check()


class Full(Files):
    """A disk that is full from the n-th new file on."""

    def __init__(self, after, code=errno.ENOSPC):
        self.after, self.code = after, code

    def open(self, path, flags):
        if path.name.endswith(".new") and path.parent.name == "pieces":
            self.after -= 1
            if self.after < 0:
                raise OSError(self.code, os.strerror(self.code))
        return super().open(path, flags)


@pytest.mark.parametrize(
    ("code", "text"),
    [(errno.ENOSPC, "the disk is full"), (errno.EROFS, "the disk is read-only"),
     (errno.EIO, "the disk reports an error"), (errno.EDQUOT, "the disk quota is used up")],
)  # fmt: skip
def test_errors_of_the_disk_say_what_is_safe(tmp_path, fake, code, text):
    with pytest.raises(OSError) as raised:
        run(tmp_path, document(tmp_path), files=Full(2, code))
    shown = str(raised.value)
    assert f"chunk 3 of 3 (sampling) could not be saved: {text}; 2 finished pieces" in shown
    assert "h3video resume" in shown
    assert made(run(tmp_path)) == ALL[2:]


def test_too_little_room_is_refused_before_the_start(tmp_path, fake, monkeypatch):
    import shutil

    usage = shutil.disk_usage(tmp_path)
    monkeypatch.setattr(shutil, "disk_usage", lambda p: usage._replace(free=1 << 20))
    with pytest.raises(UsageError, match=r"has 1.0 MiB free, the job needs about"):
        run(tmp_path, document(tmp_path))
    assert not fake.CALLS


# ---- memory ----


@pytest.mark.parametrize(
    "error",
    [MemoryError(), RuntimeError("CUDA out of memory. Tried to allocate 2 GiB"),
     RuntimeError("MPS backend out of memory (MPS allocated: 17 GB)"),
     RuntimeError("[enforce fail] DefaultCPUAllocator: can't allocate memory"),
     EngineDied("the engine's process was killed")],
    ids=["MemoryError", "cuda", "mps", "cpu", "killed"],
)  # fmt: skip
@pytest.mark.parametrize("phase", ["generate", "decode"])
def test_out_of_memory_steps_down_once_and_says_so(tmp_path, fake, monkeypatch, error, phase):
    import h3video.render.chain as chain

    smaller = {
        "sample": ({"hex_res": "auto", "budget": 0.25}, "tiles of 10 instead of 40 tokens"),
        "decode": ({"decode_budget": 0.2}, "crops of 64x64 instead of 96x96 px"),
    }
    monkeypatch.setattr(chain, "smaller", lambda doc, phase, now: smaller[phase])
    fake.FAIL[(phase, 1)] = [error]
    said, seen, made_requests = [], [], []
    enter = fake.FakeEngine._enter

    def entered(self, call, request, cancel):
        made_requests.append((call, request.tiling, request.decode_budget))
        enter(self, call, request, cancel)

    monkeypatch.setattr(fake.FakeEngine, "_enter", entered)
    real = getattr(fake.FakeEngine, phase)

    def noted(self, *args):
        request = args[0] if phase == "generate" else args[1]
        seen.append((request.index, request.tiling, request.decode_budget))
        return real(self, *args)

    monkeypatch.setattr(fake.FakeEngine, phase, noted)
    outcome = run(tmp_path, document(tmp_path), say=said.append)
    assert made(outcome) == ALL
    told = [s for s in said if "trying once more with" in s]
    assert len(told) == 1 and smaller["sample" if phase == "generate" else "decode"][1] in told[0]
    assert "chunk 2 of 3" in told[0]
    wanted = (smaller["sample"][0], None) if phase == "generate" else ({}, 0.2)
    other = [r for r in made_requests if r[0] != phase]
    assert other and all(r[1:] == ({}, None) for r in other)  # the other phase goes on as it was
    assert [s[1:] for s in seen] == [({}, None), ({}, None), wanted, wanted]  # and it stays
    assert PieceStore(tmp_path / "out.job").events("stepdown")[0]["to"] in told[0]
    assert look(tmp_path / "out.job").notes


def test_out_of_memory_twice_stops_and_keeps_what_is_finished(tmp_path, fake, monkeypatch):
    import h3video.render.chain as chain

    monkeypatch.setattr(chain, "smaller", lambda doc, phase, now: ({"budget": 0.25}, "less"))
    fake.FAIL[("generate", 1)] = [MemoryError("a"), MemoryError("b")]
    with pytest.raises(MemoryError):
        run(tmp_path, document(tmp_path))
    assert look(tmp_path / "out.job").pieces["latents-0000"] == "done"
    assert made(run(tmp_path)) == ALL[1:]


def test_without_a_smaller_plan_the_error_is_the_engine_s(tmp_path, fake):
    fake.FAIL[("generate", 0)] = [MemoryError("no room")]
    with pytest.raises(MemoryError, match="no room"):
        run(tmp_path, document(tmp_path))
    fake.FAIL[("generate", 0)] = [EngineDied("it was killed")]
    with pytest.raises(MemoryError, match="it was killed, and no smaller plan is left; finished"):
        run(tmp_path)


def test_after_every_chunk_memory_is_released_and_told(tmp_path, fake):
    run(tmp_path, document(tmp_path))
    told = PieceStore(tmp_path / "out.job").events("memory")
    assert [f"{kind}{k}" for kind, k in (e["piece"] for e in told)] == ALL[:-1]
    assert all(e["host_peak"] > 1 << 20 and e["seconds"] >= 0 for e in told)


def test_a_leak_over_five_chunks_is_reported_once(tmp_path, fake):
    hoard = []
    for k in range(9):
        fake.HUNGRY[k] = lambda: hoard.append(np.ones(24 << 20, np.uint8))
    said = []
    run(tmp_path, document(tmp_path, 9 * 12 + 5), say=said.append)
    leaks = [s for s in said if "rises from chunk to chunk" in s]
    assert len(leaks) == 1 and "host memory" in leaks[0]
    assert any("rises" in n for n in look(tmp_path / "out.job").notes)


@pytest.mark.parametrize(
    ("peaks", "leak"),
    [
        ([1, 2, 3, 4, 5], True), ([5, 1, 2, 3, 4, 5], True), ([1, 2, 3, 4], False),
        ([1, 2, 3, 4, 4], False), ([1, 2, 3, 2, 5], False), ([5, 5, 5, 5, 5], False),
        ([100.0, 100.001, 100.002, 100.003, 100.2], False),  # settling
    ],
)  # fmt: skip
def test_what_is_a_leak(peaks, leak):
    assert memory_watch.is_leak([round(p * 2**30) for p in peaks]) == leak


def test_what_is_about_memory():
    assert not memory_watch.out_of_memory(RuntimeError("shape mismatch"))
    assert not memory_watch.out_of_memory(ValueError("out of memory"))
    assert memory_watch.out_of_memory(torch.OutOfMemoryError("x"))


# ---- looking ----


def test_a_job_that_ended_at_the_same_piece_twice_says_so(tmp_path, fake):
    for _ in range(2):
        fake.FAIL[("generate", 1)] = [RuntimeError("boom")]
        with pytest.raises(RuntimeError):
            run(tmp_path, document(tmp_path))
    said = []
    run(tmp_path, say=said.append)
    assert any("chunk 2 of 3 (sampling) was begun 2 times" in s and "--worker" in s for s in said)


def test_status_jobs_verify_and_redo_on_the_command_line(tmp_path, fake, capsys, monkeypatch):
    run(tmp_path, document(tmp_path))
    monkeypatch.chdir(tmp_path)
    assert main(["jobs"]) == 0
    assert "out.job" in capsys.readouterr().out
    assert main(["status", "out.job"]) == 0
    text = capsys.readouterr().out
    assert "out.job: finished" in text
    assert "chunk 2   frames 13-28: latents done, frames done" in text
    assert main(["verify", "out.job"]) == 0
    assert "7 of 7 pieces are whole, 0 damaged" in capsys.readouterr().out
    path = tmp_path / "out.job/pieces/frames-0001.safetensors"
    path.write_bytes(path.read_bytes()[:-1] + b"?")
    assert main(["verify", "out.job", "--json"]) == 1
    told = json.loads(capsys.readouterr().out)
    assert told["done"] == 6 and "sha256 differs" in told["pieces"]["frames-0001"]
    assert main(["redo", "out.job", "--chunk", "3", "--seed", "5", "--json"]) == 0
    bill = json.loads(capsys.readouterr().out)
    assert bill["made"] == ["latents-0002", "frames-0001", "frames-0002", "merged-0000"]
    assert main(["status", "out.job", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["finished"]


@pytest.mark.parametrize("command", ["status", "resume", "verify", "redo"])
def test_what_is_no_job_is_refused(tmp_path, capsys, command):
    more = ["--chunk", "1"] if command == "redo" else []
    assert main([command, str(tmp_path), *more]) == 2
    assert "is no job: it has no job.json" in capsys.readouterr().err
    (tmp_path / "job.json").write_text('{"format": "h3video-job/9"}')
    assert main([command, str(tmp_path), *more]) == 2
    assert "has the format h3video-job/9" in capsys.readouterr().err


def test_looking_at_a_job_changes_nothing(tmp_path, fake):
    fake.FAIL[("generate", 1)] = [RuntimeError("boom")]
    with pytest.raises(RuntimeError):
        run(tmp_path, document(tmp_path))
    folder = tmp_path / "out.job"
    with open(folder / "journal.jsonl", "ab") as f:
        f.write(b"torn li")
    before = {p: (p.read_bytes(), p.stat().st_mtime_ns) for p in folder.rglob("*") if p.is_file()}
    status = look(folder, thorough=True)
    assert status.done == 1 and list(find_jobs([tmp_path])) == [folder]
    assert before == {
        p: (p.read_bytes(), p.stat().st_mtime_ns) for p in folder.rglob("*") if p.is_file()
    }


def test_a_job_in_a_folder_that_cannot_be_written(tmp_path, fake):
    (tmp_path / "out.job").write_text("a file")
    with pytest.raises(UsageError, match="is a file; give a folder"):
        run(tmp_path, document(tmp_path))
