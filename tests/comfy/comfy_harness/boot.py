"""boot.py COMFYUI [--hide NAME,NAME] -- ARGUMENTS: run an unchanged ComfyUI's main.py.

Nothing on disk is changed. Before main.py runs, packages named by --hide become
impossible to import, and PyPI's torchvision and torchaudio, which are built for
CUDA, are made importable beside a CPU-only torch.
"""

from __future__ import annotations

import os
import runpy
import sys
from pathlib import Path


def prepare(comfyui: Path, hidden: list[str]) -> None:
    """Put `comfyui` first on the path and install the finders."""
    sys.path[0] = str(Path(__file__).parent)
    import cpu_wheels
    import hide

    hide.install(hidden)
    cpu_wheels.install()
    os.chdir(comfyui)
    sys.path[0] = str(comfyui)


def main() -> None:
    """The command line."""
    split = sys.argv.index("--")
    own, rest = sys.argv[1:split], sys.argv[split + 1 :]
    hidden = own[own.index("--hide") + 1].split(",") if "--hide" in own else []
    comfyui = Path(own[0]).absolute()
    prepare(comfyui, [name for name in hidden if name])
    main_py = str(comfyui / "main.py")
    sys.argv = [main_py, *rest]
    runpy.run_path(main_py, run_name="__main__")


if __name__ == "__main__":
    main()
