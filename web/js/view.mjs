// The drawing of a grid: an SVG, a line of text below, and a message on top. Knows no ComfyUI.

import { frameShare } from "./frame.mjs";

const SVG = "http://www.w3.org/2000/svg";
const LINE = "#3f88c5", HOVER = "#ff9f1c", NEIGHBOUR = "#ffd166", FOCUS = "#e63946";
const WRONG = "rgba(60, 10, 10, 0.75)", MISSING = "rgba(24, 30, 42, 0.75)";

export const MIN_HEIGHT = 180; // px of the node

/** A drawing. `element` goes into the page; `onPick(index, [x, y])` is called for a click, with
 *  the cell's index and the point as shares of the frame. */
export class GridView {
  constructor(onPick) {
    this.onPick = onPick;
    this.grid = null;
    this.status = "";
    this.element = html("div", `
      position: relative; display: flex; flex-direction: column; min-height: ${MIN_HEIGHT}px;
      box-sizing: border-box; overflow: hidden; user-select: none;`);
    this.element.className = "h3video-grid";
    this.svg = svg("svg", { preserveAspectRatio: "xMidYMid meet", role: "img" });
    this.svg.style.cssText = "flex: 1 1 0; min-height: 0; width: 100%; cursor: crosshair;";
    this.line = html("div", `
      font: 11px monospace; height: 15px; color: var(--input-text, #ddd); text-align: center;
      white-space: nowrap; overflow: hidden; text-overflow: ellipsis;`);
    this.note = html("div", `
      position: absolute; inset: 0 0 15px 0; display: none; align-items: center;
      justify-content: center; padding: 8px; text-align: center; font: 12px sans-serif;
      color: #fff; pointer-events: none;`);
    this.note.setAttribute("role", "status");
    this.element.append(this.svg, this.line, this.note);
    this.svg.addEventListener("pointermove", (e) => this.hover(indexAt(e)));
    this.svg.addEventListener("pointerleave", () => this.hover(null));
    // Not `click`: ComfyUI records a step for undo on mouseup, which comes between the two.
    this.svg.addEventListener("pointerup", (e) => e.button === 0 && this.pick(e));
  }

  /**
   * Draw a grid.
   *
   * fills    CSS colour of every cell
   * status   text below while no cell is under the pointer
   * describe function: cell -> text below
   * focus    [x, y] shares of the frame to mark, or null
   */
  draw(grid, { fills, status, describe, focus = null }) {
    if (grid !== this.grid) this.build(grid);
    this.polygons.forEach((p, i) => p.setAttribute("fill", fills[i]));
    this.band.setAttribute("stroke-width", grid.overlap ?? 0);
    this.mark.setAttribute("visibility", focus ? "visible" : "hidden");
    if (focus) {
      this.mark.setAttribute("cx", focus[0] * grid.width);
      this.mark.setAttribute("cy", focus[1] * grid.height);
    }
    this.status = status;
    this.describe = describe;
    this.say("");
    this.hover(this.hovered);
  }

  /** Show a message over the drawing, which stays dimmed below; "" takes it away. Red: it is about
   *  something wrong, and not only about something missing. */
  say(message, wrong = true) {
    this.note.textContent = message;
    this.note.style.background = wrong ? WRONG : MISSING;
    this.note.style.display = message ? "flex" : "none";
  }

  /** Take the drawing away, leaving only a message. */
  clear(message) {
    this.grid = null;
    this.svg.replaceChildren();
    this.line.textContent = "";
    this.say(message, false);
  }

  build(grid) {
    this.grid = grid;
    this.hovered = null;
    const thin = Math.max(grid.width, grid.height) / 400;
    this.svg.setAttribute("viewBox", `0 0 ${grid.width} ${grid.height}`);
    this.svg.setAttribute("aria-label", `${grid.count} H3 cells`);
    const outlines = grid.cells.map((cell) => cell.corners.map((c) => c.join(",")).join(" "));
    this.polygons = outlines.map((points, i) =>
      svg("polygon", { points, stroke: LINE, "stroke-width": thin, "data-index": i }));
    // The band that neighbours share is as wide as the overlap, half of it on either side.
    this.band = svg("path", {
      d: outlines.map((points) => `M${points}Z`).join(""),
      fill: "none", stroke: LINE, "stroke-opacity": 0.18, "pointer-events": "none",
    });
    this.overlay = svg("g", { fill: "none", "pointer-events": "none", "stroke-width": thin * 2 });
    this.mark = svg("circle", {
      r: thin * 4, fill: FOCUS, stroke: "#fff", "stroke-width": thin, "pointer-events": "none",
    });
    // Cells reach over the frame's edge; the drawing ends there.
    const frame = svg("svg", { width: grid.width, height: grid.height, overflow: "hidden" });
    frame.append(...this.polygons, this.band, this.overlay, this.mark);
    this.svg.replaceChildren(frame);
  }

  /** Outline a cell and its neighbours and describe it; null: no cell. */
  hover(index) {
    if (!this.grid) return;
    this.hovered = index;
    const cell = index === null ? null : this.grid.cells[index];
    this.line.textContent = cell ? this.describe(cell) : this.status;
    const outline = (i, stroke) =>
      svg("polygon", { points: this.polygons[i].getAttribute("points"), stroke, "data-of": i });
    this.overlay.replaceChildren(
      ...(cell ? cell.neighbours.map((n) => outline(n, NEIGHBOUR)) : []),
      ...(cell ? [outline(index, HOVER)] : []),
    );
  }

  pick(event) {
    const index = indexAt(event);
    const box = this.svg.getBoundingClientRect();
    const share = this.grid && frameShare(box, this.grid, event.clientX, event.clientY);
    if (index !== null && share) this.onPick(index, share);
  }
}

function indexAt(event) {
  const index = event.target.dataset?.index;
  return index === undefined ? null : Number(index);
}

function svg(name, attributes) {
  const element = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
  return element;
}

function html(name, style) {
  const element = document.createElement(name);
  element.style.cssText = style;
  return element;
}
