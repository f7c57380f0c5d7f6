"""Running the prebuilt libraries on platforms that this machine can start: musl, qemu, wine.

Each runner gives the file of answers that smoke/smoke.c wrote, or says why it did not run.
"""

from __future__ import annotations

import os
import shutil
import struct
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from h3video.h3 import targets

SMOKE = Path(__file__).with_name("smoke")
LIMITS = {"weights (d)": 1e-12}
"""What two libms may make numbers differ by; the index asks none: the same to the last bit."""
ARM_PACKAGES = ("python3-minimal", "libpython3-stdlib", "libc6", "musl")


class NotRun(Exception):
    """Why a platform was not tried."""


def run(command, folder: Path, **env: str) -> str:
    """Run a command; its output, or an exception with it."""
    done = subprocess.run(
        list(map(str, command)), cwd=folder, env={**os.environ, **env}, capture_output=True,
        text=True, timeout=600,
    )  # fmt: skip
    if done.returncode:
        raise RuntimeError(f"{command} ends with {done.returncode}:\n{done.stdout}{done.stderr}")
    return done.stdout


def harness(sources: Path, work: Path, triple: str) -> Path:
    """smoke.c for a platform."""
    out = work / f"smoke-{triple}"
    command = [*targets.zig(), "cc", "-target", triple, "-O1", f"-I{sources}", SMOKE / "smoke.c"]
    if "windows" not in triple:
        run([*command, "-dynamic", "-o", out, *([] if "musl" in triple else ["-ldl"])], work)
        return out
    names = ("LoadLibraryA", "GetProcAddress", "CreateFileA", "WriteFile", "CloseHandle",
             "ExitProcess")  # fmt: skip
    (work / "kernel32.def").write_text("LIBRARY KERNEL32.dll\nEXPORTS\n" + "\n".join(names) + "\n")
    run([*targets.zig(), "dlltool", "-m", "i386:x86-64", "-d", "kernel32.def", "-l", "k.a"], work)
    out = out.with_suffix(".exe")
    run([*command, "-s", "-nostdlib", "-Wl,-e,start", "k.a", "-o", out], work)
    return out


def need(program: str, package: str) -> str:
    """The path of a program. Raises NotRun."""
    found = shutil.which(program)
    if not found:
        raise NotRun(f"{program} is not here; apt-get install {package}")
    return found


def linux(library: Path, sources: Path, work: Path) -> Path:
    answers = work / "linux.bin"
    run([harness(sources, work, "x86_64-linux-gnu.2.17"), library, answers], work)
    return answers


def musl(library: Path, sources: Path, work: Path) -> Path:
    loader = Path("/lib/ld-musl-x86_64.so.1")
    if not loader.exists():
        raise NotRun(f"{loader} is not here; apt-get install musl")
    answers = work / "musl.bin"
    run([loader, harness(sources, work, "x86_64-linux-musl"), library, answers], work)
    return answers


def wine(library: Path, sources: Path, work: Path) -> Path:
    places = map(Path, ("/usr/lib/wine/wine64", "/usr/bin/wine64"))
    program = next(filter(Path.exists, places), None)
    if program is None:
        raise NotRun("wine64 is not here; apt-get install wine64")
    folder = work / "wine"
    folder.mkdir()
    shutil.copy(library, folder / "h3video.dll")
    exe = harness(sources, work, "x86_64-windows-gnu")
    run([program, exe], folder, WINEPREFIX=str(work / "wineprefix"), WINEDEBUG="-all")
    return folder / "answers.bin"


def arm_root(work: Path) -> Path:
    """A folder with Debian's arm64 Python and musl, unpacked from packages, not installed."""
    need("qemu-aarch64-static", "qemu-user-static")
    if not (shutil.which("apt-get") and shutil.which("dpkg")):
        raise NotRun("no apt-get and dpkg to get an arm64 Python with")
    home = work / "arm64"
    for name in ("state/lists/partial", "cache/archives/partial", "root"):
        (home / name).mkdir(parents=True, exist_ok=True)
    (home / "status").touch()
    apt = ["apt-get", "-qq"]
    for setting in ("APT::Architecture=arm64", "APT::Architectures::=arm64",
                    f"Dir::State={home}/state", f"Dir::State::status={home}/status",
                    f"Dir::Cache={home}/cache"):  # fmt: skip
        apt += ["-o", setting]
    try:
        run([*apt, "update"], home)
        install = ("install", "-y", "--download-only", "--no-install-recommends")
        run([*apt, *install, *ARM_PACKAGES], home)
    except RuntimeError as e:
        raise NotRun(f"no arm64 packages to be had ({str(e).splitlines()[-1]})") from None
    for package in sorted((home / "cache/archives").glob("*.deb")):
        run(["dpkg", "-x", package, home / "root"], home)
    return home / "root"


