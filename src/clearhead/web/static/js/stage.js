// @ts-check
/** One tensor of the forward: what it is, its axes, its numbers, its formula, the line that computes it, and a picture of it. */

import { Refused } from "clearhead/api.js";
import { make } from "clearhead/dom.js";
import { bytes, figures, has, short, whole } from "clearhead/say.js";
import { go } from "clearhead/state.js";
import { ownName } from "clearhead/wiring.js";

/** @typedef {import("clearhead/wiring.js").Stage} Stage */
/** @typedef {import("clearhead/state.js").Say} Say */

/**
 * Fills the panel beside the flow; without a stage it says what can be opened.
 * @param {HTMLElement} panel
 * @param {Stage | null} stage
 * @param {import("clearhead/state.js").Api} api
 * @param {Say} say
 */
export async function showStage(panel, stage, api, say) {
  panel.classList.toggle("empty", !stage);
  if (!stage) return panel.replaceChildren(make("p", { class: "quiet" }, say("flow.choose")));
  if (panel.getAttribute("data-shown") === stage.name && panel.querySelector("h3")) return;
  panel.setAttribute("data-shown", stage.name);
  const room = make("figure", { class: "stage-picture" });
  panel.replaceChildren(...told(stage, say), room);
  const answer = await api.get("stage", { name: stage.name }).catch((error) => {
    if (!(error instanceof Refused) || error.kind === "lost") throw error;
    panel.querySelector(".numbers")?.replaceWith(numbersOf(stage, say));
    room.append(make("p", { class: "quiet" }, error.kind === "absent" ? say("stage.absent") : error.message));
  });
  if (!answer?.arrays.picture) return;
  const { header } = answer;
  // Of many scores, weights and logits the flow does not tell the numbers: they are computed when somebody opens one.
  if (unknown(stage)) panel.querySelector(".numbers")?.replaceWith(numbersOf({ ...stage, summary: header.stage.summary }, say));
  const end = Math.max(Math.abs(header.least ?? 0), Math.abs(header.most ?? 0)) || 1;
  room.append(picture(answer.arrays.picture, say("stage.picture", { name: stage.name })), scale(end),
    make("figcaption", { class: "caption" }, say("stage.picture_told", { rows: rowsOf(stage, -2, say), columns: rowsOf(stage, -1, say) })));
}

/** @param {Stage} stage @param {number} from @param {Say} say */
function rowsOf(stage, from, say) {
  const axis = stage.axes.at(from);
  return axis ? say(`axis.${axis}`) : "";
}

/**
 * @param {Stage} stage
 * @param {Say} say
 * @returns {HTMLElement[]}
 */
function told(stage, say) {
  const own = ownName(stage.name);
  const kind = own.replace("cross_attention.", "attention.");
  const about = [`about.${own}`, `about.${kind}`].find(has);
  const axes = stage.axes.map((axis, place) => make("tr", {}, make("th", { scope: "row" }, axis), make("td", {}, say(`axis.${axis}`)),
    make("td", { class: "size" }, whole(stage.shape[place] ?? 0))));
  /** @type {(HTMLElement | null)[]} */
  const parts = [
    make("header", {}, make("h3", {}, say(`tensor.${own}`)), make("button", { type: "button", class: "chip icon", "aria-label": say("stage.close"), onclick: () => go({ stage: "" }) }, "×")),
    make("code", { class: "path" }, stage.name),
    about ? make("p", { class: "caption" }, say(about)) : null,
    stage.formula ? make("p", { class: "formula" }, ...written(stage.formula, say)) : null,
    make("table", { class: "axes" }, make("caption", { class: "visually-hidden" }, say("stage.axes")), make("tbody", {}, ...axes)),
    numbersOf(stage, say, unknown(stage)),
    stage.source ? make("div", { class: "source" }, make("span", { class: "quiet" }, say("stage.source")), make("code", { class: "place" }, `${stage.source.file}:${stage.source.line}`),
      make("pre", {}, make("code", {}, stage.source.text.trim()))) : null,
  ];
  return parts.filter((each) => each !== null);
}

/** Whether the flow does not tell the numbers of a tensor. @param {Stage} stage */
function unknown({ name, summary }) {
  return summary?.mean == null && /(?:\.scores|\.weights|logits)$/.test(name);
}

/** Mean, spread, ends and costs. @param {Stage} stage @param {Say} say @param {boolean} [coming] whether the first are still being computed */
function numbersOf(stage, say, coming = false) {
  const { mean, std, least, most } = stage.summary ?? {};
  const shown = (/** @type {number | null | undefined} */ value) => (coming ? "…" : figures(value));
  /** @type {[string, string, string][]} */
  const numbers = [
    ["stage.mean", shown(mean), String(mean)],
    ["stage.std", shown(std), String(std)],
    ["stage.least", shown(least), String(least)],
    ["stage.most", shown(most), String(most)],
    ["flow.parameters", short(stage.parameters), whole(stage.parameters)],
    ["flow.flops", short(stage.flops), whole(stage.flops)],
    ["flow.bytes", bytes(stage.bytes), whole(stage.bytes)],
  ];
  return make("dl", { class: "numbers" }, ...numbers.map(([key, text, full]) => make("div", {}, make("dt", {}, say(key)), make("dd", { title: full, "data-value": full }, text))));
}

/** A formula with its lower letters set low, W_Q, and its words in the language that is read. @param {string} formula @param {Say} say */
function written(formula, say) {
  return formula.replace(/\{(\w+)\}/g, (_, name) => say(`formula.${name}`)).split(/_(\w)/).map((part, place) => (place % 2 ? make("sub", {}, part) : part));
}

/**
 * A tensor as a matrix: orange below zero, paper at zero, blue above.
 * @param {import("clearhead/state.js").Numbers} numbers
 * @param {string} label
 */
function picture({ shape, data }, label) {
  const [rows = 1, columns = 1] = shape;
  const canvas = make("canvas", { width: columns, height: rows, role: "img", "aria-label": label });
  const context = canvas.getContext("2d");
  const image = new ImageData(columns, rows);
  const paper = isDark() ? 34 : 250;
  for (let place = 0; place < rows * columns; place++) image.data.set([...signed((data[place] ?? 0) / 255 * 2 - 1, paper), 255], 4 * place);
  context?.putImageData(image, 0, 0);
  return canvas;
}

/** @param {number} share from -1 to 1 @param {number} paper @returns {[number, number, number]} */
function signed(share, paper) {
  const size = Math.sqrt(Math.min(1, Math.abs(share)));
  const end = share < 0 ? (paper > 128 ? [179, 88, 6] : [253, 184, 99]) : paper > 128 ? [38, 70, 150] : [130, 176, 255];
  const [red = 0, green = 0, blue = 0] = end.map((value) => paper + (value - paper) * size);
  return [red, green, blue];
}

function isDark() {
  const theme = document.documentElement.dataset.theme;
  return theme ? theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
}

/** The scale below the picture, with its ends. @param {number} end */
function scale(end) {
  const strip = make("canvas", { width: 129, height: 1, "aria-hidden": "true" });
  const image = new ImageData(129, 1);
  const paper = isDark() ? 34 : 250;
  for (let place = 0; place < 129; place++) image.data.set([...signed((place - 64) / 64, paper), 255], 4 * place);
  strip.getContext("2d")?.putImageData(image, 0, 0);
  return make("div", { class: "signed-scale" }, make("span", {}, figures(-end)), strip, make("span", {}, figures(end)));
}
