// @ts-check
/** The tokens along an edge of a matrix, as SVG: thinned where they are dense, level where there is room, else slanted. */
import { draw } from "clearhead/dom.js";

const LINE = 14;
const GAP = 6;

/** @type {Map<string, number>} */
const measured = new Map();
/** @type {CanvasRenderingContext2D | null} */
let ruler = null;

/** How wide a label is, about. @param {string} label */
export function widthOf(label) {
  ruler ??= document.createElement("canvas").getContext("2d");
  let width = measured.get(label);
  if (width === undefined) {
    if (ruler) ruler.font = `12px ${getComputedStyle(document.body).fontFamily}`;
    width = ruler?.measureText(label).width ?? label.length * 7;
    measured.set(label, width);
  }
  return width;
}

/**
 * @typedef {object} Along where the cells are
 * @property {number} size pixels a cell
 * @property {number} start of the first cell, in pixels of the axis
 * @property {number} length of the axis in pixels
 * @property {number} count of cells
 */

export class Axis {
  /** @param {"top" | "left"} side */
  constructor(side) {
    this.side = side;
    this.element = draw("svg", { class: `axis axis-${side}`, "aria-hidden": "true" });
    this.marks = draw("g");
    /** @type {{cell: number, text: Element}[]} */
    this.named = [];
    this.seen = { first: 0, last: 0, near: 1 };
    /** Makes the label of a cell. @type {(cell: number, name: string) => SVGElement} */
    this.text = () => draw("text");
  }

  /** How much room labels want beside the matrix. @param {string[]} labels @param {number} size pixels a cell */
  room(labels, size) {
    const widest = Math.max(0, ...sample(labels).map(widthOf));
    if (this.side === "left") return Math.min(150, Math.ceil(widest) + GAP + 4);
    return widest <= size - 2 ? LINE + GAP + 4 : Math.min(110, Math.ceil(widest * 0.82) + LINE + GAP);
  }

  /**
   * Draws the labels.
   *
   * @param {(cell: number) => string} label of a cell
   * @param {Along} along
   * @param {number} across how thick the axis is
   * @param {number[]} marked cells that must be named: the chosen one, the one under the pointer
   */
  draw(label, along, across, marked) {
    const top = this.side === "top";
    const [width, height] = top ? [along.length, across] : [across, along.length];
    this.element.setAttribute("width", String(width));
    this.element.setAttribute("height", String(height));
    const [first, last] = [Math.max(0, Math.floor(-along.start / along.size)), Math.min(along.count, Math.ceil((along.length - along.start) / along.size))];
    const step = steps(LINE / along.size);
    const wide = along.size * step - 2;
    /** @type {number[]} */
    const cells = [];
    for (let cell = Math.ceil(first / step) * step; cell < last; cell += step) cells.push(cell);
    const level = !top || cells.every((cell) => widthOf(label(cell)) <= wide);
    this.text = (cell, name) => {
      const middle = along.start + (cell + 0.5) * along.size;
      const text = draw("text", { class: name, dy: "0.35em" }, label(cell));
      if (!top) place(text, across - GAP, middle, "end");
      else if (level) place(text, middle, across - GAP - 4, "middle");
      else text.setAttribute("transform", `translate(${middle.toFixed(1)} ${across - GAP}) rotate(-55)`);
      return text;
    };
    this.named = cells.map((cell) => ({ cell, text: this.text(cell, "") }));
    this.seen = { first, last, near: Math.ceil(LINE / along.size) };
    this.marks = draw("g");
    this.element.replaceChildren(...this.named.map(({ text }) => text), this.marks);
    this.mark(marked);
  }

  /** Names some cells in bold, in the place of labels that stand too near: all that changes when the pointer moves. @param {number[]} marked */
  mark(marked) {
    const { first, last, near } = this.seen;
    for (const { cell, text } of this.named) {
      const hidden = marked.some((each) => Math.abs(each - cell) < near || each === cell);
      if (hidden !== text.hasAttribute("visibility")) hidden ? text.setAttribute("visibility", "hidden") : text.removeAttribute("visibility");
    }
    this.marks.replaceChildren(...marked.filter((each) => each >= first && each < last).map((each) => this.text(each, "chosen")));
  }
}

/** @param {Element} text @param {number} x @param {number} y @param {string} anchor */
function place(text, x, y, anchor) {
  text.setAttribute("x", x.toFixed(1));
  text.setAttribute("y", y.toFixed(1));
  text.setAttribute("text-anchor", anchor);
}

/** How many cells from label to label: 1, 2, 5, 10, 20 ... @param {number} least */
function steps(least) {
  let step = 1;
  for (const factor of [2, 2.5, 2, 2, 2.5, 2, 2, 2.5, 2, 2, 2.5, 2]) {
    if (step >= least) break;
    step *= factor;
  }
  return Math.round(step);
}

/** Enough labels to know how wide they are. @param {string[]} labels */
function sample(labels) {
  return labels.length <= 600 ? labels : labels.filter((_, place) => place % Math.ceil(labels.length / 600) === 0);
}
