"""One process a job: refused by name, free as soon as the holder is dead, whatever its number."""

import json
import os
import signal
import subprocess
import sys
import time

import pytest

from h3video.errors import UsageError
from h3video.render import lock
from h3video.render.lock import JobLock, NoLocks, alive, born, holder_of, me

HOLD = (
    "import sys, time\nfrom pathlib import Path\nfrom h3video.render.lock import JobLock\n"
    "with JobLock(Path(sys.argv[1])):\n    print('held', flush=True)\n    time.sleep(60)\n"
)


@pytest.fixture
def holder(tmp_path):
    process = subprocess.Popen(
        [sys.executable, "-c", HOLD, str(tmp_path)], stdout=subprocess.PIPE, text=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )  # fmt: skip
    assert process.stdout.readline() == "held\n"
    yield process
    process.kill()
    process.wait()


def test_a_second_process_is_refused_by_name(tmp_path, holder):
    with pytest.raises(UsageError) as refused:
        JobLock(tmp_path).acquire()
    assert f"process {holder.pid} on" in str(refused.value) and "is being worked" in str(
        refused.value
    )
    assert holder_of(tmp_path)["pid"] == holder.pid


@pytest.mark.skipif(os.name == "nt", reason="needs POSIX signals")
def test_a_killed_holder_holds_nothing(tmp_path, holder):
    holder.send_signal(signal.SIGKILL)
    holder.wait()
    assert (tmp_path / "lock").read_text()  # its name is still there, its lock is not
    assert holder_of(tmp_path) is None
    with JobLock(tmp_path):
        assert holder_of(tmp_path)["pid"] == os.getpid()
    assert holder_of(tmp_path) is None


def test_looking_takes_nothing(tmp_path):
    assert holder_of(tmp_path) is None and not (tmp_path / "lock").exists()
    with JobLock(tmp_path):
        for _ in range(3):
            assert holder_of(tmp_path)["pid"] == os.getpid()
    with JobLock(tmp_path):
        pass


def test_a_lock_file_that_is_removed_meanwhile_is_nobody_s(tmp_path, monkeypatch):
    seen = []
    same = lock._same_file

    def removed_once(handle, path):
        if not seen:
            seen.append(1)
            path.unlink()
        return same(handle, path)

    monkeypatch.setattr(lock, "_same_file", removed_once)
    with JobLock(tmp_path):
        assert holder_of(tmp_path)["pid"] == os.getpid()


# ---- a file system without locks: number, start time and boot tell ----


@pytest.fixture
def no_locks(monkeypatch):
    def none(handle, shared=False):
        raise NoLocks

    monkeypatch.setattr(lock, "_lock", none)


def test_without_locks_a_living_holder_is_refused(tmp_path, holder, no_locks):
    with pytest.raises(UsageError, match=f"process {holder.pid} on"):
        JobLock(tmp_path).acquire()
    assert holder_of(tmp_path)["pid"] == holder.pid


@pytest.mark.parametrize(
    "change", [{"pid": 2**22 - 3}, {"born": "1"}, {"boot": "another"}], ids=lambda c: next(iter(c))
)
def test_without_locks_a_dead_holder_is_not(tmp_path, no_locks, change):
    """Also when its number is another process's now (born differs): ours stands for that."""
    (tmp_path / "lock").write_text(json.dumps({**me(), **change}))
    with JobLock(tmp_path):
        assert json.loads((tmp_path / "lock").read_text())["pid"] == os.getpid()


def test_without_locks_another_machine_s_process_counts_as_living(tmp_path, no_locks):
    (tmp_path / "lock").write_text(json.dumps({**me(), "host": "elsewhere"}))
    with pytest.raises(UsageError, match="on elsewhere"):
        JobLock(tmp_path).acquire()


@pytest.mark.parametrize("text", ["", "{", "[]", "null"])
def test_a_lock_file_with_nonsense_is_free(tmp_path, no_locks, text):
    (tmp_path / "lock").write_text(text)
    with JobLock(tmp_path):
        pass


def test_start_times_tell_processes_apart():
    mine = born(os.getpid())
    assert mine and born(os.getpid()) == mine and born(2**22 - 3) == ""
    time.sleep(0.05)
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as other:
        assert born(other.pid) not in ("", mine)
        other.communicate(b"\n")
    assert alive(me())
