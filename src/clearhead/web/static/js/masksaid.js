// @ts-check
/** What the model says at a position with its own mask and with another: probabilities as pairs of bars, and how far it moved. */
import { make } from "clearhead/dom.js";
import { placed, visible } from "clearhead/labels.js";
import { figures } from "clearhead/say.js";

/** @typedef {import("clearhead/maskasked.js").MaskAnswer} MaskAnswer */
/** @typedef {import("clearhead/maskasked.js").MaskedAnswer} MaskedAnswer */
/** @typedef {import("clearhead/state.js").Say} Say */
/** @typedef {{name: string, before: number, after: number}} Guess */

/** From which KL on a position counts as moved: less is rounding. */
export const MOVED = 1e-6;
/** How many rows a table has at most. */
const ROWS = 512;

/**
 * The best tokens of a position, before and after, each once; the best before come first.
 * @param {MaskedAnswer} said
 * @param {number} position
 * @returns {Guess[]}
 */
export function guesses({ header, arrays }, position) {
  const { best, pieces } = header;
  const at = (/** @type {string} */ name) => arrays[name].data.subarray(position * 2 * best, (position + 1) * 2 * best);
  const [ids, before, after] = [at("ids"), at("before"), at("after")];
  /** @type {Map<number, Guess>} */
  const found = new Map();
  ids.forEach((id, place) => {
    found.set(id, { name: visible(pieces[id] ?? String(id)), before: before[place], after: after[place] });
  });
  return [...found.values()];
}

/**
 * How far what is said moved at each position: a divergence, or a share of a length. Padding says nothing: it has no number (NaN).
 * @param {MaskedAnswer} said
 * @param {number} padding how many tokens at the front are padding
 */
export function apart({ arrays }, padding) {
  return Float32Array.from((arrays.divergence ?? arrays.moved).data, (each, position) => (position < padding ? NaN : each));
}

/** The largest of some numbers, of those that are any; NaN if none is. @param {Float32Array} numbers */
export function largestOf(numbers) {
  return numbers.reduce((most, each) => (Number.isNaN(each) || each <= most ? most : each), NaN);
}

/**
 * Pairs of bars, and what they are.
 * @param {Guess[]} told
 * @param {boolean} own whether both are the model's own
 * @param {Say} say
 */
function pairs(told, own, say) {
  const most = told.reduce((high, { before, after }) => Math.max(high, before, after), 0);
  const track = (/** @type {number} */ value, /** @type {string} */ kind) => {
    const fill = make("span", { class: `bar-fill ${kind}` });
    fill.style.width = `${most > 0 ? (100 * value) / most : 0}%`;
    return make("span", { class: "mask-pair-row" }, make("span", { class: "bar-track" }, fill),
      make("data", { class: "bar-number", value: String(value), title: String(value) }, figures(value)));
  };
  const rows = told.map(({ name, before, after }) => make("li", { class: "mask-pair" },
    make("span", { class: "bar-name", title: name }, name), make("span", {}, track(before, "ran"), own ? null : track(after, "other"))));
  const key = make("p", { class: "quiet mask-key" },
    make("span", { class: "ran" }, say("mask.before")), make("span", { class: "other" }, say("mask.after")));
  return [...(own ? [] : [key]), make("ol", { class: "bars mask-pairs" }, ...rows)];
}

/**
 * What is said at the chosen position.
 * @param {MaskedAnswer} said
 * @param {number} query
 * @param {number} padding
 * @param {string} token the position and its token
 * @param {Say} say
 * @returns {HTMLElement[]}
 */
export function saidAt(said, query, padding, token, say) {
  const { says, mask } = said.header;
  const features = says === "features";
  const title = make("h3", {}, say(`mask.says.${says}`, { query: token }));
  if (query < padding) return [title, make("p", {}, say("mask.is_padding", { query: token }))];
  const measure = say(features ? "mask.share" : "mask.divergence", { value: figures(apart(said, padding)[query]) });
  return [title, ...(features ? [] : pairs(guesses(said, query), mask === "", say)),
    mask === "" ? make("p", { class: "quiet" }, say("mask.try")) : make("p", {}, measure)];
}

/**
 * How far all positions moved, in words.
 * @param {MaskedAnswer} said
 * @param {MaskAnswer["header"]} header of the mask
 * @param {Say} say
 */
export function movedLine(said, { own, rule, changed }, say) {
  const { says } = said.header;
  const far = apart(said, rule.padding);
  const count = far.reduce((sum, each) => sum + Number(each > MOVED), 0);
  const lines = [
    say(says === "features" ? "mask.bars_share" : "mask.bars", { end: figures(largestOf(far) || 0) }),
    say("mask.moved", { count, all: far.length - rule.padding }),
  ];
  if (rule.padding) lines.push(say("mask.left_out"));
  const reads = own.startsWith("causal") && changed.opened > 0;
  if (reads && says === "next") lines.push(say(rule.causal ? "mask.answer_prefix" : "mask.answer"));
  return lines.join(" ");
}

/**
 * The table of all positions: its columns, and its rows once they are asked for.
 * @param {MaskedAnswer} said
 * @param {number} padding
 * @param {string[]} labels
 * @param {Say} say
 * @returns {{head: string[], rows: () => string[][]}}
 */
export function positions(said, padding, labels, say) {
  const features = said.header.says === "features";
  const head = features ? [say("mask.share_name")] : ["KL", say("mask.before"), say("mask.after")];
  const numbers = (/** @type {number} */ each, /** @type {number} */ position) => {
    if (position < padding) return head.map(() => say("mask.padding_row"));
    if (features) return [String(each)];
    const told = guesses(said, position);
    const best = (/** @type {"before" | "after"} */ which) => {
      const found = told.reduce((high, guess) => (guess[which] > high[which] ? guess : high), told[0]);
      return `${found.name} ${found[which]}`;
    };
    return [String(each), best("before"), best("after")];
  };
  return {
    head: [say("mask.position"), ...head],
    rows: () => Array.from(apart(said, padding).subarray(0, ROWS), (each, position) =>
      [placed(labels, position), ...numbers(each, position)]),
  };
}
