// @ts-check
/** The model as the notes draw it: the residual stream from the top down, branches beside it, every tensor with its axes and sizes. */

import { draw, make } from "clearhead/dom.js";
import { bytes, short } from "clearhead/say.js";
import { showStage } from "clearhead/stage.js";
import { current, go } from "clearhead/state.js";
import { blockOf, column, ownName } from "clearhead/wiring.js";

/** @typedef {import("clearhead/wiring.js").Stage} Stage */
/** @typedef {import("clearhead/wiring.js").Item} Item */
/** @typedef {import("clearhead/wiring.js").Wire} Wire */
/** @typedef {import("clearhead/state.js").Say} Say */
/** @typedef {{picture: HTMLElement, panel: HTMLElement, stages: Stage[], width: number, layer: number, focus: string}} Drawn */

/** @type {WeakMap<HTMLElement, Drawn>} */
const drawn = new WeakMap();
const COSTS = /** @type {const} */ (["parameters", "flops", "bytes"]);
const TWO_COLUMNS = 640;
const CELL = 62;
const families = getComputedStyle(document.documentElement);
const [NAME, SHAPE] = [`600 13px ${families.getPropertyValue("--sans")}`, `11px ${families.getPropertyValue("--mono")}`];
const ruler = document.createElement("canvas").getContext("2d");
const EDGE = 2;

/** @type {import("clearhead/state.js").View} */
export const view = {
  id: "flow",
  uses: ["layer", "stage"],
  async show(element, state, api, say) {
    const found = drawn.get(element) ?? begin(element, (await api.get("flow")).header.stages, say);
    if (found.layer !== state.layer) paint(found, state.layer, say);
    choose(found, state.stage);
    const stage = found.stages.find(({ name }) => name === state.stage);
    await showStage(found.panel, stage ?? null, api, say);
  },
  keys(event, state) {
    const target = event.target instanceof Element ? event.target.closest("[data-stop]") : null;
    if (!target) return event.key === "Escape" && state.stage ? { stage: "" } : null;
    const stops = [.../** @type {Element} */ (target.closest("svg")).querySelectorAll("[data-stop]")];
    const step = new Map([["ArrowUp", -1], ["ArrowLeft", -1], ["ArrowDown", 1], ["ArrowRight", 1]]).get(event.key);
    const next = step === undefined ? undefined : stops[stops.indexOf(target) + step];
    if (next instanceof SVGElement) {
      next.focus();
      return {};
    }
    if (event.key === "Enter" || event.key === " ") return chosen(target);
    return event.key === "Escape" ? { stage: "" } : null;
  },
};

/** What a click or Enter on a part of the picture opens. @param {Element} target @returns {Partial<import("clearhead/state.js").State>} */
function chosen(target) {
  const name = target.getAttribute("data-stage");
  if (name) return { stage: current().stage === name ? "" : name };
  return { layer: Number(target.getAttribute("data-block")) };
}

/**
 * @param {HTMLElement} element
 * @param {Stage[]} stages
 * @param {Say} say
 */
function begin(element, stages, say) {
  const picture = make("div", { class: "flow-picture" });
  const panel = make("aside", { class: "stage", "aria-label": say("stage.panel") });
  const key = make("p", { class: "costs-key quiet" }, ...COSTS.map((cost) => make("span", { class: `cost-${cost}` },
    `${say(`flow.${cost}`)} ${said(cost, stages.reduce((sum, stage) => sum + stage[cost], 0))}`)), make("span", { class: "plain" }, say("flow.bars")));
  element.append(key, make("div", { class: "flow" }, picture, panel));
  /** @type {Drawn} */
  const found = { picture, panel, stages, width: 0, layer: -1, focus: "" };
  drawn.set(element, found);
  new ResizeObserver(() => {
    const width = Math.floor(picture.clientWidth);
    if (width === found.width || !width || found.layer < 0) return;
    paint(found, found.layer, say);
    choose(found, current().stage);
  }).observe(picture);
  return found;
}

/** @param {typeof COSTS[number]} cost @param {number} value */
function said(cost, value) {
  return cost === "bytes" ? bytes(value) : short(value);
}

