// @ts-check
/** Who may look at whom: a layer's mask as a matrix, other masks in its place, and what the model says then. */
import { make } from "clearhead/dom.js";
import { atWidth, choose, choosers, refilled } from "clearhead/headtools.js";
import { labelsOf, placed } from "clearhead/labels.js";
import { maskOf, saidWith } from "clearhead/maskasked.js";
import { forms } from "clearhead/maskforms.js";
import { MaskPicture, sample } from "clearhead/maskpicture.js";
import { cellOf, decisive, parsed, reasons } from "clearhead/maskrule.js";
import { apart, largestOf, MOVED, movedLine, positions, saidAt } from "clearhead/masksaid.js";
import { Switches } from "clearhead/maskswitches.js";
import { go } from "clearhead/state.js";
import { behind } from "clearhead/table.js";
import { hush, tell } from "clearhead/tooltip.js";

/** @typedef {import("clearhead/state.js").State} State */
/** @typedef {import("clearhead/state.js").Say} Say */
/** @typedef {import("clearhead/maskasked.js").MaskAnswer} MaskAnswer */
/** @typedef {import("clearhead/maskasked.js").MaskedAnswer} MaskedAnswer */
/** @typedef {import("clearhead/maskasked.js").MaskHeader} MaskHeader */

/** What the picture says of a pair, by the number that it has in the answer. */
const STATES = ["mask.hidden", "mask.seen", "mask.padded"];
/** How many rows a table has at most. */
const ROWS = 512;
/** The parts that take another mask: the self-attention that makes what the model says. */
const SWITCHED = ["attention", "decoder.attention"];

/** @typedef {"line" | "tools" | "changed" | "room" | "key" | "verdict" | "said" | "moved" | "forms"} Box */

/**
 * @typedef {object} Panel what stands in an element
 * @property {MaskPicture} picture
 * @property {Switches} switches
 * @property {Record<Box, HTMLElement>} boxes
 * @property {import("clearhead/table.js").Behind} row the keys of the chosen query
 * @property {import("clearhead/table.js").Behind} positions what is said at each
 * @property {State} state
 * @property {import("clearhead/labels.js").Labels} labels
 * @property {MaskAnswer | null} answer the mask
 * @property {MaskedAnswer | null} said
 * @property {Say} say
 */

/** @type {WeakMap<HTMLElement, Panel>} */
const panels = new WeakMap();

/** @type {import("clearhead/state.js").View} */
export const view = { id: "mask", show, keys, uses: ["part", "layer", "query", "key", "mask"] };

/** @type {import("clearhead/state.js").View["show"]} */
async function show(element, state, api, say) {
  const panel = panels.get(element) ?? built(element, state, say);
  const { boxes } = panel;
  const told = await api.get("tokens");
  const known = state.mask === "" || parsed(state.mask) !== null;
  const mask = SWITCHED.includes(state.part) && known ? state.mask : "";
  panel.state = state;
  panel.labels = labelsOf(/** @type {any} */ (told.header), state.part);
  panel.answer = await maskOf(api, state, mask);
  const { header } = panel.answer;
  refilled(boxes.line, notes(header, known, say));
  boxes.line.hidden = !boxes.line.firstChild;
  if (!boxes.tools.firstChild) {
    // The mask is the same for all heads: there is none to choose.
    boxes.tools.append(...choosers(state, api.model(), say).slice(0, -1));
    boxes.key.append(...STATES.map((name, place) => make("span", {}, sample(place, element), say(name))));
  }
  choose(boxes.tools, state);
  panel.switches.show(header, mask, panel.labels.queries);
  boxes.changed.textContent = changed(header, say);
  draw(panel);
  verdict(panel, header);
  const most = element.clientWidth < 560 ? 5 : 6;
  refilled(boxes.forms, forms(header.rule, header.conventions, panel.labels, state, most, say));
  // A mask that was cut to the text is answered by the name of what is left of it.
  boxes.said.classList.toggle("stale", panel.said !== null && panel.said.header.mask !== (mask && header.mask));
  panel.said = header.switched ? await saidWith(api, mask) : null;
  boxes.said.classList.remove("stale");
  effects(panel, header);
  if (panel.said) draw(panel);
}

