// @ts-check
/** Two texts side by side: which tokens of what the encoder read each written token was written from. */
import { carriesAnswers, Refused } from "clearhead/api.js";
import { above, arcsOf } from "clearhead/arcs.js";
import { legend } from "clearhead/colours.js";
import { make } from "clearhead/dom.js";
import { HeadPicture } from "clearhead/headpicture.js";
import { atWidth, bar, choose, choosers, refilled } from "clearhead/headtools.js";
import { labelsOf, placed } from "clearhead/labels.js";
import { Marked, marksOf } from "clearhead/marked.js";
import { figures } from "clearhead/say.js";
import { reach } from "clearhead/scroll.js";
import { go } from "clearhead/state.js";
import { behind } from "clearhead/table.js";
import { hush, tell } from "clearhead/tooltip.js";

/** @typedef {import("clearhead/state.js").State} State */
/** @typedef {import("clearhead/state.js").Say} Say */
/** @typedef {import("clearhead/state.js").Api} Api */
/** @typedef {import("clearhead/state.js").Numbers} Numbers */
/** @typedef {import("clearhead/labels.js").Labels} Labels */

/**
 * @typedef {object} Header of the answer to "alignment"
 * @property {number | null} layer null for all
 * @property {number | null} head null for all of the layer
 * @property {number} queries
 * @property {number} keys
 * @property {[number, number]} pooled how many queries and keys a cell stands for
 * @property {number} most the largest weight
 */

/** @typedef {{header: Header, arrays: Record<"weights" | "largest" | "highest", Numbers>}} Alignment */
/** @typedef {{arrays: Record<"weights" | "highest" | "layers" | "heads", Numbers>}} Row the answer to "aligned" */

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
 * @property {Alignment | null} answer
 * @property {Api} api
 * @property {Say} say
 */

/** @type {WeakMap<HTMLElement, Panel>} */
const panels = new WeakMap();

/** @type {import("clearhead/state.js").View} */
export const view = {
  id: "alignment", show, keys, uses: ["part", "layer", "head", "query", "key", "align"],
  fits: (model) => model.kind === "encoder_decoder",
};

/** @type {import("clearhead/state.js").View["show"]} */
async function show(element, given, api, say) {
  const panel = panels.get(element) ?? built(element, given, api, say);
  const own = labelsOf(/** @type {import("clearhead/labels.js").Told} */ ((await api.get("tokens")).header), PART);
  // A position of the decoder looks at the source to write the token behind it, so that is what its row is called.
  panel.labels = { queries: [...own.queries.slice(1), say("alignment.next")], keys: own.keys };
  const state = placedIn(given, panel.labels, api.model().layers);
  const fields = whose(state);
  const answer = /** @type {Alignment} */ (await api.get("alignment", fields));
  Object.assign(panel, { state, api });
  if (panel.answer !== answer) panel.key.replaceChildren(legend(answer.header.most, say("head.legend")));
  panel.answer = answer;
  if (!panel.tooled) panel.tools.replaceChildren(...tools(panel));
  panel.tooled = true;
  choose(panel.tools, state);
  showChoosers(panel);
  const { queries, keys: count, most, pooled } = answer.header;
  panel.told.textContent = [
    say("alignment.sizes", { queries, keys: count, most: figures(most) }),
    pooled[0] * pooled[1] > 1 ? say("head.pooled", { queries: pooled[0], keys: pooled[1] }) : "",
  ].join(" ");
  draw(panel);
  sentence(panel);
  const row = await api.get("aligned", { ...fields, query: state.query }).catch((error) => {
    // A saved file of long texts holds the numbers of one row; the largest of each is there all the same.
    if (!(error instanceof Refused) || error.kind !== "absent") throw error;
    return null;
  });
  if (row) numbers(panel, /** @type {Row} */ (row));
  else refilled(panel.row, [make("p", { class: "quiet" }, say("head.absent"))]);
}

/** The place in cross-attention that is nearest to what the state names. @param {State} state @param {Labels} labels @param {number} layers @returns {State} */
function placedIn(state, { queries, keys: read }, layers) {
  const within = (/** @type {number} */ place, /** @type {number} */ count) => Math.max(0, Math.min(place, count - 1));
  return {
    ...state, part: PART, layer: within(state.layer, layers), query: within(state.query, queries.length), key: within(state.key, read.length),
  };
}