/** Draws the picture with one block opened. @param {Drawn} found @param {number} layer @param {Say} say */
function paint(found, layer, say) {
  const focused = document.activeElement instanceof SVGElement && found.picture.contains(document.activeElement) ? document.activeElement.getAttribute("data-stop") : null;
  found.layer = layer;
  const width = (found.width = Math.floor(found.picture.clientWidth) || 640);
  const stacks = ["encoder.", "decoder."].map((part) => found.stages.filter(({ name }) => name.startsWith(part)));
  const two = stacks.some((stack) => stack.length > 0);
  const beside = two && width >= TWO_COLUMNS;
  const size = (beside ? (width - 36) / 2 : width) - EDGE;
  const columns = two
    ? [column(stacks[0] ?? [], layer, { left: 0, top: 26, width: size })]
    : [column(found.stages, layer, { left: 0, top: 4, width: size })];
  if (two) columns.push(column(stacks[1] ?? [], layer, { left: beside ? size + 36 : 0, top: beside ? 26 : (columns[0]?.bottom ?? 0) + 40, width: size }));
  const height = Math.max(...columns.map(({ bottom }) => bottom)) + 6;
  const most = Object.fromEntries(COSTS.map((cost) => [cost, Math.max(1, ...found.stages.map((stage) => stage[cost]))]));
  const svg = draw("svg", { width, height, viewBox: `0 0 ${width} ${height}`, role: "group", "aria-label": say("flow.title") }, arrowHead());
  for (const [index, each] of columns.entries()) {
    if (two) svg.append(draw("text", { x: beside ? index * (size + 36) + 42 : 42, y: (each.items[0]?.y ?? 20) - 10, class: "stack" }, say(index ? "flow.decoder" : "flow.encoder")));
    svg.append(...each.wires.filter(({ kind }) => kind !== "plus").map(wire));
    svg.append(...each.items.map((item) => box(item, most, say)));
    svg.append(...each.wires.filter(({ kind }) => kind === "plus").map(plus));
  }
  if (two && columns[0] && columns[1]) svg.append(...crossing(columns[0], columns[1], beside));
  found.picture.replaceChildren(svg);
  const stops = [...svg.querySelectorAll("[data-stop]")];
  const again = stops.find((stop) => stop.getAttribute("data-stop") === focused);
  (again ?? stops[0])?.setAttribute("tabindex", "0");
  if (again instanceof SVGElement) again.focus({ preventScroll: true });
}

function arrowHead() {
  return draw("defs", {}, draw("marker", { id: "arrow", viewBox: "0 0 8 8", refX: 7, refY: 4, markerWidth: 6, markerHeight: 6, orient: "auto-start-reverse" },
    draw("path", { d: "M0 0.8 8 4 0 7.2z", class: "arrow" })));
}

/** @param {Wire} wire */
function wire({ points, arrow, kind }) {
  const path = points.map(([x, y], index) => `${index ? "L" : "M"}${x.toFixed(1)} ${y.toFixed(1)}`).join("");
  return draw("path", { d: path, class: `wire ${kind}`, "marker-end": arrow ? "url(#arrow)" : null });
}

/** @param {Wire} wire */
function plus({ points }) {
  const [x, y] = points[0] ?? [0, 0];
  return draw("g", { class: "plus" }, draw("circle", { cx: x, cy: y, r: 8 }), draw("path", { d: `M${x - 4} ${y}h8M${x} ${y - 4}v8` }));
}

/**
 * @param {Item} item
 * @param {Record<string, number>} most
 * @param {Say} say
 */
function box(item, most, say) {
  return item.stage ? stageBox(item, item.stage, most, say) : blockBox(item, say);
}

/** @param {Item} item @param {Say} say */
function blockBox({ x, y, width, height, block, open, name }, say) {
  const label = say(open ? "flow.block_open" : "flow.block", { block: block ?? 0 });
  return stop(`block ${x} ${block}`, { "data-block": block, class: open ? "block open" : "block", "aria-expanded": String(Boolean(open)) }, label,
    draw("rect", { x, y, width, height, rx: 6 }),
    name === "small"
      ? draw("text", { x: x + width / 2, y: y + height / 2 + 4, "text-anchor": "middle" }, String(block))
      : draw("text", { x: x + 12, y: y + height / 2 + 4 }, `${open ? "▾" : "▸"} ${label}`));
}

