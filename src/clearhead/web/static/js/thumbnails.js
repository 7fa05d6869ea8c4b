// @ts-check
/**
 * Small pictures of all heads of one attention on one canvas: a row a layer, a column a head; or, sorted, one after another. Heads that
 * share their keys and values stand under one bracket.
 */
import { pixels, themeOf } from "clearhead/colours.js";
import { make } from "clearhead/dom.js";

/**
 * @typedef {object} Part
 * @property {string} name
 * @property {number} layers
 * @property {number} heads
 * @property {number} kv_heads
 * @property {number} rows
 * @property {number} columns
 * @property {number} queries
 * @property {number} keys
 * @property {Record<string, (number | null)[][]>} scores kind, then layer, then head
 */

/** @typedef {{layer: number, head: number}} Place */

/**
 * @typedef {object} Hands what a person does
 * @property {(place: Place, x: number, y: number) => void} hover
 * @property {() => void} leave
 * @property {(place: Place) => void} choose
 * @property {(place: Place) => void} open
 */

const [LARGEST, SMALLEST, GAP] = [150, 40, 4];
const [MARGIN_LEFT, LINE] = [30, 18];

export class Thumbnails {
  /** @param {Part} part @param {Uint8Array} values layers, heads, rows, columns @param {string} label @param {Hands} hands */
  constructor(part, values, label, hands) {
    this.part = part;
    this.values = values;
    this.below = make("canvas");
    this.above = make("canvas", { tabindex: 0, role: "img", "aria-label": label });
    this.element = make("div", { class: "thumbnails" }, this.below, this.above);
    this.picture = make("canvas");
    /** Heads in the order in which they are drawn, and how each is called there. @type {Place[]} */
    this.order = [];
    /** @type {((place: Place) => string) | null} */
    this.named = null;
    this.side = LARGEST;
    this.across = 1;
    /** @type {Place | null} */
    this.chosen = null;
    /** @type {Place | null} */
    this.under = null;
    this.ink = "";
    this.slowest = 0;
    this.listen(hands);
  }

  /** Whether the heads stand as in the model. */
  get plain() {
    return this.named === null;
  }

  /** Room above the pictures, for numbers of heads and brackets. */
  get top() {
    return this.plain ? LINE + (this.grouped ? LINE : 0) : 0;
  }

  get left() {
    return this.plain ? MARGIN_LEFT : 0;
  }

  get grouped() {
    return this.part.kv_heads < this.part.heads;
  }

  /** Pixels from picture to picture, downwards. */
  get pitch() {
    return this.side + GAP + (this.plain ? 0 : LINE);
  }

  /** Lays the heads out in a width. @param {Place[]} order @param {((place: Place) => string) | null} named null: a row a layer @param {number} width */
  lay(order, named, width) {
    this.order = order;
    this.named = named;
    const { layers, heads } = this.part;
    const room = width - this.left;
    if (this.plain) {
      this.across = heads;
      this.side = Math.max(6, Math.floor(Math.min(room / heads - GAP, Math.max(SMALLEST, 760 / layers), LARGEST)));
    } else {
      const wanted = Math.max(SMALLEST + 12, Math.min(104, Math.sqrt((room * 760) / order.length) - GAP - LINE));
      this.across = Math.max(1, Math.floor(room / (wanted + GAP)));
      this.side = Math.floor(wanted);
    }
    const wide = this.left + Math.min(this.across, order.length) * (this.side + GAP);
    const high = this.top + Math.ceil(order.length / this.across) * this.pitch;
    for (const canvas of [this.below, this.above]) {
      canvas.width = Math.round(wide * devicePixelRatio);
      canvas.height = Math.round(high * devicePixelRatio);
      canvas.style.width = `${wide}px`;
      canvas.style.height = `${high}px`;
    }
    this.element.style.width = `${wide}px`;
    this.element.style.height = `${high}px`;
    this.paint();
    this.draw();
  }

  /** All heads as pixels, in one picture of a row a layer. */
  paint() {
    const { layers, heads, rows, columns } = this.part;
    const table = pixels(themeOf(this.element));
    const drawn = new Uint32Array(layers * heads * rows * columns);
    for (let layer = 0, from = 0; layer < layers; layer++) {
      for (let head = 0; head < heads; head++) {
        for (let row = 0; row < rows; row++) {
          const to = ((layer * rows + row) * heads + head) * columns;
          for (let column = 0; column < columns; column++) drawn[to + column] = table[this.values[from++]];
        }
      }
    }
    this.picture.width = heads * columns;
    this.picture.height = layers * rows;
    const image = new ImageData(new Uint8ClampedArray(drawn.buffer), heads * columns, layers * rows);
    this.picture.getContext("2d")?.putImageData(image, 0, 0);
  }

  /** One head at a place of a context. @param {CanvasRenderingContext2D} context @param {Place} place @param {number} x @param {number} y @param {number} side */
  one(context, { layer, head }, x, y, side) {
    const { rows, columns } = this.part;
    context.imageSmoothingEnabled = side * devicePixelRatio < Math.max(rows, columns);
    context.imageSmoothingQuality = "high";
    context.drawImage(this.picture, head * columns, layer * rows, columns, rows, x, y, side, side);
  }

