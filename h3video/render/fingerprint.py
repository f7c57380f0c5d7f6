"""What decides a job's result, as named fields that can be compared one by one.

Weights are too large to hash whole: of a file the size, the header and blocks spread over it are
taken, so a changed value of a quantised block may go unseen, another file never does.
Standard library only.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from ..errors import UsageError

WHOLE = 4 << 20
"""Files up to this size are hashed whole."""

HEAD = 1 << 20
BLOCKS, BLOCK = 256, 4096
"""Of larger ones the first MiB and these many blocks spread over the rest, the last included."""

FREE = frozenset({"format", "created", "versions", "output", "merge"})
"""Fields of a job that may change: they do not decide what is in a chunk."""

ASIDE = frozenset({"file", "worker", "offload"})
"""Entries of these names say where something lies or waits, not what it is."""


def file_identity(path: Path) -> dict[str, Any]:
    """{"bytes", "sha256"} of a file, read in a blink however large it is.

    Raises UsageError when it cannot be read.
    """
    digest = hashlib.sha256()
    try:
        with open(path, "rb") as f:
            size = f.seek(0, os.SEEK_END)
            f.seek(0)
            if size <= WHOLE:
                digest.update(f.read())
            else:
                digest.update(f.read(max(HEAD, _header_length(f))))
                for i in range(BLOCKS):
                    f.seek((size - BLOCK) * (i + 1) // BLOCKS)
                    digest.update(f.read(BLOCK))
    except OSError as e:
        raise UsageError(f"{path} cannot be read ({e.strerror}); check the path") from None
    return {"bytes": size, "sha256": digest.hexdigest()}


def _header_length(f: Any) -> int:
    """Bytes of a safetensors header, at most 64 MiB; leaves the file at its start."""
    told = int.from_bytes(f.read(8), "little")
    f.seek(0)
    return told + 8 if told < 64 << 20 else 0


def folder_identity(folder: Path, parts: Iterable[str]) -> dict[str, dict[str, Any]]:
    """Identities of all files of a model folder, by their path in it.

    parts   subfolders (and files) that are used; absent ones are left out
    """
    found: dict[str, dict[str, Any]] = {}
    for part in sorted(parts):
        top = folder / part
        files = sorted(p for p in top.rglob("*") if p.is_file()) if top.is_dir() else [top]
        for file in files:
            inside = file.relative_to(folder)
            if file.is_file() and not any(n.startswith(".") for n in inside.parts):
                found[inside.as_posix()] = file_identity(file)
    return found


def fields(document: dict[str, Any]) -> dict[str, Any]:
    """A document as one value per dotted name, those that decide nothing left out.

    Lists are split, too: chunks.0.prompt.
    """
    flat: dict[str, Any] = {}
    for name, value in document.items():
        if name not in FREE:
            _flatten(name, value, flat)
    return flat


def _flatten(name: str, value: Any, into: dict[str, Any]) -> None:
    if isinstance(value, dict) and value:
        for key in sorted(k for k in value if k not in ASIDE):
            _flatten(f"{name}.{key}", value[key], into)
    elif isinstance(value, (list, tuple)) and value and not _numbers(value):
        for i, item in enumerate(value):
            _flatten(f"{name}.{i}", item, into)
    else:
        into[name] = json.loads(json.dumps(value))


def _numbers(value: Any) -> bool:
    return all(isinstance(v, (int, float)) and not isinstance(v, bool) for v in value)


def differences(old: dict[str, Any], new: dict[str, Any]) -> list[tuple[str, Any, Any]]:
    """(field, old value, new value) of what differs; a missing field has the value None."""
    return [
        (name, old.get(name), new.get(name))
        for name in sorted(old.keys() | new.keys())
        if old.get(name) != new.get(name) or (name in old) != (name in new)
    ]


def allowed(field: str, names: Iterable[str]) -> bool:
    """Whether `--allow` names cover a field: the whole of it, or some of its dotted parts."""
    return any(f".{n}." in f".{field}." for n in names)


def digest(document: dict[str, Any]) -> str:
    """The sha256 of all fields of a document, hex."""
    text = json.dumps(fields(document), sort_keys=True, ensure_ascii=False)
    return hashlib.sha256(text.encode()).hexdigest()
