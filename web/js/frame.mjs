// Arithmetic of the drawing. Pure: no page, no ComfyUI. Cells and rings come from the server.

/** Weight of every cell as H3GridEncode's mask has it: 1 at the focus, 1 - falloff farthest out. */
export function ringWeights(grid, falloff) {
  const farthest = Math.max(1, ...grid.cells.map((cell) => cell.ring));
  return grid.cells.map((cell) => 1 - (falloff * cell.ring) / farthest);
}

/** The CSS colour of a weight 0..1: a mask's grey. */
export function grey(weight) {
  const level = Math.round(255 * Math.min(1, Math.max(0, weight)));
  return `rgb(${level},${level},${level})`;
}

/**
 * Where a point of the screen lies in the frame, as shares [x, y] of its sides; null beside it.
 *
 * box     the drawing's rectangle on the screen {left, top, width, height}; the frame is as large
 *         as fits into it, centred
 */
export function frameShare(box, frame, clientX, clientY) {
  const scale = Math.min(box.width / frame.width, box.height / frame.height);
  const left = box.left + (box.width - frame.width * scale) / 2;
  const top = box.top + (box.height - frame.height * scale) / 2;
  const share = [
    (clientX - left) / (frame.width * scale),
    (clientY - top) / (frame.height * scale),
  ];
  return share.every((s) => s >= 0 && s <= 1) ? share : null;
}

/** A share in the steps of the focus widgets. */
export function rounded(share) {
  return Math.round(share * 1000) / 1000;
}
