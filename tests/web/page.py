"""ComfyUI's page in Chromium, as the tests of web/ use it."""

from __future__ import annotations

import json
import os
import re
import urllib.error
import urllib.parse
import urllib.request
from typing import Any

CHROMIUM = os.environ.get("CHROMIUM", "/usr/bin/chromium")

FLAGS = [
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
    "--disable-background-networking", "--disable-component-update", "--disable-sync",
]  # fmt: skip

OURS = re.compile(r"h3video|ComfyUI-H3-Video", re.IGNORECASE)

NOISE = re.compile(
    # files that ComfyUI asks for and that a fresh server has not
    r"Failed to load resource"
    # frontend 1.32: a store that is asked before it is filled, and its own outside hosts
    r"|reading 'id'|Content Security Policy|api\.comfy\.org"
    r"|Failed to fetch|AxiosError|Network Error"
    # frontend 1.49: a watcher of its own looks before the graph is there
    r"|graph accessed before initialization",
)
"""Console errors of ComfyUI's own page on a bare test server."""

SETTINGS = {
    "Comfy.TutorialCompleted": True,  # else a dialog covers the canvas
    "Comfy.Workflow.ShowMissingModelsWarning": False,
    "LiteGraph.Canvas.MinFontSizeForLOD": 0,  # texts stay in pictures of a whole graph
    "Comfy.Minimap.Visible": False,
}

WAIT = int(os.environ.get("H3VIDEO_TEST_WAIT", "60")) * 1000  # ms: a loaded machine is slow

VIEW = "id => app.graph.getNodeById(id).widgets.find(w => w.name === 'h3_grid_view').element"
"""A function of the page: node id -> the drawing's element."""


