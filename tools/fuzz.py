"""`make fuzz`: junk for every function of csrc under the address and undefined-behaviour checkers.

Two engines share the time: csrc/fuzz/driver.c (whole inputs of junk, any compiler with sanitizers)
and clang's libFuzzer, where there is one (it follows coverage). Besides crashes and undefined
behaviour each entry checks what its function promises (csrc/fuzz/*.c).
"""

from __future__ import annotations

import argparse
import os
import random
import re
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from h3video.h3 import build  # noqa: E402

COMPILERS = ("gcc", "clang", "cc", *(f"clang-{n}" for n in range(22, 13, -1)))
SANITIZE = "address,undefined,float-cast-overflow"  # the last is not in gcc's `undefined`
# Undefined behaviour aborts, so that the driver says with which input.
OPTIONS = {"UBSAN_OPTIONS": "abort_on_error=1:print_stacktrace=1"}
HARNESS = ("input.c", "index.c", "bridge.c")


@dataclass(frozen=True)
class Engine:
    """A compiler and whether its libFuzzer or our driver feeds the inputs."""

    compiler: str
    libfuzzer: bool

    @property
    def name(self) -> str:
        return f"libFuzzer of {self.compiler}" if self.libfuzzer else f"driver, {self.compiler}"

    @property
    def flags(self) -> list[str]:
        kinds = f"fuzzer,{SANITIZE}" if self.libfuzzer else SANITIZE
        own = [f for f in build.FLAGS if not f.startswith("-O")]
        return [*own, "-O1", "-g", f"-fsanitize={kinds}", "-fno-sanitize-recover=all"]


def works(engine: Engine, work: Path) -> bool:
    """Whether a program with these flags links and runs."""
    if not shutil.which(engine.compiler):
        return False
    source = work / "probe.c"
    main = "LLVMFuzzerTestOneInput(const unsigned char *d, unsigned long n) { return !d && n; }"
    source.write_text(f"int {main if engine.libfuzzer else 'main(void) { return 0; }'}\n")
    program = work / "probe"
    command = [engine.compiler, *engine.flags, str(source), "-o", str(program)]
    if subprocess.run(command, capture_output=True).returncode:
        return False
    arguments = ["-runs=1"] if engine.libfuzzer else []
    return subprocess.run([program, *arguments], capture_output=True).returncode == 0


def engines(work: Path, kinds: tuple[bool, ...] = (False, True)) -> list[Engine]:
    """The first compiler for our driver and the first with a libFuzzer; perhaps none."""
    work.mkdir(parents=True, exist_ok=True)
    out = []
    for libfuzzer in kinds:
        known = (Engine(c, libfuzzer) for c in COMPILERS)
        out += filter(None, [next((e for e in known if works(e, work)), None)])
    return out


def objects(engine: Engine, work: Path) -> list[Path]:
    """csrc and the harness, compiled. Raises CalledProcessError."""
    harness = (*HARNESS, *(() if engine.libfuzzer else ("driver.c",)))
    sources = [*(build.SOURCES / n for n in build.C_FILES),
               *(build.SOURCES / "fuzz" / n for n in harness)]  # fmt: skip

    def compiled(source: Path) -> Path:
        out = work / f"{source.stem}-{'lib' if engine.libfuzzer else 'own'}.o"
        strict = ("-Wall", "-Wextra", "-Werror")
        subprocess.run(
            [engine.compiler, *engine.flags, *strict, "-c", source, "-o", out], check=True
        )
        return out

    with ThreadPoolExecutor(2) as pool:
        return list(pool.map(compiled, sources))


def link(engine: Engine, parts: list[Path], program: Path, *more: str) -> Path:
    command = [engine.compiler, *engine.flags, *more, *parts, "-o", program, "-lm"]
    subprocess.run(list(map(str, command)), check=True)
    return program


def run(program: Path, *arguments: str, **env: str) -> tuple[int, int, str]:
    """(exit code, inputs run, everything that it said)."""
    done = subprocess.run(
        [program, *arguments], capture_output=True, text=True, errors="replace",
        cwd=program.parent, env={**os.environ, **OPTIONS, **env},
    )  # fmt: skip
    said = done.stdout + done.stderr
    count = re.findall(r"Done (\d+) runs", said) or re.findall(r"^#(\d+)", said, re.M) or [0]
    return done.returncode, int(count[-1]), said


def corpus(folder: Path) -> Path:
    """A few hundred whole inputs, so that libFuzzer need not grow them from one byte."""
    folder.mkdir(exist_ok=True)
    chance = random.Random(1)
    for i in range(600):
        (folder / f"seed-{i}").write_bytes(bytes([i % 256]) + chance.randbytes(399))
    return folder


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser("make fuzz", description=__doc__)
    parser.add_argument("--seconds", type=int, default=600, help="of all engines together")
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(1 << 30))
    parser.add_argument("--work", type=Path, default=ROOT / "build" / "fuzz")
    options = parser.parse_args(arguments)
    work = options.work.absolute()
    found = engines(work)
    if not found:
        print("h3video: no compiler with address sanitizer; install gcc or clang", file=sys.stderr)
        return 1
    bad = 0
    for engine in found:
        program = link(engine, objects(engine, work), work / ("lib" if engine.libfuzzer else "own"))
        seconds = max(1, options.seconds // len(found))
        settings = [f"-max_total_time={seconds}", f"-seed={options.seed}"]
        if engine.libfuzzer:
            settings += ["-timeout=10", "-max_len=600", "-len_control=0"]
            settings.append(str(corpus(work / "corpus")))
        code, count, said = run(program, *settings)
        state = "no finding" if code == 0 else f"FINDING, exit code {code}"
        print(f"{engine.name}: {count} inputs in {seconds} s, {state} (seed {options.seed})")
        if code:
            print("\n".join(said.splitlines()[-60:]))
            bad = 1
    return bad


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
