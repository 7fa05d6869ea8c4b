// @ts-check
/** What the model says as it ran, without a weight and without a head, as a table. */
import { make } from "clearhead/dom.js";
import { digits, signed } from "clearhead/effectpicture.js";
import { visible } from "clearhead/labels.js";
import { figures } from "clearhead/say.js";

/** @typedef {import("clearhead/state.js").Say} Say */

/**
 * @typedef {object} Outcome what the model says with something taken away; null is no finite number
 * @property {number | null} logit of the token that it found best as it ran
 * @property {number | null} logprob
 * @property {string} best the token that it finds best now
 */

/** How much the token's log-probability changes; NaN where one of the two is none. @param {Outcome} outcome @param {Outcome} ran */
export function change({ logprob }, ran) {
  return logprob === null || ran.logprob === null ? NaN : logprob - ran.logprob;
}

/**
 * @param {{ran: Outcome, without_head: Outcome}} row
 * @param {{outcome: Outcome, weight: string} | undefined} removed without the weight, where that is known
 * @param {string} query its name
 * @param {string} name that the focus knows it by
 * @param {Say} say
 */
export function table({ ran, without_head }, removed, query, name, say) {
  const heads = [say("effect.best"), say("effect.logit"), say("effect.probability"), say("effect.change")];
  const percent = (/** @type {number} */ value) => digits(value, say("effect.percent", { value: figures(Number((100 * value).toPrecision(4))) }));
  const line = (/** @type {string} */ title, /** @type {Outcome} */ outcome) => {
    const apart = change(outcome, ran);
    const cells = [visible(outcome.best), digits(outcome.logit ?? NaN), percent(Math.exp(outcome.logprob ?? NaN)),
      outcome === ran ? "" : digits(apart, signed(apart))];
    // On a phone each number stands behind its name, in a grid: the roles say that it is a table all the same.
    return make("tr", { role: "row" }, make("th", { scope: "row", role: "rowheader" }, title),
      ...cells.map((cell, place) => make("td", { role: "cell", "data-head": heads[place] }, cell)));
  };
  const lines = [line(say("effect.ran"), ran)];
  if (removed) lines.push(line(say("effect.weight", { weight: removed.weight }), removed.outcome));
  lines.push(line(say("effect.head", { query }), without_head));
  const head = make("tr", { role: "row" }, ...["", ...heads].map((text) => make("th", { scope: "col", role: "columnheader" }, text)));
  return make("div", { class: "scroller", tabindex: 0, "data-name": name, role: "region", "aria-label": say("effect.table") },
    make("table", { class: "effect-table", role: "table" }, make("thead", {}, head), make("tbody", {}, ...lines)));
}
