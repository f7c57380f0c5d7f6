"""Pieces, journal and disk: what is accepted is what was written, whatever the disk does."""

import errno
import json
import os
import zlib

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from h3video.render.files import Files, sha256_of, sweep
from h3video.render.journal import Journal, parse, render
from h3video.render.store import PieceStore, piece_name
from h3video.render.tensors import Damaged, Rows, read_tensors, write_tensors

TYPES = ["uint8", "int8", "int16", "uint16", "int32", "int64", "float16", "float32", "float64",
         "bool"]  # fmt: skip


def piece(seed, shape=(1, 2, 3, 4, 5)):
    return {"latents": np.random.default_rng(seed).normal(size=shape).astype(np.float32)}


def same(a, b):
    return a.keys() == b.keys() and all(np.array_equal(a[k], b[k]) for k in a)


# ---- arrays ----


@given(
    st.dictionaries(
        st.text(st.characters(codec="utf-8", exclude_characters="\x00"), min_size=1, max_size=8)
        .filter(lambda n: n != "__metadata__"),
        st.sampled_from(TYPES).flatmap(
            lambda t: hnp.arrays(np.dtype(t), hnp.array_shapes(min_dims=0, max_dims=4, min_side=0,
                                                               max_side=4))
        ),
        max_size=3,
    )
)  # fmt: skip
def test_arrays_come_back_and_the_library_reads_them(tmp_path_factory, arrays):
    from safetensors.numpy import load_file

    path = tmp_path_factory.mktemp("t") / "a.safetensors"
    size, digest = write_tensors(path, arrays, {"who": "test"})
    assert size == path.stat().st_size and digest == sha256_of(path)
    found, told = read_tensors(path, sha256=digest)
    assert told == {"who": "test"} and found.keys() == arrays.keys()
    theirs = load_file(path)
    for name, value in arrays.items():
        for back in (found[name], theirs[name]):
            assert back.dtype == value.dtype and back.shape == value.shape
            assert back.tobytes() == value.tobytes()


def test_the_library_s_files_are_read(tmp_path):
    from safetensors.numpy import save_file

    save_file(piece(1), tmp_path / "a.safetensors", metadata={"x": "y"})
    found, told = read_tensors(tmp_path / "a.safetensors")
    assert same(found, piece(1)) and told == {"x": "y"}


def test_torch_tensors_of_every_kind(tmp_path):
    torch = pytest.importorskip("torch")
    for dtype in (torch.bfloat16, torch.float16, torch.float32, torch.uint8, torch.bool):
        value = (torch.randn(3, 4) * 3).to(dtype).t()  # not contiguous
        write_tensors(tmp_path / "t", {"x": value})
        back = read_tensors(tmp_path / "t", "torch")[0]["x"]
        assert back.dtype == dtype and torch.equal(back, value)


def test_equal_arrays_are_equal_bytes(tmp_path):
    a = write_tensors(tmp_path / "a", {"x": np.ones(3), "y": np.zeros(2)}, {"p": "1", "q": "2"})
    b = write_tensors(tmp_path / "b", {"y": np.zeros(2), "x": np.ones(3)}, {"q": "2", "p": "1"})
    assert a == b


def test_a_type_without_a_name_is_refused(tmp_path):
    with pytest.raises(TypeError, match="complex64 cannot be kept"):
        write_tensors(tmp_path / "a", {"x": np.ones(2, np.complex64)})
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("cut", [0, 4, 8, 20, 100, -1])
def test_cut_files_are_damaged(tmp_path, cut):
    path = tmp_path / "a"
    write_tensors(path, piece(2))
    path.write_bytes(path.read_bytes()[:cut])
    with pytest.raises(Damaged):
        read_tensors(path)
    with pytest.raises(Damaged):
        Rows(path, "latents")


@given(st.integers(0, 10_000), st.integers(1, 255))
def test_one_changed_byte_is_seen(tmp_path_factory, at, change):
    path = tmp_path_factory.mktemp("c") / "a"
    _, digest = write_tensors(path, piece(3))
    data = bytearray(path.read_bytes())
    data[at % len(data)] ^= change
    path.write_bytes(data)
    with pytest.raises(Damaged):
        read_tensors(path, sha256=digest)