/** What is not as the address asks, and the way to where masks are switched. @param {MaskHeader} header @param {boolean} known @param {Say} say */
function notes(header, known, say) {
  const line = (/** @type {string} */ text) => make("span", {}, `${text} `);
  if (!known) return [line(say("mask.unknown"))];
  if (header.cut) return [line(say("mask.cut", { length: header.keys }))];
  if (header.switched) return [];
  const onclick = () => go({ part: "decoder.attention" });
  return [line(say("mask.kept")), make("button", { type: "button", class: "chip", "data-name": "to-decoder", onclick }, say("mask.to_decoder"))];
}

/** @param {HTMLElement} element @param {State} state @param {Say} say @returns {Panel} */
function built(element, state, say) {
  const picture = new MaskPicture(say("mask.picture"), {
    choose: (query, key) => go({ query, key }),
    hover: (query, key, x, y) => tell(x, y, hovered(panel, query, key)),
    leave: hush,
  });
  const box = (/** @type {string} */ name) => make("div", { class: name });
  const boxes = {
    line: make("p", { class: "caption cause", role: "status" }),
    tools: box("row-of-tools"),
    changed: make("p", { class: "quiet" }),
    room: box("head-room"),
    key: box("mask-legend quiet"),
    verdict: box("mask-verdict"),
    said: box("mask-said"),
    moved: make("p", { class: "caption cause" }),
    forms: box("mask-forms"),
  };
  /** @type {Panel} */
  const panel = {
    picture, boxes, say, state,
    switches: new Switches(say),
    row: behind(say("mask.row_table")),
    positions: behind(say("mask.positions_table")),
    labels: { queries: [], keys: [] },
    answer: null,
    said: null,
  };
  const drawing = make("div", { class: "head-drawing" }, boxes.room, boxes.key);
  const beside = make("div", { class: "row-numbers" }, boxes.verdict, boxes.said);
  element.replaceChildren(boxes.tools, boxes.line, panel.switches.element, boxes.changed,
    make("div", { class: "head-layout" }, drawing, beside), boxes.moved,
    make("h3", { class: "mask-heading" }, say("mask.forms")), make("p", { class: "caption" }, say("mask.forms_told")), boxes.forms,
    panel.row.element, panel.positions.element);
  atWidth(boxes.room, () => panel.answer && draw(panel));
  panels.set(element, panel);
  return panel;
}

/** How many pairs may look, and how that differs from the layer's own mask. @param {MaskHeader} header @param {Say} say */
function changed({ changed: { opened, closed }, cells, blind, queries, keys, pooled }, say) {
  const lines = [say("mask.cells", { ...cells, queries, keys })];
  if (opened || closed) lines.push(say("mask.changed", { opened, closed }));
  if (blind) lines.push(say("mask.blind", { count: blind }));
  if (pooled[0] * pooled[1] > 1) lines.push(say("mask.pooled", { queries: pooled[0], keys: pooled[1] }));
  return lines.join(" ");
}

/** @param {Panel} panel */
function draw({ answer, said, picture, boxes, labels, state }) {
  if (!answer) return;
  const { seen } = answer.arrays;
  const { pooled, rule } = answer.header;
  const [rows, columns] = seen.shape;
  const [tall, wide] = pooled;
  const far = said ? apart(said, rule.padding) : new Float32Array(rows * tall).fill(NaN);
  const bars = Float32Array.from({ length: rows }, (_, row) => largestOf(far.subarray(row * tall, (row + 1) * tall)));
  const end = largestOf(bars);
  if (picture.element.parentElement !== boxes.room) boxes.room.replaceChildren(picture.element);
  const drawn = { rows, columns, labels, tall, wide, bars, end: end > MOVED ? end : 1 };
  picture.showMask(/** @type {Uint8Array} */ (seen.data), drawn, boxes.room.clientWidth || 320);
  picture.choose(state.query, state.key);
}

