"""How long `import h3video` and `h3video --help` take, against a bare interpreter, in one run."""

from __future__ import annotations

import subprocess
import sys
import time

CASES = {
    "python -c pass": ["-c", "pass"],
    "import h3video": ["-c", "import h3video"],
    "h3video --help": ["-m", "h3video", "--help"],
}


def main() -> None:
    """Interleaved runs; the best of each, in ms."""
    best = dict.fromkeys(CASES, 1e9)
    for _ in range(15):
        for name, arguments in CASES.items():
            started = time.perf_counter()
            subprocess.run([sys.executable, *arguments], stdout=subprocess.DEVNULL, check=True)
            best[name] = min(best[name], (time.perf_counter() - started) * 1000)
    for name, ms in best.items():
        print(f"{name:<18} {ms:6.1f} ms (+{ms - best['python -c pass']:.1f} ms)")


if __name__ == "__main__":
    main()