def test_rows_read_only_what_is_asked(tmp_path):
    frames = np.random.default_rng(0).integers(0, 255, (40, 6, 5, 3), np.uint8)
    write_tensors(tmp_path / "f", {"frames": frames, "other": np.ones(3)})
    rows = Rows(tmp_path / "f", "frames")
    assert rows.shape == (40, 6, 5, 3) and len(rows) == 40
    for i, j in ((0, 40), (3, 4), (39, 40), (7, 7), (30, 99)):
        assert np.array_equal(rows[i:j], frames[i:j])
    with pytest.raises(Damaged, match="holds no pictures"):
        Rows(tmp_path / "f", "pictures")


# ---- the journal ----


def test_lines_round_trip_and_are_checked(tmp_path):
    journal = Journal(tmp_path / "j")
    journal.append("begin", kind="latents", index=3)
    journal.append("note", text="ü and \n line end")
    again = Journal(tmp_path / "j")
    assert again.entries == journal.entries and not again.damaged and not again.torn
    text = (tmp_path / "j").read_bytes().splitlines()[0]
    assert text[:8] == f"{zlib.crc32(text[9:]):08x}".encode()
    assert json.loads(text[9:])["kind"] == "latents"


@given(st.data())
def test_a_torn_end_is_cut_off_and_the_next_line_counts(tmp_path_factory, data):
    path = tmp_path_factory.mktemp("j") / "j"
    journal = Journal(path)
    for i in range(3):
        journal.append("note", number=i)
    whole = path.read_bytes()
    kept = data.draw(st.integers(0, len(whole)))
    path.write_bytes(whole[:kept])
    torn = Journal(path)
    complete = whole[:kept].count(b"\n")
    assert [e["number"] for e in torn.entries] == list(range(complete))
    torn.repair()
    torn.append("note", number=9)
    back = Journal(path)
    assert [e["number"] for e in back.entries] == [*range(complete), 9]
    assert not back.torn and not back.damaged


def test_a_damaged_line_in_the_middle_counts_as_not_written(tmp_path):
    journal = Journal(tmp_path / "j")
    for i in range(3):
        journal.append("note", number=i)
    lines = (tmp_path / "j").read_bytes().splitlines(keepends=True)
    lines[1] = lines[1].replace(b'"number":1', b'"number":7')
    (tmp_path / "j").write_bytes(b"".join(lines))
    back = Journal(tmp_path / "j")
    assert [e["number"] for e in back.entries] == [0, 2] and back.damaged == [2]


@pytest.mark.parametrize("line", [b"", b"12345678", b"00000000 {}", b"zzzzzzzz {}", b"x" * 20])
def test_lines_that_are_none(line):
    assert parse(line) is None
    assert parse(render({"event": "x"})[:-1]) == {"event": "x"}


# ---- pieces ----


@pytest.fixture
def store(tmp_path):
    found = PieceStore(tmp_path / "job")
    found.folder.mkdir()
    found.open_for_writing()
    return found


def again(store):
    found = PieceStore(store.folder)
    found.open_for_writing()
    return found


def test_what_was_put_is_there_for_the_next_process(store):
    store.put("latents", 0, piece(0), metadata={"a": "b"})
    store.put("latents", 1, piece(1), inputs=[("latents", 0)])
    for found in (store, again(store)):
        values, told = found.get("latents", 0, "numpy")
        assert same(values, piece(0)) and told == {"a": "b"}
        assert found.valid("latents", 1) and not found.valid("latents", 2)
        assert found.check("latents", 2) == "not finished"
        assert found.get("latents", 2) is None
    assert [p.name for p in store.pieces()] == ["latents-0000", "latents-0001"]