/** Why the chosen query may look at the chosen key, or must not. @param {Panel} panel @param {MaskHeader} header */
function verdict({ boxes, state, labels, say, row }, { rule, keys: count }) {
  const { query, key } = state;
  if (!labels.queries.length || !labels.keys.length) return boxes.verdict.replaceChildren(make("p", {}, say("cell.empty")));
  const fields = { query: placed(labels.queries, query), key: placed(labels.keys, key) };
  const found = reasons(rule, query, key);
  const decides = decisive(found);
  const because = (/** @type {import("clearhead/maskrule.js").Reason | undefined} */ reason) =>
    reason ? say(reason.key, reason.fields) : say("mask.why.full");
  const item = (/** @type {boolean} */ holds, /** @type {boolean} */ current, /** @type {string} */ text) =>
    make("li", { class: holds ? "" : "against", "aria-current": current ? "true" : null },
      make("span", { class: "verdict" }, holds ? "✓ " : "✗ "), text);
  const lines = found.map((reason) => item(reason.holds, reason === decides && !reason.holds, because(reason)));
  const line = say(decides && !decides.holds ? "mask.may_not" : "mask.may", fields);
  boxes.verdict.replaceChildren(make("p", { class: "cell-sentence" }, line),
    make("ul", { class: "mask-why" }, ...(lines.length ? lines : [item(true, false, because(undefined))])));
  row.speak(`${line} ${because(decides)}`);
  const head = [say("head.key"), say("mask.state"), say("mask.reason")];
  row.fill(say("mask.row_of", { query: fields.query }), head, () => Array.from({ length: Math.min(count, ROWS) }, (_, place) =>
    [placed(labels.keys, place), say(STATES[cellOf(rule, query, place)]), because(decisive(reasons(rule, query, place)))]));
}

/** What the model says, before and after. @param {Panel} panel @param {MaskHeader} header */
function effects({ boxes, said, state, labels, say, positions: table }, header) {
  const { padding } = header.rule;
  boxes.moved.hidden = !said || said.header.mask === "";
  if (!said) {
    table.fill("", [], () => []);
    return boxes.said.replaceChildren(...(header.switched ? [make("p", { class: "quiet" }, say("mask.absent"))] : []));
  }
  boxes.said.replaceChildren(...saidAt(said, state.query, padding, placed(labels.queries, state.query), say));
  boxes.moved.textContent = movedLine(said, header, say);
  const { head, rows } = positions(said, padding, labels.queries, say);
  table.fill(say("mask.positions_of"), head, rows);
}

/** What stands beside the pointer. @param {Panel} panel @param {number} query @param {number} key */
function hovered({ answer, labels, say }, query, key) {
  if (!answer) return [];
  const { rule, pooled } = answer.header;
  const [tall, wide] = pooled;
  const because = decisive(reasons(rule, query, key));
  return [
    `${placed(labels.queries, query)} → ${placed(labels.keys, key)}`,
    say(STATES[cellOf(rule, query, key)]),
    ...(because ? [say(because.key, because.fields)] : []),
    ...(tall * wide > 1 ? [say("head.field", { queries: tall, keys: wide })] : []),
  ];
}

/** @param {KeyboardEvent} event @param {State} state @param {HTMLElement} element @returns {Partial<State> | null} */
function keys(event, state, element) {
  const answer = panels.get(element)?.answer;
  if (!answer || event.target instanceof HTMLSelectElement || event.target instanceof HTMLInputElement) return null;
  const { queries, keys: count, pooled } = answer.header;
  const far = event.shiftKey ? 8 : 1;
  const moved = (/** @type {number} */ place, /** @type {number} */ by, /** @type {number} */ length) =>
    Math.max(0, Math.min(length - 1, place + by * far));
  if (event.key === "ArrowUp") return { query: moved(state.query, -pooled[0], queries) };
  if (event.key === "ArrowDown") return { query: moved(state.query, pooled[0], queries) };
  if (event.key === "ArrowLeft") return { key: moved(state.key, -pooled[1], count) };
  if (event.key === "ArrowRight") return { key: moved(state.key, pooled[1], count) };
  if (event.key === "Home") return { key: 0 };
  if (event.key === "End") return { key: count - 1 };
  if (event.key === "PageUp") return { layer: Math.max(0, state.layer - 1) };
  if (event.key === "PageDown") return { layer: state.layer + 1 };
  return null;
}