class GridPage:
    """A page with helpers for nodes that have our drawing.

    complaints   console errors and exceptions that are not known noise of ComfyUI's own
    asked        paths that the page asked of /h3video/
    """

    def __init__(self, browser: Any, url: str, *, vue: bool = False, locale: str = "en",
                 size: tuple[int, int] = (1600, 1000)) -> None:  # fmt: skip
        self.url, self.vue = url, vue
        self.complaints: list[str] = []
        self.asked: list[str] = []
        self.page = browser.new_page(viewport={"width": size[0], "height": size[1]})
        self.page.route("**/*", self._stay_here)
        self.page.on("console", self._console)
        self.page.on("pageerror", lambda e: self._complain(f"{e} {getattr(e, 'stack', '')}"))
        self.page.on("dialog", self._dialog)
        settings = {**SETTINGS, "Comfy.Locale": locale, "Comfy.VueNodes.Enabled": vue}
        self.page.request.post(f"{url}/settings", data=settings)
        self.page.goto(url, wait_until="domcontentloaded", timeout=WAIT)
        self.wait("() => window.app?.extensionManager && app.canvas?.graph"
                  " && app.extensions.some(e => e.name === 'h3video.grid')")  # fmt: skip

    # ---- the page ----

    def _stay_here(self, route: Any) -> None:
        """Nothing but the server under test is asked for anything."""
        address = route.request.url
        if address.startswith(self.url):
            if (path := address.removeprefix(self.url)).startswith("/api/h3video/"):
                self.asked.append(path)
            return route.continue_()
        return route.continue_() if address.startswith(("data:", "blob:")) else route.abort()

    def _console(self, message: Any) -> None:
        if message.type == "error":
            self._complain(f"{message.text} {message.location.get('url', '')}")

    def _dialog(self, dialog: Any) -> None:
        self.complaints.append(f"dialog: {dialog.message}")
        dialog.dismiss()

    def _complain(self, text: str) -> None:
        if OURS.search(text) or not NOISE.search(text):
            self.complaints.append(text[:500])

    def js(self, code: str, argument: Any = None) -> Any:
        """The value of an expression or function in the page."""
        return self.page.evaluate(code, argument)

    def wait(self, code: str, argument: Any = None) -> None:
        """Until a function in the page gives something true."""
        self.page.wait_for_function(code, arg=argument, timeout=WAIT)

    def close(self) -> None:
        self.page.close()

    # ---- workflows ----

    def load(self, prompt: dict[str, Any], scale: float | None = None) -> None:
        """Load a workflow in API format; scale None: all of it in view, else the first node's."""
        self.js("() => app.graph.clear()")
        self.js("p => app.loadApiJson(p, 'test')", prompt)
        self.wait("n => app.graph.nodes.length === n", len(prompt))
        self.fit(scale)

    def fit(self, scale: float | None = None) -> None:
        """Show the whole graph, or its upper left corner at a scale."""
        if scale is None:
            self.js("() => app.extensionManager.command.execute('Comfy.Canvas.FitView')")
        else:
            self.js("""s => { const n = app.graph.nodes;
                const x = Math.min(...n.map(a => a.pos[0])), y = Math.min(...n.map(a => a.pos[1]));
                app.canvas.ds.scale = s;
                app.canvas.ds.offset = [150 / s - x, 120 / s - y];
                app.canvas.setDirty(true, true); }""", scale)  # fmt: skip
        self.page.wait_for_timeout(800)

    def run(self) -> str:
        """Press the Run button; returns the event that ended the run."""
        self.js("""() => { window.h3done = null;
            for (const k of ['execution_success', 'execution_error', 'execution_interrupted'])
                app.api.addEventListener(k, () => { window.h3done = k; }, { once: true }); }""")
        # A notice of the page (a file dropped, a queue cleared) may lie over the button; close it.
        for _ in range(self.page.locator(".p-toast button").count()):
            self.page.locator(".p-toast button").first.click(timeout=WAIT)
        self.page.wait_for_function("() => !document.querySelector('.p-toast-message')")
        # The page keeps a hidden button of old, too.
        self.page.locator(
            '[data-testid="queue-button"]:visible, button:visible:text-is("Run")'
        ).first.click(timeout=WAIT)
        self.wait("() => window.h3done")
        return str(self.js("() => window.h3done"))

    # ---- nodes with a drawing ----

    def set(self, node: int, **values: Any) -> None:
        """Set widgets as a script, an undo or another extension does."""
        self.js("""([id, values]) => { const n = app.graph.getNodeById(id);
            for (const [name, value] of Object.entries(values))
                n.widgets.find(w => w.name === name).value = value; }""", [node, values])

    def value(self, node: int, name: str) -> Any:
        """A widget's value."""
        return self.js("""([id, name]) =>
            app.graph.getNodeById(id).widgets.find(w => w.name === name).value""", [node, name])

    def view(self, node: int, code: str, *arguments: Any) -> Any:
        """The value of a function in the page: (drawing's element, *arguments) -> value."""
        return self.js(f"([id, more]) => ({code})(({VIEW})(id), ...more)", [node, arguments])

    def wait_view(self, node: int, code: str, *arguments: Any) -> None:
        """Until such a function gives something true."""
        self.wait(f"([id, more]) => ({code})(({VIEW})(id), ...more)", [node, arguments])

    def drawing(self, node: int) -> dict[str, Any]:
        """What is drawn: points and fills of the cells, outlined cells, the line of text below."""
        return self.view(node, """e => { const cells = [...e.querySelectorAll("[data-index]")];
            return { points: cells.map(c => c.getAttribute("points")),
                     fills: cells.map(c => c.getAttribute("fill")),
                     outlined: [...e.querySelectorAll("[data-of]")].map(c => +c.dataset.of),
                     line: e.children[1].textContent }; }""")

    def wait_cells(self, node: int, count: int) -> dict[str, Any]:
        """Until so many cells are drawn."""
        self.wait_view(node, "(e, n) => e.querySelectorAll('[data-index]').length === n", count)
        return self.drawing(node)

    def wait_fill(self, node: int, cell: int, fill: str) -> None:
        """Until a cell has a colour."""
        self.wait_view(node, """(e, i, fill) =>
            e.querySelector(`[data-index="${i}"]`)?.getAttribute("fill") === fill""", cell, fill)

    def wait_message(self, node: int, part: str) -> None:
        """Until the message on top of the drawing holds a text; "": until there is none."""
        self.wait_view(node, """(e, part) => part === "" ? e.children[2].textContent === ""
            : e.children[2].textContent.includes(part) && e.children[2].offsetHeight > 0""", part)

    def on_screen(self, node: int, x: float, y: float) -> tuple[float, float]:
        """Where the point (x, y) px of the frame is on the screen, asked of the browser."""
        return tuple(self.view(node, """(e, x, y) => {
            const svg = e.querySelector("svg");
            const p = new DOMPoint(x, y).matrixTransform(svg.getScreenCTM());
            return [p.x, p.y]; }""", x, y))

    def width_on_screen(self, node: int) -> float:
        """The drawing's width on the screen, px."""
        return self.view(node, "e => e.querySelector('svg').getBoundingClientRect().width")


def answer(url: str, path: str, **query: Any) -> dict[str, Any]:
    """The JSON of GET /h3video/<path>, also that of a refusal."""
    try:
        with urllib.request.urlopen(
            f"{url}/h3video/{path}?{urllib.parse.urlencode(query)}"
        ) as response:
            return json.load(response)
    except urllib.error.HTTPError as e:
        return json.load(e)
