"""`h3video inspect`: what a model file or folder holds, and what loads it, without its weights."""

from __future__ import annotations

import argparse
import json
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ..memory.formats import FileHeader, Folder
    from ..models.detect import Detection

SCHEMA = 1
"""Version of the JSON that `--json` prints; fields are added, never changed."""

WIDTH = 100


def add_parser(commands: Any) -> None:
    """Add the subcommand to the parser."""
    p = commands.add_parser(
        "inspect",
        help="what a model file or folder holds, and what loads it",
        description=(
            "Read the header of a GGUF or safetensors file, a sharded model's .index.json, or all "
            "model files of a folder: which model it is, told by its tensors and never by its "
            "name, the bytes of every type, which programs load it, and what they would mistake. "
            "Weights are not read."
        ),
    )
    p.add_argument("path", type=Path, metavar="FILE|FOLDER", help="a model file or folder")
    p.add_argument("--json", action="store_true", help="print JSON")
    p.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Read, detect, print."""
    from ..memory.formats import read_folder, read_header

    if args.path.is_dir():
        folder = read_folder(args.path)
        out = folder_json(folder) if args.json else "\n".join(folder_lines(folder))
    else:
        header = read_header(args.path)
        out = file_json(header) if args.json else "\n".join(file_lines(header))
    if args.json:
        json.dump(out, sys.stdout, indent=2, ensure_ascii=True)
        print()
    else:
        print(out)
    return 0


def file_json(header: FileHeader) -> dict[str, Any]:
    """A file's reading as JSON values."""
    from ..models.detect import detect

    found = detect(header)
    entry = found.match and (found.match.encoder or found.match.vae)
    return {
        "schema": SCHEMA, "path": header.path, "format": header.kind, "version": header.version,
        "big_endian": header.big_endian, "shards": list(header.shards),
        "tensors": len(header.tensors), "weights": found.weights,
        "file_bytes": header.file_bytes, "data_bytes": header.data_bytes,
        "types": {k: {"tensors": n, "bytes": size} for k, (n, size) in found.types.items()},
        "architecture": _architecture(header), "kind": found.kind, "title": found.title,
        "model": found.spec.name if found.spec else (entry.name if entry else None),
        "layout": found.layout or None, "quantization": found.quant or None,
        "loads": {k: {"verdict": v, "why": why} for k, (v, why) in found.loads.items()},
        "problems": [*header.notes, *found.problems], "gap": found.gap or None,
    }  # fmt: skip


def folder_json(folder: Folder) -> dict[str, Any]:
    """A folder's reading as JSON values."""
    parts = [{"name": p.name, "role": p.role or None, **file_json(p.header)} for p in folder.parts]
    return {
        "schema": SCHEMA, "path": folder.path, "format": folder.kind,
        "pipeline": folder.pipeline or None, "file_bytes": folder.file_bytes, "parts": parts,
        "problems": list(folder.problems),
    }  # fmt: skip


def file_lines(header: FileHeader) -> Iterator[str]:
    """A file's reading for a person."""
    from ..memory.meter import format_bytes
    from ..models.detect import detect

    found = detect(header)
    yield safe(header.path)
    layout = f", {found.layout} names" if found.layout else ""
    yield from row("holds", f"{found.title}: {found.kind}{layout}")
    name = "GGUF" if header.kind == "gguf" else header.kind
    version = f" version {header.version}" if header.version else ""
    order = ", big-endian" if header.big_endian else ""
    shards = f", {len(header.shards)} files" if header.shards else ""
    label = _architecture(header)
    label = f", labelled {label!r}" if label else ""
    yield from row("format", f"{name}{version}{order}{shards}{label}")
    size = f"{format_bytes(header.file_bytes)} ({header.file_bytes:,} bytes)"
    yield from row("size", f"{size}, {found.weights:,} weights in {len(header.tensors)} tensors")
    for i, (kind, (count, bytes_)) in enumerate(found.types.items()):
        what = f"{kind:<9}{count:>6} tensors {format_bytes(bytes_):>11}"
        yield from row("types" if i == 0 else "", what)
    yield from _verdicts(found)
    for i, note in enumerate((*header.notes, *found.problems)):
        yield from row("note" if i == 0 else "", f"- {safe(note)}", hang=2)
    if found.gap:
        yield from row("gap", safe(found.gap))


def folder_lines(folder: Folder) -> Iterator[str]:
    """A folder's reading for a person."""
    from ..memory.meter import format_bytes

    kinds = {"diffusers": "a diffusers pipeline", "comfyui": "ComfyUI's models", "files": "files"}
    pipeline = f" {safe(folder.pipeline)}" if folder.pipeline else ""
    count = f"{len(folder.parts)} models, {format_bytes(folder.file_bytes)}"
    yield f"{safe(folder.path)}: {kinds[folder.kind]}{pipeline}, {count}"
    for part in folder.parts:
        lines = file_lines(part.header)
        next(lines)
        yield ""
        yield f"{safe(part.name)}" + (f" ({part.role})" if part.role else "")
        yield from lines
    for problem in folder.problems:
        yield from row("not read", safe(problem))


def _verdicts(found: Detection) -> Iterator[str]:
    for i, (program, (verdict, why)) in enumerate(found.loads.items()):
        text = f"{program:<13}{verdict}" + (f": {safe(why)}" if why else "")
        yield from row("loads in" if i == 0 else "", text, hang=13)


def row(label: str, text: str, hang: int = 0) -> Iterator[str]:
    """A line with its label, wrapped under itself."""
    first = f"  {label:<10}"
    indent = " " * (len(first) + hang)
    for line in textwrap.wrap(
        text, WIDTH, initial_indent=first, subsequent_indent=indent, break_on_hyphens=False,
        drop_whitespace=False,  # columns are aligned with spaces
    ):  # fmt: skip
        yield line.rstrip()


def _architecture(header: FileHeader) -> str | None:
    value = header.metadata.get("general.architecture")
    return safe(value)[:60] if isinstance(value, str) else None


def safe(text: str) -> str:
    """Text of a file that nobody vouches for: without control characters, for a terminal."""
    return "".join(c if c.isprintable() else "?" for c in text)
