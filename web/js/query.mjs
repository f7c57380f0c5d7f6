// Which grid a node stands for: the parameters of GET /h3video/grid, read off the node.

import { constant, linked, origin } from "./upstream.mjs";

export const PARAMETERS = [
  "width", "height", "hex_res", "overlap", "span", "rotation", "projection",
  "focus_x", "focus_y", "falloff",
];

/**
 * An input's value now: the widget's, or that of the constant it is connected to, or the one of the
 * last run (`ran`). Undefined when only a run can tell.
 */
export function inputValue(node, name, ran) {
  if (linked(node, name)) return constant(origin(node, name)) ?? ran?.[name];
  return node.widgets?.find((w) => w.name === name)?.value;
}

/** {values, unknown}: a H3GridEncode's parameters, and the name of one that only a run can tell. */
export function encodeParameters(node, ran) {
  const values = {};
  for (const name of PARAMETERS) {
    const value = inputValue(node, name, ran);
    if (value === undefined && linked(node, name)) return { unknown: name };
    if (value !== undefined) values[name] = value;
  }
  return { values };
}

/**
 * The same for the grid that a H3CellMask receives; {missing: true} when nothing is connected,
 * {unknown} when its grid can only be known from a run.
 *
 * lastRun   function: node -> the h3_grid message of its last run, or undefined
 */
export function maskParameters(node, lastRun) {
  const from = origin(node, "cells");
  if (!from) return { missing: true };
  if (from.node.comfyClass === "H3GridEncode") {
    return encodeParameters(from.node, lastRun(from.node));
  }
  const ran = lastRun(from.node) ?? lastRun(node);
  if (!ran) return { unknown: "cells" };
  return { values: Object.fromEntries(PARAMETERS.map((name) => [name, ran[name]])) };
}

/** Parameters as a query string; the order is fixed, so equal parameters give equal strings. */
export function queryString(values, more = {}) {
  return new URLSearchParams({ ...values, ...more }).toString();
}