/** Whose weights are asked for: of all layers, a layer or a head. @param {State} state @returns {Record<string, number>} */
function whose({ align, layer, head }) {
  if (align === "head") return { layer, head };
  return align === "layer" ? { layer } : {};
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
    picture, state, api, say,
    matrix: /** @type {Marked} */ (picture.matrix),
    answer: null,
    tooled: false,
    labels: { queries: [], keys: [] },
    tools: make("div", { class: "row-of-tools" }),
    line: make("p", { class: "cell-sentence", "aria-live": "polite" }),
    lines: make("div", { class: "align-lines" }),
    room: make("div", { class: "head-room" }),
    key: make("div"),
    told: make("p", { class: "quiet" }),
    row: make("div", { class: "row-numbers" }),
    table: behind(say("alignment.table")),
  };
  element.replaceChildren(panel.tools, panel.line, panel.lines, make("div", { class: "head-layout" },
    make("div", { class: "head-drawing" }, panel.room, panel.key, panel.told), panel.row), panel.table.element);
  atWidth(panel.room, () => panel.answer && draw(panel));
  panels.set(element, panel);
  return panel;
}

/** What is shown, and whose; and the way to an answer of the model's own. @param {Panel} panel @returns {HTMLElement[]} */
function tools(panel) {
  const { state, api, say, answer } = panel;
  /** @type {[string, string][]} */
  const kinds = [["", say("alignment.mean")], ["layer", say("alignment.layer")], ["head", say("alignment.head")]];
  const select = make("select", { "data-name": "align" }, ...kinds.map(([value, text]) => make("option", { value }, text)));
  select.addEventListener("change", () => go({ align: select.value }));
  const others = choosers(state, api.model(), say).filter((each) => !each.querySelector("[data-field=part]"));
  const made = [make("label", { class: "choice" }, say("alignment.shown"), select), ...others];
  if (carriesAnswers() || !answer) return made;
  const note = make("span", { class: "quiet", role: "status" });
  const onclick = () => void write(panel, note);
  return [...made, make("button", { type: "button", class: "chip", title: say("alignment.write_told"), onclick }, say("alignment.write")), note];
}

