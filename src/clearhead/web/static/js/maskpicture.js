// @ts-check
/** A mask as a matrix between its tokens: what may be seen is filled and has a dot, what is hidden is hatched, padding is crossed. */
import { pixels, themeOf } from "clearhead/colours.js";
import { draw } from "clearhead/dom.js";
import { HeadPicture } from "clearhead/headpicture.js";

/** Where on the scale of colours the states are drawn: hidden, seen, padding. */
const BYTES = [0, 165, 52];
/** From how many pixels on a cell has a sign. */
const SIGNED = 13;
/** How far the lines over padding are from each other. */
const MESH = 8;

export class MaskPicture extends HeadPicture {
  /** @param {string} label @param {import("clearhead/headpicture.js").Hands} hands */
  constructor(label, hands) {
    super(label, hands);
    /** @type {Uint8Array} */
    this.states = new Uint8Array();
    const { moved } = this.matrix.hands;
    this.matrix.hands.moved = () => {
      this.signs();
      moved();
    };
  }

  /**
   * @param {Uint8Array} states 0 hidden, 1 seen, 2 padding, row by row
   * @param {Omit<import("clearhead/headpicture.js").Drawn, "field"> & {rows: number, columns: number}} drawn
   * @param {number} width of everything
   */
  showMask(states, { rows, columns, ...drawn }, width) {
    this.states = states;
    const values = Uint8Array.from(states, (state) => BYTES[state] ?? 0);
    this.show({ ...drawn, field: { values, rows, columns, seen: states.map((state) => Number(state === 1)) } }, width);
  }

  /** Draws what tells the states apart without colours. */
  signs() {
    const context = this.matrix.below.getContext("2d");
    if (!context || !this.drawn) return;
    const { matrix, states } = this;
    const { rows, columns } = this.drawn.field;
    const { size, x, y } = matrix;
    const [ink, paper] = [getComputedStyle(matrix.element).color, getComputedStyle(document.body).backgroundColor];
    const seen = (/** @type {number} */ from, /** @type {number} */ length, /** @type {number} */ count) =>
      [Math.max(0, Math.floor(-from / size)), Math.min(count, Math.ceil((length - from) / size))];
    const [[top, bottom], [left, right]] = [seen(y, matrix.height, rows), seen(x, matrix.width, columns)];
    const [crossed, dots] = [new Path2D(), new Path2D()];
    const radius = Math.min(4, size * 0.15);
    for (let row = top; row < bottom; row++) {
      for (let column = left; column < right; column++) {
        const state = states[row * columns + column];
        const [middle, level] = [x + (column + 0.5) * size, y + (row + 0.5) * size];
        if (state === 2) crossed.rect(x + column * size, y + row * size, size, size);
        else if (state === 1 && size >= SIGNED) {
          dots.moveTo(middle + radius, level);
          dots.arc(middle, level, radius, 0, 2 * Math.PI);
        }
      }
    }
    context.save();
    context.fillStyle = colourOf(2, matrix.element);
    context.fill(crossed);
    context.fillStyle = mesh(context, ink) ?? ink;
    context.globalAlpha = 0.6;
    context.fill(crossed);
    context.globalAlpha = 0.95;
    context.fillStyle = paper;
    context.fill(dots);
    context.restore();
  }
}

/** Lines that slant both ways. @param {CanvasRenderingContext2D} context @param {string} ink */
function mesh(context, ink) {
  const tile = document.createElement("canvas");
  tile.width = tile.height = MESH;
  const lines = tile.getContext("2d");
  if (!lines) return null;
  lines.strokeStyle = ink;
  lines.beginPath();
  for (const [from, to] of [[0, MESH], [MESH, 0]]) {
    lines.moveTo(0, from);
    lines.lineTo(MESH, to);
  }
  lines.stroke();
  return context.createPattern(tile, "repeat");
}

/** @param {number} state @param {Element} near tells the theme */
function colourOf(state, near) {
  const [red, green, blue] = new Uint8Array(Uint32Array.of(pixels(themeOf(near))[BYTES[state] ?? 0]).buffer);
  return `rgb(${red} ${green} ${blue})`;
}

/** The signs of the states in a square of 20. */
const SIGNS = [
  "M0 6L6 0M0 12L12 0M0 18L18 0M4 20L20 4M10 20L20 10M16 20L20 16",
  "M13 10a3 3 0 1 1-6 0a3 3 0 1 1 6 0",
  "M0 0L20 20M0 20L20 0M0 10L10 0L20 10L10 20Z",
];

/** One cell as the matrix draws it, for the legend. @param {number} state @param {Element} near tells the theme */
export function sample(state, near) {
  return draw("svg", { class: "sample", width: 20, height: 20, viewBox: "0 0 20 20", "aria-hidden": "true" },
    draw("rect", { width: 20, height: 20, fill: colourOf(state, near) }), draw("path", { d: SIGNS[state], class: `sample-${state}` }));
}
