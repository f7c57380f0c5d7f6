import assert from "node:assert/strict";
import { test } from "node:test";

import { frameShare, grey, ringWeights, rounded } from "../../web/js/frame.mjs";

const grid = (...rings) => ({ cells: rings.map((ring) => ({ ring })) });

test("weights fall by ring, as GridCells.attention says", () => {
  assert.deepEqual(ringWeights(grid(0, 1, 2), 0.5), [1, 0.75, 0.5]);
  assert.deepEqual(ringWeights(grid(0, 1, 2), 0), [1, 1, 1]);
  assert.deepEqual(ringWeights(grid(0), 1), [1]);
});

test("grey is the mask's level", () => {
  assert.equal(grey(1), "rgb(255,255,255)");
  assert.equal(grey(0.25), "rgb(64,64,64)");
  assert.equal(grey(-1), "rgb(0,0,0)");
});

test("a point on the screen becomes a share of the frame", () => {
  const frame = { width: 1000, height: 500 };
  const box = { left: 10, top: 20, width: 200, height: 300 }; // the frame: 200 x 100, 100 px down
  assert.deepEqual(frameShare(box, frame, 10, 120), [0, 0]);
  assert.deepEqual(frameShare(box, frame, 110, 170), [0.5, 0.5]);
  assert.deepEqual(frameShare(box, frame, 210, 220), [1, 1]);
  assert.equal(frameShare(box, frame, 110, 100), null); // in the bar above the frame
  assert.equal(frameShare(box, frame, 5, 170), null);
});

test("the screen's zoom does not matter", () => {
  const box = { left: 0, top: 0, width: 50, height: 25 };
  assert.deepEqual(frameShare(box, { width: 1000, height: 500 }, 25, 5), [0.5, 0.2]);
});

test("shares are rounded to the widget's step", () => assert.equal(rounded(1 / 3), 0.333));
