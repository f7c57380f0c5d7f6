"""One process works on a job folder: a lock that the system lets go of when its holder dies.

The lock is flock's (msvcrt's on Windows), so `kill -9` frees it at once and a number that another
process got later means nothing. Where a file system has no such locks (some network shares), the
holder is known by its number, its start time and the machine's boot. Standard library only.
"""

from __future__ import annotations

import errno
import json
import os
import socket
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from ..errors import UsageError

NAME = "lock"

ATTEMPTS = 5


class NoLocks(Exception):
    """This file system cannot lock."""


class JobLock:
    """Hold a job's folder: `with JobLock(folder): ...`.

    Raises UsageError naming the holder if another process has it, OSError if the folder cannot be
    written to.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = Path(folder)
        self.path = self.folder / NAME
        self._handle: int | None = None

    def __enter__(self) -> JobLock:
        self.acquire()
        return self

    def __exit__(self, *_: object) -> None:
        self.release()

    def acquire(self) -> None:
        """Take the lock or raise; waits for a blink only, while a holder is not known yet."""
        for attempt in range(ATTEMPTS):
            handle = os.open(self.path, os.O_RDWR | os.O_CREAT, 0o666)
            try:
                taken = self._try(handle)
            except BaseException:
                os.close(handle)
                raise
            if not taken:
                holder = _read(handle)
                os.close(handle)
                if holder or attempt == ATTEMPTS - 1:
                    raise UsageError(refusal(self.folder, holder))
                time.sleep(0.05)  # somebody looks at the lock, or has not written its name yet
                continue
            if _same_file(handle, self.path):
                self._handle = handle
                break
            os.close(handle)  # the file was removed meanwhile: that lock is nobody's
        else:
            raise UsageError(refusal(self.folder, {}))
        os.ftruncate(self._handle, 0)
        os.lseek(self._handle, 0, os.SEEK_SET)
        os.write(self._handle, json.dumps(me()).encode())

    def _try(self, handle: int) -> bool:
        try:
            return _lock(handle)
        except NoLocks:
            holder = _read(handle)
            return not (holder and alive(holder))

    def release(self) -> None:
        """Let go; the file stays, empty."""
        if self._handle is not None:
            os.ftruncate(self._handle, 0)
            os.close(self._handle)
            self._handle = None


def holder_of(folder: Path) -> dict[str, Any] | None:
    """Who holds a job's folder now; None if nobody does. Takes nothing."""
    try:
        handle = os.open(Path(folder) / NAME, os.O_RDONLY)
    except OSError:
        return None
    try:
        try:
            free = _lock(handle, shared=True)
        except NoLocks:
            told = _read(handle)
            return told if told and alive(told) else None
        return None if free else (_read(handle) or {"pid": 0})
    finally:
        os.close(handle)


def refusal(folder: Path, holder: dict[str, Any]) -> str:
    """Why a folder cannot be had, in one line."""
    since = time.strftime("%Y-%m-%d %H:%M", time.localtime(holder.get("started", 0)))
    who = f"process {holder['pid']} on {holder['host']} ({holder['command']}, since {since})"
    return (
        f"job {folder} is being worked on by {who if holder.get('host') else 'another process'}; "
        "wait for it, or stop it first (what it has finished stays)"
    )


def me() -> dict[str, Any]:
    """This process: number, machine, when and how it was started."""
    return {
        "pid": os.getpid(), "host": socket.gethostname(), "started": round(time.time(), 3),
        "born": born(os.getpid()), "boot": boot(),
        "command": " ".join([Path(sys.argv[0]).name, *sys.argv[1:]])[:120],
    }  # fmt: skip


def alive(holder: dict[str, Any]) -> bool:
    """Whether the process that wrote a lock still runs.

    A process of another machine counts as running: it cannot be looked at from here.
    """
    if holder.get("host") != socket.gethostname():
        return True
    if holder.get("boot") != boot():
        return False
    return bool(holder.get("born")) and born(int(holder.get("pid", 0))) == holder.get("born")


def born(pid: int) -> str:
    """When a process was started, in the system's own words; "" if there is no such process."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as f:
            # The name in brackets may hold anything; field 22 counts from after its end.
            return f.read().rpartition(b")")[2].split()[19].decode()
    except OSError:
        if os.path.isdir("/proc/self"):
            return ""
    if os.name != "posix":
        return ""
    shown = subprocess.run(
        ["ps", "-o", "lstart=", "-p", str(pid)], capture_output=True, text=True, check=False
    )
    return shown.stdout.strip()


def boot() -> str:
    """What tells this start of the machine from others, where the system says."""
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    except OSError:
        return ""


def _lock(handle: int, shared: bool = False) -> bool:
    """Lock an open file without waiting: whether we have it now. Raises NoLocks."""
    if os.name != "posix":
        return _lock_windows(handle)
    import fcntl

    try:
        fcntl.flock(handle, (fcntl.LOCK_SH if shared else fcntl.LOCK_EX) | fcntl.LOCK_NB)
    except OSError as e:
        if e.errno in (errno.EWOULDBLOCK, errno.EACCES):
            return False
        if e.errno in (errno.ENOLCK, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS, errno.EINVAL):
            raise NoLocks from None
        raise
    return True


def _lock_windows(handle: int) -> bool:
    import msvcrt

    os.lseek(handle, 1 << 20, os.SEEK_SET)  # past the text, which others must be able to read
    try:
        msvcrt.locking(handle, msvcrt.LK_NBLCK, 1)  # type: ignore[attr-defined]
    except OSError:
        return False
    return True


def _same_file(handle: int, path: Path) -> bool:
    try:
        return os.path.samestat(os.fstat(handle), os.stat(path))
    except OSError:
        return False


def _read(handle: int) -> dict[str, Any]:
    try:
        os.lseek(handle, 0, os.SEEK_SET)
        found = json.loads(os.read(handle, 1 << 16))
    except (ValueError, OSError):
        return {}
    return found if isinstance(found, dict) else {}
