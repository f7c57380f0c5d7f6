"""A local file or folder as a model: what it is by its tensors, and its exact bytes."""

from __future__ import annotations

from pathlib import Path

from ..errors import UsageError
from ..models.spec import ModelSpec
from .ask import Files
from .formats import read_header
from .formats.header import FileHeader


def read_local(path: Path) -> tuple[ModelSpec, str | None, Files, tuple[str, ...]]:
    """(spec, quantization, sizes, remarks) of a file or a folder.

    Raises UsageError when no transformer of a known model is there.
    """
    headers = _headers(path)
    spec, quant, transformer, source = None, None, None, ""
    encoders: dict[str, int] = {}
    vaes: dict[str, int] = {}
    remarks: list[str] = []
    others: list[tuple[str, FileHeader]] = []
    for role, header in headers:
        found = _spec(header, remarks)
        if found is None or spec is not None:
            others.append((role, header))
            continue
        spec, source = found, header.path
        quant, transformer = _quant(header, path), header.data_bytes
    if spec is None:
        raise UsageError(
            f"no transformer of a known model is in {path}; "
            + ("; ".join(remarks) if remarks else "give the file of the diffusion model")
        )
    for role, header in others:
        if "encoder" in role and spec.encoders:
            encoders.setdefault(spec.encoders[0].name, header.data_bytes)
        elif "vae" in role and spec.vaes:
            vaes.setdefault(spec.vaes[0].name, header.data_bytes)
    files = Files(
        transformer, tuple(encoders.items()), tuple(vaes.items()), source=f"header of {source}"
    )
    return spec, quant, files, tuple(remarks)


def _headers(path: Path) -> list[tuple[str, FileHeader]]:
    if path.is_file():
        return [("", read_header(path))]
    from .formats.folder import read_folder

    return [(part.role, part.header) for part in read_folder(path).parts]


def _spec(header: FileHeader, remarks: list[str]) -> ModelSpec | None:
    from ..models.detect import detect

    found = detect(header)
    remarks.extend(str(p) for p in found.problems)
    spec: ModelSpec | None = found.spec
    return spec


def _quant(header: FileHeader, path: Path) -> str:
    """The type that holds most of the bytes; a mix of K types is named by it."""
    from .quants import parse_quant

    bytes_of: dict[str, int] = {}
    for t in header.tensors:
        bytes_of[t.type] = bytes_of.get(t.type, 0) + t.bytes
    for name in sorted(bytes_of, key=lambda n: -bytes_of[n]):
        try:
            return parse_quant(name).name
        except UsageError:
            continue
    raise UsageError(f"{path} holds no weights of a known type")
