"""ComfyUI's sampler in the test process, on tiny random models.

$COMFYUI_PATH names a checkout, else 0.3.75 comes from a wheel, see tests/comfy. `comfy_inproc`
loads it once; `tiny` makes models that take seconds.
"""

import importlib.util
import os
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent
HARNESS = HERE.parent / "comfy" / "comfy_harness"
sys.path.insert(0, str(HERE))

NEEDED = ("av", "einops", "safetensors", "torch", "torchaudio", "torchsde", "torchvision",
          "transformers")  # fmt: skip


def cannot(reason):
    """Skip; in CI fail, which must not pass by skipping everything."""
    (pytest.fail if os.environ.get("CI") else pytest.skip)(reason)


def pytest_configure(config):
    config.addinivalue_line("markers", "comfy_min(version): needs at least this ComfyUI")


@pytest.fixture(scope="session")
def comfy_inproc():
    """The folder of a ComfyUI whose modules can be imported here."""
    missing = [name for name in NEEDED if importlib.util.find_spec(name) is None]
    if missing:
        cannot(f"ComfyUI needs {', '.join(missing)}; see tests/comfy/requirements.txt")
    sys.path.insert(0, str(HARNESS.parent))
    from comfy_harness import NoComfyUI, comfyui_folder

    try:
        folder = comfyui_folder()
    except NoComfyUI as e:
        cannot(str(e))
    sys.path.insert(0, str(HARNESS))
    import cpu_wheels

    cpu_wheels.install()
    sys.path.insert(0, str(folder))
    arguments, sys.argv = sys.argv, ["main.py", "--cpu"]
    import comfy.options

    comfy.options.enable_args_parsing()
    import comfy.model_management
    import comfy.sample
    import comfy.samplers

    sys.argv = arguments
    return folder


@pytest.fixture(autouse=True)
def _inproc(request):
    """Every test here runs inside ComfyUI; a mark says from which version on."""
    folder = request.getfixturevalue("comfy_inproc")
    mark = request.node.get_closest_marker("comfy_min")
    if mark is not None:
        from comfy_harness import comfyui_version

        wanted = tuple(int(n) for n in mark.args[0].split("."))
        if comfyui_version(folder) < wanted:
            pytest.skip(f"needs ComfyUI {mark.args[0]}")


@pytest.fixture
def tiny():
    """The module that makes tiny models."""
    import tiny

    return tiny
