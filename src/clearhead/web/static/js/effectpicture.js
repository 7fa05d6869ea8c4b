// @ts-check
/** The weights of a row beside what each of them does: two bars a key, so that one sees which are long together and which are not. */
import { make } from "clearhead/dom.js";
import { figures } from "clearhead/say.js";

/** @typedef {{key: number, weight: number, change: number}} Pair a weight, and what its removal does to the token's log-probability (NaN: unknown) */
/** @typedef {import("clearhead/state.js").Say} Say */

/** Changes below this are what rounding makes of nothing. */
export const NOTHING = 1e-6;

/** A change with its sign; what rounding alone makes is about nothing. @param {number} value */
export function signed(value) {
  return Math.abs(value) < NOTHING ? "≈ 0" : `${value > 0 ? "+" : ""}${short(value)}`;
}

/** Three digits. @param {number} value */
function short(value) {
  return figures(Number(value.toPrecision(3)));
}

/** A number that shows all its digits while the pointer rests on it. @param {number} value @param {string} [text] */
export function digits(value, text = figures(value)) {
  return make("data", { class: "number", value: String(value), title: String(value) }, text);
}

/**
 * The bars, from the largest weight on.
 *
 * @param {Pair[]} pairs
 * @param {number} chosen key
 * @param {(key: number) => string} name of a key
 * @param {(key: number) => void} choose
 * @param {Say} say
 * @returns {HTMLElement}
 */
export function picture(pairs, chosen, name, choose, say) {
  const whole = pairs.reduce((most, { weight }) => Math.max(most, weight), 0);
  const end = pairs.reduce((most, { change }) => Math.max(most, Math.abs(change) || 0), NOTHING);
  const rows = pairs.map(({ key, weight, change }) => make("li", {}, make("button", {
    type: "button",
    class: "pair",
    "data-name": `key-${key}`,
    "aria-current": key === chosen ? "true" : null,
    "aria-label": say("effect.pair", { key: name(key), weight: figures(weight), change: signed(change) }),
    title: `${weight} · ${change}`,
    onclick: () => choose(key),
  }, make("span", { class: "bar-name" }, name(key)), track(weight / (whole || 1)), make("span", { class: "bar-number" }, short(weight)),
    sides(change / end || 0), make("span", { class: "bar-number" }, signed(change)))));
  const two = (/** @type {string} */ text) => make("span", { class: "pair-two" }, text);
  const head = make("div", { class: "pair pair-head", "aria-hidden": "true" },
    make("span", {}, say("effect.key")), two(say("effect.weight_name")), two(say("effect.change_name")));
  return make("div", { class: "pairs" }, head, make("ol", { class: "bars", "aria-label": say("effect.picture") }, ...rows));
}

/** A bar from the left. @param {number} share */
function track(share) {
  const fill = make("span", { class: "bar-fill" });
  fill.style.width = `${100 * share}%`;
  return make("span", { class: "bar-track" }, fill);
}

/** A bar from the middle, to the left for what is below zero. @param {number} share from -1 to 1 */
function sides(share) {
  const fill = make("span", { class: share < 0 ? "side-fill below" : "side-fill" });
  fill.style.width = `${50 * Math.abs(share)}%`;
  fill.style.left = `${share < 0 ? 50 - 50 * Math.abs(share) : 50}%`;
  return make("span", { class: "bar-track side-track" }, make("span", { class: "side-middle" }), fill);
}
