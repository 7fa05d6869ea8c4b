// @ts-check
/** The cache of keys and values: how it grows, what it spares, what it weighs, and that it changes nothing. */
import { CachePicture } from "clearhead/cachepicture.js";
import { compared, formula, triangle, weights, work } from "clearhead/cachecosts.js";
import { legend } from "clearhead/colours.js";
import { make } from "clearhead/dom.js";
import { refilled } from "clearhead/headtools.js";
import { labelsOf, placed, visible } from "clearhead/labels.js";
import { figures, short, whole } from "clearhead/say.js";
import { go } from "clearhead/state.js";
import { behind } from "clearhead/table.js";
import { hush, tell } from "clearhead/tooltip.js";

/** @typedef {import("clearhead/state.js").State} State */
/** @typedef {import("clearhead/state.js").Say} Say */
/** @typedef {import("clearhead/state.js").Answer} Answer */

/** So many tokens are asked for at once; the state says how many of them are shown. */
const ASKED = 16;
const PACE = 700;
/** How much of a long prompt stands before what was written. */
const TAIL = 160;

/**
 * @typedef {object} Panel what stands in an element
 * @property {CachePicture} picture
 * @property {HTMLElement} room of the picture
 * @property {HTMLElement} text the prompt's end and what was written
 * @property {HTMLElement} key the legend
 * @property {HTMLElement} step what the chosen step does
 * @property {HTMLElement} spared what it would do without a cache
 * @property {HTMLElement} weights the bytes
 * @property {HTMLElement} tools
 * @property {import("clearhead/table.js").Behind} table
 * @property {"keys" | "values"} side which of the two the picture shows
 * @property {number} timer of what plays; 0 while nothing does
 * @property {State} state
 * @property {string[]} labels of all tokens
 * @property {string} prompt
 * @property {Answer | null} answer
 * @property {Say} say
 */

const COLUMNS = ["cache.column_token", "cache.column_reads", "cache.column_with", "cache.column_without", "cache.column_spared", "cache.column_apart"];
const NORMS = { keys: "cache.norm_keys", values: "cache.norm_values" };

/** @type {WeakMap<HTMLElement, Panel>} */
const panels = new WeakMap();
/** @type {Panel | null} */
let latest = null;

/** @type {import("clearhead/state.js").View} */
export const view = { id: "cache", show, keys, uses: ["steps"] };

/** @type {import("clearhead/state.js").View["show"]} */
async function show(element, state, api, say) {
  if (api.model().kind === "encoder") {
    latest = null;
    return element.replaceChildren(make("p", {}, say("cache.encoder")));
  }
  const [told, answer] = await Promise.all([api.get("tokens"), api.get("cache", { steps: ASKED })]);
  const panel = panels.get(element) ?? built(element, state, say);
  latest = panel;
  panel.state = state;
  if (panel.answer !== answer) {
    panel.answer = answer;
    const { header } = told;
    panel.labels = [...labelsOf(/** @type {any} */ (header), "decoder.attention").queries, ...answer.header.steps.map((/** @type {any} */ each) => visible(each.piece))];
    panel.prompt = header.text;
    panel.weights.replaceChildren(...weighed(panel));
    filled(panel);
  }
  draw(panel);
}

/** @param {HTMLElement} element @param {State} state @param {Say} say @returns {Panel} */
function built(element, state, say) {
  const picture = new CachePicture(say("cache.picture"), {
    choose: (steps) => go({ steps }),
    hover: (layer, column, x, y) => tell(x, y, hovered(panel, layer, column)),
    leave: hush,
  });
  /** @type {Panel} */
  const panel = {
    picture, state, say, answer: null, labels: [], prompt: "", side: "keys", timer: 0,
    room: make("div", { class: "head-room" }, picture.element), text: make("p", { class: "cache-text" }), key: make("div"),
    spared: make("div", { class: "triangle-box" }), step: make("div", { class: "row-numbers" }), weights: make("div", { class: "cache-bytes" }), tools: make("div", { class: "row-of-tools" }), table: behind(say("cache.table")),
  };
  panel.tools.append(...switches(panel));
  element.replaceChildren(panel.tools, panel.text, make("div", { class: "head-layout" }, make("div", { class: "head-drawing" }, panel.room, panel.key, panel.spared), panel.step), panel.weights, panel.table.element);
  let width = 0;
  new ResizeObserver(() => {
    if (panel.room.isConnected && panel.answer && panel.room.clientWidth !== width) drawPicture(panel);
    width = panel.room.clientWidth;
  }).observe(panel.room);
  panels.set(element, panel);
  return panel;
}

/** How many steps are shown. @param {Panel} panel */
function shownOf({ answer, state }) {
  return Math.min(state.steps, answer?.header.steps.length ?? 0);
}

