"""The live grid in a real page: what is drawn, hovered, clicked, stored; canvas and Nodes 2.0."""

import io
import json

import graphs
import pytest
from graphs import node
from page import answer

ENCODE, MASK, SHOW = 1, 2, 3
SIZE = {"width": 640, "height": 384, "hex_res": "4"}
# All inputs are given: frontend 1.49 keeps a widget's value by the node's number, so a node that is
# loaded after another of the same number would otherwise inherit what a test has set there.
INPUTS = {**SIZE, "overlap": 16, "span": 0.075, "rotation": 0.0, "projection": "face",
          "focus_x": 0.5, "focus_y": 0.5, "falloff": 0.75}  # fmt: skip


def grid_only(**more):
    """An encode node whose picture is shown."""
    return {
        "1": node("H3GridEncode", **{**INPUTS, **more}),
        "3": node("PreviewImage", images=["1", 2]),
    }


def with_mask(select="ring<=1", **more):
    """An encode node, a cell mask on it, and the mask's picture."""
    return {
        "1": node("H3GridEncode", **{**INPUTS, **more}),
        "2": node("H3CellMask", cells=["1", 1], select=select, overlap=-1),
        "4": node("MaskToImage", mask=["2", 0]),
        "3": node("PreviewImage", images=["4", 0]),
    }


def grey(weight):
    level = int(255 * weight + 0.5)
    return f"rgb({level},{level},{level})"


def points(cell):
    """Corners as numbers; JavaScript and Python write them differently."""
    return [tuple(c) for c in cell["corners"]]


def drawn_points(text):
    return [tuple(map(float, p.split(","))) for p in text.split()]


def inner_cell(grid, ring):
    """A cell of a ring whose centre lies well inside the frame."""
    edge = grid["edge"]
    return next(
        i for i, c in enumerate(grid["cells"])
        if c["ring"] == ring and edge < c["x"] < grid["width"] - edge
        and edge < c["y"] < grid["height"] - edge
    )  # fmt: skip


def move_to(page, node_id, cell):
    """Put the pointer on a cell's centre."""
    x, y = page.on_screen(node_id, cell["x"], cell["y"])
    page.page.mouse.move(x - 2, y)
    page.page.mouse.move(x, y)
    return x, y


def test_the_grid_is_the_servers_and_shaded_like_the_mask(page):
    page.load(grid_only(falloff=0.6))
    grid = answer(page.url, "grid", overlap=16, **SIZE)
    drawn = page.wait_cells(ENCODE, grid["count"])
    assert [drawn_points(p) for p in drawn["points"]] == [points(c) for c in grid["cells"]]
    farthest = max(c["ring"] for c in grid["cells"])
    assert drawn["fills"] == [grey(1 - 0.6 * c["ring"] / farthest) for c in grid["cells"]]
    assert str(grid["count"]) in drawn["line"]
    page.wait_message(ENCODE, "")


