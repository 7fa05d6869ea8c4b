// @ts-check
/** What a cache holds, as a picture: a row a layer, the block of the prompt on the left, then a column for each token that was written. */
import { Axis, widthOf } from "clearhead/axis.js";
import { pixels, themeOf } from "clearhead/colours.js";
import { draw, make } from "clearhead/dom.js";
import { hatching } from "clearhead/hatch.js";

/**
 * @typedef {object} Kept what is shown
 * @property {Uint8Array} values row by row
 * @property {number} layers
 * @property {number} prefill tokens of the prompt
 * @property {number} made columns that there are behind them
 * @property {number} shown columns that are there at this step
 * @property {string[]} labels of all tokens
 * @property {(layer: number) => number} first the first column that this step reads in a layer
 * @property {number} gone how many columns are not kept any more
 * @property {[string, string]} brackets what stands above the two parts
 */

/**
 * @typedef {object} Hands
 * @property {(layer: number, column: number, x: number, y: number) => void} hover
 * @property {() => void} leave
 * @property {(steps: number) => void} choose
 */

const GAP = 10;
/** Pixels of a column: the most, and the least where it was written. */
const [WIDE, NARROW] = [30, 11];
const [TALLEST, LOW, HIGH] = [340, 5, 32];
/** How far a slanted label goes to the right, a pixel of its length; how much larger a bracket's letters are; what is left beside them. */
const [SLANT, LARGER, ASIDE] = [0.58, 1.09, 14];

export class CachePicture {
  /** @param {string} label for screen readers @param {Hands} hands */
  constructor(label, hands) {
    this.hands = hands;
    this.left = new Axis("left");
    this.axes = [new Axis("top"), new Axis("top")];
    this.brackets = [make("span", { class: "bracket bracket-0" }), make("span", { class: "bracket bracket-1" })];
    this.canvas = make("canvas", { tabindex: 0, role: "img", "aria-label": label });
    this.reads = draw("svg", { class: "cache-reads", "aria-hidden": "true", height: 14 });
    /** What the brackets say where they are too narrow to say it. */
    this.names = make("p", { class: "bracket-names quiet" });
    this.element = make("div", { class: "cache-picture" });
    const above = this.axes.map(({ element }) => element);
    this.element.append(this.names, make("span"), ...this.brackets, make("span"), ...above, this.left.element, this.canvas, make("span"), this.reads);
    /** @type {Kept | null} */
    this.kept = null;
    /** Pixels of a column of the prompt and of a written one, where the written ones begin, and how high a row is. */
    this.sizes = { block: 1, column: 1, start: 0, row: 1 };
    this.canvas.addEventListener("pointermove", (event) => {
      const { layer, column } = this.at(event.offsetX, event.offsetY);
      const { prefill = 0, shown = 0 } = this.kept ?? {};
      if (column >= 0 && column < prefill + shown) hands.hover(layer, column, event.clientX, event.clientY);
      else hands.leave();
    });
    this.canvas.addEventListener("pointerleave", hands.leave);
    this.canvas.addEventListener("click", (event) => {
      const { column } = this.at(event.offsetX, event.offsetY);
      if (this.kept && column >= 0) hands.choose(Math.max(0, Math.min(this.kept.made, column - this.kept.prefill + 1)));
    });
  }

  /** The cell at a point; -1 where there is no column. @param {number} x @param {number} y */
  at(x, y) {
    const { block, column, start, row } = this.sizes;
    const { prefill = 0, made = 0, layers = 1 } = this.kept ?? {};
    const written = x >= start ? Math.floor((x - start) / column) : -1;
    const found = x < prefill * block ? Math.floor(x / block) : written >= 0 && written < made ? prefill + written : -1;
    return { layer: Math.min(layers - 1, Math.max(0, Math.floor(y / row))), column: found };
  }

