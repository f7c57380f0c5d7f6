"""Make packages impossible to import, as if they were not installed."""

from __future__ import annotations

import importlib.abc
import sys
from collections.abc import Iterable
from typing import Any


class Hidden(importlib.abc.MetaPathFinder):
    """Raises ModuleNotFoundError for the names it holds and everything under them."""

    def __init__(self, names: Iterable[str]) -> None:
        self.names = set(names)

    def find_spec(self, fullname: str, path: Any = None, target: Any = None) -> None:
        """Refuse a hidden name; None (others may find it) for any other."""
        parts = fullname.split(".")
        if any(".".join(parts[:n]) in self.names for n in range(1, len(parts) + 1)):
            raise ModuleNotFoundError(f"No module named {fullname!r}", name=fullname)


def install(names: Iterable[str]) -> None:
    """Hide packages from now on, also those that are already imported."""
    names = list(names)
    for module in list(sys.modules):
        if any(module == name or module.startswith(name + ".") for name in names):
            del sys.modules[module]
    sys.meta_path.insert(0, Hidden(names))
