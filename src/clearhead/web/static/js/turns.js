// @ts-check
/** Rotary positions: each pair of numbers of q or k is an arrow, turned by an angle that the position and the pair decide. */
import { draw, make } from "clearhead/dom.js";
import { figures } from "clearhead/say.js";

/**
 * @typedef {object} Rotation what the cell tells of it
 * @property {boolean} interleaved whether neighbours are a pair, else the two halves
 * @property {number} turned how many numbers are turned
 * @property {number} factor by which turning lengthens
 * @property {{q: number[], k: number[]}} angles of each pair
 */

const [SIDE, ARROW] = [46, 18];

/** Which numbers belong to a pair. @param {Rotation} rotation @param {number} pair @returns {[number, number]} */
export function pairOf({ interleaved, turned }, pair) {
  return interleaved ? [2 * pair, 2 * pair + 1] : [pair, pair + turned / 2];
}

/**
 * A row of circles, one a pair: the arrow before, faint, and after.
 *
 * @param {Rotation} rotation
 * @param {"q" | "k"} which
 * @param {{before: number[], after: number[]}} vector
 * @param {number} most how many pairs are shown
 * @returns {HTMLElement}
 */
export function turns(rotation, which, { before, after }, most) {
  const pairs = Math.min(most, rotation.turned / 2);
  return make("div", { class: "turns" }, ...Array.from({ length: pairs }, (_, pair) => {
    const [one, other] = pairOf(rotation, pair);
    const angle = rotation.angles[which][pair];
    const size = Math.max(Math.hypot(before[one], before[other]), Math.hypot(after[one], after[other])) || 1;
    const tip = (/** @type {number[]} */ of) => [SIDE / 2 + (of[one] / size) * ARROW, SIDE / 2 - (of[other] / size) * ARROW];
    const degrees = String(Math.round((angle * 180) / Math.PI) || 0).replace("-", "−");
    const picture = draw("svg", { width: SIDE, height: SIDE + 14, role: "img", "aria-label": `${which} ${one},${other}: ${degrees}°` },
      draw("circle", { class: "turn-circle", cx: SIDE / 2, cy: SIDE / 2, r: ARROW + 2 }),
      ...arrow(tip(before), "turn-before"), ...arrow(tip(after), "turn-after"),
      draw("text", { class: "tick", x: SIDE / 2, y: SIDE + 10, "text-anchor": "middle" }, `${degrees}°`),
      draw("title", {}, `(${which}${one}, ${which}${other}): (${figures(before[one])}, ${figures(before[other])}) → (${figures(after[one])}, ${figures(after[other])}), ${angle} rad`));
    return picture;
  }));
}

/** @param {number[]} tip @param {string} name */
function arrow([x, y], name) {
  return [draw("line", { class: name, x1: SIDE / 2, y1: SIDE / 2, x2: x.toFixed(2), y2: y.toFixed(2) }), draw("circle", { class: `${name} tip`, cx: x.toFixed(2), cy: y.toFixed(2), r: 2.4 })];
}
