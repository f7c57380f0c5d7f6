import assert from "node:assert/strict";
import { test } from "node:test";

import { terms, toggleSelect } from "../../web/js/select_text.mjs";

const A = "84754a9ffffffff", B = "84754abffffffff", C = "84754adffffffff";

test("terms are split at top-level or and commas", () => {
  assert.deepEqual(terms(`ring<=1 or ${A}, ${B}`), ["ring<=1", A, B]);
  assert.deepEqual(terms("(row 0 or row 2) and not x<50%"), ["(row 0 or row 2) and not x<50%"]);
  assert.deepEqual(terms("colour 1 OR border,"), ["colour 1", "border"]);
  assert.deepEqual(terms("  \n "), []);
});

test("a polygon keeps its commas", () => {
  const polygon = "polygon 10,10 200.5,40 120,200";
  assert.deepEqual(terms(`${polygon}, ${A}`), [polygon, A]);
  assert.deepEqual(terms(`${polygon} or ring 0`), [polygon, "ring 0"]);
  const spaced = "polygon -5, 10  20 , 40 1,2";
  assert.deepEqual(terms(`${spaced},row 3`), [spaced, "row 3"]);
});

test("a cell that is not chosen is added", () => {
  assert.equal(toggleSelect("ring<=1", A, false), `ring<=1 or ${A}`);
  assert.equal(toggleSelect("", A, false), A);
  assert.equal(toggleSelect("none", A, false), A);
  assert.equal(toggleSelect(`row 0 and x<50%`, A, false), `row 0 and x<50% or ${A}`);
});

test("a cell that is named is taken out", () => {
  assert.equal(toggleSelect(`ring<=1 or ${A}`, A, true), "ring<=1");
  assert.equal(toggleSelect(`${A}, ${B}`, A, true), B);
  assert.equal(toggleSelect(A.toUpperCase(), A, true), "none");
});

test("a cell that a rule chooses is excluded, before single cells", () => {
  assert.equal(toggleSelect("ring<=1", A, true), `ring<=1 and not ${A}`);
  assert.equal(toggleSelect("ring<=1 or row 0", A, true), `(ring<=1 or row 0) and not ${A}`);
  assert.equal(toggleSelect(`ring<=1 or ${B}`, A, true), `ring<=1 and not ${A} or ${B}`);
});

test("an exclusion is undone by the next click", () => {
  for (const start of ["ring<=1", "ring<=1 or row 0", `ring<=1 or ${B}`, "all"]) {
    assert.equal(toggleSelect(toggleSelect(start, A, true), A, false), start);
  }
  const two = toggleSelect(toggleSelect("all", A, true), B, true);
  assert.equal(two, `all and not ${A} and not ${B}`);
  assert.equal(toggleSelect(two, A, false), `all and not ${B}`);
});

test("an addition is undone by the next click", () => {
  for (const start of ["ring<=1", "none", `${B} or ${C}`, "(row 0 or row 1) and x<50%"]) {
    assert.equal(toggleSelect(toggleSelect(start, A, false), A, true), start);
  }
});

test("ids are compared whole", () => {
  assert.equal(toggleSelect(`all and not ${A}`, B, false), `all and not ${A} or ${B}`);
});
