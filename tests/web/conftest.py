"""A ComfyUI server with its page, and Chromium through playwright, for the tests of web/.

The server is a second one beside that of tests/comfy: these tests change its settings.
Without Chromium, playwright or ComfyUI the tests that need them are skipped.

H3VIDEO_TEST_FRONTEND   folder of another frontend package's `static`, in place of the installed
                        comfyui-frontend-package (which ComfyUI pins, see its requirements.txt)
CHROMIUM                Chromium's executable, else /usr/bin/chromium
"""

import importlib.util
import os
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent
COMFY_TESTS = HERE.parent / "comfy"
sys.path[:0] = [str(COMFY_TESTS), str(HERE)]

from page import CHROMIUM, FLAGS, GridPage

_spec = importlib.util.spec_from_file_location("h3video_comfy", COMFY_TESTS / "conftest.py")
_comfy = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(_comfy)
comfyui, _comfy_min = _comfy.comfyui, _comfy._comfy_min


def pytest_configure(config):
    config.addinivalue_line("markers", "comfy_min(version): needs at least this ComfyUI")


@pytest.fixture(scope="session")
def browser():
    """Chromium without a window."""
    playwright = pytest.importorskip("playwright.sync_api")
    if not os.path.exists(CHROMIUM):
        pytest.skip(f"no Chromium at {CHROMIUM}; set CHROMIUM")
    with playwright.sync_playwright() as p:
        found = p.chromium.launch(executable_path=CHROMIUM, headless=True, args=FLAGS)
        yield found
        found.close()


@pytest.fixture(scope="session")
def comfy(browser, comfyui, tmp_path_factory):
    """A started server, with its page."""
    frontend = os.environ.get("H3VIDEO_TEST_FRONTEND")
    server = _comfy.furnished_server(
        comfyui, tmp_path_factory.mktemp("page"),
        ("--front-end-root", frontend) if frontend else (),
    )  # fmt: skip
    server.start()
    yield server
    server.stop()


@pytest.fixture(scope="session")
def pages(browser, comfy):
    """Open pages by their options: opening one takes seconds, loading a workflow does not."""
    opened = {}
    yield opened
    for page in opened.values():
        page.close()


@pytest.fixture
def open_page(browser, comfy, pages):
    """open_page(vue=False, locale="en") -> a GridPage; at the end the console must be clean."""
    used = []

    def open_one(vue=False, locale="en"):
        if (vue, locale) not in pages:
            pages[vue, locale] = GridPage(browser, comfy.url, vue=vue, locale=locale)
        used.append(pages[vue, locale])
        return used[-1]

    yield open_one
    for page in used:
        page.page.mouse.move(1, 1)
        complaints, page.complaints = page.complaints, []
        assert not complaints, complaints


@pytest.fixture(params=["canvas", pytest.param("nodes2", marks=pytest.mark.comfy_min("0.33"))])
def page(request, open_page):
    """A page in each way of showing nodes: drawn on the canvas, and Nodes 2.0 (from 0.33 on)."""
    return open_page(vue=request.param == "nodes2")
