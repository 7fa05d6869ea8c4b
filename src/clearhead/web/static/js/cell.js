// @ts-check
/** One cell: how a weight comes from q and k, step by step with the numbers put in, and what it mixes into the output. */
import { make } from "clearhead/dom.js";
import { without } from "clearhead/effect.js";
import { choose, choosers, refilled } from "clearhead/headtools.js";
import { labelsOf, placed } from "clearhead/labels.js";
import { figures } from "clearhead/say.js";
import { go } from "clearhead/state.js";
import { ribbon, strips } from "clearhead/strips.js";
import { turns } from "clearhead/turns.js";

/** @typedef {import("clearhead/state.js").State} State */
/** @typedef {import("clearhead/state.js").Say} Say */
/** @typedef {{title: string, told: string, formula: (Node | string)[], picture?: HTMLElement | null}} Step */

const PAIRS = 64;

/** How many tokens there are to choose from in an element. @type {WeakMap<HTMLElement, {queries: number, keys: number}>} */
const sizes = new WeakMap();

/** @type {import("clearhead/state.js").View} */
export const view = { id: "cell", show, keys, uses: ["part", "layer", "head", "query", "key", "at"] };

/** @type {import("clearhead/state.js").View["show"]} */
async function show(element, state, api, say) {
  const { part, layer, head, query, key } = state;
  const told = await api.get("tokens");
  const labels = labelsOf(/** @type {any} */ (told.header), part);
  const lengths = { queries: labels.queries.length, keys: labels.keys.length };
  sizes.set(element, lengths);
  if (!lengths.queries || !lengths.keys) return element.replaceChildren(make("p", {}, say("cell.empty")));
  const [{ header: cell }, row] = await Promise.all([api.get("cell", { part, layer, head, query, key }), api.get("row", { part, layer, head, query })]);
  if (!element.firstChild) element.append(make("div", { class: "row-of-tools" }, ...choosers(state, api.model(), say), ...positions(labels, say)), make("div", { class: "steps", tabindex: 0 }), make("div", { class: "effect" }));
  const [tools, steps, effect] = /** @type {HTMLElement[]} */ ([...element.children]);
  choose(tools, state);
  for (const select of tools.querySelectorAll("select[data-place]")) if (select instanceof HTMLSelectElement) filled(select, labels, state);
  steps.setAttribute("aria-label", say("cell.steps", { query: placed(labels.queries, query), key: placed(labels.keys, key) }));
  const width = (steps.clientWidth || 640) - 34;
  refilled(steps, [sentence(cell, labels, state, say), ...all(cell, row, width, say).map((step, place) => card(step, place + 1))]);
  const own = labelsOf(/** @type {any} */ (told.header), part === "attention" ? part : "decoder.attention").queries;
  await without(effect, { state, api, say, labels, cell, own });
}

/** @param {import("clearhead/labels.js").Labels} labels @param {Say} say */
function positions(labels, say) {
  return /** @type {("query" | "key")[]} */ (["query", "key"]).map((field) => {
    const select = make("select", { "data-place": field, "data-name": field });
    select.addEventListener("change", () => go({ [field]: Number(select.value) }));
    return make("label", { class: "choice" }, say(`cell.${field}`), select);
  });
}

/** The tokens to choose from, made anew where they are others. @param {HTMLSelectElement} select @param {import("clearhead/labels.js").Labels} labels @param {State} state */
function filled(select, labels, state) {
  const field = select.dataset.place === "query" ? "query" : "key";
  const names = field === "query" ? labels.queries : labels.keys;
  if (select.options.length !== names.length || select.dataset.part !== state.part) {
    select.replaceChildren(...names.map((_, place) => make("option", { value: place }, placed(names, place))));
    select.dataset.part = state.part;
  }
  // A browser lays all options out anew when one is chosen, be it the same.
  if (select.value !== String(state[field])) select.value = String(state[field]);
}

