"""A local file or folder as a model: what it is by its tensors, and its exact bytes."""

from __future__ import annotations

from collections.abc import Iterable
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
    return describe(str(path), _headers(path))


def describe(
    where: str, headers: Iterable[FileHeader]
) -> tuple[ModelSpec, str | None, Files, tuple[str, ...]]:
    """The same of headers that were read already. Raises UsageError, see read_local."""
    from ..models.detect import detect

    spec, quant, transformer, source = None, None, None, ""
    encoders: dict[str, int] = {}
    vaes: dict[str, int] = {}
    remarks: list[str] = []
    for header in headers:
        found = detect(header)
        inside = found.match
        if found.spec is not None and found.kind == "transformer":
            if spec is not None:
                continue  # the second expert, or a shard of it
            spec, source, transformer = found.spec, header.path, header.data_bytes
            quant = _quant(found.quant, header)
            remarks += found.problems
        elif inside is not None and inside.encoder is not None:
            encoders[inside.encoder.name] = header.data_bytes
        elif inside is not None and inside.vae is not None:
            vaes[inside.vae.name] = header.data_bytes
        elif found.gap:
            remarks.append(f"{Path(header.path).name}: {found.gap}")
    if spec is None:
        raise UsageError(
            f"no transformer of a known model is in {where}; "
            + ("; ".join(remarks[:2]) if remarks else "give the file of the diffusion model")
        )
    known = {e.name for e in spec.encoders}, {v.name for v in spec.vaes}
    files = Files(
        transformer, tuple((k, v) for k, v in encoders.items() if k in known[0]),
        tuple((k, v) for k, v in vaes.items() if k in known[1]), source=f"header of {source}",
    )  # fmt: skip
    return spec, quant, files, tuple(remarks)


def _headers(path: Path) -> list[FileHeader]:
    if path.is_file():
        return [read_header(path)]
    from .formats import read_folder

    return [part.header for part in read_folder(path).parts]


def _quant(stated: str, header: FileHeader) -> str:
    """The type that holds most of the bytes; a mix of K types is named by it."""
    from .quants import parse_quant

    for name in (stated, *header.types()):
        try:
            return parse_quant(name).name
        except UsageError:
            continue
    raise UsageError(f"{header.path} holds no weights of a known type")
