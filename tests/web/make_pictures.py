"""Make docs/img/comfyui-grid.png (canvas) and comfyui-cellmask.png (Nodes 2.0).

    python tests/web/make_pictures.py http://127.0.0.1:8188

The server must have this pack; its settings for language and Nodes 2.0 are changed.
"""

import sys
from pathlib import Path

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE), str(HERE.parent / "comfy")]

from graphs import node
from page import CHROMIUM, FLAGS, GridPage, answer
from playwright.sync_api import sync_playwright

PICTURES = HERE.parents[1] / "docs" / "img"
INPUTS = {"width": 1024, "height": 576, "hex_res": "4", "overlap": 32, "span": 0.075,
          "rotation": 0.0, "projection": "face", "focus_x": 0.62, "focus_y": 0.42,
          "falloff": 0.85}  # fmt: skip

PLACE = """places => { for (const [id, x, y, w, h] of places) {
    const n = app.graph.getNodeById(id); n.pos = [x, y]; n.setSize([w, h]); } }"""


def grid_on_canvas(browser, url, file):
    """An encode node with a cell under the pointer, beside its picture."""
    page = GridPage(browser, url, size=(1280, 860))
    page.load({"1": node("H3GridEncode", **INPUTS), "3": node("PreviewImage", images=["1", 2])})
    grid = answer(url, "grid", **INPUTS)
    page.wait_cells(1, grid["count"])
    page.js(PLACE, [[1, 0, 0, 520, 700], [3, 560, 0, 480, 340]])
    assert page.run() == "execution_success"
    page.page.wait_for_timeout(6000)  # until the notice of the finished run has gone
    page.fit(1.0)
    cell = grid["cells"][grid["cells"][grid["focus"]]["neighbours"][0]]
    x, y = page.on_screen(1, cell["x"], cell["y"])
    page.page.mouse.move(x - 2, y)
    page.page.mouse.move(x, y)
    page.page.wait_for_timeout(300)
    page.page.screenshot(path=file)
    page.close()


def mask_in_nodes2(browser, url, file):
    """A grid, cells chosen from it, and the mask."""
    page = GridPage(browser, url, vue=True, size=(1280, 800))
    page.load({
        "1": node("H3GridEncode", **INPUTS),
        "2": node("H3CellMask", cells=["1", 1], select="x<50% and not border or ring<=1",
                  overlap=-1),
        "4": node("MaskToImage", mask=["2", 0]),
        "3": node("PreviewImage", images=["4", 0]),
    })  # fmt: skip
    page.wait_cells(2, answer(url, "grid", **INPUTS)["count"])
    page.js(PLACE, [[1, 0, 0, 480, 620], [2, 520, 0, 440, 560], [4, 1000, 480, 260, 60],
                    [3, 1000, 0, 400, 330]])  # fmt: skip
    assert page.run() == "execution_success"
    page.page.wait_for_timeout(6000)
    page.fit(0.75)
    page.page.screenshot(path=file)
    page.close()


if __name__ == "__main__":
    with sync_playwright() as p:
        chromium = p.chromium.launch(executable_path=CHROMIUM, headless=True, args=FLAGS)
        grid_on_canvas(chromium, sys.argv[1], str(PICTURES / "comfyui-grid.png"))
        mask_in_nodes2(chromium, sys.argv[1], str(PICTURES / "comfyui-cellmask.png"))
        chromium.close()
