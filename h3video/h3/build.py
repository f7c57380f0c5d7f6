"""`python -m h3video.h3.build`: compile csrc/ into the native library with the local C compiler.

$CC decides the compiler, else cc, gcc or clang is taken. --if-stale does nothing
when the library is newer than its sources.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

from .kernel import FOLDER, LibraryError, library_name, load

SOURCES = Path(__file__).parents[2] / "csrc"
FLAGS = [
    "-O3", "-std=c11", "-fPIC", "-shared", "-fvisibility=hidden",
    "-ffp-contract=off",  # the same bits on every machine
    "-fno-trapping-math",  # both sides of a choice may be computed: loops become vectors
]  # fmt: skip


def main(arguments: list[str]) -> int:
    """Build; returns the exit code and prints one line."""
    files = [SOURCES / "h3.c", SOURCES / "h3_bridge.c"]
    if not all(f.is_file() for f in files):
        print(f"h3video: no C sources in {SOURCES}; clone the repository to build", file=sys.stderr)
        return 1
    target = FOLDER / library_name()
    inputs = [*files, SOURCES / "h3.h", SOURCES / "h3_bridge.h", Path(__file__)]
    newest = max(f.stat().st_mtime for f in inputs)
    if "--if-stale" in arguments and target.is_file() and target.stat().st_mtime > newest:
        return 0
    compiler = os.environ.get("CC") or next(filter(shutil.which, ("cc", "gcc", "clang")), None)
    if compiler is None:
        print("h3video: no C compiler (cc, gcc, clang) found; install one or set CC",
              file=sys.stderr)  # fmt: skip
        return 1
    FOLDER.mkdir(exist_ok=True)
    partial = target.with_name(f"{target.name}.{os.getpid()}")
    plain = [*compiler.split(), *FLAGS, *map(str, files), "-o", str(partial), "-lm"]
    commands = [plain]
    if sys.platform == "darwin":  # both architectures where the compiler can, else its own
        commands.insert(0, [*plain, "-arch", "arm64", "-arch", "x86_64"])
    try:
        for command in commands:
            done = subprocess.run(command, capture_output=True, text=True)
            if done.returncode == 0:
                break
    except OSError as e:
        print(f"h3video: {compiler} does not run ({e.strerror})", file=sys.stderr)
        return 1
    if done.returncode:
        print(f"h3video: {' '.join(plain)} failed:\n{done.stderr.strip()}", file=sys.stderr)
        return 1
    try:
        load(partial)
    except LibraryError as e:
        partial.unlink()
        print(f"h3video: {e}", file=sys.stderr)
        return 1
    os.replace(partial, target)
    print(f"h3video: built {target}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
