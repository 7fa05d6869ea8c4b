// @ts-check
/**
 * A matrix of bytes, drawn along the scale of colours, on a canvas that can be zoomed and moved, with a cell chosen and one under the pointer.
 *
 * The numbers are painted once, a pixel a cell; what is seen is that picture, enlarged without smoothing. What follows the pointer is drawn
 * on a second canvas above it, and the cell under the pointer comes from a division, so that moving costs the same for any matrix.
 */
import { pixels, themeOf } from "clearhead/colours.js";
import { hatch } from "clearhead/hatch.js";

/**
 * @typedef {object} Field what is drawn
 * @property {Uint8Array} values row by row
 * @property {number} rows
 * @property {number} columns
 * @property {import("clearhead/hatch.js").Seen | null} [seen] what may be looked at; all of it where this is left out
 */

/**
 * @typedef {object} Hands what a person does
 * @property {(row: number, column: number, x: number, y: number) => void} hover a cell, and where the pointer is in the window
 * @property {() => void} leave
 * @property {(row: number, column: number) => void} choose
 * @property {() => void} moved another piece is seen
 */

/** @typedef {{row: number, column: number}} Cell */

const LARGEST_CELL = 44;
const CLOSEST = 64;
const STEP = 1.3;
/** From how many pixels on cells are kept apart by a thin line. */
const APART = 9;

export class Matrix {
  /** @param {string} label for screen readers @param {Hands} hands */
  constructor(label, hands) {
    this.hands = hands;
    this.element = document.createElement("div");
    this.element.className = "matrix";
    this.below = document.createElement("canvas");
    this.above = document.createElement("canvas");
    this.above.tabIndex = 0;
    this.above.setAttribute("role", "img");
    this.above.setAttribute("aria-label", label);
    this.element.append(this.below, this.above);
    this.picture = document.createElement("canvas");
    /** @type {Field} */
    this.field = { values: new Uint8Array(1), rows: 1, columns: 1 };
    /** Pixels a cell when all is seen; how much closer it is looked at; where the first cell begins. */
    this.fit = 1;
    this.zoom = 1;
    this.x = 0;
    this.y = 0;
    this.width = 1;
    this.height = 1;
    this.ink = "";
    /** @type {Cell | null} */
    this.chosen = null;
    /** @type {Cell | null} */
    this.under = null;
    /** The longest that following the pointer took, in milliseconds. */
    this.slowest = 0;
    listen(this);
  }

  /** Pixels a cell. */
  get size() {
    return this.fit * this.zoom;
  }

  /** Shows a field in a given room. @param {Field} field @param {number} width @param {number} height at most */
  show(field, width, height) {
    const same = field.rows === this.field.rows && field.columns === this.field.columns;
    this.field = field;
    if (!same) {
      this.zoom = 1;
      this.x = this.y = 0;
    }
    this.resize(width, height);
  }

  /** @param {number} width @param {number} height at most */
  resize(width, height) {
    const { rows, columns } = this.field;
    this.fit = Math.max(0.05, Math.min(width / columns, height / rows, LARGEST_CELL));
    this.width = Math.max(1, Math.round(columns * this.fit));
    this.height = Math.max(1, Math.round(rows * this.fit));
    for (const canvas of [this.below, this.above]) {
      canvas.width = Math.round(this.width * devicePixelRatio);
      canvas.height = Math.round(this.height * devicePixelRatio);
      canvas.style.width = `${this.width}px`;
      canvas.style.height = `${this.height}px`;
    }
    this.element.style.width = `${this.width}px`;
    this.element.style.height = `${this.height}px`;
    this.paint();
    this.keepWithin();
    this.draw();
  }

  /** The numbers as pixels; by the largest of a field where a pixel of the screen has several, for a thin line must not vanish. */
  paint() {
    const { values, rows, columns } = this.field;
    const several = Math.max(1, Math.ceil(0.999 / (this.fit * devicePixelRatio)));
    const [high, wide] = [Math.ceil(rows / several), Math.ceil(columns / several)];
    const table = pixels(themeOf(this.element));
    const drawn = new Uint32Array(high * wide);
    if (several === 1) for (let place = 0; place < drawn.length; place++) drawn[place] = table[values[place]];
    else {
      const largest = new Uint8Array(high * wide);
      for (let row = 0; row < rows; row++) {
        const start = Math.floor(row / several) * wide;
        for (let column = 0; column < columns; column++) {
          const place = start + Math.floor(column / several);
          if (values[row * columns + column] > largest[place]) largest[place] = values[row * columns + column];
        }
      }
      for (let place = 0; place < drawn.length; place++) drawn[place] = table[largest[place]];
    }
    this.picture.width = wide;
    this.picture.height = high;
    this.picture.getContext("2d")?.putImageData(new ImageData(new Uint8ClampedArray(drawn.buffer), wide, high), 0, 0);
  }

