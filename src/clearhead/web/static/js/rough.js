// @ts-check
/** The weights of a query as the picture of its head holds them: for a saved file that does not hold the numbers of every row. */
import { make } from "clearhead/dom.js";
import { bar } from "clearhead/headtools.js";
import { placed } from "clearhead/labels.js";
import { figures } from "clearhead/say.js";
import { go } from "clearhead/state.js";

const FULL = 255;
const LISTED = 10;

/**
 * weight = most · (byte / 255)², which is right to most / 255; nothing where a cell of the picture stands for several weights.
 *
 * @param {import("clearhead/state.js").Answer} answer of the head
 * @param {number} query
 * @returns {number[]}
 */
export function roughWeights({ header, arrays }, query) {
  const { shape, data } = arrays.weights;
  const columns = shape[1] ?? 0;
  if (header.pooled[0] * header.pooled[1] > 1) return [];
  return Array.from({ length: columns }, (_, key) => header.most * (data[query * columns + key] / FULL) ** 2);
}

/**
 * The largest of them as bars, with how far they may be off.
 *
 * @param {number[]} weights
 * @param {number} most the largest of the head
 * @param {import("clearhead/labels.js").Labels} labels
 * @param {import("clearhead/state.js").State} state
 * @param {import("clearhead/state.js").Say} say
 * @returns {HTMLElement[]}
 */
export function roughRow(weights, most, labels, state, say) {
  const order = Array.from(weights.keys()).filter((key) => weights[key] > 0).sort((one, other) => weights[other] - weights[one] || one - other);
  const listed = order.slice(0, LISTED);
  const short = (/** @type {number} */ weight) => Number(weight.toPrecision(2));
  return [
    make("h3", {}, say("head.row", { query: placed(labels.queries, state.query) })),
    make("ol", { class: "bars" }, ...listed.map((key) => make("li", {}, bar(placed(labels.keys, key), short(weights[key]), weights[listed[0]], key === state.key, () => go({ key }), "≈")))),
    make("p", { class: "quiet" }, say("head.rough", { error: figures(short(most / FULL)) })),
  ];
}