def test_putting_the_same_again_writes_nothing(store):
    store.put("images", 5, piece(0))
    before = (store.folder / "journal.jsonl").read_bytes(), store.path("images", 5).stat()
    store.put("images", 5, piece(0))
    after = (store.folder / "journal.jsonl").read_bytes(), store.path("images", 5).stat()
    assert before == after
    store.put("images", 5, piece(1))
    assert same(store.get("images", 5, "numpy")[0], piece(1))


@pytest.mark.parametrize("harm", ["cut", "grow", "flip", "gone", "empty"])
def test_a_harmed_file_is_dropped(store, harm, caplog):
    store.put("latents", 0, piece(0))
    path = store.path("latents", 0)
    data = path.read_bytes()
    changed = {"cut": data[:-5], "grow": data + b"x", "flip": data[:-1] + bytes([data[-1] ^ 1]),
               "empty": b""}  # fmt: skip
    if harm == "gone":
        path.unlink()
    else:
        path.write_bytes(changed[harm])
    found = again(store)
    assert found.check("latents", 0) != "" and not found.valid("latents", 0)
    assert found.get("latents", 0) is None
    assert "latents-0000 is made again" in caplog.text
    assert again(store).piece("latents", 0) is None


def test_a_piece_made_from_another_one_is_stale(store):
    store.put("latents", 0, piece(0))
    store.put("latents", 1, piece(1), inputs=[("latents", 0)])
    store.drop("latents", 0, "test")
    assert "another latents-0000" in store.check("latents", 1)
    store.put("latents", 0, piece(0))
    assert store.valid("latents", 1)  # made again with equal bytes
    store.put("latents", 0, piece(9))
    assert not store.valid("latents", 1) and not again(store).valid("latents", 1)


def test_files_elsewhere_are_adopted_but_never_deleted(store, tmp_path):
    video = tmp_path / "out.mp4"
    video.write_bytes(b"video")
    store.put("frames", 0, piece(0))
    store.adopt("merged", 0, video, [("frames", 0)], {"join": "cell"})
    assert again(store).valid("merged", 0)
    assert again(store).piece("merged", 0).made == {"join": "cell"}
    video.write_bytes(b"other")
    assert not again(store).valid("merged", 0)
    store.drop("merged", 0, "test")
    assert video.exists()


def test_pictures_in_a_folder_are_adopted(store, tmp_path):
    folder = tmp_path / "out"
    folder.mkdir()
    for i in range(3):
        (folder / f"{i}.png").write_bytes(bytes([i]) * 9)
    store.adopt("merged", 0, folder)
    assert again(store).valid("merged", 0)
    (folder / "1.png").rename(folder / "7.png")
    assert not again(store).valid("merged", 0)


@pytest.mark.parametrize(("kind", "index"), [("Latents", 0), ("../x", 0), ("", 0), ("a", -1)])
def test_names_that_are_no_pieces(store, kind, index):
    with pytest.raises(ValueError, match="is no piece"):
        store.path(kind, index)


def test_drafts_of_a_killed_process_are_swept(store):
    draft = store.folder / "pieces" / ".latents-0000.safetensors.new"
    draft.write_bytes(b"half")
    sweep(store.folder / "pieces")
    assert not draft.exists()


# ---- a disk that fails ----


class Quick(Files):
    """Flushes nothing: thousands of fsyncs are most of a test's time, and prove nothing here."""

    def fsync(self, handle):
        pass


