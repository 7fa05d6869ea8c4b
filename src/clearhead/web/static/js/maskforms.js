// @ts-check
/** A piece of a mask in the three ways in which programs write it down, and what becomes of it when one is taken for another. */
import { make } from "clearhead/dom.js";
import { placed } from "clearhead/labels.js";
import { cellOf, countOf } from "clearhead/maskrule.js";

/** @typedef {import("clearhead/maskrule.js").Rule} Rule */
/** @typedef {import("clearhead/state.js").Say} Say */

const FORMS = ["sdpa", "multihead", "additive"];
/** Which mistakes are told of each: how it is written, how it is read. */
const MISTAKES = { sdpa: ["multihead", "additive"], multihead: ["sdpa"], additive: ["sdpa"] };

/**
 * @param {Rule} rule
 * @param {any} conventions of the answer
 * @param {import("clearhead/labels.js").Labels} labels
 * @param {{query: number, key: number}} chosen
 * @param {number} most rows and columns
 * @param {Say} say
 * @returns {HTMLElement[]}
 */
export function forms(rule, conventions, labels, chosen, most, say) {
  const rows = around(chosen.query, labels.queries.length, most);
  const columns = around(chosen.key, labels.keys.length, most);
  const [seen, keys] = [countOf(rule, chosen.query, labels.keys.length), labels.keys.length];
  return FORMS.map((form) => {
    const values = conventions.written[form];
    const head = make("tr", {}, make("td"), ...columns.map((key) => make("th", { scope: "col", title: labels.keys[key] }, String(key))));
    const body = rows.map((query) => make("tr", {}, make("th", { scope: "row", title: labels.queries[query] }, String(query)), ...columns.map((key) => {
      const may = cellOf(rule, query, key) === 1;
      const here = query === chosen.query && key === chosen.key;
      return make("td", { class: may ? "may" : "may-not", "aria-current": here ? "true" : null }, values[may ? 0 : 1]);
    })));
    const mistakes = MISTAKES[/** @type {keyof typeof MISTAKES} */ (form)].map((read) => {
      const [shown, hidden] = conventions.taken[`${form}, ${read}`];
      const after = (shown ? seen : 0) + (hidden ? keys - seen : 0);
      const outcome = shown ? (seen < keys ? "mask.taken.open" : "mask.taken.same") : after ? "mask.taken.inverted" : "mask.taken.blind";
      const fields = { query: placed(labels.queries, chosen.query), seen, hidden: keys - seen, keys };
      return make("p", { class: "caption" }, make("strong", {}, say(`mask.read.${form}.${read}`)), " ", say(outcome, fields));
    });
    return make("figure", { class: "mask-form", "data-form": form }, make("figcaption", {}, make("h4", {}, say(`mask.form.${form}`)), make("p", { class: "quiet" }, say(`mask.used.${form}`))),
      make("div", { class: "mask-form-scroll", tabindex: 0, role: "group", "aria-label": say(`mask.form.${form}`) }, make("table", {}, make("thead", {}, head), make("tbody", {}, ...body))), ...mistakes);
  });
}

/** Some places with the chosen one among them. @param {number} place @param {number} count @param {number} most */
function around(place, count, most) {
  const length = Math.min(count, most);
  const first = Math.max(0, Math.min(place - Math.floor(most / 2), count - length));
  return Array.from({ length }, (_, step) => first + step);
}
