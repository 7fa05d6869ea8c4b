// @ts-check
/** One head: its matrix or its arcs, and the numbers of the query that was chosen. */
import { Refused } from "clearhead/api.js";
import { above, arcsOf, ofQuery } from "clearhead/arcs.js";
import { legend } from "clearhead/colours.js";
import { make } from "clearhead/dom.js";
import { hidden, isSeen, sample } from "clearhead/hatch.js";
import { HeadPicture } from "clearhead/headpicture.js";
import { atWidth, bar, choose, choosers, refilled } from "clearhead/headtools.js";
import { labelsOf, placed } from "clearhead/labels.js";
import { roughRow, roughWeights } from "clearhead/rough.js";
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

const BARS = ["entropy", "largest", "distance", "sum"];
const LISTED = 10;

/**
 * @typedef {object} Panel what stands in an element
 * @property {HeadPicture} picture
 * @property {HTMLElement} room of the picture or the arcs
 * @property {HTMLElement} tools
 * @property {HTMLElement} told what holds of the whole head
 * @property {HTMLElement} key the legend
 * @property {HTMLElement} row the numbers of the chosen query
 * @property {import("clearhead/table.js").Behind} table
 * @property {string} bars what the bars beside the rows are
 * @property {boolean} every whether the arcs of all queries are drawn
 * @property {number} threshold of those
 * @property {string | null} tooled the drawing for which the tools were made
 * @property {State} state
 * @property {Labels} labels
 * @property {Answer | null} answer
 * @property {ArrayLike<number>} weights of the chosen query
 * @property {number[]} rough the same as the picture holds them, where they are not there
 * @property {Say} say
 */

/** @type {WeakMap<HTMLElement, Panel>} */
const panels = new WeakMap();

/** @type {import("clearhead/state.js").View} */
export const view = { id: "head", show, keys, uses: ["part", "layer", "head", "query", "key", "drawing"] };

/** @type {import("clearhead/state.js").View["show"]} */
async function show(element, state, api, say) {
  const { part, layer, head, query } = state;
  const panel = panels.get(element) ?? built(element, state, say);
  const [told, answer] = await Promise.all([api.get("tokens"), api.get("head", { part, layer, head })]);
  panel.state = state;
  panel.labels = labelsOf(/** @type {any} */ (told.header), part);
  if (panel.answer !== answer) {
    panel.answer = answer;
    panel.key.replaceChildren(legend(answer.header.most, say("head.legend")), ...(hides(answer) ? [sample(say("head.hidden"))] : []));
  }
  about(panel, answer.header);
  if (panel.tooled !== state.drawing) {
    panel.tooled = state.drawing;
    refilled(panel.tools, [...choosers(state, api.model(), say), ...switches(panel)]);
  }
  choose(panel.tools, state);
  panel.key.hidden = state.drawing === "arcs";
  if (!panel.key.hidden) draw(panel);
  if (!panel.labels.queries.length) return;
  const row = await api.get("row", { part, layer, head, query }).catch((error) => {
    // A saved file of a long prompt holds the rows of a few queries; the matrix is there all the same.
    if (!(error instanceof Refused) || error.kind !== "absent") throw error;
    return null;
  });
  panel.weights = row?.arrays.weights.data ?? [];
  panel.rough = row ? [] : roughWeights(answer, query);
  if (state.drawing === "arcs") draw(panel);
  if (row) return numbers(panel, row);
  refilled(panel.row, panel.rough.length ? roughRow(panel.rough, answer.header.most, panel.labels, state, say) : [make("p", { class: "quiet" }, say("head.absent"))]);
  panel.table.fill("", [], () => []);
}

