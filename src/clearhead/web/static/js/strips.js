// @ts-check
/** Vectors as bars over and under a line, one vector below the other, their numbers in columns. */
import { draw, make } from "clearhead/dom.js";
import { figures } from "clearhead/say.js";
import { hush, tell } from "clearhead/tooltip.js";

/**
 * @typedef {object} Strip
 * @property {string} name
 * @property {number[]} values
 * @property {number} [end] what the longest bar is; the largest of the values where it is not said
 * @property {number[]} [behind] bars that are drawn faintly behind
 */

const [HIGH, NAME, LAST] = [54, 96, 8];
/** Thousandths of a ribbon that nobody could see: they are drawn with their neighbour. */
const THIN = 0.4;

/**
 * The strips as one picture.
 *
 * @param {Strip[]} strips of equal length
 * @param {number} width that there is
 * @param {string} label for screen readers
 * @returns {HTMLElement}
 */
export function strips(strips, width, label) {
  const count = strips[0]?.values.length ?? 0;
  const name = width < 480 ? 74 : NAME;
  const pitch = Math.max(4, Math.min(36, (width - name - LAST) / Math.max(1, count)));
  const long = name + count * pitch + LAST;
  const picture = draw("svg", { class: "strips", width: long, height: strips.length * HIGH + 16, role: "img", "aria-label": label });
  strips.forEach((strip, place) => picture.append(...one(strip, place * HIGH + HIGH / 2, name, pitch)));
  for (let column = 0; column < count; column += Math.max(1, Math.ceil(24 / pitch))) {
    picture.append(draw("text", { class: "tick", x: name + (column + 0.5) * pitch, y: strips.length * HIGH + 10, "text-anchor": "middle" }, String(column)));
  }
  const column = draw("rect", { class: "column", width: pitch, height: strips.length * HIGH, y: 0, x: -100 });
  picture.append(column);
  picture.addEventListener("pointermove", (event) => {
    const place = Math.floor((event.offsetX - name) / pitch);
    if (place < 0 || place >= count) return hush();
    column.setAttribute("x", String(name + place * pitch));
    tell(event.clientX, event.clientY, [`i = ${place}`, ...strips.map((strip) => `${strip.name}: ${strip.values[place]}`)]);
  });
  picture.addEventListener("pointerleave", () => {
    column.setAttribute("x", "-100");
    hush();
  });
  return make("div", { class: "strips-scroll" }, picture);
}

/** @param {Strip} strip @param {number} middle @param {number} left @param {number} pitch */
function one({ name, values, end, behind }, middle, left, pitch) {
  const most = end ?? values.reduce((high, each) => Math.max(high, Math.abs(each)), 0);
  const tall = (/** @type {number} */ value) => Math.max(0.5, most > 0 ? (Math.abs(value) / most) * (HIGH / 2 - 5) : 0);
  const wide = Math.max(1, pitch - 1.5);
  const bars = (/** @type {number[]} */ of, /** @type {string} */ extra) => {
    const sides = { "above-zero": "", "below-zero": "" };
    of.forEach((value, place) => {
      const high = tall(value);
      sides[value < 0 ? "below-zero" : "above-zero"] += box(left + place * pitch + 0.5, value < 0 ? middle : middle - high, wide, high);
    });
    return Object.entries(sides).map(([side, d]) => draw("path", { class: `${side}${extra}`, d }));
  };
  return [
    draw("text", { class: "strip-name", x: 0, y: middle - 3 }, name),
    draw("text", { class: "tick", x: 0, y: middle + 12 }, `± ${figures(most)}`),
    draw("line", { class: "zero", x1: left, x2: left + values.length * pitch, y1: middle, y2: middle }),
    ...(behind ? bars(behind, " faint") : []),
    ...bars(values, ""),
  ];
}

/**
 * A whole, cut into the shares of all keys in their order; the chosen one stands out. Neighbours of one kind are drawn as one.
 *
 * @param {ArrayLike<number>} shares
 * @param {(place: number) => string} kind the class of a share; what has none is left empty
 * @param {number} chosen
 * @param {string} label
 * @returns {HTMLElement}
 */
export function ribbon(shares, kind, chosen, label) {
  const count = shares.length;
  const named = (/** @type {number} */ place) => (place === count ? null : place === chosen ? "chosen" : kind(place));
  // One path a kind: an element for each of two thousand keys would be megabytes of page.
  /** @type {Map<string, string>} */
  const paths = new Map();
  /** Above all others: it is drawn wider than a small share is. */
  let above = "";
  let [from, at] = [0, 0];
  for (let place = 0; place < count; place++) {
    at += 1000 * shares[place];
    const [name, next] = [named(place) ?? "", named(place + 1)];
    const thin = at - from < THIN && name !== "chosen" && next !== "chosen" && next !== null;
    if (name === next || thin) continue;
    if (name === "chosen") above = box(from, 0, Math.max(1.5, at - from), 20);
    else if (name) paths.set(name, (paths.get(name) ?? "") + box(from, 0, at - from, 20));
    from = at;
  }
  const picture = draw("svg", { class: "ribbon", viewBox: "0 0 1000 20", preserveAspectRatio: "none", role: "img", "aria-label": label },
    ...[...paths, ["chosen", above]].map(([name, d]) => draw("path", { class: name, d })));
  return make("div", { class: "ribbon-box" }, picture);
}

/** A rectangle as a part of a path. @param {number} x @param {number} y @param {number} width @param {number} height */
function box(x, y, width, height) {
  return `M${x.toFixed(2)} ${y.toFixed(2)}h${width.toFixed(2)}v${height.toFixed(2)}h${(-width).toFixed(2)}z`;
}
