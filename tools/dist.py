"""`make dist`: the wheel with every platform's library, checked and tried, in dist/.

1. All libraries are built twice, in different folders with empty caches: the bytes must be equal.
2. The wheel and the sdist are built from the tracked files, twice too, with equal bytes.
3. Every library *of the wheel* is read: processor, dependencies, imports, exports, oldest system,
   signature (checks.py).
4. The wheel is installed into a fresh environment and used; then the libraries are called on each
   platform that this machine can start (platforms.py), and the answers compared.

Standard library, hatchling and ziglang; nothing is downloaded but Debian's arm64 Python for qemu.
"""

from __future__ import annotations

import argparse
import hashlib
import shutil
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "tools")]

import checks  # noqa: E402
import platforms  # noqa: E402
from platforms import NotRun, run  # noqa: E402

from h3video.h3 import build, targets  # noqa: E402

NATIVE = "h3video/h3/_native/"


def libraries(work: Path) -> dict[str, bytes]:
    """Every library, built twice. Raises RuntimeError where the bytes differ."""
    built = []
    for folder in ("one", "a longer name, two"):
        home = work / folder
        shutil.copytree(build.SOURCES, home / "csrc")
        paths = targets.build_all(
            home / "csrc", build.C_FILES, build.FLAGS, home / "out", home / "scratch"
        )
        built.append({path.name: path.read_bytes() for path in paths})
        print(f"built {len(paths)} libraries in {home.name!r}", flush=True)
    for name, content in built[0].items():
        if built[1][name] != content:
            raise RuntimeError(f"{name} differs between two builds")
    return built[0]


def tracked(target: Path) -> None:
    """A copy of the tracked files, as they are in the working tree."""
    names = run(["git", "ls-files", "-z"], ROOT).split("\0")
    for name in filter(None, names):
        if (ROOT / name).is_file():
            (target / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / name, target / name)


def packages(contents: dict[str, bytes], work: Path, out: Path) -> tuple[Path, Path]:
    """The wheel and the sdist; the wheel built twice."""
    digests, paths = [], []
    for folder in ("stage", "another stage"):
        stage = work / folder
        tracked(stage)
        (stage / NATIVE).mkdir(parents=True, exist_ok=True)
        for name, content in contents.items():
            (stage / NATIVE / name).write_bytes(content)
        run([sys.executable, "-m", "hatchling", "build", "-d", stage / "dist"], stage)
        paths = sorted((stage / "dist").iterdir())
        digests.append([hashlib.sha256(p.read_bytes()).hexdigest() for p in paths])
    if digests[0] != digests[1]:
        raise RuntimeError(f"two builds of {[p.name for p in paths]} differ")
    out.mkdir(exist_ok=True)
    for path in paths:
        shutil.copy(path, out / path.name)
    wheel, = (out / p.name for p in paths if p.suffix == ".whl")
    sdist, = (out / p.name for p in paths if p.name.endswith(".tar.gz"))
    return wheel, sdist


def check(wheel: Path) -> list[str]:
    """Faults of the libraries that the wheel carries."""
    functions = checks.declared(build.SOURCES / "h3_bridge.h")
    with zipfile.ZipFile(wheel) as z:
        carried = {n.removeprefix(NATIVE): z.read(n) for n in z.namelist() if n.startswith(NATIVE)}
        packed = sum(z.getinfo(NATIVE + n).compress_size for n in carried)
    out = []
    if set(carried) != {t.file for t in targets.TARGETS}:
        out.append(f"{wheel.name} carries {sorted(carried)}")
    for name in sorted(set(carried) & set(checks.RULES)):
        print(checks.summary(name, carried[name]))
        out += [f"{name}: {fault}" for fault in checks.faults(name, carried[name], functions)]
    print(f"{wheel.name}: {wheel.stat().st_size} bytes, {packed} of them libraries")
    return out


def tries(wheel: Path, contents: dict[str, bytes], work: Path):
    """(platform, what happened or why not, whether it ran) for every platform."""
    for name, content in contents.items():
        (work / name).write_bytes(content)
    x86, arm = (work / f"libh3video-linux_{cpu}.so" for cpu in ("x86_64", "aarch64"))
    win, win_arm = (work / f"h3video-win_{cpu}.dll" for cpu in ("amd64", "arm64"))
    mac = work / "libh3video-macos.dylib"
    yield "this Python, wheel installed", platforms.native_python(wheel, work).strip(), True
    reference = platforms.linux(x86, build.SOURCES, work).read_bytes()
    try:
        root: Path | NotRun = platforms.arm_root(work)
    except NotRun as e:
        root = e
    runners = {
        "Linux x86_64, musl": lambda: platforms.musl(x86, build.SOURCES, work),
        "Linux aarch64, glibc, qemu": lambda: platforms.arm_linux(arm, build.SOURCES, work, root),
        "Linux aarch64, musl, qemu": lambda: platforms.arm_musl(arm, build.SOURCES, work, root),
        "Windows x64, wine": lambda: platforms.wine(win, build.SOURCES, work),
        "macOS x86_64 code, own loader": lambda: platforms.foreign(mac, build.SOURCES, work, None),
        "macOS arm64 code, own loader, qemu (aarch64)": lambda: platforms.foreign(
            mac, build.SOURCES, work, root
        ),
        "Windows arm64 code, own loader, qemu (aarch64)": lambda: platforms.foreign(
            win_arm, build.SOURCES, work, root
        ),
    }
    for name, runner in runners.items():
        try:
            if "aarch64" in name and isinstance(root, NotRun):
                raise root
            count, worst = platforms.compare(reference, runner().read_bytes())
            yield name, f"{count} answers as on x86_64 glibc, numbers within {worst:.1e}", True
        except NotRun as e:
            yield name, str(e), False
    if isinstance(root, Path):
        site = work / "site"
        with zipfile.ZipFile(wheel) as z:
            z.extractall(site)
        yield "Python on Linux aarch64, qemu", platforms.arm_python(site, root, work).strip(), True


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser("make dist", description=__doc__)
    parser.add_argument("--out", type=Path, default=ROOT / "dist")
    parser.add_argument("--all", action="store_true", help="fail where a platform cannot be tried")
    options = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory(prefix="h3video-dist-") as name:
        work = Path(name)
        try:
            contents = libraries(work)
            wheel, sdist = packages(contents, work, options.out.absolute())
            faults = check(wheel)
            skipped = 0
            for platform, text, ran in tries(wheel, contents, work):
                print(f"{'ran' if ran else 'NOT RUN':8} {platform}: {text}", flush=True)
                skipped += not ran
        except (RuntimeError, targets.BuildError, subprocess.TimeoutExpired) as e:
            faults, skipped = [str(e)], 0
    for fault in faults:
        print(f"h3video: {fault}", file=sys.stderr)
    if faults or (options.all and skipped):
        return 1
    lines = [f"{hashlib.sha256(c).hexdigest()}  {n}" for n, c in sorted(contents.items())]
    lines += [f"{hashlib.sha256(p.read_bytes()).hexdigest()}  {p.name}" for p in (wheel, sdist)]
    (options.out / "SHA256SUMS").write_text("\n".join(lines) + "\n")
    print(f"NOT RUN  macOS and Windows themselves: no such machine here\nh3video: {wheel}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