/** @param {HTMLElement} element @param {State} state @param {Say} say @returns {Panel} */
function built(element, state, say) {
  const picture = new HeadPicture(say("head.picture"), {
    choose: (query, key) => go({ query, key }),
    hover: (query, key, x, y) => tell(x, y, hovered(panel, query, key)),
    leave: hush,
  });
  /** @type {Panel} */
  const panel = {
    picture, state, say, answer: null, tooled: null, weights: [], rough: [], labels: { queries: [], keys: [] }, bars: "entropy", every: false, threshold: 0.2,
    room: make("div", { class: "head-room" }), tools: make("div", { class: "row-of-tools" }), told: make("p", { class: "quiet" }),
    key: make("div"), row: make("div", { class: "row-numbers" }), table: behind(say("head.table")),
  };
  element.replaceChildren(panel.tools, make("div", { class: "head-layout" },
    make("div", { class: "head-drawing" }, panel.room, panel.key, panel.told), panel.row), make("p", { class: "caption cause" }, say("head.cause")), panel.table.element);
  atWidth(panel.room, () => panel.answer && draw(panel));
  panels.set(element, panel);
  return panel;
}

/** How many queries and keys a cell of the picture stands for. @param {Panel} panel */
function fields({ answer }) {
  const [rows, columns] = answer?.arrays.weights.shape ?? [1, 1];
  const [tall, wide] = answer?.header.pooled ?? [1, 1];
  return { rows, columns, tall, wide };
}

/** @param {Panel} panel */
function draw(panel) {
  const { answer, picture, room, labels, state } = panel;
  if (!answer) return;
  const { rows, columns, tall, wide } = fields(panel);
  const values = /** @type {Uint8Array} */ (answer.arrays.weights.data);
  const width = room.clientWidth || 320;
  if (state.drawing === "arcs") {
    const field = { values, rows, columns };
    const arcs = panel.every ? above(field, answer.header.most, panel.threshold, tall, wide) : ofQuery(state.query, panel.weights.length ? panel.weights : panel.rough);
    const drawn = arcsOf(labels, arcs, state, width, { query: (query) => go({ query }), key: (key) => go({ key }) });
    const scroll = make("div", { class: "arcs-scroll", tabindex: 0, role: "img", "aria-label": panel.say("head.arcs_picture") }, drawn);
    room.replaceChildren(scroll, ...(arcs.length ? [] : [make("p", { class: "quiet" }, panel.say("head.no_arcs", { threshold: panel.threshold.toFixed(2) }))]));
    scroll.scrollLeft = (state.query / Math.max(1, labels.queries.length)) * scroll.scrollWidth - width / 2;
    return;
  }
  if (picture.element.parentElement !== room) room.replaceChildren(picture.element);
  const bars = panel.bars === "largest" ? largest(values, rows, columns, answer.header.most) : byFields(/** @type {Float32Array} */ (answer.arrays[panel.bars].data), rows, tall);
  const end = panel.bars === "largest" || panel.bars === "sum" ? 1 : bars.reduce((most, each) => Math.max(most, each || 0), 0);
  picture.show({ field: { values, rows, columns, seen: answer.arrays.seen.data }, labels, tall, wide, bars, end }, width);
  picture.choose(state.query, state.key);
}

/** Whether there is a place that a query may not look at. @param {Answer} answer */
function hides({ arrays: { seen, weights } }) {
  const [rows, columns] = weights.shape;
  return Array.from({ length: rows }).some((_, row) => hidden(seen.data, row, columns).length > 0);
}

/** The largest weight of each row. @param {Uint8Array} values @param {number} rows @param {number} columns @param {number} most */
function largest(values, rows, columns, most) {
  const bytes = (/** @type {number} */ row) => values.subarray(row * columns, (row + 1) * columns).reduce((high, each) => Math.max(high, each), 0);
  return Float32Array.from({ length: rows }, (_, row) => most * (bytes(row) / 255) ** 2);
}

/** The largest bar of each field, where a row stands for several queries. @param {Float32Array} bars @param {number} rows @param {number} tall */
function byFields(bars, rows, tall) {
  if (bars.length <= rows) return bars;
  return Float32Array.from({ length: rows }, (_, row) => bars.subarray(row * tall, (row + 1) * tall).reduce((most, each) => Math.max(most, each), 0));
}

