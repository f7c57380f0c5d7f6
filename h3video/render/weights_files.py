"""GGUF and LoRA files that a user names: are they there and of the right kind. No torch."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from ..errors import UsageError


def parse_lora(text: str) -> tuple[str, float]:
    """A LoRA as people write it: FILE or FILE:SCALE."""
    file, colon, scale = text.rpartition(":")
    try:
        return (file, float(scale)) if colon and file else (text, 1.0)
    except ValueError:
        return text, 1.0


def check_weight_files(gguf: Sequence[str], lora: Sequence[str], transformers: int) -> None:
    """Raise UsageError for the first file that cannot be used.

    transformers   how many the model has: Wan 2.2 A14B has two, for high and for low noise
    """
    if len(gguf) > transformers:
        raise UsageError(
            f"--gguf was given {len(gguf)} times, the model has {transformers} transformer"
            f"{'s' if transformers > 1 else ''}; give at most one file for each"
        )
    for file in gguf:
        try:
            with open(Path(file).expanduser(), "rb") as f:
                magic = f.read(4)
        except OSError as e:
            raise UsageError(f"GGUF file {file} cannot be read ({e.strerror})") from None
        if magic != b"GGUF":
            raise UsageError(f"{file} is no GGUF file; give one of the model's transformer")
    for text in lora:
        file, _ = parse_lora(text)
        if not Path(file).expanduser().is_file():
            raise UsageError(f"LoRA file {file} is not there; check the path")
