// @ts-check
/** Slanted lines over what may not be looked at, so that a hidden cell is not taken for a weight of 0. */
import { make } from "clearhead/dom.js";

/**
 * Which cells may be looked at: of each row the first and the one behind the last (Float32Array), or a byte a cell (Uint8Array).
 * @typedef {Float32Array | Uint8Array} Seen
 */

/**
 * @typedef {object} Drawn a matrix on its canvas
 * @property {{rows: number, columns: number, seen?: Seen | null}} field
 * @property {number} size pixels a cell
 * @property {number} x where the first cell begins
 * @property {number} y
 * @property {number} width of the canvas
 * @property {number} height
 * @property {HTMLElement} element
 */

/** How far the lines are from each other, in pixels. */
const APART = 6;

/** The cells of a row that are hidden, as stretches: from, and up to. @param {Seen} seen @param {number} row @param {number} columns @returns {[number, number][]} */
export function hidden(seen, row, columns) {
  if (seen instanceof Float32Array) {
    const [first, after] = [seen[2 * row], seen[2 * row + 1]];
    if (after <= first) return [[0, columns]];
    return /** @type {[number, number][]} */ ([[0, first], [after, columns]]).filter(([from, to]) => to > from);
  }
  /** @type {[number, number][]} */
  const stretches = [];
  for (let column = 0; column < columns; column++) {
    if (seen[row * columns + column]) continue;
    const latest = stretches[stretches.length - 1];
    if (latest && latest[1] === column) latest[1]++;
    else stretches.push([column, column + 1]);
  }
  return stretches;
}

/** Whether a cell may be looked at. @param {Seen | null | undefined} seen @param {number} row @param {number} column @param {number} columns */
export function isSeen(seen, row, column, columns) {
  if (!seen) return true;
  return seen instanceof Float32Array ? column >= seen[2 * row] && column < seen[2 * row + 1] : seen[row * columns + column] > 0;
}

/** Draws the lines over the hidden cells that are in sight. @param {CanvasRenderingContext2D} context @param {Drawn} matrix */
export function hatch(context, { field, size, x, y, width, height, element }) {
  if (!field.seen) return;
  const pattern = hatching(context, element);
  if (!pattern) return;
  const scale = devicePixelRatio;
  const [first, last] = [Math.max(0, Math.floor(-y / size)), Math.min(field.rows, Math.ceil((height - y) / size))];
  context.save();
  // In pixels of the screen, so that the lines are as fine wherever the matrix is and however near.
  context.setTransform(1, 0, 0, 1, 0, 0);
  context.beginPath();
  for (let row = first; row < last; row++) {
    const [top, bottom] = [Math.round((y + row * size) * scale), Math.round((y + (row + 1) * size) * scale)];
    for (const [from, to] of hidden(field.seen, row, field.columns)) {
      const [left, right] = [Math.max(0, Math.round((x + from * size) * scale)), Math.min(width * scale, Math.round((x + to * size) * scale))];
      if (right > left) context.rect(left, top, right - left, bottom - top);
    }
  }
  context.fillStyle = pattern;
  context.fill();
  context.restore();
}

/** A small piece of the lines, for a legend. @param {string} text what they stand for */
export function sample(text) {
  const canvas = make("canvas", { width: 28 * devicePixelRatio, height: 14 * devicePixelRatio, "aria-hidden": "true" });
  const box = make("p", { class: "hidden-legend" }, canvas, text);
  requestAnimationFrame(() => {
    const context = canvas.getContext("2d");
    const pattern = context && hatching(context, box);
    if (!context || !pattern) return;
    context.fillStyle = pattern;
    context.fillRect(0, 0, canvas.width, canvas.height);
  });
  return box;
}

/** The pattern, in the ink of an element: a pale ground and a line through it. @param {CanvasRenderingContext2D} context @param {HTMLElement} element */
export function hatching(context, element) {
  const side = Math.round(APART * devicePixelRatio);
  const tile = make("canvas", { width: side, height: side });
  const drawing = tile.getContext("2d");
  if (!drawing) return null;
  const style = getComputedStyle(element);
  drawing.fillStyle = style.getPropertyValue("--paper");
  drawing.fillRect(0, 0, side, side);
  drawing.strokeStyle = style.color;
  drawing.globalAlpha = 0.24;
  drawing.lineWidth = devicePixelRatio;
  drawing.beginPath();
  // Over the corners too, where the tile meets its neighbours.
  for (const shift of [-side, 0, side]) {
    drawing.moveTo(shift - 1, side + 1);
    drawing.lineTo(shift + side + 1, -1);
  }
  drawing.stroke();
  return context.createPattern(tile, "repeat");
}
