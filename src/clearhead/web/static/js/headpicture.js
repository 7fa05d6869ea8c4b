// @ts-check
/** One head as a matrix between its tokens: queries down the left, keys along the top, a bar a row on the right. */
import { Axis } from "clearhead/axis.js";
import { make } from "clearhead/dom.js";
import { Matrix } from "clearhead/matrix.js";

/** @typedef {import("clearhead/labels.js").Labels} Labels */

/**
 * @typedef {object} Drawn what is shown
 * @property {import("clearhead/matrix.js").Field} field
 * @property {Labels} labels
 * @property {number} tall how many queries a row stands for
 * @property {number} wide how many keys a column stands for
 * @property {Float32Array} bars a number a row
 * @property {number} end what a whole bar is
 */

/**
 * @typedef {object} Hands
 * @property {(query: number, key: number) => void} choose
 * @property {(query: number, key: number, x: number, y: number) => void} hover
 * @property {() => void} leave
 */

const BARS = 76;
const TALLEST = 620;

export class HeadPicture {
  /** @param {string} label @param {Hands} hands @param {typeof Matrix} [kind] of the matrix: one that marks more cells */
  constructor(label, hands, kind = Matrix) {
    this.top = new Axis("top");
    this.left = new Axis("left");
    this.bars = make("canvas", { class: "row-bars", "aria-hidden": "true" });
    /** @type {Drawn | null} */
    this.drawn = null;
    this.room = { left: 60, top: 60 };
    /** What was chosen: where a row stands for several queries, it is called by this one. */
    this.place = { query: 0, key: 0 };
    this.matrix = new kind(label, {
      choose: (row, column) => this.drawn && hands.choose(row * this.drawn.tall, column * this.drawn.wide),
      hover: (row, column, x, y) => {
        this.marks();
        if (this.drawn) hands.hover(row * this.drawn.tall, column * this.drawn.wide, x, y);
      },
      leave: () => {
        this.marks();
        hands.leave();
      },
      moved: () => {
        this.axes();
        this.drawBars();
      },
    });
    this.matrix.above.addEventListener("keydown", (event) => {
      if (!this.matrix.key(event)) return;
      event.preventDefault();
      event.stopPropagation();
    });
    this.element = make("div", { class: "head-picture" });
    this.element.append(make("span", { class: "corner" }), this.top.element, make("span"), this.left.element, this.matrix.element, this.bars);
  }

  /** @param {Drawn} drawn @param {number} width of everything */
  show(drawn, width) {
    this.drawn = drawn;
    const { field, labels } = drawn;
    const bars = width < 480 ? 44 : BARS;
    this.room.left = this.left.room(labels.queries, 1);
    const size = Math.min((width - this.room.left - bars) / field.columns, TALLEST / field.rows, 44);
    this.room.top = this.top.room(labels.keys, size);
    this.bars.style.width = `${bars}px`;
    this.matrix.show(field, width - this.room.left - bars, TALLEST);
    this.bars.style.height = `${this.matrix.height}px`;
    this.bars.width = Math.round(bars * devicePixelRatio);
    this.bars.height = Math.round(this.matrix.height * devicePixelRatio);
    this.element.style.gridTemplateColumns = `${this.room.left}px ${this.matrix.width}px ${bars}px`;
    this.axes();
    this.drawBars();
  }

  /** @param {number} query @param {number} key */
  choose(query, key) {
    if (!this.drawn) return;
    this.place = { query, key };
    this.matrix.choose(Math.floor(query / this.drawn.tall), Math.floor(key / this.drawn.wide));
    this.axes();
    this.drawBars();
  }

  axes() {
    if (!this.drawn) return;
    const { matrix, room } = this;
    const { labels, tall, wide, field } = this.drawn;
    const { rows, columns } = this.marked();
    const called = (/** @type {number} */ part, /** @type {number} */ several, /** @type {number} */ chosen) => (Math.floor(chosen / several) === part ? chosen : part * several);
    this.top.draw((column) => labels.keys[called(column, wide, this.place.key)] ?? "", { size: matrix.size, start: matrix.x, length: matrix.width, count: field.columns }, room.top, columns);
    this.left.draw((row) => labels.queries[called(row, tall, this.place.query)] ?? "", { size: matrix.size, start: matrix.y, length: matrix.height, count: field.rows }, room.left, rows);
  }

  marks() {
    const { rows, columns } = this.marked();
    this.top.mark(columns);
    this.left.mark(rows);
  }

  /** The rows and columns whose tokens are always named. */
  marked() {
    const cells = [this.matrix.chosen, this.matrix.under].filter((each) => each !== null);
    return { rows: [...new Set(cells.map(({ row }) => row))], columns: [...new Set(cells.map(({ column }) => column))] };
  }

  drawBars() {
    const context = this.bars.getContext("2d");
    if (!context || !this.drawn) return;
    const { matrix } = this;
    const [width, height] = [this.bars.width / devicePixelRatio, this.bars.height / devicePixelRatio];
    context.setTransform(devicePixelRatio, 0, 0, devicePixelRatio, 0, 0);
    context.clearRect(0, 0, width, height);
    const style = getComputedStyle(this.bars);
    const thick = Math.max(1, matrix.size >= 6 ? matrix.size - 3 : matrix.size * 0.9);
    const [first, last] = [Math.max(0, Math.floor(-matrix.y / matrix.size)), Math.ceil((height - matrix.y) / matrix.size)];
    const { bars, end, field } = this.drawn;
    for (let row = first; row < Math.min(last, field.rows); row++) {
      context.globalAlpha = matrix.chosen?.row === row ? 1 : 0.45;
      context.fillStyle = style.color;
      const long = end > 0 ? (Math.max(0, bars[row]) / end) * (width - 10) : 0;
      context.fillRect(8, matrix.y + (row + 0.5) * matrix.size - thick / 2, Math.max(1, long), thick);
    }
    context.globalAlpha = 1;
  }
}