/** What stands beside the pointer: the exact weight in the row of the chosen query, elsewhere what the picture holds. @param {Panel} panel @param {number} query @param {number} key */
function hovered(panel, query, key) {
  const { answer, labels, say, state, weights } = panel;
  const { columns, tall, wide } = fields(panel);
  const byte = answer?.arrays.weights.data[Math.floor(query / tall) * columns + Math.floor(key / wide)] ?? 0;
  const pair = `${placed(labels.queries, query)} → ${placed(labels.keys, key)}`;
  if (!isSeen(answer?.arrays.seen.data, Math.floor(query / tall), Math.floor(key / wide), columns)) return [pair, say("head.hidden")];
  const exact = query === state.query && wide === 1 && weights.length > 0;
  const weight = exact ? figures(weights[key]) : `≈ ${Number(((answer?.header.most ?? 1) * (byte / 255) ** 2).toPrecision(2))}`;
  const several = tall * wide > 1 ? [say("head.field", { queries: tall, keys: wide })] : [];
  return [pair, say("head.weight", { value: weight }), ...several];
}

/** What holds of the whole head. @param {Panel} panel @param {any} header */
function about({ told, say, state }, header) {
  const lines = [
    say("head.sizes", { queries: header.queries, keys: header.keys, least: figures(header.least), most: figures(header.most) }),
    header.pooled[0] * header.pooled[1] > 1 ? say("head.pooled", { queries: header.pooled[0], keys: header.pooled[1] }) : "",
    header.difference === null || header.difference === undefined ? "" : say("head.difference", { value: figures(header.difference) }),
    header.kv_head !== undefined && header.kv_head !== state.head ? say("head.shares", { group: header.kv_head }) : "",
  ];
  told.textContent = lines.filter(Boolean).join(" ");
}

/** How it is drawn: matrix or arcs, closer, the bars, the threshold. @param {Panel} panel @returns {HTMLElement[]} */
function switches(panel) {
  const { say, state, picture } = panel;
  const arcs = state.drawing === "arcs";
  const again = () => {
    draw(panel);
    panel.tools.querySelectorAll("[data-every]").forEach((each) => each.toggleAttribute("hidden", !panel.every));
  };
  const button = (/** @type {string} */ text, /** @type {string} */ label, /** @type {() => void} */ onclick, /** @type {boolean | null} */ pressed = null) =>
    make("button", { type: "button", class: "chip", "aria-label": label, title: label, "aria-pressed": pressed === null ? null : String(pressed), "data-name": label, onclick }, text);
  const drawings = make("span", { class: "joined", role: "group", "aria-label": say("head.drawing") },
    button(say("head.matrix"), say("head.matrix"), () => go({ drawing: "" }), !arcs), button(say("head.arcs"), say("head.arcs"), () => go({ drawing: "arcs" }), arcs));
  if (arcs) {
    const slider = make("input", { type: "range", min: 0.02, max: 0.9, step: 0.02, value: panel.threshold, "aria-label": say("head.threshold") });
    const shown = make("output", {}, panel.threshold.toFixed(2));
    slider.addEventListener("input", () => {
      panel.threshold = Number(slider.value);
      shown.textContent = panel.threshold.toFixed(2);
      draw(panel);
    });
    const every = make("input", { type: "checkbox" });
    every.checked = panel.every;
    every.addEventListener("change", () => {
      panel.every = every.checked;
      again();
    });
    return [drawings, make("label", {}, every, say("head.every")), make("label", { "data-every": true, hidden: !panel.every }, slider, shown)];
  }
  const choice = make("select", {}, ...BARS.map((each) => make("option", { value: each, selected: each === panel.bars }, say(`head.bars.${each}`))));
  choice.addEventListener("change", () => {
    panel.bars = choice.value;
    draw(panel);
  });
  const zoom = make("span", { class: "joined", role: "group", "aria-label": say("head.zoom") },
    button("+", say("head.closer"), () => picture.matrix.closer(1.5, ...picture.matrix.middle())),
    button("−", say("head.farther"), () => picture.matrix.closer(1 / 1.5, ...picture.matrix.middle())),
    button("1:1", say("head.all"), () => picture.matrix.closer(0)));
  return [drawings, zoom, make("label", { class: "choice" }, say("head.bars"), choice)];
}

