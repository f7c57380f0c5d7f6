"""Finished cells on disk: one file each, complete or absent, usable by the same run only."""

from __future__ import annotations

import hashlib
import json
import logging
import shutil
from pathlib import Path
from typing import Any

from torch import Tensor

from ...files import REAL
from ...tensors import write_tensors

log = logging.getLogger("h3video")

FORMAT = "h3video-walk/1"


class CellStore:
    """The folder of one walk.

    folder        is made when the first cell is saved
    fingerprint   of everything that decides the result; files of another one are not used
    """

    def __init__(self, folder: Path, fingerprint: str) -> None:
        self.folder = folder
        self.fingerprint = fingerprint

    def save_plan(self, plan: dict[str, Any]) -> None:
        """Write what is being done as plan.json: order, crops, classes, stages."""
        self.folder.mkdir(parents=True, exist_ok=True)
        data = {"format": FORMAT, "fingerprint": self.fingerprint, **plan}
        REAL.write_atomic(self.folder / "plan.json", (json.dumps(data, indent=1).encode(),))

    def save(self, cell: int, values: dict[str, Tensor]) -> None:
        """Save a finished cell. Raises OSError with the file's name if the disk cannot."""
        kept = {k: v.detach().cpu().contiguous() for k, v in values.items()}
        told = {
            "format": FORMAT, "fingerprint": self.fingerprint, "cell": f"{cell:x}",
            "sha256": _digest(kept),
        }  # fmt: skip
        write_tensors(self._file(cell), kept, told)

    def load(self, cell: int) -> dict[str, Tensor] | None:
        """A finished cell's values; None if it is absent, damaged, or of another run."""
        file = self._file(cell)
        if not file.exists():
            return None
        import safetensors

        try:
            with safetensors.safe_open(file, framework="pt") as f:
                told = f.metadata() or {}
                values = {k: f.get_tensor(k) for k in f.keys()}  # noqa: SIM118  not a dict
        except Exception as e:
            log.warning("walk: %s cannot be read (%s); the cell is done again", file, e)
            return None
        if told.get("fingerprint") != self.fingerprint or told.get("sha256") != _digest(values):
            log.warning("walk: %s is damaged or of another run; the cell is done again", file)
            return None
        return values

    def delete(self) -> None:
        """Remove the folder with everything in it that a walk wrote."""
        for file in [*self.folder.glob("cell-*.safetensors"), self.folder / "plan.json"]:
            file.unlink(missing_ok=True)
        if self.folder.exists() and not any(self.folder.iterdir()):
            shutil.rmtree(self.folder, ignore_errors=True)

    def _file(self, cell: int) -> Path:
        return self.folder / f"cell-{cell:x}.safetensors"


def _digest(values: dict[str, Tensor]) -> str:
    found = hashlib.sha256()
    for name in sorted(values):
        value = values[name].contiguous()
        found.update(f"{name} {tuple(value.shape)} {value.dtype}".encode())
        found.update(value.numpy().tobytes())
    return found.hexdigest()