  keepWithin() {
    const { rows, columns } = this.field;
    this.x = Math.min(0, Math.max(this.width - columns * this.size, this.x));
    this.y = Math.min(0, Math.max(this.height - rows * this.size, this.y));
    this.above.style.touchAction = this.zoom > 1 ? "none" : "pan-x pan-y";
  }

  draw() {
    const context = this.below.getContext("2d");
    if (!context) return;
    const { rows, columns } = this.field;
    const size = this.size;
    context.setTransform(devicePixelRatio, 0, 0, devicePixelRatio, 0, 0);
    context.clearRect(0, 0, this.width, this.height);
    context.imageSmoothingEnabled = false;
    context.drawImage(this.picture, this.x, this.y, columns * size, rows * size);
    hatch(context, this);
    if (size >= APART) {
      context.globalAlpha = 0.07;
      context.fillStyle = getComputedStyle(this.element).color;
      for (let column = Math.floor(-this.x / size); column * size + this.x <= this.width; column++) {
        context.fillRect(Math.round(column * size + this.x), 0, 1, this.height);
      }
      for (let row = Math.floor(-this.y / size); row * size + this.y <= this.height; row++) {
        context.fillRect(0, Math.round(row * size + this.y), this.width, 1);
      }
      context.globalAlpha = 1;
    }
    this.ink = getComputedStyle(this.above).color;
    this.mark();
    this.hands.moved();
  }

  /** Draws the chosen cell, with its row and column, and the cell under the pointer. */
  mark() {
    const context = this.above.getContext("2d");
    if (!context) return;
    const size = this.size;
    const side = Math.max(size, 3);
    context.setTransform(devicePixelRatio, 0, 0, devicePixelRatio, 0, 0);
    context.clearRect(0, 0, this.width, this.height);
    context.strokeStyle = this.ink;
    if (this.chosen) {
      const [x, y] = [this.chosen.column * size + this.x, this.chosen.row * size + this.y];
      context.fillStyle = context.strokeStyle;
      context.globalAlpha = 0.55;
      for (const edge of [y - 1, y + side]) context.fillRect(0, edge, this.width, 1);
      for (const edge of [x - 1, x + side]) context.fillRect(edge, 0, 1, this.height);
      context.globalAlpha = 1;
      context.lineWidth = 2;
      const within = size >= 8 ? 1 : -1; // a large cell has its frame inside, where the edge of the matrix does not cut it
      context.strokeRect(x + within, y + within, side - 2 * within, side - 2 * within);
    }
    if (this.under) {
      context.lineWidth = 1.5;
      context.strokeRect(this.under.column * size + this.x - 0.5, this.under.row * size + this.y - 0.5, side + 1, side + 1);
    }
  }

  /** Chooses a cell and brings it into sight. @param {number} row @param {number} column */
  choose(row, column) {
    this.chosen = { row, column };
    const size = this.size;
    const [left, top] = [column * size, row * size];
    const before = [this.x, this.y];
    this.x = Math.min(-left + this.width - size, Math.max(-left, this.x));
    this.y = Math.min(-top + this.height - size, Math.max(-top, this.y));
    this.keepWithin();
    if (before[0] !== this.x || before[1] !== this.y) this.draw();
    else this.mark();
  }

  /** Looks closer or from farther away; the point stays where it is. @param {number} factor @param {number} [x] @param {number} [y] */
  closer(factor, x = this.width / 2, y = this.height / 2) {
    const before = this.size;
    this.zoom = Math.min(Math.max(1, CLOSEST / this.fit), Math.max(1, this.zoom * factor));
    const ratio = this.size / before;
    this.x = x - (x - this.x) * ratio;
    this.y = y - (y - this.y) * ratio;
    this.keepWithin();
    this.draw();
  }

