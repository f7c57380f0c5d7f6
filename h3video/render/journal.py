"""The journal of a job: one checked line for everything that happened, appended and flushed.

A line is the crc32 of its JSON text, a space, the JSON text. The last line may be torn (the power
went, the process was killed): it is cut off by the next holder of the lock. A damaged line in the
middle counts as never written. Standard library only.
"""

from __future__ import annotations

import json
import logging
import zlib
from pathlib import Path
from typing import Any

from .files import REAL, Files

log = logging.getLogger("h3video")


class Journal:
    """The lines of one job, oldest first, in `entries`.

    damaged   numbers (from 1) of lines whose checksum is wrong, without a torn last one
    torn      whether the file ends in an unfinished line
    """

    def __init__(self, path: Path, files: Files = REAL) -> None:
        self.path = path
        self.files = files
        self.entries: list[dict[str, Any]] = []
        self.damaged: list[int] = []
        self.torn = False
        self._good = 0
        self._read()

    def _read(self) -> None:
        try:
            data = self.path.read_bytes()
        except FileNotFoundError:
            return
        lines = data.split(b"\n")
        rest = lines.pop()  # what follows the last line end: nothing, or a torn line
        for number, line in enumerate(lines, 1):
            entry = parse(line)
            if entry is None:
                self.damaged.append(number)
            else:
                self.entries.append(entry)
        self._good = len(data) - len(rest)
        self.torn = bool(rest)

    def repair(self) -> None:
        """Cut a torn last line off. Only for the holder of the job's lock."""
        if self.damaged:
            shown = ", ".join(map(str, self.damaged[:5]))
            log.warning("%s: line %s is damaged and counts as not written", self.path, shown)
        if self.torn and self.path.exists():
            self.files.cut(self.path, self._good)
        self.torn = False

    def append(self, event: str, **data: Any) -> dict[str, Any]:
        """Write a line; on return it survives a power cut. Raises OSError."""
        if self.torn:
            self.repair()
        entry = {"event": event, **data}
        line = render(entry)
        try:
            self.files.append(self.path, line)
        except OSError:
            self.torn = True  # half a line may be there: cut before the next one
            raise
        self._good += len(line)
        self.entries.append(entry)
        return entry


def render(entry: dict[str, Any]) -> bytes:
    """An entry as a line of the file."""
    text = json.dumps(entry, ensure_ascii=False, separators=(",", ":")).encode()
    return f"{zlib.crc32(text):08x} ".encode() + text + b"\n"


def parse(line: bytes) -> dict[str, Any] | None:
    """The entry of a line (without its end), None if it is damaged."""
    if line[8:9] != b" " or line[:8] != f"{zlib.crc32(line[9:]):08x}".encode():
        return None
    try:
        entry = json.loads(line[9:])
    except ValueError:
        return None
    return entry if isinstance(entry, dict) else None