class Faulty(Quick):
    """Fails at the n-th call of the system that changes anything; counts calls.

    short   a write that takes half of the bytes before it fails
    """

    def __init__(self, fail_at=None, code=errno.EIO, short=False, only=None):
        self.calls, self.fail_at, self.code, self.short, self.only = 0, fail_at, code, short, only

    def _count(self, what):
        if self.only is not None and what not in self.only:
            return
        self.calls += 1
        if self.calls == self.fail_at:
            raise OSError(self.code, os.strerror(self.code))

    def open(self, path, flags):
        self._count("open")
        return super().open(path, flags)

    def write(self, handle, data):
        try:
            self._count("write")
        except OSError:
            if self.short:
                super().write(handle, data[: len(data) // 2])
            raise
        return super().write(handle, data)

    def fsync(self, handle):
        self._count("fsync")
        super().fsync(handle)

    def truncate(self, handle, length):
        self._count("truncate")
        super().truncate(handle, length)

    def replace(self, source, target):
        self._count("replace")
        super().replace(source, target)

    def remove(self, path):
        self._count("remove")
        super().remove(path)


def scenario(store):
    """A small job with a redo: every way in which the store writes. Yields after each step."""
    for k in range(2):
        store.begin("latents", k)
        store.put("latents", k, piece(k), [("latents", k - 1)] if k else [])
    store.begin("frames", 0)
    store.put("frames", 0, piece(10), [("latents", 0)])
    store.drop("latents", 1, "redo")
    store.begin("latents", 1)
    store.put("latents", 1, piece(21), [("latents", 0)])
    store.note("memory", peak=1)


ALLOWED = {
    ("latents", 0): [piece(0)], ("latents", 1): [piece(1), piece(21)], ("frames", 0): [piece(10)],
}  # fmt: skip


def accepted_are_right(folder):
    """Nothing that a new process accepts is other than what was once put there."""
    store = PieceStore(folder, Quick())
    store.open_for_writing()
    for key, values in ALLOWED.items():
        sure = store.valid(*key)
        found = store.get(*key, "numpy")
        assert sure == (found is not None)
        if found is not None:
            assert any(same(found[0], v) for v in values), key
    return store


def run_scenario(folder, files):
    folder.mkdir(exist_ok=True)
    store = PieceStore(folder, files)
    store.open_for_writing()
    scenario(store)


def calls_of_scenario(folder, **how):
    files = Faulty(**how)
    run_scenario(folder, files)
    return files.calls


FAULTS = {
    "disk full": dict(code=errno.ENOSPC),
    "short write, then full": dict(code=errno.ENOSPC, short=True, only={"write"}),
    "i/o error": dict(code=errno.EIO),
    "read-only": dict(code=errno.EROFS),
    "fsync fails": dict(code=errno.EIO, only={"fsync"}),
    "quota": dict(code=errno.EDQUOT, short=True),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_at_every_call_leaves_only_right_pieces(tmp_path, fault):
    total = calls_of_scenario(tmp_path / "count", **FAULTS[fault])
    assert total >= 12
    for n in range(1, total + 1):
        folder = tmp_path / f"job{n}"
        try:
            run_scenario(folder, Faulty(fail_at=n, **FAULTS[fault]))
        except OSError as e:
            assert e.errno == FAULTS[fault]["code"]
        # else: an error while clearing up or cutting back, which is let pass
        store = accepted_are_right(folder)
        scenario(store)  # the disk is mended: the rest goes through
        assert same(PieceStore(folder).get("latents", 1, "numpy")[0], piece(21))


@pytest.mark.parametrize("fault", FAULTS)
def test_after_a_fault_the_same_process_can_go_on(tmp_path, fault):
    """As a user would who frees space while the program waits: no half line spoils the next."""
    total = calls_of_scenario(tmp_path / "count", **FAULTS[fault])
    for n in range(1, total + 1):
        folder = tmp_path / f"job{n}"
        folder.mkdir()
        store = PieceStore(folder, Faulty(fail_at=n, **FAULTS[fault]))
        store.open_for_writing()
        for _ in range(2):
            try:
                scenario(store)
                break
            except OSError:
                continue
        assert not Journal(folder / "journal.jsonl").damaged
        assert same(accepted_are_right(folder).get("latents", 1, "numpy")[0], piece(21))


# ---- a power cut ----


class Recorder(Quick):
    """Does everything, and remembers it for a replay up to any point."""

    def __init__(self, root):
        self.root, self.log, self.names = root, [], {}

    def _name(self, path):
        return str(path.relative_to(self.root)) if path != self.root else "."

    def open(self, path, flags):
        new = not path.exists()
        handle = super().open(path, flags)
        name = self._name(path)
        self.names[handle] = name
        if not path.is_dir() and new:
            self.log.append(("create", name))
        elif flags & os.O_TRUNC:
            self.log.append(("truncate", name, 0))
        return handle

    def write(self, handle, data):
        # In small parts, so that cuts fall inside of them.
        done = super().write(handle, data[: max(1, min(len(data), 200))])
        self.log.append(("write", self.names[handle], bytes(data[:done])))
        return done

    def fsync(self, handle):
        super().fsync(handle)
        self.log.append(("fsync", self.names[handle]))

    def truncate(self, handle, length):
        super().truncate(handle, length)
        self.log.append(("truncate", self.names[handle], length))

    def replace(self, source, target):
        super().replace(source, target)
        self.log.append(("rename", self._name(source), self._name(target)))

    def remove(self, path):
        super().remove(path)
        self.log.append(("unlink", self._name(path)))


class Inode:
    def __init__(self):
        self.now, self.safe = b"", b""


def parent(name):
    return name.rpartition("/")[0] or "."


def after_power_cut(log, kind):
    """Files on a disk that lost its power after the operations in `log`.

    strict   only what was flushed is there, names and contents
    all      everything had reached the disk
    zeros    names and lengths had, contents that were not flushed are zeros
    torn     names had, of contents that were not flushed the first half
    """
    now, safe = {}, {}
    for what, name, *rest in log:
        if what == "create":
            now[name] = Inode()
        elif what == "write":
            now[name].now += rest[0]
        elif what == "truncate":
            now[name].now = now[name].now[: rest[0]]
        elif what == "rename":
            now[rest[0]] = now.pop(name)
        elif what == "unlink":
            now.pop(name, None)
        elif name in now:  # fsync of a file
            now[name].safe = now[name].now
        else:  # of a folder
            for known in [n for n in safe if parent(n) == name]:
                del safe[known]
            safe.update({n: i for n, i in now.items() if parent(n) == name})
    if kind == "strict":
        return {n: i.safe for n, i in safe.items()}
    if kind == "all":
        return {n: i.now for n, i in now.items()}
    out = {}
    for name, inode in now.items():
        common = next(
            (i for i, (a, b) in enumerate(zip(inode.now, inode.safe)) if a != b),
            min(len(inode.now), len(inode.safe)),
        )
        rest = len(inode.now) - common
        tail = b"\0" * rest if kind == "zeros" else inode.now[common : common + rest // 2]
        out[name] = inode.now[:common] + tail
    return out


class Promises(PieceStore):
    """Notes in the recorder's log what `put` and `drop` had promised when they returned."""

    def put(self, kind, index, tensors, inputs=(), metadata=None):
        out = super().put(kind, index, tensors, inputs, metadata)
        self.files.log.append(("promise", (kind, index), tensors))
        return out

    def drop(self, kind, index, why):
        self.files.log.append(("promise", (kind, index), None))
        super().drop(kind, index, why)


@pytest.mark.parametrize("kind", ["strict", "all", "zeros", "torn"])
def test_power_cut_at_every_point(tmp_path, kind):
    root = tmp_path / "live"
    root.mkdir()
    recorder = Recorder(root)
    store = Promises(root, recorder)
    store.open_for_writing()
    recorder.log.append(("create_folder", "pieces"))
    scenario(store)
    log = recorder.log
    assert len(log) > 60 and {e[0] for e in log} >= {"rename", "unlink", "fsync", "promise"}
    for cut in range(len(log) + 1):
        done = [e for e in log[:cut] if e[0] not in ("promise", "create_folder")]
        folder = tmp_path / f"cut{cut}"
        for name, data in after_power_cut(done, kind).items():
            path = folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(data)
        folder.mkdir(exist_ok=True)
        found = accepted_are_right(folder)
        promised = {}
        for what, key, *rest in log[:cut]:
            if what == "promise":
                promised[key] = rest[0]
        began = {e[1] for e in log[:cut] if e[0] == "write"}
        assert began or not promised
        for key, value in promised.items():
            if value is not None:  # what put had returned for is there, and is that
                assert same(found.get(*key, "numpy")[0], value), (cut, key)


def test_names_of_pieces():
    assert piece_name("latents", 3) == "latents-0003"