def test_pixels(page):
    """What Chromium paints: white in the focus cell, the outermost ring's grey at the corner."""
    image = pytest.importorskip("PIL.Image")
    page.load(grid_only(falloff=0.75, overlap=0), scale=1.0)
    grid = answer(page.url, "grid", overlap=0, **SIZE)
    page.wait_cells(ENCODE, grid["count"])
    page.page.wait_for_timeout(300)
    shot = image.open(io.BytesIO(page.page.screenshot())).convert("RGB")
    farthest = max(c["ring"] for c in grid["cells"])
    for ring in (1, farthest // 2, farthest - 1):
        cell = grid["cells"][inner_cell(grid, ring)]
        level = 255 * (1 - 0.75 * ring / farthest)
        at = page.on_screen(ENCODE, cell["x"], cell["y"])
        assert shot.getpixel(tuple(map(round, at))) == pytest.approx((level,) * 3, abs=3)


def test_it_follows_the_widgets(page):
    page.load(grid_only())
    page.wait_cells(ENCODE, answer(page.url, "grid", **SIZE)["count"])
    for change in ({"hex_res": "3"}, {"width": 512, "height": 512}, {"rotation": 30.0},
                   {"hex_res": "auto"}, {"span": 0.1}):  # fmt: skip
        page.set(ENCODE, **change)
        now = {k: page.value(ENCODE, k) for k in ("width", "height", "hex_res", "rotation", "span")}
        grid = answer(page.url, "grid", **now)
        first = ",".join(f"{v:.10g}" for v in grid["cells"][0]["corners"][0])
        page.wait_view(ENCODE, """(e, first) =>
            e.querySelector("polygon")?.getAttribute("points").startsWith(first)""", first)
        assert len(page.drawing(ENCODE)["points"]) == grid["count"]


def test_shading_asks_nothing_of_the_server(page):
    page.load(grid_only())
    drawn = page.wait_cells(ENCODE, answer(page.url, "grid", **SIZE)["count"])
    asked = len(page.asked)
    page.set(ENCODE, falloff=0.0)
    page.wait_fill(ENCODE, 0, "rgb(255,255,255)")
    assert set(drawn["fills"]) != {"rgb(255,255,255)"}
    assert set(page.drawing(ENCODE)["fills"]) == {"rgb(255,255,255)"}
    assert len(page.asked) == asked


def test_hover_tells_the_cell_and_its_neighbours(page):
    page.load(grid_only(), scale=1.0)
    grid = answer(page.url, "grid", overlap=16, **SIZE)
    page.wait_cells(ENCODE, grid["count"])
    index = inner_cell(grid, 2)
    cell = grid["cells"][index]
    move_to(page, ENCODE, cell)
    drawn = page.drawing(ENCODE)
    assert cell["id"] in drawn["line"] and "ring 2" in drawn["line"]
    assert sorted(drawn["outlined"]) == sorted([index, *cell["neighbours"]])
    page.page.mouse.move(5, 5)
    drawn = page.drawing(ENCODE)
    assert not drawn["outlined"] and cell["id"] not in drawn["line"]


@pytest.mark.parametrize("scale", [1.0, 0.6])
def test_a_click_sets_the_focus(page, scale):
    page.load(grid_only(), scale=scale)
    grid = answer(page.url, "grid", overlap=16, **SIZE)
    page.wait_cells(ENCODE, grid["count"])
    cell = grid["cells"][inner_cell(grid, 3)]
    page.page.mouse.click(*move_to(page, ENCODE, cell))
    pixel = 1 / page.width_on_screen(ENCODE)
    assert page.value(ENCODE, "focus_x") == pytest.approx(cell["x"] / 640, abs=pixel + 0.001)
    assert page.value(ENCODE, "focus_y") == pytest.approx(cell["y"] / 384, abs=2 * pixel + 0.001)
    page.wait_fill(ENCODE, grid["cells"].index(cell), "rgb(255,255,255)")


def test_a_refusal_is_shown_in_the_drawing(open_page):
    page = open_page()
    page.load(grid_only())
    page.wait_cells(ENCODE, answer(page.url, "grid", **SIZE)["count"])
    page.set(ENCODE, hex_res="12")
    page.wait_message(ENCODE, answer(page.url, "grid", **{**SIZE, "hex_res": "12"})["error"])
    page.set(ENCODE, hex_res="4")
    page.wait_message(ENCODE, "")
    # Chromium logs every answer 400; nothing else may be there.
    page.complaints[:] = [c for c in page.complaints if "status of 400" not in c]


def test_a_cell_mask_shows_its_choice_and_clicks_toggle(page):
    page.load(with_mask(), scale=1.0)
    grid = answer(page.url, "grid", overlap=16, **SIZE)
    drawn = page.wait_cells(MASK, grid["count"])
    chosen = answer(page.url, "select", select="ring<=1", overlap=16, **SIZE)["chosen"]
    filled, empty = drawn["fills"][chosen[0]], drawn["fills"][0]
    assert drawn["fills"] == [filled if i in chosen else empty for i in range(grid["count"])]
    outside = inner_cell(grid, 2)
    inside = inner_cell(grid, 1)
    for index, text in (
        (outside, f"ring<=1 or {grid['cells'][outside]['id']}"),
        (outside, "ring<=1"),
        (inside, f"ring<=1 and not {grid['cells'][inside]['id']}"),
        (inside, "ring<=1"),
    ):
        before = page.drawing(MASK)["fills"][index]
        page.page.mouse.click(*move_to(page, MASK, grid["cells"][index]))
        assert page.value(MASK, "select") == text
        page.wait_fill(MASK, index, empty if before == filled else filled)


def test_a_cell_mask_follows_the_encode_node(page):
    page.load(with_mask())
    page.wait_cells(MASK, answer(page.url, "grid", **SIZE)["count"])
    page.set(ENCODE, hex_res="3")
    page.wait_cells(MASK, answer(page.url, "grid", **{**SIZE, "hex_res": "3"})["count"])
    page.js("n => { const m = app.graph.getNodeById(n); m.disconnectInput(0); }", MASK)
    page.wait_message(MASK, "Connect the cells")


def test_a_grid_that_only_a_run_can_tell(page):
    """Width and height come from a picture; the grid of the mask from a text."""
    # Another colour for each page: of a node whose result is cached ComfyUI tells nothing.
    page.load({
        "5": node("EmptyImage", width=320, height=192, batch_size=1, color=int(page.vue)),
        "6": node("GetImageSize", image=["5", 0]),
        "1": node("H3GridEncode", **{**INPUTS, "hex_res": "3", "width": ["6", 0],
                                     "height": ["6", 1]}),
        "7": node("H3CellsToText", cells=["1", 1]),
        "8": node("H3CellsFromText", text=["7", 0]),
        "2": node("H3CellMask", cells=["8", 0], select="ring 0", overlap=-1),
        "4": node("MaskToImage", mask=["2", 0]),
        "3": node("PreviewImage", images=["4", 0]),
    })  # fmt: skip
    page.wait_message(ENCODE, "width comes from another node")
    page.wait_message(MASK, "cells comes from another node")
    assert page.run() == "execution_success"
    count = answer(page.url, "grid", width=320, height=192, hex_res=3)["count"]
    page.wait_cells(ENCODE, count)
    page.wait_cells(MASK, count)


def test_the_run_button_makes_a_picture(page):
    page.load(grid_only())
    page.wait_cells(ENCODE, answer(page.url, "grid", **SIZE)["count"])
    assert page.run() == "execution_success"
    page.wait("n => app.graph.getNodeById(n).imgs?.[0]?.naturalWidth > 100"
              " || [...document.querySelectorAll('img')].some(i => /filename/.test(i.src)"
              " && i.naturalWidth > 100)", SHOW)  # fmt: skip


def test_nothing_of_the_drawing_is_stored(page):
    page.load(with_mask())
    page.wait_cells(ENCODE, answer(page.url, "grid", **SIZE)["count"])
    stored = page.js("() => app.graph.serialize()")
    values = {n["type"]: n["widgets_values"] for n in stored["nodes"] if n["type"][:2] == "H3"}
    assert len(values["H3GridEncode"]) == 10 and len(values["H3CellMask"]) == 2
    prompt = page.js("async () => (await app.graphToPrompt()).output")
    assert "h3_grid_view" not in json.dumps(prompt)
    assert set(prompt["2"]["inputs"]) == {"cells", "select", "overlap"}
    # and what is stored opens again, with its values
    page.set(ENCODE, focus_x=0.25)
    stored = page.js("() => app.graph.serialize()")
    page.js("g => app.loadGraphData(g)", stored)
    page.wait_cells(ENCODE, answer(page.url, "grid", **SIZE)["count"])
    assert page.value(ENCODE, "focus_x") == 0.25


def test_a_removed_node_leaves_nothing_behind(page):
    page.load(grid_only())
    page.wait_cells(ENCODE, answer(page.url, "grid", **SIZE)["count"])
    page.js("n => { window.h3gone = app.graph.getNodeById(n); app.graph.remove(window.h3gone); }",
            ENCODE)  # fmt: skip
    page.wait("() => !document.querySelector('.h3video-grid')")
    asked = len(page.asked)
    page.js("() => { window.h3gone.widgets.find(w => w.name === 'hex_res').value = '3'; }")
    page.page.wait_for_timeout(700)
    assert len(page.asked) == asked


@pytest.mark.comfy_min("0.33")
def test_a_mask_sees_a_grid_inside_a_subgraph(open_page):
    page = open_page()
    page.load(with_mask())
    page.wait_cells(MASK, answer(page.url, "grid", **SIZE)["count"])
    page.js("n => { app.graph.convertToSubgraph(new Set([app.graph.getNodeById(n)])); }", ENCODE)
    page.js("""() => { const host = app.graph.nodes.find(n => n.isSubgraphNode?.());
        const inner = host.subgraph.nodes[0];
        inner.widgets.find(w => w.name === 'hex_res').value = '3'; }""")
    page.wait_cells(MASK, answer(page.url, "grid", **{**SIZE, "hex_res": "3"})["count"])


def test_chinese(open_page):
    page = open_page(locale="zh")
    page.load(grid_only())
    drawn = page.wait_cells(ENCODE, answer(page.url, "grid", **SIZE)["count"])
    assert "个单元" in drawn["line"]
    # Frontend 1.32 has the texts of packs only after the nodes' titles.
    title = page.js("n => app.graph.getNodeById(n).title", ENCODE)
    assert title in ("H3 网格编码", "H3 Grid Encode")


def test_scripts_and_help_are_served(comfy):
    scripts = [p for p in comfy.json("/extensions") if "H3-Video" in p]
    assert scripts == ["/extensions/ComfyUI-H3-Video/js/grid.js"]
    for page in ("H3GridEncode.md", "H3GridEncode/zh.md"):
        status, body, _ = comfy.get(f"/extensions/ComfyUI-H3-Video/docs/{page}")
        assert status == 200 and body.startswith(b"# H3")


def test_workflow_1_runs_from_the_page(page):
    """The article's workflow on the embedded model: its grid is drawn, Run makes pictures."""
    prompt = graphs.article(graphs.NANO)
    page.load(prompt)
    encode = next(int(k) for k, v in prompt.items() if v["class_type"] == "H3GridEncode")
    inputs = prompt[str(encode)]["inputs"]
    page.wait_cells(encode, answer(page.url, "grid", **{
        k: inputs[k] for k in ("width", "height", "hex_res", "overlap")})["count"])  # fmt: skip
    assert page.run() == "execution_success"


def test_workflow_1_opens_from_the_templates(page, comfy):
    """The shipped workflow, as the template browser loads it."""
    listed = comfy.json("/workflow_templates")
    names = next((v for k, v in listed.items() if "H3-Video" in k), [])
    first = next((n for n in sorted(names) if n.startswith("1") or "article" in n), None)
    if first is None:
        pytest.skip("example_workflows/ is not there yet")
    graph = comfy.json(f"/api/workflow_templates/ComfyUI-H3-Video/{first}.json")
    page.js("g => app.loadGraphData(g)", graph)
    page.fit()
    encode = page.js("() => app.graph.nodes.find(n => n.comfyClass === 'H3GridEncode').id")
    size = {k: page.value(encode, k) for k in ("width", "height", "hex_res", "overlap")}
    page.wait_cells(encode, answer(page.url, "grid", **size)["count"])
