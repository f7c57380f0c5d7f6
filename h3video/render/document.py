"""The job document: everything that decides a long clip, as one JSON object in job.json.

What it was when pieces were made is told in the journal, too, field by field, so that a change -
of a model file, of the command, by hand - is seen before a piece of another clip is added.
"""

from __future__ import annotations

import json
import platform
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from .. import __version__
from ..errors import UsageError
from ..tiling.chunks import ChunkPlan
from .files import REAL, Files
from .fingerprint import allowed, differences, fields
from .store import PieceStore

FORMAT = "h3video-job/1"

NAME = "job.json"

SEEDS = ("field", "next", "same")
"""How chunks get their noise: one field by position, seed + number, or the same seed."""


def make_document(
    settings: dict[str, Any], engine: dict[str, Any], plan: ChunkPlan,
    texts: list[tuple[str, str]], output: Path, model: str = "", **files: Any,
) -> dict[str, Any]:  # fmt: skip
    """A document before the engine has told what it is made of.

    settings   canvas, fps, steps, cfg, seed, seeds, precision, tiles, join, ...
    engine     {"name", "options", "worker"}
    texts      (prompt, negative) of every chunk
    files      gguf, lora, inputs as the engine tells them: {"file": path} entries
    """
    if settings["seeds"] not in SEEDS:
        raise UsageError(f"seed policy {settings['seeds']!r} is unknown; use {', '.join(SEEDS)}")
    chunks = [
        {"prompt": p, "negative": n, "seed": chunk_seed(settings, k)}
        for k, (p, n) in enumerate(texts)
    ]
    return {
        "format": FORMAT, "created": time.strftime("%Y-%m-%dT%H:%M:%S%z"),
        "output": str(output.absolute()), "versions": versions(), "engine": engine,
        "model": {"file": model}, "settings": settings, "plan": plan.to_json(), "chunks": chunks,
        **files,
    }  # fmt: skip


def chunk_seed(settings: dict[str, Any], index: int) -> int:
    """The seed of a chunk by the policy."""
    seed = int(settings["seed"])
    return (seed + index) % 2**63 if settings["seeds"] == "next" else seed


def versions() -> dict[str, str]:
    """Versions of what computes; told, not compared: an update must not end a job."""
    from importlib.metadata import PackageNotFoundError, version

    found = {"h3video": __version__, "python": platform.python_version()}
    for name in ("torch", "diffusers", "transformers", "av"):
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            continue
    return found


def save_document(folder: Path, document: dict[str, Any], files: Files = REAL) -> None:
    """Write job.json, whole or not at all."""
    text = json.dumps(document, indent=1, ensure_ascii=False) + "\n"
    files.write_atomic(folder / NAME, (text.encode(),))


def load_document(folder: Path) -> dict[str, Any]:
    """Read job.json. Raises UsageError when the folder is no job or its document is damaged."""
    path = Path(folder) / NAME
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise UsageError(
            f"{folder} is no job: it has no {NAME}; `h3video jobs` lists the jobs here"
        ) from None
    except NotADirectoryError:
        raise UsageError(f"{folder} is a file; a job is a folder such as out.job") from None
    except (OSError, ValueError) as e:
        raise UsageError(f"{path} cannot be read ({e}); start the job with its command") from None
    if not isinstance(found, dict) or found.get("format") != FORMAT:
        told = found.get("format") if isinstance(found, dict) else None
        raise UsageError(f"{path} has the format {told}, this program reads {FORMAT}")
    return found


def chunk_plan(document: dict[str, Any]) -> ChunkPlan:
    """The chunks of a job."""
    return ChunkPlan.from_json(document["plan"])


def agree(store: PieceStore, document: dict[str, Any], allow: Iterable[str]) -> list[str]:
    """Compare a document with what the journal's pieces were made with, and tell it there.

    allow   fields (or dotted parts of their names) that may have changed

    Returns a line for each allowed change. Raises UsageError naming the first fields that differ,
    and for an `allow` that names nothing.
    """
    new, names = fields(document), list(allow)
    told = store.events("job")
    if not told:
        store.note("job", fields=new)
        return []
    found = differences(told[-1]["fields"], new)
    refused = [d for d in found if not allowed(d[0], names)]
    known = told[-1]["fields"].keys() | new.keys()
    for name in names:
        if not any(allowed(field, [name]) for field in known):
            raise UsageError(f"--allow {name} names no field of this job; see job.json")
    if refused:
        raise UsageError(refusal(store.folder, refused))
    for field, old, now in found:
        store.note("allow", field=field, old=old, new=now)
    if found:
        store.note("job", fields=new)
    return [f"{field} is now {shown(now)} (was {shown(old)})" for field, old, now in found]


def refusal(folder: Path, changed: list[tuple[str, Any, Any]]) -> str:
    """Why a job cannot go on: what differs, with both values, and what can be done."""
    first: dict[str, tuple[str, Any, Any]] = {}
    for field, old, new in changed:
        first.setdefault(short_name(field), (field, old, new))
    lines = "; ".join(f"{f} was {shown(a)}, is {shown(b)}" for f, a, b in list(first.values())[:4])
    more = len(changed) - min(4, len(first))
    lines += f" (and {more} more)" if more else ""
    names = " ".join(f"--allow {name}" for name in first)
    return (
        f"job {folder} was begun otherwise: {lines}; undo the change, use another --job, delete "
        f"that folder to begin anew, or keep the finished pieces and go on with `{names}`"
    )


def short_name(field: str) -> str:
    """The word that allows a field and its like: chunks.3.prompt -> prompt, model.* -> model."""
    parts = field.split(".")
    if parts[0] == "chunks" and len(parts) > 2:
        return parts[2]
    return parts[1] if parts[0] == "settings" and len(parts) > 1 else parts[0]


def shown(value: Any) -> str:
    """A field's value for a message."""
    if value is None:
        return "not set"
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= 60 else f"{text[:57]}..."