/** Back, on, play, a slider; keys or values. @param {Panel} panel */
function switches(panel) {
  const { say } = panel;
  const button = (/** @type {string} */ text, /** @type {string} */ name, /** @type {string} */ told, /** @type {() => void} */ onclick) =>
    make("button", { type: "button", class: "chip", "data-do": name, "aria-label": told, title: told, onclick }, text);
  const by = (/** @type {number} */ change) => () => {
    halt(panel);
    go({ steps: Math.max(0, Math.min(panel.answer?.header.steps.length ?? 0, shownOf(panel) + change)) });
  };
  const slider = make("input", { type: "range", min: 0, max: ASKED, step: 1, "aria-label": say("cache.slider") });
  slider.addEventListener("input", () => {
    halt(panel);
    go({ steps: Number(slider.value) });
  });
  const side = (/** @type {"keys" | "values"} */ name, /** @type {string} */ told) => make("button", { type: "button", class: "chip", "data-side": name, "aria-pressed": String(name === panel.side), onclick: () => {
    panel.side = name;
    for (const each of panel.tools.querySelectorAll("[data-side]")) each.setAttribute("aria-pressed", String(each.getAttribute("data-side") === name));
    draw(panel);
  } }, told);
  return [
    make("span", { class: "joined" }, button("◀", "back", say("cache.back"), by(-1)), button("▶▶", "play", say("cache.play"), () => (panel.timer ? halt(panel) : play(panel))), button("▶", "on", say("cache.on"), by(1))),
    make("label", {}, slider, make("output", {})),
    make("span", { class: "joined", role: "group", "aria-label": say("cache.side") }, side("keys", say("cache.keys")), side("values", say("cache.values"))),
  ];
}

/** @param {Panel} panel */
function play(panel) {
  const most = panel.answer?.header.steps.length ?? 0;
  // Where a person wants nothing to move, it is at the end at once.
  if (matchMedia("(prefers-reduced-motion: reduce)").matches) return go({ steps: shownOf(panel) < most ? most : 0 });
  if (shownOf(panel) >= most) go({ steps: 0 });
  panel.timer = setInterval(() => {
    const next = shownOf(panel) + 1;
    if (!panel.room.isConnected || next > most) return halt(panel);
    go({ steps: next });
    if (next >= most) halt(panel);
  }, PACE);
  played(panel);
}

/** @param {Panel} panel */
function halt(panel) {
  clearInterval(panel.timer);
  panel.timer = 0;
  played(panel);
}

/** @param {Panel} panel */
function played({ tools, timer, say }) {
  const button = tools.querySelector("[data-do=play]");
  if (!button) return;
  button.textContent = timer ? "❚❚" : "▶▶";
  for (const name of ["title", "aria-label"]) button.setAttribute(name, say(timer ? "cache.pause" : "cache.play"));
}

/** @param {Panel} panel */
function draw(panel) {
  const { answer, tools, say, text, prompt, key, side } = panel;
  if (!answer) return;
  const shown = shownOf(panel);
  const { steps, most } = answer.header;
  const slider = /** @type {HTMLInputElement} */ (tools.querySelector("input"));
  slider.max = String(steps.length);
  slider.value = String(shown);
  slider.disabled = !steps.length;
  /** @type {HTMLElement} */ (tools.querySelector("output")).textContent = say("cache.place", { step: shown, steps: steps.length });
  const letters = Array.from(prompt);
  const before = letters.length > TAIL ? `…${letters.slice(-TAIL).join("")}` : prompt;
  const written = steps.slice(0, shown).map((/** @type {any} */ each) => each.text);
  text.replaceChildren(make("span", { class: "quiet" }, before), ...written.map((/** @type {string} */ each, /** @type {number} */ place) => make(place === shown - 1 ? "mark" : "strong", {}, each)));
  key.replaceChildren(legend(most[side], say(NORMS[side])));
  panel.weights.querySelector("[data-formula]")?.replaceChildren(formula(answer.header, answer.header.prefill + shown, say));
  drawPicture(panel);
  panel.spared.replaceChildren(...spared(panel, shown));
  refilled(panel.step, told(panel, shown));
}

/** @param {Panel} panel */
function drawPicture(panel) {
  const { answer, picture, room, labels, say, side } = panel;
  if (!answer) return;
  const { prefill, layers, steps } = answer.header;
  const shown = shownOf(panel);
  picture.show({
    values: /** @type {Uint8Array} */ (answer.arrays[side].data), layers, prefill, made: steps.length, shown, labels,
    first: (layer) => firstOf(answer.header, layer, prefill + shown),
    brackets: [say("cache.bracket_prefill", { tokens: whole(prefill) }), say("cache.bracket_steps")],
  }, room.clientWidth || 320);
}

/** The first column that the last of so many tokens reads in a layer. @param {any} header @param {number} layer @param {number} tokens */
function firstOf({ windows }, layer, tokens) {
  return windows[layer] === null ? 0 : Math.max(0, tokens - windows[layer]);
}

