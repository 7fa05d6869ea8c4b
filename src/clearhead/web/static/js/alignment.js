// @ts-check
/** Two texts side by side: which tokens of what the encoder read each written token was written from. */
import { carriesAnswers, Refused } from "clearhead/api.js";
import { above, arcsOf } from "clearhead/arcs.js";
import { legend } from "clearhead/colours.js";
import { make } from "clearhead/dom.js";
import { HeadPicture } from "clearhead/headpicture.js";
import { bar, choose, choosers, refilled } from "clearhead/headtools.js";
import { labelsOf } from "clearhead/labels.js";
import { Marked, marksOf } from "clearhead/marked.js";
import { figures } from "clearhead/say.js";
import { reach } from "clearhead/scroll.js";
import { go } from "clearhead/state.js";
import { behind } from "clearhead/table.js";
import { hush, tell } from "clearhead/tooltip.js";

/** @typedef {import("clearhead/state.js").State} State */
/** @typedef {import("clearhead/state.js").Say} Say */
/** @typedef {import("clearhead/state.js").Api} Api */
/** @typedef {import("clearhead/state.js").Answer} Answer */
/** @typedef {import("clearhead/labels.js").Labels} Labels */

const PART = "decoder.cross_attention";
const LISTED = 8;
/** Lines below this share of the largest weight are not drawn. */
const FAINT = 0.15;

/**
 * @typedef {object} Panel what stands in an element
 * @property {HeadPicture} picture
 * @property {Marked} matrix of the picture
 * @property {HTMLElement} tools
 * @property {HTMLElement} line the sentence of the chosen token
 * @property {HTMLElement} lines the second drawing
 * @property {HTMLElement} room of the picture
 * @property {HTMLElement} key the legend
 * @property {HTMLElement} told what holds of all
 * @property {HTMLElement} row the numbers of the chosen token
 * @property {import("clearhead/table.js").Behind} table
 * @property {boolean} tooled
 * @property {State} state
 * @property {Labels} labels `queries` are what each position of the decoder writes: its next token
 * @property {Answer | null} answer
 * @property {Api} api
 * @property {Say} say
 */

/** @type {WeakMap<HTMLElement, Panel>} */
const panels = new WeakMap();
/** @type {Panel | null} */
let latest = null;

/** @type {import("clearhead/state.js").View} */
export const view = {
  id: "alignment", show, keys, uses: ["part", "layer", "head", "query", "key", "align"],
  fits: (model) => model.kind === "encoder_decoder",
};

/** @type {import("clearhead/state.js").View["show"]} */
async function show(element, given, api, say) {
  const panel = (latest = panels.get(element) ?? built(element, given, api, say));
  const told = /** @type {any} */ ((await api.get("tokens")).header);
  const own = labelsOf(told, PART);
  // A position of the decoder looks at the source to write the token behind it, so that is what its row is called.
  panel.labels = { queries: [...own.queries.slice(1), say("alignment.next")], keys: own.keys };
  const within = (/** @type {number} */ place, /** @type {string[]} */ labels) => Math.max(0, Math.min(place, labels.length - 1));
  const state = { ...given, part: PART, layer: Math.min(given.layer, api.model().layers - 1), query: within(given.query, panel.labels.queries), key: within(given.key, own.keys) };
  /** @type {Record<string, number>} */
  const fields = state.align === "head" ? { layer: state.layer, head: state.head } : state.align === "layer" ? { layer: state.layer } : {};
  const answer = await api.get("alignment", fields);
  Object.assign(panel, { state, api });
  if (panel.answer !== answer) panel.key.replaceChildren(legend(answer.header.most, say("head.legend")));
  panel.answer = answer;
  if (!panel.tooled) panel.tools.replaceChildren(...tools(panel));
  panel.tooled = true;
  choose(panel.tools, state);
  shown(panel);
  const { queries, keys: count, most, pooled } = answer.header;
  panel.told.textContent = [say("alignment.sizes", { queries, keys: count, most: figures(most) }), pooled[0] * pooled[1] > 1 ? say("head.pooled", { queries: pooled[0], keys: pooled[1] }) : ""].join(" ");
  draw(panel);
  sentence(panel);
  const row = await api.get("aligned", { ...fields, query: state.query }).catch((error) => {
    // A saved file of long texts holds the numbers of one row; the largest of each is there all the same.
    if (!(error instanceof Refused) || error.kind !== "absent") throw error;
    return null;
  });
  if (row) numbers(panel, row);
  else refilled(panel.row, [make("p", { class: "quiet" }, say("head.absent"))]);
}

