// @ts-check
/** The cache of keys and values: how it grows, what it spares, what it weighs, and that it changes nothing. */
import { formula, weights } from "clearhead/cachecosts.js";
import { CachePicture } from "clearhead/cachepicture.js";
import { firstOf, goneOf, rows, spared, stepped } from "clearhead/cachesteps.js";
import { Tools } from "clearhead/cachetools.js";
import { legend } from "clearhead/colours.js";
import { make } from "clearhead/dom.js";
import { atWidth, refilled } from "clearhead/headtools.js";
import { labelsOf, placed, visible } from "clearhead/labels.js";
import { whole } from "clearhead/say.js";
import { go } from "clearhead/state.js";
import { behind } from "clearhead/table.js";
import { hush, tell } from "clearhead/tooltip.js";

/** @typedef {import("clearhead/state.js").State} State */
/** @typedef {import("clearhead/state.js").Say} Say */
/** @typedef {import("clearhead/cachesteps.js").CacheHeader} CacheHeader */
/** @typedef {Record<string, import("clearhead/state.js").Numbers>} Arrays */
/** @typedef {{header: CacheHeader, arrays: Arrays}} CacheAnswer */

/** How much of a long prompt stands before what was written. */
const TAIL = 160;
/** Steps that an arrow key goes with Shift. */
const FAR = 4;

/**
 * @typedef {object} Panel what stands in an element
 * @property {CachePicture} picture
 * @property {HTMLElement} room of the picture
 * @property {HTMLElement} text the prompt's end and what was written
 * @property {HTMLElement} key the legend
 * @property {HTMLElement} step what the chosen step does
 * @property {HTMLElement} spared what it would do without a cache
 * @property {HTMLElement} weights the bytes
 * @property {Tools} tools
 * @property {import("clearhead/table.js").Behind} table
 * @property {State} state
 * @property {string[]} labels of all tokens
 * @property {string} prompt
 * @property {CacheAnswer | null} answer
 * @property {Say} say
 */

const COLUMNS = [
  "cache.column_token", "cache.column_reads", "cache.column_with", "cache.column_without", "cache.column_spared", "cache.column_apart",
];

/** @type {WeakMap<HTMLElement, Panel>} */
const panels = new WeakMap();

/** @type {import("clearhead/state.js").View} */
export const view = { id: "cache", show, keys, uses: ["steps", "held"] };

/** @type {import("clearhead/state.js").View["show"]} */
async function show(element, state, api, say) {
  if (api.model().kind === "encoder") return element.replaceChildren(make("p", {}, say("cache.encoder")));
  const [{ header }, answer] = await Promise.all([api.get("tokens"), api.get("cache")]);
  const panel = panels.get(element) ?? built(element, state, say);
  panel.state = state;
  if (panel.answer !== answer) {
    panel.answer = answer;
    const read = labelsOf(/** @type {import("clearhead/labels.js").Told} */ (header), "decoder.attention").queries;
    panel.labels = [...read, ...panel.answer.header.steps.map(({ piece }) => visible(piece))];
    panel.prompt = header.text;
    panel.weights.replaceChildren(...weighed(panel.answer.header, say));
    filled(panel);
  }
  draw(panel);
}

/** @param {HTMLElement} element @param {State} state @param {Say} say @returns {Panel} */
function built(element, state, say) {
  const picture = new CachePicture(say("cache.picture"), {
    choose: (steps) => panel.tools.to(steps),
    hover: (layer, column, x, y) => tell(x, y, hovered(panel, layer, column)),
    leave: hush,
  });
  /** @type {Panel} */
  const panel = {
    picture, state, say, answer: null, labels: [], prompt: "",
    room: make("div", { class: "head-room" }, picture.element),
    text: make("p", { class: "cache-text" }),
    key: make("div"),
    spared: make("div", { class: "triangle-box" }),
    step: make("div", { class: "row-numbers" }),
    weights: make("div", { class: "cache-bytes" }),
    tools: new Tools({ shown: () => shownOf(panel), most: () => mostOf(panel) }, say),
    table: behind(say("cache.table")),
  };
  const drawing = make("div", { class: "head-drawing" }, panel.room, panel.key, panel.spared);
  const layout = make("div", { class: "head-layout" }, drawing, panel.step);
  element.replaceChildren(panel.tools.element, panel.text, layout, panel.weights, panel.table.element);
  atWidth(panel.room, () => panel.answer && drawPicture(panel));
  panels.set(element, panel);
  return panel;
}