/** @param {any} cell @param {import("clearhead/labels.js").Labels} labels @param {State} state @param {Say} say */
function sentence(cell, labels, state, say) {
  const fields = { query: placed(labels.queries, state.query), key: placed(labels.keys, state.key), weight: figures(cell.weight) };
  return make("p", { class: "cell-sentence" }, say(cell.visible ? "cell.sentence" : "cell.sentence_masked", fields));
}

/** A number to four digits; whole while the pointer rests on it. @param {number | null} value */
function number(value) {
  return make("data", { class: "number", value: String(value), title: String(value) }, figures(value));
}

/** A number as a factor or a term: what is negative stands in brackets. @param {number} value @returns {(Node | string)[]} */
function factor(value) {
  return value < 0 ? ["(", number(value), ")"] : [number(value)];
}

/** All steps of a cell. @param {any} cell @param {import("clearhead/state.js").Answer} row @param {number} width @param {Say} say @returns {Step[]} */
function all(cell, { arrays }, width, say) {
  const [weights, visible] = [arrays.weights.data, arrays.visible.data];
  return [turned(cell, say), product(cell, width, say), scaled(cell, say), masked(cell, visible, say), shared(cell, weights, say), mixed(cell, width, say)].filter((step) => step !== null);
}

/** @param {any} cell @param {Say} say @returns {Step | null} */
function turned({ rotation, q, k, query, key }, say) {
  if (!rotation) return null;
  const [first] = rotation.angles.q;
  const side = (/** @type {"q" | "k"} */ which, /** @type {any} */ vector) => make("div", { class: "turned" }, make("strong", {}, which), turns(rotation, which, vector, PAIRS));
  return {
    title: say("cell.turn"),
    told: say(rotation.interleaved ? "cell.turn_told_neighbours" : "cell.turn_told_halves", { turned: rotation.turned, half: rotation.turned / 2, width: q.after.length }),
    formula: first === undefined ? [] : [say("cell.turn_angles"), ` q: ${query} × θ₀ = `, number(first), `, k: ${key} × θ₀ = `, number(rotation.angles.k[0])],
    picture: make("div", {}, side("q", q), side("k", k)),
  };
}

/** @param {any} cell @param {number} width @param {Say} say @returns {Step} */
function product({ q, k, terms, dot }, width, say) {
  let sum = 0;
  const sums = /** @type {number[]} */ (terms).map((term) => (sum += term));
  const shown = [0, 1].filter((place) => place < terms.length);
  const formula = shown.flatMap((place) => [place ? " + " : "", ...factor(q.after[place]), " × ", ...factor(k.after[place])]);
  return {
    title: say("cell.product"),
    told: say("cell.product_told"),
    formula: ["q · k = ", ...formula, terms.length > 2 ? " + … = " : " = ", number(dot)],
    picture: strips([
      { name: say("cell.q"), values: q.after },
      { name: say("cell.k"), values: k.after },
      { name: say("cell.terms"), values: terms },
      { name: say("cell.sums"), values: sums },
    ], width, say("cell.product_picture")),
  };
}

/** @param {any} cell @param {Say} say @returns {Step} */
function scaled({ dot, scale, cap, bias, score, q }, say) {
  const plain = Math.abs(scale * Math.sqrt(q.after.length) - 1) < 1e-9;
  const first = [...factor(dot), ...(plain ? [" ÷ √", String(q.after.length)] : [" × ", ...factor(scale)]), " = ", number(dot * scale)];
  const capped = cap === null ? [] : ["; ", number(cap), " × tanh(", number(dot * scale), " ÷ ", number(cap), ") = ", number(cap * Math.tanh((dot * scale) / cap))];
  const told = [say("cell.scale_told"), cap === null ? "" : say("cell.cap_told"), bias === null ? "" : say("cell.bias_told")];
  return {
    title: say("cell.scale"),
    told: told.filter(Boolean).join(" "),
    formula: [...first, ...capped, ...(bias === null ? [] : [" + ", ...factor(bias), " = ", number(score)])],
  };
}

