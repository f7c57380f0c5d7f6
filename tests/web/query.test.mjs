import assert from "node:assert/strict";
import { test } from "node:test";

import { encodeParameters, inputValue, maskParameters, queryString } from "../../web/js/query.mjs";
import { constant, origin } from "../../web/js/upstream.mjs";
import { Graph } from "./fake_graph.mjs";

const WIDGETS = {
  width: 1024, height: 576, hex_res: "4", overlap: 32, span: 0.075, rotation: 0,
  projection: "face", focus_x: 0.5, focus_y: 0.5, falloff: 0.75,
};
const encodeIn = (graph, more = {}) =>
  graph.add("H3GridEncode", { inputs: ["width"], widgets: { ...WIDGETS, ...more } });
const maskIn = (graph) =>
  graph.add("H3CellMask", { inputs: ["cells", "select"], widgets: { select: "ring 0" } });
const never = () => undefined;

test("an encode node's parameters are its widgets", () => {
  assert.deepEqual(encodeParameters(encodeIn(new Graph())), { values: WIDGETS });
});

test("a connected width is the constant, else the last run's, else unknown", () => {
  const graph = new Graph();
  const encode = encodeIn(graph);
  graph.connect(graph.add("PrimitiveInt", { widgets: { value: 640 } }), encode, "width");
  assert.equal(encodeParameters(encode).values.width, 640);
  graph.connect(graph.add("GetImageSize"), encode, "width");
  assert.deepEqual(encodeParameters(encode), { unknown: "width" });
  assert.equal(encodeParameters(encode, { width: 832 }).values.width, 832);
});

test("a mask takes the grid of the encode node, through reroutes", () => {
  const graph = new Graph();
  const encode = encodeIn(graph, { hex_res: "3" });
  const reroute = graph.add("Reroute", { inputs: [""] });
  const mask = maskIn(graph);
  graph.connect(encode, reroute, "", 1);
  graph.connect(reroute, mask, "cells");
  assert.equal(origin(mask, "cells").node, encode);
  assert.equal(maskParameters(mask, never).values.hex_res, "3");
});

test("a circle of reroutes ends", () => {
  const graph = new Graph();
  const reroute = graph.add("Reroute", { inputs: [""] });
  graph.connect(reroute, reroute, "");
  assert.equal(origin(reroute, ""), null);
});

test("an unconnected mask, and one whose grid only a run can tell", () => {
  const graph = new Graph();
  const mask = maskIn(graph);
  assert.deepEqual(maskParameters(mask, never), { missing: true });
  const reader = graph.add("H3CellsFromText");
  graph.connect(reader, mask, "cells");
  assert.deepEqual(maskParameters(mask, never), { unknown: "cells" });
  const ran = { ...WIDGETS, hex_res: 5, select: "all" };
  assert.deepEqual(maskParameters(mask, (n) => (n === mask ? ran : undefined)), {
    values: { ...WIDGETS, hex_res: 5 },
  });
  const newer = { ...WIDGETS, width: 320 };
  const lastRun = (n) => (n === reader ? newer : ran);
  assert.equal(maskParameters(mask, lastRun).values.width, 320);
});

test("links go into subgraphs and out of them", () => {
  const root = new Graph();
  const made = new Graph(root);
  const encode = encodeIn(made, { width: 768 });
  const maker = root.addSubgraph(made, { from: encode });
  const used = new Graph(root);
  const mask = maskIn(used);
  used.connect("subgraph input", mask, "cells");
  const user = root.addSubgraph(used, { inputs: ["cells"] });
  assert.equal(origin(mask, "cells").node, user); // nothing connected outside yet
  root.connect(maker, user, "cells");
  assert.equal(origin(mask, "cells").node, encode);
  assert.equal(maskParameters(mask, never).values.width, 768);
});

test("an input promoted to a subgraph's node has the value of the widget there", () => {
  const root = new Graph();
  const inner = new Graph(root);
  const encode = encodeIn(inner);
  inner.connect("subgraph input", encode, "width");
  root.addSubgraph(inner, { inputs: ["width"], widgets: { width: 512 } });
  assert.equal(constant(origin(encode, "width")), 512);
  assert.equal(inputValue(encode, "width"), 512);
});

test("equal parameters give equal queries", () => {
  assert.equal(queryString({ width: 8, hex_res: "auto" }), "width=8&hex_res=auto");
  assert.equal(queryString({ width: 8 }, { select: "x<50%" }), "width=8&select=x%3C50%25");
});
