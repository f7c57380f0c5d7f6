"""The only place where jobs write to the disk: whole files or none, flushed before they count.

Tests put a faulty layer in place of `REAL`: every call of the operating system that can fail is one
method here. Standard library only.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any

BLOCK = 1 << 20
"""Bytes handed to the system at a time."""


class Files:
    """Calls of the operating system, one a method, and the three ways in which we write."""

    def open(self, path: Path, flags: int) -> int:
        """A file descriptor."""
        return os.open(path, flags | getattr(os, "O_BINARY", 0), 0o666)

    def write(self, handle: int, data: Any) -> int:
        """Write some of `data`; returns how many bytes."""
        return os.write(handle, data)

    def fsync(self, handle: int) -> None:
        """Bring a file's (or folder's) contents to the disk."""
        os.fsync(handle)

    def truncate(self, handle: int, length: int) -> None:
        """Cut a file to `length` bytes."""
        os.ftruncate(handle, length)

    def replace(self, source: Path, target: Path) -> None:
        """Rename over what is there."""
        os.replace(source, target)

    def remove(self, path: Path) -> None:
        """Delete a file that may not be there."""
        path.unlink(missing_ok=True)

    def write_atomic(self, path: Path, pieces: Iterable[Any]) -> tuple[int, str]:
        """Write a whole file or leave what was there; returns its size and sha256.

        pieces   bytes-like objects, written one after the other

        On return the file survives a power cut. Raises OSError, with the draft removed.
        """
        draft = draft_of(path)
        try:
            handle = self.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
            try:
                found = self._write_all(handle, pieces)
                self.fsync(handle)
            finally:
                os.close(handle)
            self.replace(draft, path)
        except BaseException:
            self._forget(draft)
            raise
        self.sync_folder(path.parent)
        return found

    def append(self, path: Path, data: bytes) -> None:
        """Append to a file; on return it survives a power cut.

        A failed append is cut off again where that is possible, so that the next one does not
        continue half a line.
        """
        new = not path.exists()
        handle = self.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND)
        try:
            before = os.fstat(handle).st_size
            try:
                self._write_all(handle, (data,))
                self.fsync(handle)
            except OSError:
                self._cut_back(handle, before)
                raise
        finally:
            os.close(handle)
        if new:
            self.sync_folder(path.parent)

    def cut(self, path: Path, length: int) -> None:
        """Cut a file to `length` bytes; on return that survives a power cut."""
        handle = self.open(path, os.O_RDWR)
        try:
            self.truncate(handle, length)
            self.fsync(handle)
        finally:
            os.close(handle)

    def sync_folder(self, folder: Path) -> None:
        """A rename or a new name must survive a power cut, too."""
        if os.name != "posix":
            return
        handle = self.open(folder, os.O_RDONLY)
        try:
            self.fsync(handle)
        finally:
            os.close(handle)

    def _write_all(self, handle: int, pieces: Iterable[Any]) -> tuple[int, str]:
        digest, size = hashlib.sha256(), 0
        for piece in pieces:
            view = memoryview(piece).cast("B")
            digest.update(view)
            size += len(view)
            at = 0
            while at < len(view):
                done = self.write(handle, view[at : at + BLOCK])
                if done <= 0:
                    raise OSError(5, "the disk took no bytes")
                at += done
        return size, digest.hexdigest()

    def _cut_back(self, handle: int, length: int) -> None:
        with contextlib.suppress(OSError):  # else the torn line is found by its checksum
            self.truncate(handle, length)

    def _forget(self, draft: Path) -> None:
        with contextlib.suppress(OSError):  # else it is swept when the job is next opened
            self.remove(draft)


def draft_of(path: Path) -> Path:
    """The name under which a file is written until it is complete."""
    return path.with_name(f".{path.name}.new")


def sweep(folder: Path) -> None:
    """Remove drafts that a killed process left. Only for the holder of the folder's lock."""
    for draft in folder.glob(".*.new"):
        with contextlib.suppress(OSError):  # in nobody's way
            draft.unlink()


def size_of(path: Path) -> int:
    """Bytes of a file, or of all files in a folder of pictures. Raises OSError."""
    if path.is_dir():
        return sum(p.stat().st_size for p in path.iterdir() if p.is_file())
    return path.stat().st_size


def sha256_of(path: Path) -> str:
    """The sha256 of a file's contents, or of a folder's names and contents, hex. Raises OSError."""
    digest = hashlib.sha256()
    if path.is_dir():
        for file in sorted(p for p in path.iterdir() if p.is_file()):
            digest.update(f"{file.name} {sha256_of(file)}\n".encode())
        return digest.hexdigest()
    with open(path, "rb", buffering=0) as f:
        block = bytearray(BLOCK)
        view = memoryview(block)
        while count := f.readinto(block):
            digest.update(view[:count])
    return digest.hexdigest()


REAL = Files()
"""The disk as it is."""
