"""One real ComfyUI server for all tests here.

$COMFYUI_PATH names a checkout; else ComfyUI 0.3.75 comes from a wheel (comfy_harness/source.py).
Without either the tests are skipped, and fail when CI is set. A mark
`comfy_min("0.33")` skips a test on an older ComfyUI.
"""

import importlib.util
import os
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
sys.path.insert(0, str(HERE))

import graphs
import sampling_graphs
import tiny_h3
from comfy_harness import ComfyServer, NoComfyUI, comfyui_folder, comfyui_version, copy_pack
from comfy_harness.pack import FOLDER

NEEDED = ("aiohttp", "alembic", "av", "einops", "safetensors", "sqlalchemy", "torch", "torchaudio",
          "torchsde", "torchvision", "transformers")  # fmt: skip
"""What ComfyUI cannot start without, see requirements.txt."""


def pytest_configure(config):
    config.addinivalue_line("markers", "comfy_min(version): needs at least this ComfyUI")


@pytest.hookimpl(tryfirst=True)  # before xdist looks at the marks
def cannot(reason):
    """Skip; in CI fail, which must not pass by skipping everything."""
    (pytest.fail if os.environ.get("CI") else pytest.skip)(reason)


@pytest.fixture(scope="session")
def comfyui():
    """The folder of ComfyUI."""
    missing = [name for name in NEEDED if importlib.util.find_spec(name) is None]
    if missing:
        cannot(f"ComfyUI needs {', '.join(missing)}; see tests/comfy/requirements.txt")
    try:
        return comfyui_folder()
    except NoComfyUI as e:
        cannot(str(e))


def furnished_server(comfyui, base, arguments=()):
    """A server with our pack (git-tracked files only), the test nodes, small models, a clip."""
    from h3video import nano
    from h3video.nano import export_comfy

    server = ComfyServer(
        comfyui, base, environment={"H3VIDEO_TEST_NANO": nano.path()}, arguments=arguments
    )
    copy_pack(server.custom_nodes / FOLDER)
    (server.custom_nodes / "h3video_fixtures").symlink_to(HERE / "fixture_nodes")
    export_comfy.export(server.models)
    tiny_h3.export(server.models)
    graphs.write_clip(server.base / "input" / graphs.CLIP)
    graphs.write_picture(server.base / "input" / sampling_graphs.TINY_PICTURE)
    return server


@pytest.fixture(scope="session")
def comfy(comfyui, tmp_path_factory):
    """A started server for all tests here."""
    server = furnished_server(comfyui, tmp_path_factory.mktemp("comfy"))
    server.start()
    yield server
    server.stop()
    failed = [line for line in server.log().splitlines() if "IMPORT FAILED" in line]
    assert not failed, failed


@pytest.fixture(autouse=True)
def _comfy_min(request):
    mark = request.node.get_closest_marker("comfy_min")
    if mark is None:
        return
    have = comfyui_version(request.getfixturevalue("comfyui"))
    if have < tuple(int(n) for n in mark.args[0].split(".")):
        pytest.skip(f"ComfyUI {'.'.join(map(str, have))} is older than {mark.args[0]}")
