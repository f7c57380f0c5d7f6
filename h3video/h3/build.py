"""`python -m h3video.h3.build`: compile csrc/ into the native library with the local C compiler.

$CC decides the compiler, else cc, gcc or clang is taken, else ziglang if it is installed. With
--if-stale nothing is done when the library is newer than its sources. --all builds the libraries of
every platform with ziglang (see targets.py); --out FOLDER says where to, default is this package.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from . import targets
from .kernel import FOLDER, LibraryError, library_name, load

SOURCES = Path(__file__).parents[2] / "csrc"
C_FILES = ("h3_bulk.c", "h3_bridge.c")  # h3_bulk.c includes h3.c
FLAGS = [
    "-O3", "-std=c11", "-fvisibility=hidden",
    "-ffp-contract=off",  # the same bits on every machine
    "-fno-trapping-math",  # both sides of a choice may be computed: loops become vectors
    "-fno-math-errno",  # sqrt is one instruction
]  # fmt: skip


def main(arguments: Sequence[str]) -> int:
    """Build; returns the exit code and prints one line, or one a file with --all."""
    parser = argparse.ArgumentParser("python -m h3video.h3.build", description=__doc__)
    parser.add_argument("--all", action="store_true", help="all platforms, with ziglang")
    parser.add_argument("--if-stale", action="store_true", help="only if a source is newer")
    parser.add_argument("--out", type=Path, default=FOLDER, help="folder for the libraries")
    options = parser.parse_args(arguments)
    missing = [name for name in C_FILES if not (SOURCES / name).is_file()]
    if missing:
        return _fail(f"no C sources in {SOURCES}; clone the repository to build")
    names = [t.file for t in targets.TARGETS] if options.all else [library_name()]
    if options.if_stale and not any(stale(options.out / name) for name in names):
        return 0
    try:
        built = _every_platform(options.out) if options.all else [_this_platform(options.out)]
    except (targets.BuildError, LibraryError) as e:
        return _fail(str(e))
    for path in built:
        digest = f"  sha256 {hashlib.sha256(path.read_bytes()).hexdigest()}" if options.all else ""
        print(f"h3video: built {path}{digest}")
    return 0


def _fail(reason: str) -> int:
    print(f"h3video: {reason}", file=sys.stderr)
    return 1


def stale(library: Path) -> bool:
    """Whether a library is missing or older than a source or this recipe."""
    if not library.is_file():
        return True
    inputs = [*SOURCES.glob("*.[ch]"), Path(__file__), Path(targets.__file__)]
    return library.stat().st_mtime <= max(f.stat().st_mtime for f in inputs)


def _every_platform(out: Path) -> list[Path]:
    with tempfile.TemporaryDirectory(prefix="h3video-build-") as work:
        built = targets.build_all(SOURCES, C_FILES, FLAGS, out.absolute(), Path(work))
    ours = out.absolute() / library_name()
    if ours in built:
        load(ours)
    return built


def compiler() -> list[str]:
    """The command of the C compiler. Raises BuildError where there is none."""
    named = os.environ.get("CC") or next(filter(shutil.which, ("cc", "gcc", "clang")), None)
    if named is not None:
        return named.split()
    try:
        return [*targets.zig(), "cc"]
    except targets.BuildError:
        raise targets.BuildError(
            "no C compiler (cc, gcc, clang) found; install one, set CC, or "
            f"`pip install {targets.ZIG}`"
        ) from None


def _this_platform(out: Path) -> Path:
    """Compile, check, and only then put the library in its place."""
    out.mkdir(parents=True, exist_ok=True)
    target = out / library_name()
    partial = target.with_name(f"{target.name}.{os.getpid()}")
    files = [str(SOURCES / name) for name in C_FILES]
    plain = [*compiler(), *FLAGS, "-fPIC", "-shared", *files, "-o", str(partial), "-lm"]
    commands = [plain]
    if sys.platform == "darwin":  # both architectures where the compiler can, else its own
        commands.insert(0, [*plain, "-arch", "arm64", "-arch", "x86_64"])
    try:
        for command in commands:
            done = subprocess.run(command, capture_output=True, text=True)
            if done.returncode == 0:
                break
        else:
            raise targets.BuildError(f"{' '.join(plain)} failed:\n{done.stderr.strip()}")
        load(partial.absolute())
        os.replace(partial, target)
    except OSError as e:
        raise targets.BuildError(f"{plain[0]} does not run ({e.strerror})") from None
    finally:
        partial.unlink(missing_ok=True)
    return target


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