  /** Left and top of a head by its place in the order. @param {number} number @returns {[number, number]} */
  corner(number) {
    return [this.left + (number % this.across) * (this.side + GAP), this.top + Math.floor(number / this.across) * this.pitch];
  }

  draw() {
    const context = this.below.getContext("2d");
    if (!context) return;
    const style = getComputedStyle(this.element);
    context.setTransform(devicePixelRatio, 0, 0, devicePixelRatio, 0, 0);
    context.clearRect(0, 0, this.below.width, this.below.height);
    context.font = `11px ${style.fontFamily}`;
    context.fillStyle = style.color;
    context.strokeStyle = style.color;
    context.textAlign = "center";
    context.textBaseline = "middle";
    this.order.forEach((place, number) => {
      const [x, y] = this.corner(number);
      this.one(context, place, x, y, this.side);
      context.globalAlpha = 0.18;
      context.strokeRect(x - 0.5, y - 0.5, this.side + 1, this.side + 1);
      context.globalAlpha = 0.85;
      if (this.named) context.fillText(this.named(place), x + this.side / 2, y + this.side + LINE / 2 + 1);
    });
    if (this.plain) this.numbers(context);
    context.globalAlpha = 1;
    this.ink = getComputedStyle(this.above).color;
    this.mark();
  }

  /** Numbers of layers and heads, and a bracket over the heads that share keys and values. @param {CanvasRenderingContext2D} context */
  numbers(context) {
    const { layers, heads, kv_heads } = this.part;
    const pitch = this.side + GAP;
    const step = Math.max(1, Math.ceil(22 / pitch));
    for (let head = 0; head < heads; head += step) context.fillText(String(head), this.left + head * pitch + this.side / 2, this.top - LINE / 2);
    context.textAlign = "right";
    const every = Math.max(1, Math.ceil(14 / pitch));
    for (let layer = 0; layer < layers; layer += every) context.fillText(String(layer), this.left - 8, this.top + layer * pitch + this.side / 2);
    if (!this.grouped) return;
    context.textAlign = "center";
    const size = heads / kv_heads;
    context.beginPath();
    for (let group = 0; group < kv_heads; group++) {
      const [from, to] = [this.left + group * size * pitch + 1, this.left + (group + 1) * size * pitch - GAP - 1];
      context.moveTo(from, LINE);
      context.lineTo(from, LINE - 5);
      context.lineTo(to, LINE - 5);
      context.lineTo(to, LINE);
      if (size * pitch > 34) context.fillText(`k v ${group}`, (from + to) / 2, 6);
    }
    context.stroke();
  }

  mark() {
    const context = this.above.getContext("2d");
    if (!context) return;
    context.setTransform(devicePixelRatio, 0, 0, devicePixelRatio, 0, 0);
    context.clearRect(0, 0, this.above.width, this.above.height);
    context.strokeStyle = this.ink;
    for (const [place, width] of /** @type {[Place | null, number][]} */ ([[this.under, 1.5], [this.chosen, 2.5]])) {
      const number = place ? this.order.findIndex(({ layer, head }) => layer === place.layer && head === place.head) : -1;
      if (number < 0) continue;
      const [x, y] = this.corner(number);
      context.lineWidth = width;
      context.strokeRect(x - 1.5, y - 1.5, this.side + 3, this.side + 3);
    }
  }

  /** The head at a point of the canvas. @param {number} x @param {number} y @returns {Place | null} */
  at(x, y) {
    const [column, row] = [Math.floor((x - this.left) / (this.side + GAP)), Math.floor((y - this.top) / this.pitch)];
    if (column < 0 || row < 0 || column >= this.across) return null;
    return this.order[row * this.across + column] ?? null;
  }

  /** The head beside one, as the arrows go: in the order that is drawn. @param {Place} from @param {string} key @returns {Place | null} */
  beside(from, key) {
    const number = this.order.findIndex(({ layer, head }) => layer === from.layer && head === from.head);
    const by = { ArrowLeft: -1, ArrowRight: 1, ArrowUp: -this.across, ArrowDown: this.across }[key];
    if (by === undefined) return null;
    if (this.plain && Math.abs(by) === 1 && Math.floor((number + by) / this.across) !== Math.floor(number / this.across)) return null;
    return this.order[number + by] ?? null;
  }

  /** @param {Hands} hands */
  listen(hands) {
    this.above.addEventListener("pointermove", (event) => {
      const start = performance.now();
      const found = this.at(event.offsetX, event.offsetY);
      if (found !== this.under) {
        this.under = found;
        this.mark();
      }
      if (found) hands.hover(found, event.clientX, event.clientY);
      else hands.leave();
      this.slowest = Math.max(this.slowest, performance.now() - start);
      this.above.dataset.slowestHover = this.slowest.toFixed(2);
    });
    this.above.addEventListener("pointerleave", () => {
      this.under = null;
      this.mark();
      hands.leave();
    });
    this.above.addEventListener("click", (event) => {
      const found = this.at(event.offsetX, event.offsetY);
      if (found) hands.choose(found);
    });
    this.above.addEventListener("dblclick", (event) => {
      const found = this.at(event.offsetX, event.offsetY);
      if (found) hands.open(found);
    });
  }
}
