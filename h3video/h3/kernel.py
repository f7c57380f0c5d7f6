"""Which library serves the index: lookup, and the checks that one must pass before it may.

Any shared library with the functions of csrc/h3_bridge.h and the same ABI number can stand in for
ours: $H3VIDEO_H3_LIBRARY names it, or `h3video.h3.use(path)`. Nothing is compiled or downloaded
here. A library that is refused says why, in one line.
"""

from __future__ import annotations

import ctypes
import os
import struct
import sys
import sysconfig
from pathlib import Path

from ..errors import UsageError
from .native import ABI, SIGNATURES, Native
from .selftest import WrongAnswer, check_arrays, check_cells

FOLDER = Path(__file__).with_name("_native")


class LibraryError(UsageError):
    """The native library cannot be used; the message is one line for the log."""


# ---- lookup ----


def library_name() -> str:
    """File name of the library for this interpreter: the names that a wheel carries."""
    platform = sysconfig.get_platform().replace("-", "_").replace(".", "_")
    if sys.platform == "darwin":
        return "libh3video-macos.dylib"
    if sys.platform == "win32":
        return f"h3video-{platform}.dll"
    return f"libh3video-{platform}.so"


def library_path() -> Path:
    """Where the library is looked for: $H3VIDEO_H3_LIBRARY, else beside this file."""
    return absolute(os.environ.get("H3VIDEO_H3_LIBRARY") or FOLDER / library_name())


def absolute(path: str | os.PathLike[str]) -> Path:
    """A path as a person writes it, ~ and all, so that the loader searches nowhere else."""
    return Path(path).expanduser().absolute()


# ---- loading ----


def load(path: Path | None = None) -> ctypes.CDLL:
    """Open a library (default: the one at `library_path()`) and check it; types are set.

    Raises LibraryError with the reason: no such file, another platform's, another ABI, a function
    missing, or a wrong answer in the self-test.
    """
    path = library_path() if path is None else path
    if not path.is_file():
        raise LibraryError(
            f"no native index at {path} for {sysconfig.get_platform()}; `make native` builds it"
        )
    library = _open(path)
    _check_abi(library, path)
    _bind(library, path)
    try:
        check_cells(Native(library))
        check_arrays(library)
    except WrongAnswer as e:
        raise LibraryError(f"native index {path} fails its self-test: {e}") from None
    return library


def _remedy(path: Path) -> str:
    if path.parent == FOLDER:
        return "build it here with `make native`"
    return "build it for this machine against this version's csrc/h3_bridge.h"


def _open(path: Path) -> ctypes.CDLL:
    bits = struct.calcsize("P") * 8
    try:
        return ctypes.CDLL(str(path))
    except OSError as e:
        reason = " ".join(str(e).split())
        raise LibraryError(
            f"native index {path} does not load on this {bits}-bit {sysconfig.get_platform()} "
            f"Python ({reason}); {_remedy(path)}"
        ) from None


def _check_abi(library: ctypes.CDLL, path: Path) -> None:
    try:
        version = library.bridge_abi_version
    except AttributeError:
        raise LibraryError(
            f"native index {path} has no function bridge_abi_version; it is no library with the "
            "functions of csrc/h3_bridge.h"
        ) from None
    version.restype, version.argtypes = SIGNATURES["bridge_abi_version"]
    if (found := version()) != ABI:
        raise LibraryError(
            f"native index {path} has ABI {found}, this package needs {ABI}; {_remedy(path)}"
        )


def _bind(library: ctypes.CDLL, path: Path) -> None:
    """Result and argument types on every function; all must be there."""
    for name, (restype, argtypes) in SIGNATURES.items():
        try:
            function = getattr(library, name)
        except AttributeError:
            raise LibraryError(
                f"native index {path} has no function {name}; {_remedy(path)}"
            ) from None
        function.restype, function.argtypes = restype, argtypes