/** @param {any} cell @param {ArrayLike<number>} seen of every key @param {Say} say @returns {Step} */
function masked({ visible, score, key }, seen, say) {
  return {
    title: say("cell.mask"),
    told: say(visible ? "cell.seen_told" : "cell.unseen_told"),
    formula: [make("span", { class: "verdict" }, visible ? "✓ " : "✗ "), number(score), visible ? "" : " → −∞"],
    picture: ribbon(new Float32Array(seen.length).fill(1 / seen.length), (place) => (seen[place] ? "seen" : ""), key, say("cell.mask_picture")),
  };
}

/** @param {any} cell @param {ArrayLike<number>} weights of every key @param {Say} say @returns {Step} */
function shared({ score, visible, highest, exponential, total, weight, sink, key }, weights, say) {
  const told = [say("cell.softmax_told"), sink ? say("cell.sink_told", { weight: figures(sink.weight) }) : ""].filter(Boolean).join(" ");
  if (highest === null) return { title: say("cell.softmax"), told: say("cell.blind_told"), formula: [say("cell.weight"), " = 0"] };
  const exponent = visible ? ["exp(", number(score), " − ", ...factor(highest), ")"] : ["exp(−∞)"];
  return {
    title: say("cell.softmax"),
    told,
    formula: [...exponent, " = ", number(exponential), "; ", say("cell.weight"), " = ", number(exponential), " ÷ ", number(total), " = ", number(weight)],
    picture: ribbon(weights, (place) => (place % 2 ? "share odd" : "share"), key, say("cell.softmax_picture", { weight: figures(100 * weight) })),
  };
}

/** @param {any} cell @param {number} width @param {Say} say @returns {Step} */
function mixed({ weight, v, share, mixed: whole }, width, say) {
  const end = [...share, ...whole].reduce((high, each) => Math.max(high, Math.abs(each)), 0);
  const [size, part] = [Math.hypot(...whole), Math.hypot(...share)];
  const along = /** @type {number[]} */ (share).reduce((sum, each, place) => sum + each * whole[place], 0) / (size * size || 1);
  return {
    title: say("cell.mix"),
    told: `${say("cell.mix_told")} ${say("cell.mix_share", { share: figures(100 * along), size: figures(part) })}`,
    formula: [say("cell.weight"), " × v₀ = ", number(weight), " × ", ...factor(v[0]), " = ", number(share[0]), "; ", say("cell.mixed"), "₀ = ", number(whole[0])],
    picture: strips([
      { name: "v", values: v },
      { name: say("cell.share"), values: share, end },
      { name: say("cell.mixed"), values: whole, end },
    ], width, say("cell.mix_picture")),
  };
}

/** @param {Step} step @param {number} place */
function card({ title, told, formula, picture }, place) {
  return make("article", { class: "step" }, make("h3", {}, make("span", { class: "step-number", "aria-hidden": "true" }, String(place)), title),
    make("p", { class: "caption" }, told), make("p", { class: "cell-formula" }, ...formula), picture);
}

/** @param {KeyboardEvent} event @param {State} state @param {HTMLElement} element @returns {Partial<State> | null} */
function keys(event, state, element) {
  const lengths = sizes.get(element);
  if (!lengths || event.target instanceof HTMLSelectElement) return null;
  const within = (/** @type {number} */ place, /** @type {number} */ length) => Math.max(0, Math.min(length - 1, place));
  if (event.key === "ArrowUp" || event.key === "ArrowDown") return { query: within(state.query + (event.key === "ArrowUp" ? -1 : 1), lengths.queries) };
  if (event.key === "ArrowLeft" || event.key === "ArrowRight") return { key: within(state.key + (event.key === "ArrowLeft" ? -1 : 1), lengths.keys) };
  return null;
}