  /** @param {Kept} kept @param {number} width of everything */
  show(kept, width) {
    this.kept = kept;
    const { prefill, made, layers, labels, shown, brackets } = kept;
    const names = Array.from({ length: layers }, (_, layer) => String(layer));
    const left = this.left.room(names, 1);
    this.sizes = sizesOf(kept, width - left);
    const { block, column, row } = this.sizes;
    const parts = [{ size: block, count: prefill, first: 0 }, { size: column, count: made, first: prefill }];
    const wide = parts.map(({ size, count }) => Math.round(size * count));
    this.element.style.gridTemplateColumns = `${left}px ${wide[0]}px ${wide[1]}px`;
    this.element.style.columnGap = "0";
    const across = Math.max(...parts.map(({ size, count, first }, side) => this.axes[side].room(labels.slice(first, first + count), size)));
    parts.forEach(({ size, count, first }, side) => {
      const [axis, bracket] = [this.axes[side], this.brackets[side]];
      axis.draw((cell) => labels[first + cell] ?? "", { size, start: 0, length: wide[side], count }, across, side && shown ? [shown - 1] : []);
      axis.element.style.marginLeft = bracket.style.marginLeft = side ? `${GAP}px` : "0";
      bracket.title = brackets[side];
      bracket.style.width = `${wide[side]}px`;
      bracket.classList.toggle("empty", !count);
    });
    // Words that are cut say nothing: then both stand above, and the brackets have their colours alone.
    const fits = brackets.every((text, side) => !parts[side].count || LARGER * widthOf(text) + ASIDE <= wide[side]);
    this.brackets.forEach((bracket, side) => (bracket.textContent = fits ? brackets[side] : ""));
    this.names.replaceChildren(...(fits ? [] : brackets.filter((_, side) => parts[side].count).map((text, side) =>
      make("span", {}, make("i", { class: `swatch bracket-colour-${side}` }), text))));
    this.left.draw((cell) => names[cell], { size: row, start: 0, length: layers * row, count: layers }, left, []);
    const [across2, high] = [Math.round(this.sizes.start + wide[1]), Math.round(layers * row)];
    this.canvas.width = Math.round(across2 * devicePixelRatio);
    this.canvas.height = Math.round(high * devicePixelRatio);
    this.canvas.style.width = `${across2}px`;
    this.canvas.style.height = `${high}px`;
    this.paint(kept, high);
    this.reading(kept, across2);
  }

  /** Where a column begins. @param {number} column */
  x(column) {
    const { block, column: wide, start } = this.sizes;
    const { prefill } = /** @type {Kept} */ (this.kept);
    return column < prefill ? column * block : start + (column - prefill) * wide;
  }

  /** @param {Kept} kept @param {number} high */
  paint(kept, high) {
    const context = this.canvas.getContext("2d");
    if (!context) return;
    const { prefill, made, shown, layers, first } = kept;
    const { block, column, row, start } = this.sizes;
    const style = getComputedStyle(this.canvas);
    const colour = (/** @type {string} */ name) => style.getPropertyValue(name).trim();
    context.setTransform(devicePixelRatio, 0, 0, devicePixelRatio, 0, 0);
    context.imageSmoothingEnabled = false;
    context.drawImage(pictureOf(kept, 0, prefill, Math.ceil(prefill * block * devicePixelRatio), this.canvas), 0, 0, prefill * block, high);
    if (shown) context.drawImage(pictureOf(kept, prefill, shown, Infinity, this.canvas), start, 0, shown * column, high);
    // What this step may not read any more, beyond a window, is faint.
    context.fillStyle = colour("--card");
    context.globalAlpha = 0.78;
    for (let layer = 0; layer < layers; layer++) {
      if (shown && first(layer) > 0) context.fillRect(0, layer * row, this.x(first(layer)) - (first(layer) === prefill ? GAP : 0), row);
    }
    context.globalAlpha = 1;
    // Thin lines keep cells apart.
    if (Math.min(row, column) >= 7) {
      const end = this.x(prefill + shown - 1) + column;
      for (let layer = 1; layer < layers; layer++) context.fillRect(0, Math.round(layer * row) - 0.5, end, 1);
      for (let cell = 1; cell < prefill + shown; cell++) {
        if (cell > prefill || block >= 7) context.fillRect(Math.round(this.x(cell)) - 0.5, 0, 1, high);
      }
    }
    this.lose(context, kept, high);
    context.strokeStyle = colour("--line");
    context.setLineDash([3, 3]);
    context.lineWidth = 1;
    for (let cell = shown; cell < made; cell++) context.strokeRect(start + cell * column + 1.5, 1.5, column - 3, high - 3);
    context.setLineDash([]);
    context.strokeStyle = colour("--mark");
    context.lineWidth = 2.5;
    if (shown) context.strokeRect(start + (shown - 1) * column + 1, 1, column - 2, high - 2);
    else context.strokeRect(1, 1, Math.max(1, prefill * block - 2), high - 2);
  }

