// @ts-check
/** All heads at once: a small picture of each, how much it looks like the kinds that are known, and one of them enlarged beside them. */
import { legend } from "clearhead/colours.js";
import { make } from "clearhead/dom.js";
import { reach } from "clearhead/scroll.js";
import { go } from "clearhead/state.js";
import { behind } from "clearhead/table.js";
import { Thumbnails } from "clearhead/thumbnails.js";
import { hush, tell } from "clearhead/tooltip.js";

/** @typedef {import("clearhead/state.js").State} State */
/** @typedef {import("clearhead/state.js").Say} Say */
/** @typedef {import("clearhead/thumbnails.js").Part} Part */
/** @typedef {import("clearhead/thumbnails.js").Place} Place */

const KINDS = ["previous", "induction", "sink", "entropy"];
const ENLARGED = 400;
/** The least room of the enlarged head, in pixels, as in the style sheet. */
const BESIDE = 256;

/**
 * @typedef {object} Panel what stands in an element
 * @property {import("clearhead/state.js").Answer} answer
 * @property {Thumbnails[]} grids
 * @property {HTMLElement[]} sorts the buttons of the orders
 * @property {HTMLElement} beside the enlarged head
 * @property {import("clearhead/table.js").Behind} table
 * @property {string} laid the order and the width in which the heads stand
 * @property {HTMLElement} room
 * @property {State} state
 */

/** @type {WeakMap<HTMLElement, Panel>} */
const panels = new WeakMap();

/** @type {import("clearhead/state.js").View} */
export const view = { id: "atlas", show, keys, uses: ["part", "layer", "head", "sort"] };

/** @type {import("clearhead/state.js").View["show"]} */
async function show(element, state, api, say) {
  const answer = await api.get("atlas");
  let panel = panels.get(element);
  if (panel?.answer !== answer) {
    panel = built(answer, say, state);
    panels.set(element, panel);
    element.replaceChildren(...parts(panel, say));
    const { room } = panel;
    new ResizeObserver(() => room.isConnected && lay(/** @type {Panel} */ (panels.get(element)), say)).observe(element);
  }
  panel.state = state;
  lay(panel, say);
  enlarge(panel, say);
}

/** @param {import("clearhead/state.js").Answer} answer @param {Say} say @param {State} state @returns {Panel} */
function built(answer, say, state) {
  const grids = /** @type {Part[]} */ (answer.header.parts).map((part) => {
    const values = /** @type {Uint8Array} */ (answer.arrays[part.name].data);
    const open = (/** @type {Place} */ place) => {
      go({ part: part.name, ...place });
      reach("head");
    };
    return new Thumbnails(part, values, say("atlas.picture", { part: say(`part.${part.name}`), layers: part.layers, heads: part.heads }), {
      hover: (place, x, y) => tell(x, y, [headName(place, say), ...told(part, place, say).map((each) => each.join(" "))]),
      leave: hush,
      choose: (place) => go({ part: part.name, ...place }),
      open,
    });
  });
  const sorts = ["", ...KINDS].map((sort) =>
    make("button", { type: "button", class: "chip", title: say(`atlas.${sort || "position"}.told`), onclick: () => go({ sort }) }, say(`atlas.${sort || "position"}`)));
  const table = behind(say("atlas.table"));
  return { answer, grids, sorts, table, beside: make("div", { class: "atlas-head" }), laid: "", room: make("div", { class: "atlas-grids" }), state };
}

/** @param {Panel} panel @param {Say} say */
function parts(panel, say) {
  const several = panel.grids.length > 1;
  panel.room.append(...panel.grids.flatMap((grid) => [
    several && make("h3", {}, say(`part.${grid.part.name}`)),
    grid.grouped && make("p", { class: "caption shared-heads" }, say("atlas.grouped", { heads: grid.part.heads, groups: grid.part.kv_heads, share: grid.part.heads / grid.part.kv_heads })),
    grid.element,
  ]).filter((each) => each !== false));
  return [
    make("div", { class: "row-of-tools", role: "group", "aria-label": say("atlas.sort") }, make("span", { class: "quiet" }, say("atlas.sort")), ...panel.sorts),
    make("div", { class: "atlas-layout" }, panel.room, panel.beside),
    legend(1, say("atlas.legend")),
    panel.table.element,
  ];
}

/** @param {Place} place @param {Say} say */
const headName = ({ layer, head }, say) => say("head.name", { layer, head });

/** Kind and score of a head, as they are read. @param {Part} part @param {Place} place @param {Say} say @returns {[string, string][]} */
function told(part, { layer, head }, say) {
  return KINDS.map((kind) => {
    const score = part.scores[kind]?.[layer]?.[head] ?? null;
    return [say(`atlas.${kind}`), score === null ? say("atlas.none") : kind === "entropy" ? say("atlas.nats", { value: score.toFixed(3) }) : score.toFixed(3)];
  });
}

