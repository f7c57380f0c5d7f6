"""The finished pieces of a job: files in a folder, each told in the journal with its checksum.

A piece counts only if its file has the size and the sha256 that the journal tells and was made from
the pieces that are there now. Anything else is dropped and made again. Standard library only.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from .files import REAL, Files, sha256_of, size_of, sweep
from .journal import Journal
from .tensors import Damaged, encode, read_tensors, write_tensors

log = logging.getLogger("h3video")

PIECES = "pieces"

Key = tuple[str, int]
"""What a piece is, and which: ("latents", 3)."""


@dataclass(frozen=True)
class Piece:
    """A finished piece as the journal tells it.

    file     relative to the job's folder, or absolute
    inputs   names of the pieces that it was made from, with their sha256
    made     what else decided it, as `adopt` was told
    """

    kind: str
    index: int
    file: str
    bytes: int
    sha256: str
    inputs: Mapping[str, str] = field(default_factory=dict)
    made: Mapping[str, Any] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """How messages and other pieces call it."""
        return piece_name(self.kind, self.index)


def piece_name(kind: str, index: int) -> str:
    """latents-0003."""
    return f"{kind}-{index:04d}"


class PieceStore:
    """Pieces of one folder. Takes no lock: hold `JobLock(folder)` while writing.

    began   how often a piece was begun in the life of the job, by key
    """

    def __init__(self, folder: Path, files: Files = REAL) -> None:
        self.folder = Path(folder)
        self.files = files
        self.journal = Journal(self.folder / "journal.jsonl", files)
        self._pieces: dict[Key, Piece] = {}
        self._checked: dict[Key, tuple[int, int, int]] = {}
        self.began: dict[Key, int] = {}
        for entry in self.journal.entries:
            self._take(entry)

    def open_for_writing(self) -> None:
        """Make folders, cut a torn line, remove drafts. Only for the holder of the lock."""
        (self.folder / PIECES).mkdir(parents=True, exist_ok=True)
        sweep(self.folder)
        sweep(self.folder / PIECES)
        self.journal.repair()

    def _take(self, entry: dict[str, Any]) -> None:
        event = entry.get("event")
        if event not in ("begin", "done", "drop"):
            return
        key = (str(entry["kind"]), int(entry["index"]))
        if event == "begin":
            self.began[key] = self.began.get(key, 0) + 1
        elif event == "drop":
            self._pieces.pop(key, None)
        else:
            told = {k: entry[k] for k in ("kind", "index", "file", "bytes", "sha256")}
            self._pieces[key] = Piece(
                **told, inputs=entry.get("inputs", {}), made=entry.get("made", {})
            )
        if event != "begin":
            self._checked.pop(key, None)

    def _tell(self, event: str, **data: Any) -> None:
        self._take(self.journal.append(event, **data))

    def note(self, event: str, **data: Any) -> None:
        """Write a line that is about no piece. Raises OSError."""
        self.journal.append(event, **data)

    def events(self, event: str) -> list[dict[str, Any]]:
        """All lines of one event, oldest first."""
        return [e for e in self.journal.entries if e.get("event") == event]

    def begin(self, kind: str, index: int) -> None:
        """Say that a piece is being made."""
        self._tell("begin", kind=kind, index=index)

    def put(
        self, kind: str, index: int, tensors: Mapping[str, Any], inputs: Iterable[Key] = (),
        metadata: Mapping[str, str] | None = None,
    ) -> str:  # fmt: skip
        """Keep a finished piece; returns its sha256. On return it survives a power cut.

        inputs   keys of the pieces that it was made from; they must be there

        Writes nothing if a piece of equal bytes and inputs is there. Raises OSError.
        """
        path = self.path(kind, index)
        told = self._inputs(inputs)
        have = self._pieces.get((kind, index))
        same = have is not None and have.inputs == told and self.valid(kind, index)
        if have is not None and same and have.sha256 == _digest(tensors, metadata or {}):
            return have.sha256
        path.parent.mkdir(parents=True, exist_ok=True)
        self._checked.pop((kind, index), None)
        size, digest = write_tensors(path, tensors, metadata, self.files)
        self._tell("done", kind=kind, index=index, file=f"{PIECES}/{path.name}", bytes=size,
                   sha256=digest, inputs=told)  # fmt: skip
        self._seen((kind, index), path)
        return digest

    def adopt(
        self, kind: str, index: int, file: Path, inputs: Iterable[Key] = (),
        made: Mapping[str, Any] | None = None,
    ) -> str:  # fmt: skip
        """Tell of a complete file that lies elsewhere (the merged video); returns its sha256."""
        digest, size = sha256_of(file), size_of(file)
        self._tell("done", kind=kind, index=index, file=str(file.absolute()), bytes=size,
                   sha256=digest, inputs=self._inputs(inputs), made=dict(made or {}))  # fmt: skip
        self._seen((kind, index), file)
        return digest

    def _inputs(self, inputs: Iterable[Key]) -> dict[str, str]:
        return {piece_name(*key): self._pieces[key].sha256 for key in sorted(inputs)}

    def get(
        self, kind: str, index: int, framework: str = "torch"
    ) -> tuple[dict[str, Any], dict[str, str]] | None:
        """Arrays and metadata of a piece; None if it is not there or was damaged (now dropped)."""
        piece = self._pieces.get((kind, index))
        if piece is None:
            return None
        why = self._stale(piece)
        if not why:
            try:
                return read_tensors(self._file(piece), framework, piece.sha256)
            except FileNotFoundError:
                why = "its file is gone"
            except Damaged as e:
                why = str(e)
        self.drop(kind, index, why)
        return None

    def path(self, kind: str, index: int) -> Path:
        """Where a piece's file lies or will lie."""
        if not re.fullmatch(r"[a-z][a-z0-9_-]*", kind) or index < 0:
            raise ValueError(f"{kind!r} {index} is no piece: a lowercase word, a number from 0")
        return self.folder / PIECES / f"{piece_name(kind, index)}.safetensors"

    def piece(self, kind: str, index: int) -> Piece | None:
        """What the journal tells of a piece; the file is not looked at."""
        return self._pieces.get((kind, index))

    def pieces(self) -> list[Piece]:
        """All pieces that the journal tells of, sorted."""
        return [self._pieces[key] for key in sorted(self._pieces)]

    def valid(self, kind: str, index: int) -> bool:
        """Whether a piece is there, whole, and made from the pieces that are there."""
        return self.check(kind, index) == ""

    def check(self, kind: str, index: int) -> str:
        """What is wrong with a piece, in words; "" if nothing is. Reads the file once."""
        piece = self._pieces.get((kind, index))
        if piece is None:
            return "not finished"
        stale = self._stale(piece)
        if stale:
            return stale
        path = self._file(piece)
        try:
            now = _stamp(path)
            if self._checked.get((kind, index)) == now:
                return ""
            if size_of(path) != piece.bytes:
                return f"{path} has {size_of(path)} bytes, written were {piece.bytes}"
            if sha256_of(path) != piece.sha256:
                return f"{path} is not what was written: its sha256 differs"
        except FileNotFoundError:
            return f"{path} is gone"
        except OSError as e:
            return f"{path} cannot be read ({e.strerror})"
        self._checked[(kind, index)] = now
        return ""

    def glance(self, kind: str, index: int) -> str:
        """Like `check`, but looks at the file's size only."""
        piece = self._pieces.get((kind, index))
        if piece is None:
            return "not finished"
        try:
            size = size_of(self._file(piece))
        except OSError as e:
            return f"{self._file(piece)} cannot be read ({e.strerror})"
        if size != piece.bytes:
            return f"{self._file(piece)} has {size} bytes, written were {piece.bytes}"
        return self._stale(piece)

    def _stale(self, piece: Piece) -> str:
        for name, digest in piece.inputs.items():
            kind, _, index = name.rpartition("-")
            now = self._pieces.get((kind, int(index)))
            if now is None or now.sha256 != digest:
                return f"it was made from another {name}"
        return ""

    def drop(self, kind: str, index: int, why: str) -> None:
        """Forget a piece and delete its file if it is ours; told in the journal first."""
        piece = self._pieces.get((kind, index))
        if piece is None:
            return
        log.warning("%s is made again: %s", piece.name, why)
        self._tell("drop", kind=kind, index=index, why=why)
        if not Path(piece.file).is_absolute():
            self.files.remove(self._file(piece))

    def _file(self, piece: Piece) -> Path:
        return self.folder / piece.file

    def _seen(self, key: Key, path: Path) -> None:
        self._checked[key] = _stamp(path)


def _stamp(path: Path) -> tuple[int, int, int]:
    """What tells that a file is still the one that was read; clocks of file systems are coarse."""
    found = path.stat()
    return found.st_ino, found.st_size, found.st_mtime_ns


def _digest(tensors: Mapping[str, Any], metadata: Mapping[str, str]) -> str:
    import hashlib

    digest = hashlib.sha256()
    for part in encode(tensors, metadata):
        digest.update(part)
    return digest.hexdigest()