/** @param {HTMLElement} element @param {State} state @param {Api} api @param {Say} say @returns {Panel} */
function built(element, state, api, say) {
  const picture = new HeadPicture(say("alignment.picture"), {
    choose: (query, key) => go({ part: PART, query, key }),
    hover: (query, key, x, y) => tell(x, y, hovered(panel, query, key)),
    leave: hush,
  }, Marked);
  /** @type {Panel} */
  const panel = {
    picture, state, api, say, matrix: /** @type {Marked} */ (picture.matrix), answer: null, tooled: false, labels: { queries: [], keys: [] },
    tools: make("div", { class: "row-of-tools" }), line: make("p", { class: "cell-sentence", "aria-live": "polite" }), lines: make("div", { class: "align-lines" }),
    room: make("div", { class: "head-room" }), key: make("div"), told: make("p", { class: "quiet" }), row: make("div", { class: "row-numbers" }), table: behind(say("alignment.table")),
  };
  picture.matrix.above.addEventListener("keydown", (event) => {
    if (!picture.matrix.key(event)) return;
    event.preventDefault();
    event.stopPropagation();
  });
  element.replaceChildren(panel.tools, panel.line, panel.lines, make("div", { class: "head-layout" },
    make("div", { class: "head-drawing" }, panel.room, panel.key, panel.told), panel.row), panel.table.element);
  let width = 0;
  new ResizeObserver(() => {
    if (panel.room.isConnected && panel.answer && panel.room.clientWidth !== width) draw(panel);
    width = panel.room.clientWidth;
  }).observe(panel.room);
  panels.set(element, panel);
  return panel;
}

/** What is shown, and whose; and the way to an answer of the model's own. @param {Panel} panel @returns {HTMLElement[]} */
function tools({ state, api, say, answer }) {
  const kinds = /** @type {[string, string][]} */ ([["", say("alignment.mean")], ["layer", say("alignment.layer")], ["head", say("alignment.head")]]);
  const select = make("select", { "data-name": "align" }, ...kinds.map(([value, text]) => make("option", { value }, text)));
  select.addEventListener("change", () => go({ align: select.value }));
  const others = choosers(state, api.model(), say).filter((each) => !each.querySelector("[data-field=part]"));
  const made = [make("label", { class: "choice" }, say("alignment.shown"), select), ...others];
  if (carriesAnswers() || !answer) return made;
  const note = make("span", { class: "quiet", role: "status" });
  return [...made, make("button", { type: "button", class: "chip", title: say("alignment.write_told"), onclick: () => void write(note) }, say("alignment.write")), note];
}

/** Puts what the model answers by itself in the place of what was written. @param {HTMLElement} note */
async function write(note) {
  if (!latest) return;
  const { api, say, state } = latest;
  try {
    const { target } = (await api.get("written")).header;
    note.textContent = target === (state.target ?? "") ? say("alignment.is_own") : "";
    go({ target }, { step: true });
  } catch (error) {
    // Another prompt was opened meanwhile, or the server is not there: the frame says what there is to say of that.
    if (error instanceof Refused) note.textContent = error.kind === "refused" ? error.message : say(error.message);
    else if (!(error instanceof DOMException)) throw error;
  }
}

/** Which fields mean something now. @param {Panel} panel */
function shown({ tools, state }) {
  for (const select of tools.querySelectorAll("select")) {
    const { field } = select.dataset;
    if (!field) select.value = state.align;
    else select.parentElement?.toggleAttribute("hidden", field === "head" ? state.align !== "head" : state.align === "");
  }
}

/** Both drawings. @param {Panel} panel */
function draw({ answer, picture, matrix, room, lines, labels, state, say }) {
  if (!answer) return;
  const [rows, columns] = answer.arrays.weights.shape;
  const [tall, wide] = answer.header.pooled;
  const field = { values: /** @type {Uint8Array} */ (answer.arrays.weights.data), rows, columns };
  const [largest, highest] = ["largest", "highest"].map((name) => /** @type {Float32Array} */ (answer.arrays[name].data));
  if (picture.element.parentElement !== room) room.replaceChildren(picture.element);
  matrix.columns = marksOf(largest, highest, tall, wide);
  const bars = Float32Array.from({ length: rows }, (_, row) => highest.subarray(row * tall, (row + 1) * tall).reduce((most, each) => Math.max(most, each), 0));
  picture.show({ field, labels, tall, wide, bars, end: 1 }, room.clientWidth || 320);
  picture.choose(state.query, state.key);
  const { most } = answer.header;
  // What was read stands above, what is written below; those of the chosen token are drawn last.
  const arcs = above(field, most, FAINT * most, tall, wide).map(({ query, key, weight }) => ({ query: key, key: query, weight, strong: query === state.query }));
  const ordered = [...arcs.filter(({ strong }) => !strong), ...arcs.filter(({ strong }) => strong)];
  const drawn = arcsOf({ queries: labels.keys, keys: labels.queries }, ordered, { query: state.key, key: state.query }, lines.clientWidth || 320, {
    query: (key) => go({ part: PART, query: state.query, key }), key: (query) => go({ part: PART, query }),
  }, 1);
  const scroll = make("div", { class: "arcs-scroll", tabindex: 0, role: "img", "aria-label": say("alignment.lines") }, drawn);
  lines.replaceChildren(make("p", { class: "quiet" }, say("alignment.read")), scroll, make("p", { class: "quiet" }, say("alignment.written")));
  scroll.scrollLeft = (state.query / Math.max(1, labels.queries.length)) * scroll.scrollWidth - scroll.clientWidth / 2;
}