/** @param {Item} item @param {Stage} stage @param {Record<string, number>} most @param {Say} say */
function stageBox({ x, y, width, height, name, title: named, lane }, stage, most, say) {
  const sizes = `${stage.axes.join(" × ")} = ${stage.shape.join(" × ")}`;
  const title = say(`tensor.${named ?? name}`);
  const numbers = width >= 400;
  const narrow = width < 240;
  const pad = width < 100 ? 5 : 10;
  const room = width - (numbers ? 3 * CELL + 14 : narrow ? pad + 4 : 92);
  const shapes = [sizes, `${stage.axes.join("·")} = ${stage.shape.join("·")}`, stage.shape.join("×")];
  const shape = shapes.find((text) => text.length * 6.7 < room) ?? stage.shape.join("×");
  return stop(stage.name, { "data-stage": stage.name, class: `tensor ${lane}`, "aria-pressed": "false" }, `${title}: ${sizes}`,
    draw("rect", { x, y, width, height, rx: 8, class: "frame" }),
    draw("text", { x: x + pad, y: y + 18, class: "name" }, calledIn(title, room)),
    draw("text", { x: x + pad, y: y + (narrow ? 31 : 35), class: "shape" }, fitted(shape, room, SHAPE)),
    ...COSTS.flatMap((cost, index) => {
      // The root of the share: most tensors are small beside the vocabulary's, and would all look like nothing.
      const share = Math.sqrt(stage[cost] / (most[cost] ?? 1));
      const full = numbers ? CELL - 10 : narrow ? width - 20 : 62;
      const [left, top] = numbers ? [x + width - (3 - index) * CELL, y + 30] : narrow ? [x + 10, y + 35 + index * 3] : [x + width - 74, y + 12 + index * 8];
      const bar = draw("rect", { class: `cost-${cost}`, x: left, y: top, width: share && Math.max(1.5, full * share), height: narrow ? 2 : 5, rx: 1 });
      return numbers && stage[cost] ? [draw("text", { x: left, y: y + 24, class: "cost" }, said(cost, stage[cost])), bar] : [bar];
    }));
}

/** A part of the picture that can be reached and chosen. @param {string} name @param {import("clearhead/dom.js").Attributes} attributes @param {string} label @param {...Element} children */
function stop(name, attributes, label, ...children) {
  return draw("g", { ...attributes, "data-stop": name, role: "button", tabindex: -1, "aria-label": label, onclick: (event) => go(chosen(event.currentTarget)) },
    draw("title", {}, label), ...children);
}

/** The name of a box; of "q · Query" the letter alone where there is no room for more. @param {string} title @param {number} room */
function calledIn(title, room) {
  const whole = fitted(title, room, NAME);
  return whole === title ? whole : fitted(title.split(" · ")[0] ?? title, room, NAME);
}

/** A text that is cut where its room ends. @param {string} text @param {number} room @param {string} font the style sheet's, for `.name` and `.shape` */
function fitted(text, room, font) {
  if (!ruler) return text;
  ruler.font = font;
  if (ruler.measureText(text).width <= room) return text;
  const letters = Array.from(text);
  while (letters.length && ruler.measureText(`${letters.join("")}…`).width > room) letters.pop();
  return `${letters.join("").trimEnd()}…`;
}

/** The arrows from what the encoder made to what the opened block of the decoder reads of it. @param {import("clearhead/wiring.js").Column} source @param {import("clearhead/wiring.js").Column} target @param {boolean} beside */
function crossing(source, target, beside) {
  const made = [...source.ports.values()].filter(({ stage }) => stage && blockOf(stage.name) === null).pop();
  const read = [...target.ports.values()].filter(({ name }) => name === "cross_attention.k" || name === "cross_attention.v");
  if (!made) return [];
  return read.map((item, index) => {
    const [from, to] = [made.y + made.height / 2, item.y + (index ? 4 : -4)];
    const lane = beside ? made.x + made.width + 12 + index * 8 : 4 + index * 5;
    const start = beside ? made.x + made.width : made.x;
    const over = item.x + item.width / 2;
    return wire({ kind: "cross", arrow: true, points: [[start, from], [lane, from], [lane, to - 8], [over, to - 8], [over, item.y]] });
  });
}

/** @param {Drawn} found @param {string} name */
function choose(found, name) {
  for (const each of found.picture.querySelectorAll("[data-stage]")) {
    const own = each.getAttribute("data-stage") === name;
    each.setAttribute("aria-pressed", String(own));
    if (own) for (const stop of found.picture.querySelectorAll("[data-stop]")) stop.setAttribute("tabindex", stop === each ? "0" : "-1");
  }
}