  /** Moves what is seen. @param {number} x in pixels @param {number} y */
  move(x, y) {
    this.x += x;
    this.y += y;
    this.keepWithin();
    this.draw();
  }

  /** The cell at a point of the canvas, or null beside it. @param {number} x @param {number} y @returns {Cell | null} */
  at(x, y) {
    const [row, column] = [Math.floor((y - this.y) / this.size), Math.floor((x - this.x) / this.size)];
    return row >= 0 && column >= 0 && row < this.field.rows && column < this.field.columns ? { row, column } : null;
  }

  /** What a key does here: closer, farther, all of it. @param {KeyboardEvent} event @returns {boolean} whether it did */
  key(event) {
    if (event.ctrlKey || event.metaKey || event.altKey) return false;
    if (event.key === "+" || event.key === "=") this.closer(STEP, ...this.middle());
    else if (event.key === "-") this.closer(1 / STEP, ...this.middle());
    else if (event.key === "0") this.closer(0);
    else return false;
    return true;
  }

  /** Where the chosen cell is, or the middle. @returns {[number, number]} */
  middle() {
    if (!this.chosen) return [this.width / 2, this.height / 2];
    return [(this.chosen.column + 0.5) * this.size + this.x, (this.chosen.row + 0.5) * this.size + this.y];
  }
}

/** Pointer, wheel and fingers. @param {Matrix} matrix */
function listen(matrix) {
  const canvas = matrix.above;
  /** @type {Map<number, {x: number, y: number}>} */
  const down = new Map();
  let dragged = false;
  canvas.addEventListener("pointerdown", (event) => {
    down.set(event.pointerId, { x: event.offsetX, y: event.offsetY });
    if (down.size === 1) dragged = false;
  });
  canvas.addEventListener("pointermove", (event) => {
    const before = down.get(event.pointerId);
    if (before) {
      const others = [...down].filter(([id]) => id !== event.pointerId).map(([, point]) => point);
      const [x, y] = [event.offsetX - before.x, event.offsetY - before.y];
      if (!dragged && Math.hypot(x, y) < 4) return;
      dragged = true;
      canvas.setPointerCapture(event.pointerId);
      down.set(event.pointerId, { x: event.offsetX, y: event.offsetY });
      if (others.length) {
        const [other] = others;
        const far = (/** @type {{x: number, y: number}} */ point) => Math.max(1, Math.hypot(point.x - other.x, point.y - other.y));
        matrix.closer(far({ x: event.offsetX, y: event.offsetY }) / far(before), (other.x + event.offsetX) / 2, (other.y + event.offsetY) / 2);
      } else matrix.move(x, y);
      return;
    }
    const start = performance.now();
    const found = matrix.at(event.offsetX, event.offsetY);
    if (found?.row !== matrix.under?.row || found?.column !== matrix.under?.column) {
      matrix.under = found;
      matrix.mark();
    }
    if (matrix.under) matrix.hands.hover(matrix.under.row, matrix.under.column, event.clientX, event.clientY);
    else matrix.hands.leave();
    matrix.slowest = Math.max(matrix.slowest, performance.now() - start);
    canvas.dataset.slowestHover = matrix.slowest.toFixed(2);
  });
  const up = (/** @type {PointerEvent} */ event) => {
    const found = down.delete(event.pointerId) && !dragged && event.type === "pointerup" && matrix.at(event.offsetX, event.offsetY);
    if (found) matrix.hands.choose(found.row, found.column);
  };
  canvas.addEventListener("pointerup", up);
  canvas.addEventListener("pointercancel", up);
  canvas.addEventListener("pointerleave", () => {
    matrix.under = null;
    matrix.mark();
    matrix.hands.leave();
  });
  canvas.addEventListener("wheel", (event) => {
    // The wheel belongs to the page until the person has turned to this matrix, by the focus or with the key that zooms everywhere.
    if (!event.ctrlKey && !event.metaKey && document.activeElement !== canvas) return;
    if (event.deltaY > 0 && matrix.zoom === 1) return;
    event.preventDefault();
    matrix.closer(STEP ** (-event.deltaY / 100), event.offsetX, event.offsetY);
  }, { passive: false });
}