/** What stands beside the pointer. @param {Panel} panel @param {number} query @param {number} key */
function hovered({ answer, labels, say }, query, key) {
  const [tall, wide] = answer?.header.pooled ?? [1, 1];
  const columns = answer?.arrays.weights.shape[1] ?? 1;
  const byte = answer?.arrays.weights.data[Math.floor(query / tall) * columns + Math.floor(key / wide)] ?? 0;
  const weight = Number(((answer?.header.most ?? 1) * (byte / 255) ** 2).toPrecision(2));
  return [`${labels.keys[key]} → ${labels.queries[query]}`, say("head.weight", { value: `≈ ${weight}` }), ...(tall * wide > 1 ? [say("head.field", { queries: tall, keys: wide })] : [])];
}

/** The chosen token in words, and the same of all tokens in the table. @param {Panel} panel */
function sentence({ answer, labels, say, state, line, table }) {
  if (!answer) return;
  const [largest, highest] = [answer.arrays.largest.data, answer.arrays.highest.data];
  const of = (/** @type {number} */ query) => {
    const fields = { word: labels.queries[query] ?? "", key: labels.keys[largest[query]] ?? "", weight: figures(Number(highest[query].toPrecision(2))) };
    if (largest[query] < 0) return say("alignment.blind", fields);
    return say(query === labels.queries.length - 1 ? "alignment.sentence_next" : "alignment.sentence", fields);
  };
  line.textContent = of(state.query);
  table.fill(say("alignment.title"), [say("alignment.written"), say("alignment.most"), say("head.weight_name")], () =>
    labels.queries.map((name, query) => [`${query} ${name}`, `${largest[query]} ${labels.keys[largest[query]] ?? ""}`, String(highest[query])]));
}

/** The tokens that the chosen one was written from, and the way to a head. @param {Panel} panel @param {Answer} answer */
function numbers({ row, labels, state, say }, answer) {
  const data = (/** @type {string} */ name) => answer.arrays[name].data;
  const [weights, highest, layers, heads] = ["weights", "highest", "layers", "heads"].map(data);
  const order = Array.from(weights.keys()).sort((one, other) => weights[other] - weights[one] || one - other);
  const listed = order.slice(0, LISTED);
  if (!listed.includes(state.key)) listed[listed.length - 1] = state.key;
  const rest = order.filter((key) => !listed.includes(key));
  const first = weights[listed[0]];
  const open = () => {
    go({ part: PART, layer: layers[state.key], head: heads[state.key], query: state.query, key: state.key });
    reach("head");
  };
  const told = { key: labels.keys[state.key] ?? "", layer: layers[state.key], head: heads[state.key], weight: figures(highest[state.key]) };
  refilled(row, [
    make("h3", {}, say(state.query === labels.queries.length - 1 ? "alignment.row_next" : "alignment.row", { word: labels.queries[state.query] ?? "" })),
    make("ol", { class: "bars" }, ...listed.map((key) => make("li", {}, bar(`${key} “${labels.keys[key]}”`, weights[key], first, key === state.key, () => go({ part: PART, query: state.query, key }), say("alignment.choose"))))),
    ...(rest.length ? [make("p", { class: "quiet" }, say("head.rest", { count: rest.length, sum: figures(rest.reduce((sum, key) => sum + weights[key], 0)) }))] : []),
    make("p", {}, say(state.align === "head" ? "alignment.this_head" : "alignment.strongest", told)),
    make("button", { type: "button", class: "chip", "data-name": "open", onclick: open }, say("atlas.open")),
  ]);
}

/** @param {KeyboardEvent} event @param {State} given @returns {Partial<State> | null} */
function keys(event, given) {
  if (!latest?.answer || event.target instanceof HTMLSelectElement) return null;
  const { header } = latest.answer;
  const [tall, wide] = header.pooled;
  const { state } = latest;
  const by = event.shiftKey ? 8 : 1;
  const moved = (/** @type {"query" | "key"} */ field, /** @type {number} */ step, /** @type {number} */ count) =>
    ({ part: PART, query: state.query, key: state.key, [field]: Math.max(0, Math.min(count - 1, state[field] + step * by)) });
  if (event.key === "ArrowUp" || event.key === "ArrowDown") return moved("query", event.key === "ArrowUp" ? -tall : tall, header.queries);
  if (event.key === "ArrowLeft" || event.key === "ArrowRight") return moved("key", event.key === "ArrowLeft" ? -wide : wide, header.keys);
  if (event.key === "Home") return moved("key", -header.keys, header.keys);
  if (event.key === "End") return moved("key", header.keys, header.keys);
  if ((event.key === "[" || event.key === "]") && state.align === "head") return { head: Math.max(0, given.head + (event.key === "[" ? -1 : 1)) };
  if ((event.key === "PageUp" || event.key === "PageDown") && state.align) return { layer: Math.max(0, given.layer + (event.key === "PageUp" ? -1 : 1)) };
  return null;
}