/** How many steps there are. @param {Panel} panel */
function mostOf({ answer }) {
  return answer?.header.steps.length ?? 0;
}

/** How many of them are shown. @param {Panel} panel */
function shownOf(panel) {
  return Math.min(panel.state.steps, mostOf(panel));
}

/** Which half of the cache the picture shows. @param {Panel} panel @returns {"keys" | "values"} */
function sideOf({ state }) {
  return state.held === "values" ? "values" : "keys";
}

/** @param {Panel} panel */
function draw(panel) {
  const { answer, tools, say, text, prompt, key, labels } = panel;
  if (!answer) return;
  const { header } = answer;
  const [shown, side] = [shownOf(panel), sideOf(panel)];
  tools.show(panel.state.held);
  const letters = Array.from(prompt);
  const before = letters.length > TAIL ? `…${letters.slice(-TAIL).join("")}` : prompt;
  const written = header.steps.slice(0, shown).map((each, place) => make(place === shown - 1 ? "mark" : "strong", {}, each.text));
  text.replaceChildren(make("span", { class: "quiet" }, before), ...written);
  key.replaceChildren(legend(header.most[side], say(side === "keys" ? "cache.norm_keys" : "cache.norm_values")));
  panel.weights.querySelector("[data-formula]")?.replaceChildren(formula(header, header.prefill + shown, say));
  drawPicture(panel);
  panel.spared.replaceChildren(...spared(header, shown, say));
  const { line, told } = stepped(header, shown, labels, say);
  panel.table.speak(line);
  refilled(panel.step, told);
}

/** @param {Panel} panel */
function drawPicture(panel) {
  const { answer, picture, room, labels, say } = panel;
  if (!answer) return;
  const { header, arrays } = answer;
  const { prefill, layers, steps } = header;
  const shown = shownOf(panel);
  picture.show({
    values: /** @type {Uint8Array} */ (arrays[sideOf(panel)].data), layers, prefill, made: steps.length, shown, labels,
    first: (layer) => firstOf(header, layer, prefill + shown),
    gone: goneOf(header, prefill + shown),
    brackets: [say("cache.bracket_prefill", { tokens: whole(prefill) }), say("cache.bracket_steps")],
  }, room.clientWidth || 320);
}

/** @param {Panel} panel @param {number} layer @param {number} column */
function hovered(panel, layer, column) {
  const { answer, labels, say } = panel;
  if (!answer) return [];
  const { header, arrays } = answer;
  if (column < goneOf(header, header.prefill + shownOf(panel))) return [placed(labels, column), say("cache.cell_gone", { layer })];
  const side = sideOf(panel);
  const [, columns = 1] = arrays[side].shape;
  const norm = header.most[side] * (arrays[side].data[layer * columns + column] / 255) ** 2;
  const fields = { layer, norm: Number(norm.toPrecision(2)), groups: header.kv_heads, width: header.head_width };
  return [placed(labels, column), say("cache.cell", fields)];
}

/** @param {CacheHeader} header @param {Say} say */
function weighed(header, say) {
  return [
    make("h3", {}, say("cache.weighs")),
    make("p", { class: "caption" }, say("cache.weighs_told")),
    make("div", { "data-formula": true }),
    make("p", { class: "quiet" }, say("cache.letters")),
    weights(header, say),
    ...(header.ring === null ? [] : [make("p", { class: "quiet" }, say("cache.ring", { ring: header.ring }))]),
  ];
}

/** The table behind the picture. @param {Panel} panel */
function filled({ answer, table, labels, say }) {
  if (!answer) return;
  const { header } = answer;
  const title = say("cache.table_title", { tokens: whole(header.prefill) });
  table.fill(title, COLUMNS.map((name) => say(name)), () => rows(header, labels));
}

/** @type {NonNullable<import("clearhead/state.js").View["keys"]>} */
function keys(event, state, element) {
  const panel = panels.get(element);
  if (!panel?.answer || event.target instanceof HTMLInputElement) return null;
  const most = mostOf(panel);
  const by = event.shiftKey ? FAR : 1;
  const wanted = new Map([["ArrowRight", shownOf(panel) + by], ["ArrowLeft", shownOf(panel) - by], ["Home", 0], ["End", most]]).get(event.key);
  if (wanted === undefined) return null;
  panel.tools.halt();
  return { steps: Math.max(0, Math.min(most, wanted)) };
}
