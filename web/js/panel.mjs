// A node's drawing kept up to date: look what the node stands for, ask the server, draw.

import { grey, ringWeights, rounded } from "./frame.mjs";
import { encodeParameters, inputValue, maskParameters, queryString } from "./query.mjs";
import { toggleSelect } from "./select_text.mjs";
import { linked } from "./upstream.mjs";
import { GridView } from "./view.mjs";

const RETRY_AFTER = 2000; // ms
const CHOSEN = "#f0a830", OTHER = "#10142a";

/**
 * The drawing of one node.
 *
 * ask       async function: path with query -> parsed JSON; throws an Error whose message is shown
 * lastRun   function: node -> the h3_grid message of its last run, or undefined
 * texts     what to say, see texts.mjs
 *
 * `look` is to be called every now and then. It is cheap while nothing has changed, and it sees
 * every change, whoever made it: a widget, a script, undo, another link, another node's widget.
 */
class Panel {
  constructor(node, { ask, lastRun, texts }) {
    Object.assign(this, { node, ask, lastRun, texts });
    this.view = new GridView((index, share) => this.picked(index, share));
    this.shown = null; // what `want` said last time
    this.busy = false; // one question at a time: what changes meanwhile is seen by the next look
  }

  /** Draw again if what the node stands for has changed. Resolves when that is done. */
  async look() {
    if (this.busy) return;
    const want = this.want();
    const key = JSON.stringify(want);
    if (key === this.shown) return;
    this.shown = key;
    if (want.missing) return this.view.clear(this.texts.missing);
    if (want.unknown) return this.view.clear(this.texts.unknown(want.unknown));
    this.busy = true;
    try {
      this.show(want, await this.fetch(want));
    } catch (error) {
      this.failed(error);
    } finally {
      this.busy = false;
    }
  }

  /** Show what went wrong; ask again later only if the server did not answer at all. */
  failed(error) {
    this.view.say(error.message);
    if (error.retry) setTimeout(() => (this.shown = null), RETRY_AFTER);
  }

  /** The grid of these parameters; the last one is kept, since most changes leave it as it is. */
  async grid(values) {
    const { falloff, ...geometry } = values; // shading is not the server's
    const query = queryString(geometry);
    if (this.gridQuery !== query) {
      const grid = await this.ask(`/h3video/grid?${query}`);
      [this.gridQuery, this.gridAnswer] = [query, grid];
    }
    return this.gridAnswer;
  }
}

/** H3GridEncode: cells shaded as the mask is; a click sets the focus. */
export class EncodePanel extends Panel {
  want() {
    return encodeParameters(this.node, this.lastRun(this.node));
  }

  async fetch({ values }) {
    return { grid: await this.grid(values) };
  }

  show({ values }, { grid }) {
    this.view.draw(grid, {
      fills: ringWeights(grid, Number(values.falloff ?? 0)).map(grey),
      status: this.texts.grid(grid),
      describe: this.texts.cell,
      focus: [Number(values.focus_x ?? 0.5), Number(values.focus_y ?? 0.5)],
    });
  }

  picked(_, share) {
    for (const [name, value] of [["focus_x", share[0]], ["focus_y", share[1]]]) {
      if (!linked(this.node, name)) setWidget(this.node, name, rounded(value));
    }
    this.look();
  }
}

/** H3CellMask: the chosen cells are filled; a click toggles one in the text. */
export class MaskPanel extends Panel {
  want() {
    const want = maskParameters(this.node, this.lastRun);
    const select = inputValue(this.node, "select", this.lastRun(this.node));
    if (want.values && select === undefined) return { unknown: "select" };
    return { ...want, select };
  }

  async fetch({ values, select }) {
    const grid = await this.grid(values);
    // The grid is shown even when the text is wrong: there is something to click then.
    try {
      return { grid, ...(await this.ask(`/h3video/select?${queryString(values, { select })}`)) };
    } catch (error) {
      return { grid, chosen: [], error };
    }
  }

  show({ select }, { grid, chosen, error }) {
    this.chosen = new Set(chosen);
    // An empty text is an error to the node, but to a click it is nothing chosen yet.
    this.clickable = !error || !select.trim();
    this.view.draw(grid, {
      fills: grid.cells.map((_, i) => (this.chosen.has(i) ? CHOSEN : OTHER)),
      status: this.texts.chosen(chosen.length, grid),
      describe: this.texts.cell,
    });
    if (error) this.failed(error);
  }

  picked(index) {
    if (!this.clickable || linked(this.node, "select")) return;
    const text = inputValue(this.node, "select");
    const id = this.gridAnswer.cells[index].id;
    setWidget(this.node, "select", toggleSelect(text, id, this.chosen.has(index)));
    this.look();
  }
}

function setWidget(node, name, value) {
  const widget = node.widgets?.find((w) => w.name === name);
  if (!widget) return;
  widget.value = value;
  widget.callback?.(value);
  node.graph?.setDirtyCanvas?.(true, true);
}