/** The heads as a sort has them: the strongest first, of entropy the most pointed. @param {Part} part @param {string} sort @returns {Place[]} */
function ordered(part, sort) {
  const all = Array.from({ length: part.layers * part.heads }, (_, number) => ({ layer: Math.floor(number / part.heads), head: number % part.heads }));
  const scores = part.scores[sort];
  if (!scores) return all;
  const sign = sort === "entropy" ? 1 : -1;
  const of = (/** @type {Place} */ { layer, head }) => scores[layer]?.[head] ?? sign * Infinity;
  return all.sort((one, other) => (of(one) === of(other) ? 0 : sign * (of(one) - of(other))));
}

/** Puts the heads in their order, where it or the width has changed, and marks the chosen one. @param {Panel} panel @param {Say} say */
function lay(panel, say) {
  const { state, room } = panel;
  const layout = /** @type {HTMLElement} */ (room.parentElement);
  // Beside the pictures stands the enlarged head, where there is room for it.
  const width = (layout.clientWidth || 320) - (getComputedStyle(layout).flexDirection === "row" ? BESIDE + 24 : 0);
  const laid = `${state.sort} ${width} ${devicePixelRatio}`;
  for (const grid of panel.grids) {
    grid.chosen = grid.part.name === state.part ? { layer: state.layer, head: state.head } : null;
    if (laid === panel.laid) grid.mark();
    else {
      const scores = grid.part.scores[state.sort];
      const named = (/** @type {Place} */ { layer, head }) => `${layer}.${head} ${short(scores[layer]?.[head])}`;
      grid.lay(ordered(grid.part, state.sort), scores ? named : null, width);
    }
  }
  if (laid === panel.laid) return;
  panel.laid = laid;
  for (const each of room.querySelectorAll(".shared-heads")) each.toggleAttribute("hidden", state.sort !== "");
  ["", ...KINDS].forEach((sort, place) => panel.sorts[place].setAttribute("aria-pressed", String(sort === state.sort)));
  panel.table.fill(say("atlas.title"), [say("atlas.head"), ...KINDS.map((kind) => say(`atlas.${kind}`))], () =>
    panel.grids.flatMap((grid) => grid.order.map((place) => [
      panel.grids.length > 1 ? `${say(`part.${grid.part.name}`)} · ${headName(place, say)}` : headName(place, say),
      ...told(grid.part, place, say).map(([, score]) => score),
    ])));
}

/** @param {number | null | undefined} score */
const short = (score) => (score === null || score === undefined ? "–" : score.toFixed(2));

/** The chosen head, large, with its scores. @param {Panel} panel @param {Say} say */
function enlarge(panel, say) {
  const grid = panel.grids.find(({ part }) => part.name === panel.state.part) ?? panel.grids[0];
  if (!grid) return;
  const place = { layer: panel.state.layer, head: panel.state.head };
  const scores = told(grid.part, place, say);
  const canvas = make("canvas", { width: Math.round(ENLARGED * devicePixelRatio), height: Math.round(ENLARGED * devicePixelRatio), "aria-hidden": "true" });
  const context = canvas.getContext("2d");
  context?.setTransform(devicePixelRatio, 0, 0, devicePixelRatio, 0, 0);
  if (context) grid.one(context, place, 0, 0, ENLARGED);
  const whole = Math.log(Math.max(2, grid.part.keys));
  panel.beside.replaceChildren(
    make("h3", {}, headName(place, say)),
    canvas,
    make("p", { class: "quiet" }, grid.grouped ? say("head.shares", { group: Math.floor((place.head * grid.part.kv_heads) / grid.part.heads) }) : say("atlas.axes")),
    make("dl", { class: "scores" }, ...KINDS.map((kind, number) => {
      const score = grid.part.scores[kind]?.[place.layer]?.[place.head] ?? 0;
      const line = make("div", { class: "score", title: say(`atlas.${kind}.told`) }, make("dt", {}, scores[number][0]), make("dd", {}, scores[number][1]));
      line.style.setProperty("--share", `${(100 * (kind === "entropy" ? score / whole : score)).toFixed(1)}%`);
      return line;
    })),
    make("button", { type: "button", class: "chip", onclick: () => reach("head") }, say("atlas.open")),
  );
  panel.table.speak([headName(place, say), ...scores.map((each) => each.join(" "))].join(", "));
}

/** @param {KeyboardEvent} event @param {State} state @param {HTMLElement} element @returns {Partial<State> | null} */
function keys(event, state, element) {
  const grid = panels.get(element)?.grids.find(({ above }) => above === event.target);
  if (!grid) return null;
  const place = { layer: state.layer, head: state.head };
  if (event.key === "Enter" || event.key === " ") {
    go({ part: grid.part.name, ...place });
    reach("head");
    return {};
  }
  if (state.part !== grid.part.name && event.key.startsWith("Arrow")) return { part: grid.part.name, ...grid.order[0] };
  const beside = grid.beside(place, event.key);
  return beside ? { part: grid.part.name, ...beside } : event.key.startsWith("Arrow") ? {} : null;
}