/** Puts what the model answers by itself in the place of what was written. @param {Panel} panel @param {HTMLElement} note */
async function write({ api, say, state }, note) {
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
function showChoosers({ tools, state }) {
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
  const [largest, highest] = [answer.arrays.largest.data, answer.arrays.highest.data];
  if (picture.element.parentElement !== room) room.replaceChildren(picture.element);
  matrix.columns = marksOf(largest, highest, tall, wide);
  const bars = Float32Array.from({ length: rows }, (_, row) => Math.max(0, ...highest.subarray(row * tall, (row + 1) * tall)));
  picture.show({ field, labels, tall, wide, bars, end: 1 }, room.clientWidth || 320);
  picture.choose(state.query, state.key);
  const { most } = answer.header;
  // What was read stands above, what is written below; those of the chosen token are drawn last.
  const arcs = above(field, most, FAINT * most, tall, wide).map(({ query, key, weight }) =>
    ({ query: key, key: query, weight, strong: query === state.query }));
  const ordered = [...arcs.filter(({ strong }) => !strong), ...arcs.filter(({ strong }) => strong)];
  const chosen = { query: state.key, key: state.query };
  const hands = {
    query: (/** @type {number} */ key) => go({ part: PART, query: state.query, key }),
    key: (/** @type {number} */ query) => go({ part: PART, query }),
  };
  const drawn = arcsOf({ queries: labels.keys, keys: labels.queries }, ordered, chosen, lines.clientWidth || 320, hands, 1);
  const scroll = make("div", { class: "arcs-scroll", tabindex: 0, role: "img", "aria-label": say("alignment.lines") }, drawn);
  lines.replaceChildren(make("p", { class: "quiet" }, say("alignment.read")), scroll, make("p", { class: "quiet" }, say("alignment.written")));
  scroll.scrollLeft = (state.query / Math.max(1, labels.queries.length)) * scroll.scrollWidth - scroll.clientWidth / 2;
}

/** What stands beside the pointer. @param {Panel} panel @param {number} query @param {number} key */
function hovered({ answer, labels, say }, query, key) {
  if (!answer) return [];
  const { pooled: [tall, wide], most } = answer.header;
  const { shape, data } = answer.arrays.weights;
  const byte = data[Math.floor(query / tall) * shape[1] + Math.floor(key / wide)] ?? 0;
  const weight = Number((most * (byte / 255) ** 2).toPrecision(2));
  return [
    `${labels.keys[key]} → ${labels.queries[query]}`,
    say("head.weight", { value: `≈ ${weight}` }),
    ...(tall * wide > 1 ? [say("head.field", { queries: tall, keys: wide })] : []),
  ];
}

/** The chosen token in words, and the same of all tokens in the table. @param {Panel} panel */
function sentence({ answer, labels, say, state, line, table }) {
  if (!answer) return;
  const [largest, highest] = [answer.arrays.largest.data, answer.arrays.highest.data];
  const of = (/** @type {number} */ query) => {
    const weight = figures(Number(highest[query].toPrecision(2)));
    const fields = { word: labels.queries[query] ?? "", key: labels.keys[largest[query]] ?? "", weight };
    if (largest[query] < 0) return say("alignment.blind", fields);
    return say(query === labels.queries.length - 1 ? "alignment.sentence_next" : "alignment.sentence", fields);
  };
  line.textContent = of(state.query);
  table.fill(say("alignment.title"), [say("alignment.written"), say("alignment.most"), say("head.weight_name")], () =>
    labels.queries.map((name, query) => [`${query} ${name}`, `${largest[query]} ${labels.keys[largest[query]] ?? ""}`, String(highest[query])]));
}

/** The tokens that the chosen one was written from, and the way to a head. @param {Panel} panel @param {Row} answer */
function numbers({ row, labels, state, say }, { arrays }) {
  const [weights, highest, layers, heads] = [arrays.weights.data, arrays.highest.data, arrays.layers.data, arrays.heads.data];
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
  const title = state.query === labels.queries.length - 1 ? "alignment.row_next" : "alignment.row";
  const bars = listed.map((key) => {
    const choose = () => go({ part: PART, query: state.query, key });
    return make("li", {}, bar(placed(labels.keys, key), weights[key], first, key === state.key, choose, say("alignment.choose")));
  });
  const sum = figures(rest.reduce((total, key) => total + weights[key], 0));
  refilled(row, [
    make("h3", {}, say(title, { word: labels.queries[state.query] ?? "" })),
    make("ol", { class: "bars" }, ...bars),
    ...(rest.length ? [make("p", { class: "quiet" }, say("head.rest", { count: rest.length, sum }))] : []),
    make("p", {}, say(state.align === "head" ? "alignment.this_head" : "alignment.strongest", told)),
    make("button", { type: "button", class: "chip", "data-name": "open", onclick: open }, say("atlas.open")),
  ]);
}

/** @param {KeyboardEvent} event @param {State} given @param {HTMLElement} element @returns {Partial<State> | null} */
function keys(event, given, element) {
  const panel = panels.get(element);
  if (!panel?.answer || event.target instanceof HTMLSelectElement) return null;
  const { answer: { header }, state } = panel;
  const [tall, wide] = header.pooled;
  const by = event.shiftKey ? 8 : 1;
  const moved = (/** @type {"query" | "key"} */ field, /** @type {number} */ step, /** @type {number} */ count) =>
    ({ part: PART, query: state.query, key: state.key, [field]: Math.max(0, Math.min(count - 1, state[field] + step * by)) });
  if (event.key === "ArrowUp" || event.key === "ArrowDown") return moved("query", event.key === "ArrowUp" ? -tall : tall, header.queries);
  if (event.key === "ArrowLeft" || event.key === "ArrowRight") return moved("key", event.key === "ArrowLeft" ? -wide : wide, header.keys);
  if (event.key === "Home") return moved("key", -header.keys, header.keys);
  if (event.key === "End") return moved("key", header.keys, header.keys);
  if (event.key === "[" && state.align === "head") return { head: Math.max(0, given.head - 1) };
  if (event.key === "]" && state.align === "head") return { head: given.head + 1 };
  if (event.key === "PageUp" && state.align) return { layer: Math.max(0, given.layer - 1) };
  if (event.key === "PageDown" && state.align) return { layer: given.layer + 1 };
  return null;
}
