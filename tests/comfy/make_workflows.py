"""Write workflows/tests/*.json and example_workflows/*.json with their pictures, see catalogue.py.

    python tests/comfy/make_workflows.py [--tests-only] [NAME ...]

An example is made by the oldest ComfyUI that has its nodes, since a newer page writes inputs that
an older one lacks: run this once with 0.3.75 and once with 0.33 ($COMFYUI_PATH). The test prompts
are written as they are. For an example, the real page (a ComfyUI server of the tests, Chromium,
`pip install playwright`) loads the API form, which gives it widgets, links and sizes; layout.py
sets the nodes out; the page loads the result and is photographed.
$CHROMIUM names the browser (default /usr/bin/chromium).
"""

from __future__ import annotations

import argparse
import io
import json
import os
import sys
import tempfile
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))

import graphs
import layout
import sampling_graphs
from catalogue import WORKFLOWS
from comfy_harness import ComfyServer, comfyui_folder, comfyui_version, copy_pack
from comfy_harness.pack import FOLDER, ROOT

TESTS, EXAMPLES = ROOT / "workflows" / "tests", ROOT / "example_workflows"

FLAGS = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
         "--disable-background-networking", "--disable-component-update"]  # fmt: skip
SETTINGS = {
    "Comfy.TutorialCompleted": True,  # else a dialog covers the canvas
    "Comfy.Workflow.ShowMissingModelsWarning": False,
    "Comfy.Locale": "en",
    "Comfy.Minimap.Visible": False,
    "LiteGraph.Canvas.MinFontSizeForLOD": 0,  # text stays when zoomed out
}
SIZE = {"width": 2400, "height": 1000}
"""px of the page; the pictures are cut to the graph and are PICTURE px wide."""

PICTURE = 1600


def write(path: Path, content: Any) -> None:
    """Write JSON for people to read and git to compare."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(content, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    print(path.relative_to(ROOT))


def start_server(base: Path) -> ComfyServer:
    """A server whose menus list the files that the examples name (empty ones here)."""
    server = ComfyServer(comfyui_folder(), base)
    copy_pack(server.custom_nodes / FOLDER)
    # The tests' nodes have a stand-in for its loader; the page shows the folder's name on the node.
    (server.custom_nodes / "ComfyUI-GGUF").symlink_to(HERE / "fixture_nodes")
    for file, (_, folder) in layout.MODELS.items():
        (server.models / folder / file).touch()
    graphs.write_clip(server.base / "input" / "input.mp4")
    graphs.write_picture(server.base / "input" / sampling_graphs.PICTURE)
    return server.start()


def make_examples(page: Any, url: str, names: list[str]) -> None:
    """The examples of these names, and their pictures."""
    page.request.post(f"{url}/settings", data=SETTINGS)
    page.goto(url)
    page.wait_for_function("window.app?.extensionManager && window.app.graph && window.app.canvas")
    page.wait_for_timeout(2000)
    for name in names:
        prompt, title = WORKFLOWS[name].real(), WORKFLOWS[name].title
        page.evaluate("([p, name]) => window.app.loadApiJson(p, name)", [prompt, name])
        page.wait_for_function("n => window.app.graph.nodes.length === n", arg=len(prompt))
        page.wait_for_timeout(1000)
        # As text: undefined values must be left out, not become null.
        text = page.evaluate("JSON.stringify(window.app.graph.serialize())")
        graph = layout.arrange(json.loads(text), name)
        write(EXAMPLES / f"{title}.json", graph)
        page.evaluate("([g, name]) => window.app.loadGraphData(g, true, true, name)", [graph, name])
        page.wait_for_function("n => window.app.graph.nodes.length === n", arg=len(graph["nodes"]))
        photograph(page, graph, EXAMPLES / f"{title}.jpg")


def photograph(page: Any, graph: dict[str, Any], path: Path) -> None:
    """The whole graph as a JPEG."""
    from PIL import Image

    left, top = 0, 0
    right = max(g["bounding"][0] + g["bounding"][2] for g in graph["groups"])
    bottom = max(g["bounding"][3] for g in graph["groups"])
    box = page.evaluate(
        """([l, t, r, b]) => {
            const canvas = window.app.canvas, rect = canvas.canvas.getBoundingClientRect();
            const pad = 70, bar = 110;
            const scale = Math.min((rect.width - 2 * pad) / (r - l),
                                   (rect.height - bar - 2 * pad) / (b - t));
            canvas.show_info = false;
            canvas.ds.scale = scale;
            canvas.ds.offset[0] = pad / scale - l;
            canvas.ds.offset[1] = (pad + bar) / scale - t;
            canvas.setDirty(true, true);
            return { x: rect.x + pad - 10, y: rect.y + bar + pad - 10,
                     width: (r - l) * scale + 20, height: (b - t) * scale + 20 };
        }""",
        [left, top, right, bottom],
    )
    page.wait_for_timeout(2500)
    shot = Image.open(io.BytesIO(page.screenshot(clip=box))).convert("RGB")
    size = (PICTURE, round(shot.height * PICTURE / shot.width))
    shot.resize(size, Image.Resampling.LANCZOS).save(path, quality=85, optimize=True)
    print(path.relative_to(ROOT), *size)


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tests-only", action="store_true", help="no browser, no examples")
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"of {', '.join(WORKFLOWS)}")
    options = parser.parse_args()
    for name in options.names or WORKFLOWS:
        write(TESTS / f"{name}.json", WORKFLOWS[name].tiny())
    if options.tests_only:
        return
    from playwright.sync_api import sync_playwright

    newer = comfyui_version(comfyui_folder()) >= (0, 33)
    names = options.names or [n for n, w in WORKFLOWS.items() if bool(w.comfy) == newer]
    EXAMPLES.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as base, sync_playwright() as playwright:
        server = start_server(Path(base))
        browser = playwright.chromium.launch(
            executable_path=os.environ.get("CHROMIUM", "/usr/bin/chromium"), args=FLAGS
        )
        try:
            make_examples(browser.new_page(viewport=SIZE), server.url, names)
        finally:
            browser.close()
            server.stop()


if __name__ == "__main__":
    main()