/** How many columns the last of so many tokens reads, in the layer that reads most. @param {any} header @param {number} tokens @returns {number} */
function readOf({ windows }, tokens) {
  return Math.max(...windows.map((/** @type {number | null} */ each) => Math.min(tokens, each ?? tokens)));
}

/** @param {Panel} panel @param {number} layer @param {number} column */
function hovered({ answer, labels, side, say }, layer, column) {
  if (!answer) return [];
  const [, columns = 1] = answer.arrays[side].shape;
  const norm = answer.header.most[side] * (answer.arrays[side].data[layer * columns + column] / 255) ** 2;
  return [placed(labels, column), say("cache.cell", { layer, norm: Number(norm.toPrecision(2)), groups: answer.header.kv_heads, width: answer.header.head_width })];
}

/** What the chosen step does. @param {Panel} panel @param {number} shown @returns {HTMLElement[]} */
function told(panel, shown) {
  const { answer, labels, say } = panel;
  if (!answer) return [];
  const { prefill, layers, steps, windows, source, asked, context, prefill_flops } = answer.header;
  const tokens = prefill + shown;
  const ended = steps.length < asked && shown === steps.length ? [make("p", { class: "quiet" }, say("cache.ended", { context: whole(context) }))] : [];
  const remembered = source === null ? [] : [make("p", { class: "quiet" }, say("cache.source", { source: whole(source) }))];
  if (!shown) {
    panel.table.speak(say("cache.step_none"));
    return [make("h3", {}, say("cache.step_none")), make("p", {}, say("cache.prefill_told", { tokens: whole(prefill), layers })), ...remembered, make("p", {}, say("cache.prefill_work", { flops: short(prefill_flops) })), ...ended];
  }
  const step = steps[shown - 1];
  const seen = readOf(answer.header, tokens);
  const windowed = windows.some((/** @type {number | null} */ each) => each !== null);
  const title = say("cache.step", { step: shown, token: placed(labels, step.position) });
  panel.table.speak(`${title}. ${say("cache.ratio", { ratio: ratio(step) })}`);
  return [
    make("h3", {}, title),
    make("p", {}, say("cache.step_told", { layers }), seen < tokens ? say("cache.step_reads_some", { seen: whole(seen), tokens: whole(tokens) }) : say("cache.step_reads", { tokens: whole(tokens) })),
    ...(windowed ? [make("p", { class: "quiet" }, say("cache.step_window"))] : []),
    ...remembered,
    make("p", {}, say("cache.ratio", { ratio: ratio(step) })),
    compared(answer.header, shown, say),
    ...ended,
  ];
}

/** What a step computes, and what it would without a cache. @param {Panel} panel @param {number} shown @returns {HTMLElement[]} */
function spared({ answer, say }, shown) {
  if (!answer || !shown) return [];
  const { prefill, steps, windows } = answer.header;
  const [tokens, before] = [whole(prefill + shown), whole(prefill + shown - 1)];
  const picture = triangle(prefill + shown, windows.includes(null) ? null : Math.max(...windows), say("cache.triangle", { tokens, before }));
  return [make("figure", {}, picture), make("div", { class: "spared" },
    make("p", { class: "quiet" }, make("i", { class: "swatch new" }), say("cache.new_row"), make("br"), make("i", { class: "swatch again" }), say("cache.old_rows", { before })), work(steps[shown - 1], say))];
}

/** @param {{flops: number, flops_without: number}} step */
const ratio = ({ flops, flops_without }) => figures(Number((flops_without / flops).toPrecision(3)));

/** @param {Panel} panel */
function weighed({ answer, say }) {
  const { header } = /** @type {Answer} */ (answer);
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
  const { header } = /** @type {Answer} */ (answer);
  const { prefill, steps } = header;
  table.fill(say("cache.table_title", { tokens: prefill }), COLUMNS.map((name) => say(name)), () =>
    steps.map((/** @type {any} */ step) => [placed(labels, step.position), whole(readOf(header, step.position + 1)), whole(step.flops), whole(step.flops_without), ratio(step), step.difference === null ? "–" : String(step.difference)]));
}

/** @param {KeyboardEvent} event @param {State} state @returns {Partial<State> | null} */
function keys(event, state) {
  if (!latest?.answer || event.target instanceof HTMLInputElement) return null;
  const most = latest.answer.header.steps.length;
  const now = Math.min(most, state.steps);
  const by = event.shiftKey ? 4 : 1;
  if (event.key === "ArrowRight" || event.key === "ArrowLeft") {
    halt(latest);
    return { steps: Math.max(0, Math.min(most, now + (event.key === "ArrowRight" ? by : -by))) };
  }
  if (event.key === "Home") return { steps: 0 };
  if (event.key === "End") return { steps: most };
  return null;
}