/** The largest weights of the chosen query, as bars that open their cell. @param {Panel} panel @param {Answer} row */
function numbers(panel, row) {
  const { labels, say, state } = panel;
  const [weights, scores, visible] = [row.arrays.weights.data, row.arrays.scores.data, row.arrays.visible.data];
  const order = Array.from(weights.keys()).filter((key) => visible[key]).sort((one, other) => weights[other] - weights[one] || one - other);
  const listed = order.slice(0, LISTED);
  if (visible[state.key] && !listed.includes(state.key)) listed[listed.length - 1] = state.key;
  const rest = order.filter((key) => !listed.includes(key));
  const token = placed(labels.queries, state.query);
  const first = listed[0];
  const line = first === undefined ? say("head.blind", { query: token }) : say("head.looks", { query: token, key: placed(labels.keys, first), weight: figures(weights[first]) });
  refilled(panel.row, [
    make("h3", {}, say("head.row", { query: token })),
    make("p", {}, line),
    make("ol", { class: "bars" }, ...listed.map((key) => make("li", {}, bar(placed(labels.keys, key), weights[key], weights[first], key === state.key, () => {
      go({ key });
      reach("cell");
    }, say("head.to_cell"))))),
    ...(rest.length ? [make("p", { class: "quiet" }, say("head.rest", { count: rest.length, sum: figures(rest.reduce((sum, key) => sum + weights[key], 0)) }))] : []),
    make("p", { class: "quiet" }, say("head.seen", { seen: order.length, keys: weights.length })),
    make("p", {}, make("button", { type: "button", class: "chip", "data-name": "without", onclick: () => {
      reach("cell");
      document.querySelector("#view-cell .effect")?.scrollIntoView({ block: "start" });
    } }, say("effect.ask"))),
  ]);
  panel.table.fill(say("head.row", { query: token }), [say("head.key"), say("head.weight_name"), say("head.score_name")], () =>
    order.slice(0, 64).map((key) => [placed(labels.keys, key), String(weights[key]), String(scores[key])]));
  const at = visible[state.key] ? figures(weights[state.key]) : say("head.masked");
  panel.table.speak(`${token} → ${placed(labels.keys, state.key)}: ${at}. ${line}`);
}

/** @param {KeyboardEvent} event @param {State} state @param {HTMLElement} element @returns {Partial<State> | null} */
function keys(event, state, element) {
  const panel = panels.get(element);
  if (!panel?.answer || event.target instanceof HTMLSelectElement || event.target instanceof HTMLInputElement) return null;
  const { tall, wide } = fields(panel);
  const { queries, keys: count } = panel.answer.header;
  const within = (/** @type {number} */ place, /** @type {number} */ length) => Math.max(0, Math.min(length - 1, place));
  const by = event.shiftKey ? 8 : 1;
  if (event.key === "ArrowUp" || event.key === "ArrowDown") return { query: within(state.query + (event.key === "ArrowUp" ? -1 : 1) * tall * by, queries) };
  if (event.key === "ArrowLeft" || event.key === "ArrowRight") return { key: within(state.key + (event.key === "ArrowLeft" ? -1 : 1) * wide * by, count) };
  if (event.key === "Home") return { key: 0 };
  if (event.key === "End") return { key: count - 1 };
  if (event.key === "[" || event.key === "]") return { head: Math.max(0, state.head + (event.key === "[" ? -1 : 1)) };
  if (event.key === "PageUp" || event.key === "PageDown") return { layer: Math.max(0, state.layer + (event.key === "PageUp" ? -1 : 1)) };
  if (event.key !== "Enter" || event.target instanceof HTMLButtonElement) return null;
  reach("cell");
  return {};
}
