"""PyPI's torchvision and torchaudio beside a CPU-only torch.

Both wheels link CUDA libraries, so their compiled operators cannot load there;
ComfyUI imports both packages at its start. Their Python parts (transforms,
resampling) work once the missing operators are declared. With builds that match
the torch nothing is done.
"""

from __future__ import annotations

import importlib.abc
import importlib.machinery
import importlib.util
import re
import sys
import types
from pathlib import Path
from typing import Any

OPERATORS = {
    "nms": "(Tensor dets, Tensor scores, float iou_threshold) -> Tensor",
    "qnms": "(Tensor dets, Tensor scores, float iou_threshold) -> Tensor",
}
"""Schemas that torchvision's Python code refers to while it is imported."""


def built_for_cuda(package: Path) -> bool:
    """Whether a package's version.py says so."""
    try:
        text = (package / "version.py").read_text(encoding="utf-8")
    except OSError:
        return False
    return "+cu" in text or re.search(r"^cuda\s*=\s*['\"]", text, re.M) is not None


def torch_is_cpu_only() -> bool:
    """Whether this torch has neither CUDA nor ROCm."""
    import torch

    return torch.version.cuda is None and getattr(torch.version, "hip", None) is None


class _Stub(importlib.abc.Loader):
    """Stands in for torchaudio._extension, which would load CUDA libraries."""

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> types.ModuleType:
        return types.ModuleType(spec.name)

    def exec_module(self, module: Any) -> None:
        def refuse(_function: Any) -> Any:
            def raiser(*_: Any, **__: Any) -> None:
                raise RuntimeError("torchaudio's compiled part is not loaded in these tests")

            return raiser

        module._IS_TORCHAUDIO_EXT_AVAILABLE = module._IS_ALIGN_AVAILABLE = False
        module._check_cuda_version = lambda: None
        module.fail_if_no_align = refuse
        module.lazy_import_sox_ext = lambda: None


class Finder(importlib.abc.MetaPathFinder):
    """Watches for the two imports and prepares them."""

    def __init__(self) -> None:
        self.looking = False

    def find_spec(self, fullname: str, path: Any = None, target: Any = None) -> Any:
        """A spec for torchaudio._extension; None for all else (torchvision is only prepared)."""
        if fullname == "torchvision" and not self.looking:
            self.looking = True
            try:
                spec = importlib.util.find_spec("torchvision")
                origin = spec.origin if spec else None
                if origin and built_for_cuda(Path(origin).parent) and torch_is_cpu_only():
                    _declare()
            finally:
                self.looking = False
        if fullname == "torchaudio._extension":
            file = getattr(sys.modules.get("torchaudio"), "__file__", None)
            if file and built_for_cuda(Path(file).parent) and torch_is_cpu_only():
                return importlib.machinery.ModuleSpec(fullname, _Stub())
        return None


def _declare() -> None:
    import torch

    for name, schema in OPERATORS.items():
        torch.library.define(f"torchvision::{name}", schema)


def install() -> None:
    """Watch from now on."""
    sys.meta_path.insert(0, Finder())
