// @ts-check
/** What the model says at a position with its own mask and with another: probabilities as pairs of bars. */
import { make } from "clearhead/dom.js";
import { visible } from "clearhead/labels.js";
import { figures } from "clearhead/say.js";

/** @typedef {import("clearhead/state.js").Answer} Answer */
/** @typedef {import("clearhead/state.js").Say} Say */
/** @typedef {{name: string, before: number, after: number}} Guess */

/** The best tokens of a position, before and after, each once; the best before come first. @param {Answer} said @param {number} position @returns {Guess[]} */
export function guesses({ header, arrays }, position) {
  const { best, pieces } = header;
  const at = (/** @type {string} */ name) => arrays[name].data.subarray(position * 2 * best, (position + 1) * 2 * best);
  const [ids, before, after] = [at("ids"), at("before"), at("after")];
  /** @type {Map<number, Guess>} */
  const found = new Map();
  ids.forEach((id, place) => found.set(id, { name: visible(pieces[id] ?? String(id)), before: before[place], after: after[place] }));
  return [...found.values()];
}

/** How far what is said moved at each position: a divergence, or a share of a length. @param {Answer} said @returns {Float32Array} */
export function apart({ arrays }) {
  return /** @type {Float32Array} */ ((arrays.divergence ?? arrays.moved).data);
}

/** @param {Guess[]} guesses @param {boolean} own whether both are the model's own @param {Say} say */
export function pairs(guesses, own, say) {
  const most = guesses.reduce((high, { before, after }) => Math.max(high, before, after), 0);
  const track = (/** @type {number} */ value, /** @type {string} */ kind) => {
    const fill = make("span", { class: `bar-fill ${kind}` });
    fill.style.width = `${most > 0 ? (100 * value) / most : 0}%`;
    return make("span", { class: "mask-pair-row" }, make("span", { class: "bar-track" }, fill), make("data", { class: "bar-number", value: String(value), title: String(value) }, figures(value)));
  };
  const rows = guesses.map(({ name, before, after }) => make("li", { class: "mask-pair" }, make("span", { class: "bar-name", title: name }, name),
    make("span", {}, track(before, "ran"), own ? null : track(after, "other"))));
  const key = own ? null : make("p", { class: "quiet mask-key" }, make("span", { class: "ran" }, say("mask.before")), make("span", { class: "other" }, say("mask.after")));
  return [...(key ? [key] : []), make("ol", { class: "bars mask-pairs" }, ...rows)];
}