  /** Lines over the columns that are not kept any more. @param {CanvasRenderingContext2D} context @param {Kept} kept @param {number} high */
  lose(context, { prefill, gone }, high) {
    const pattern = gone && hatching(context, this.canvas);
    if (!pattern) return;
    const { block, column, start } = this.sizes;
    context.save();
    // In pixels of the screen, as the lines of a matrix.
    context.setTransform(1, 0, 0, 1, 0, 0);
    context.fillStyle = pattern;
    const fill = (/** @type {number} */ from, /** @type {number} */ long) => {
      const [left, right] = [from, from + long].map((x) => Math.round(x * devicePixelRatio));
      context.clearRect(left, 0, right - left, Math.round(high * devicePixelRatio));
      context.fillRect(left, 0, right - left, Math.round(high * devicePixelRatio));
    };
    fill(0, Math.min(gone, prefill) * block);
    if (gone > prefill) fill(start, (gone - prefill) * column);
    context.restore();
  }

  /** A line under the columns that the new query reads, with an arrow at the new one. @param {Kept} kept @param {number} width */
  reading({ prefill, shown, layers, first }, width) {
    this.reads.setAttribute("width", String(width));
    const least = Math.min(...Array.from({ length: layers }, (_, layer) => first(layer)));
    const last = prefill + Math.max(1, shown) - 1;
    const [from, to] = shown ? [this.x(least), this.x(last) + this.sizes.column] : [0, prefill * this.sizes.block];
    this.reads.replaceChildren(draw("path", { d: `M${(from + 1).toFixed(1)} 2v6H${(to - 1).toFixed(1)}V2`, class: "reads-line" }));
  }
}

/** How wide columns are and how high rows, so that the last label ends where the room does. @param {Kept} kept @param {number} room */
function sizesOf({ prefill, made, layers, labels }, room) {
  const count = prefill + made;
  const sizes = (/** @type {number} */ free) => {
    const even = Math.min(WIDE, free / count);
    // A long prompt is pressed together, so that the columns that follow can be told apart; where all is narrow, both parts share.
    const column = Math.max(even, Math.min(NARROW, free / 2 / Math.max(1, made)));
    const block = Math.min(even, (free - made * column) / prefill);
    return { block, column, start: prefill * block + GAP, row: Math.max(LOW, Math.min(HIGH, TALLEST / layers)) };
  };
  const free = room - (made ? GAP : 0);
  const wide = sizes(free);
  // A slanted label begins in the middle of its column; what goes over the end of the last column is taken off the columns.
  const over = labels.slice(0, count).map((label, cell) => {
    const size = cell < prefill ? wide.block : wide.column;
    const behind = Math.min(count - cell, made) * wide.column + Math.max(0, prefill - cell) * wide.block;
    return widthOf(label) <= size - 2 ? 0 : SLANT * widthOf(label) + ASIDE / 2 + size / 2 - behind;
  });
  const taken = Math.min(free / 4, Math.max(0, wide.start - GAP + made * wide.column + (made ? GAP : 0) + Math.max(0, ...over) - room));
  return taken > 0 ? sizes(free - taken) : wide;
}

/**
 * Some columns as pixels, by the largest where several share one.
 * @param {Kept} kept
 * @param {number} first
 * @param {number} count
 * @param {number} most
 * @param {HTMLElement} element
 */
function pictureOf({ values, layers, prefill, made }, first, count, most, element) {
  const columns = prefill + made;
  const wide = Math.max(1, Math.min(count, most));
  const largest = new Uint8Array(layers * wide);
  for (let layer = 0; layer < layers; layer++) {
    for (let cell = 0; cell < count; cell++) {
      const place = layer * wide + Math.floor((cell * wide) / count);
      largest[place] = Math.max(largest[place], values[layer * columns + first + cell]);
    }
  }
  const table = pixels(themeOf(element));
  const drawn = Uint32Array.from(largest, (value) => table[value]);
  const picture = make("canvas", { width: wide, height: layers });
  picture.getContext("2d")?.putImageData(new ImageData(new Uint8ClampedArray(drawn.buffer), wide, layers), 0, 0);
  return picture;
}