def arm_linux(library: Path, sources: Path, work: Path, root: Path) -> Path:
    answers = work / "arm-linux.bin"
    exe = harness(sources, work, "aarch64-linux-gnu.2.17")
    run(["qemu-aarch64-static", "-L", root, exe, library, answers], work)
    return answers


def arm_musl(library: Path, sources: Path, work: Path, root: Path) -> Path:
    answers = work / "arm-musl.bin"
    exe = harness(sources, work, "aarch64-linux-musl")
    loader = root / "lib/ld-musl-aarch64.so.1"
    run(["qemu-aarch64-static", loader, exe, library, answers], work)
    return answers


def foreign(library: Path, sources: Path, work: Path, root: Path | None) -> Path:
    """A macOS dylib's or an arm64 DLL's code on this system's libm; on arm64 Python with a root."""
    cpu = "aarch64" if root else "x86_64"
    shim = work / f"libsmoke-{cpu}.so"
    if not shim.exists():
        command = [*targets.zig(), "cc", "-target", f"{cpu}-linux-gnu.2.17", "-O1", "-shared"]
        command += ["-fPIC", "-DSMOKE_LIBRARY", f"-I{sources}", SMOKE / "smoke.c"]
        run([*command, "-o", shim, "-lm"], work)
    answers = work / f"foreign-{cpu}-{library.name}.bin"
    command = [SMOKE.parent / "foreign.py", library, shim, answers]
    run([*(arm_command(root) if root else [sys.executable]), *command], work)
    return answers


def arm_command(root: Path, site: Path | None = None) -> list[str]:
    """The arm64 Python under qemu, and where it finds packages."""
    python = next(p for p in sorted((root / "usr/bin").glob("python3.*")) if p.is_file())
    path = ["-E", f"PYTHONPATH={site}"] if site else []
    home = f"PYTHONHOME={root / 'usr'}"
    return ["qemu-aarch64-static", "-L", str(root), "-E", home, *path, str(python)]


def arm_python(site: Path, root: Path, work: Path) -> str:
    """smoke.py on an arm64 Python with the wheel's files at `site`."""
    return run([*arm_command(root, site), SMOKE / "smoke.py", site], work)


def native_python(wheel: Path, work: Path) -> str:
    """smoke.py on this Python in a fresh environment that holds the wheel alone."""
    run([sys.executable, "-m", "venv", work / "venv"], work)
    scripts = work / "venv" / ("Scripts" if sys.platform == "win32" else "bin")
    python = scripts / "python"
    run([python, "-m", "pip", "install", "--quiet", "--no-index", "--no-deps", wheel], work)
    return run([python, "-I", SMOKE / "smoke.py", work / "venv"], work)


# ---- answers ----


def blocks(content: bytes) -> Iterator[tuple[str, tuple[float, ...]]]:
    """(name, items) of a file that smoke.c wrote."""
    place = 0
    while place < len(content):
        kind, name = content[place : place + 1], content[place + 1 : place + 8].decode().strip()
        count, = struct.unpack_from("<q", content, place + 8)
        code = {b"i": "q", b"d": "d"}[kind]
        yield f"{name} ({code})", struct.unpack_from(f"<{count}{code}", content, place + 16)
        place += 16 + 8 * count


def compare(here: bytes, there: bytes) -> tuple[int, float]:
    """(items, largest difference of numbers). Raises RuntimeError where they disagree."""
    ours, theirs = list(blocks(here)), list(blocks(there))
    if [(n, len(v)) for n, v in ours] != [(n, len(v)) for n, v in theirs]:
        raise RuntimeError("the answers have another shape than here")
    worst = 0.0
    for (name, a), (_, b) in zip(ours, theirs):
        limit = LIMITS.get(name, 0.0)
        if name.endswith("(q)"):
            wrong = sum(x != y for x, y in zip(a, b))
            if wrong:
                raise RuntimeError(f"{wrong} of {len(a)} {name} differ from those here")
            continue
        for x, y in zip(a, b):
            if (x != x) != (y != y) or abs(x - y) > limit:
                raise RuntimeError(f"{name}: {y!r} there, {x!r} here")
            worst = max(worst, abs(x - y)) if x == x else worst
    return sum(len(v) for _, v in ours), worst
