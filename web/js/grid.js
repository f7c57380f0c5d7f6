// The live grid on H3GridEncode and H3CellMask. The geometry is the server's, see routes.py.

import { api } from "../../../scripts/api.js";
import { app } from "../../../scripts/app.js";
import { EncodePanel, MaskPanel } from "./panel.mjs";
import { textsFor } from "./texts.mjs";
import { MIN_HEIGHT } from "./view.mjs";

const PANELS = { H3GridEncode: EncodePanel, H3CellMask: MaskPanel };
const RUNS_TOLD = new Set([...Object.keys(PANELS), "H3CellsFromText"]);
const LOOK_EVERY = 150; // ms
const MARGIN = 10; // px that ComfyUI's canvas leaves around an element

const runs = new WeakMap(); // node -> its last h3_grid message

async function ask(path) {
  let response;
  try {
    response = await api.fetchApi(path);
  } catch (error) {
    throw retriable(texts().offline(error.message));
  }
  const answer = await response.json().catch(() => null);
  if (answer?.error) throw new Error(answer.error);
  if (response.ok && answer) return answer;
  throw new Error(texts().offline(`HTTP ${response.status}`));
}

function retriable(message) {
  return Object.assign(new Error(message), { retry: true });
}

function texts() {
  return textsFor(app.extensionManager?.setting?.get("Comfy.Locale"));
}

/** Call `more` after a node's own handler; only this node object is touched. */
function after(node, handler, more) {
  const before = node[handler];
  node[handler] = function (...args) {
    const result = before?.apply(this, args);
    more(...args);
    return result;
  };
}

function addPanel(node, Panel) {
  const panel = new Panel(node, { ask, lastRun: (n) => runs.get(n), texts: texts() });
  const element = panel.view.element;
  const widget = node.addDOMWidget("h3_grid_view", "h3video_grid", element, {
    serialize: false, // not into the prompt
    hideOnZoom: false,
    getMinHeight: () => MIN_HEIGHT + 2 * MARGIN,
  });
  widget.serialize = false; // not into the workflow file
  const [width, height] = node.computeSize();
  node.setSize([Math.max(node.size[0], width, 320), Math.max(node.size[1], height)]);

  // The canvas below must still zoom and pan. In Nodes 2.0 the page sees to that itself.
  const overCanvas = () => element.closest(".dom-widget") !== null;
  element.addEventListener("wheel", (e) => overCanvas() && app.canvas.processMouseWheel(e));
  const middle = (e, handle) => overCanvas() && (e.button === 1 || e.buttons & 4) && handle(e);
  element.addEventListener("pointerdown", (e) => middle(e, (m) => app.canvas.processMouseDown(m)));
  element.addEventListener("pointermove", (e) => middle(e, (m) => app.canvas.processMouseMove(m)));
  element.addEventListener("pointerup", (e) => middle(e, (m) => app.canvas.processMouseUp(m)));

  let timer = null;
  const start = () => {
    timer ??= setInterval(() => element.isConnected && panel.look(), LOOK_EVERY);
  };
  after(node, "onAdded", start);
  after(node, "onRemoved", () => {
    clearInterval(timer);
    timer = null;
  });
  if (node.graph) start();
}

app.registerExtension({
  name: "h3video.grid",
  nodeCreated(node) {
    if (RUNS_TOLD.has(node.comfyClass)) {
      after(node, "onExecuted", (output) => {
        if (output?.h3_grid?.[0]) runs.set(node, output.h3_grid[0]);
      });
    }
    const Panel = PANELS[node.comfyClass];
    if (Panel) addPanel(node, Panel);
  },
});
