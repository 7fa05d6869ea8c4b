// @ts-check
/** A piece of a mask in the three ways in which programs write it down, and what becomes of it when one is taken for another. */
import { make } from "clearhead/dom.js";
import { placed } from "clearhead/labels.js";
import { cellOf, countOf } from "clearhead/maskrule.js";

/** @typedef {import("clearhead/maskrule.js").Rule} Rule */
/** @typedef {import("clearhead/maskasked.js").Conventions} Conventions */
/** @typedef {import("clearhead/labels.js").Labels} Labels */
/** @typedef {import("clearhead/state.js").Say} Say */

/** Each convention, and which mistakes are told of it: as what it is read. @type {[string, string[]][]} */
const FORMS = [["sdpa", ["multihead", "additive"]], ["multihead", ["sdpa"]], ["additive", ["sdpa"]]];

/**
 * @param {Rule} rule
 * @param {Conventions} conventions of the answer
 * @param {Labels} labels
 * @param {{query: number, key: number}} chosen
 * @param {number} most rows and columns
 * @param {Say} say
 * @returns {HTMLElement[]}
 */
export function forms(rule, conventions, labels, chosen, most, say) {
  const seen = countOf(rule, chosen.query, labels.keys.length);
  return FORMS.map(([form, readings]) => {
    const title = say(`mask.form.${form}`);
    const mistakes = readings.map((read) => {
      const outcome = becomes(conventions.taken[`${form}, ${read}`], seen, labels.keys.length);
      const fields = { query: placed(labels.queries, chosen.query), seen, hidden: labels.keys.length - seen, keys: labels.keys.length };
      return make("p", { class: "caption" }, make("strong", {}, say(`mask.read.${form}.${read}`)), " ", say(outcome, fields));
    });
    const caption = make("figcaption", {}, make("h4", {}, title), make("p", { class: "quiet" }, say(`mask.used.${form}`)));
    const piece = make("div", { class: "mask-form-scroll", tabindex: 0, role: "group", "aria-label": title },
      table(rule, conventions.written[form], labels, chosen, most));
    return make("figure", { class: "mask-form", "data-form": form }, caption, piece, ...mistakes);
  });
}

/**
 * The cells around the chosen one.
 * @param {Rule} rule
 * @param {string[]} values what stands for "may look" and "must not"
 * @param {Labels} labels
 * @param {{query: number, key: number}} chosen
 * @param {number} most rows and columns
 */
function table(rule, values, labels, chosen, most) {
  const rows = around(chosen.query, labels.queries.length, most);
  const columns = around(chosen.key, labels.keys.length, most);
  const cell = (/** @type {number} */ query, /** @type {number} */ key) => {
    const may = cellOf(rule, query, key) === 1;
    const here = query === chosen.query && key === chosen.key;
    return make("td", { class: may ? "may" : "may-not", "aria-current": here ? "true" : null }, values[may ? 0 : 1]);
  };
  const head = columns.map((key) => make("th", { scope: "col", title: labels.keys[key] }, String(key)));
  const body = rows.map((query) => make("tr", {},
    make("th", { scope: "row", title: labels.queries[query] }, String(query)), ...columns.map((key) => cell(query, key))));
  return make("table", {}, make("thead", {}, make("tr", {}, make("td"), ...head)), make("tbody", {}, ...body));
}

/**
 * What becomes of a row once its "may look" and its "must not" are read as something else.
 * @param {boolean[]} taken whether each is seen then
 * @param {number} seen how many keys the row may look at
 * @param {number} keys
 */
function becomes([shown, hidden], seen, keys) {
  if (shown) return seen < keys ? "mask.taken.open" : "mask.taken.same";
  return hidden && seen < keys ? "mask.taken.inverted" : "mask.taken.blind";
}

/** Some places with the chosen one among them. @param {number} place @param {number} count @param {number} most */
function around(place, count, most) {
  const length = Math.min(count, most);
  const first = Math.max(0, Math.min(place - Math.floor(most / 2), count - length));
  return Array.from({ length }, (_, step) => first + step);
}
