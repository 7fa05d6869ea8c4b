// @ts-check
/** Who may look at whom: a layer's mask as a matrix, other masks in its place, and what the model says then. */
import { Refused } from "clearhead/api.js";
import { make } from "clearhead/dom.js";
import { choose, choosers, refilled } from "clearhead/headtools.js";
import { labelsOf, placed } from "clearhead/labels.js";
import { forms } from "clearhead/maskforms.js";
import { MaskPicture, sample } from "clearhead/maskpicture.js";
import { cellOf, cellsOf, FULL, parsed, reasons } from "clearhead/maskrule.js";
import { apart, guesses, pairs } from "clearhead/masksaid.js";
import { Switches } from "clearhead/maskswitches.js";
import { figures } from "clearhead/say.js";
import { go } from "clearhead/state.js";
import { behind } from "clearhead/table.js";
import { hush, tell } from "clearhead/tooltip.js";

/** @typedef {import("clearhead/state.js").State} State */
/** @typedef {import("clearhead/state.js").Say} Say */
/** @typedef {import("clearhead/state.js").Api} Api */
/** @typedef {import("clearhead/state.js").Answer} Answer */
/** @typedef {import("clearhead/maskrule.js").Rule} Rule */

const STATES = ["mask.hidden", "mask.seen", "mask.padded"];
/** From which KL on a position counts as moved: less is rounding. */
const MOVED = 1e-6;

/**
 * @typedef {object} Panel what stands in an element
 * @property {MaskPicture} picture
 * @property {Switches} switches
 * @property {Record<"line" | "tools" | "changed" | "room" | "key" | "verdict" | "said" | "moved" | "forms", HTMLElement>} boxes
 * @property {import("clearhead/table.js").Behind} row the keys of the chosen query
 * @property {import("clearhead/table.js").Behind} positions what is said at each
 * @property {State} state
 * @property {import("clearhead/labels.js").Labels} labels
 * @property {Answer | null} answer the mask
 * @property {Answer | null} said
 * @property {Rule} rule
 * @property {Say} say
 */

/** @type {WeakMap<HTMLElement, Panel>} */
const panels = new WeakMap();
/** @type {Panel | null} */
let latest = null;

/** @type {import("clearhead/state.js").View} */
export const view = { id: "mask", show, keys, uses: ["part", "layer", "query", "key", "mask"] };

/** @type {import("clearhead/state.js").View["show"]} */
async function show(element, state, api, say) {
  const panel = panels.get(element) ?? built(element, state, say);
  const { boxes } = panel;
  latest = panel;
  const told = await api.get("tokens");
  const known = state.mask === "" || state.mask === "full" || parsed(state.mask) !== null;
  const mask = takes(state.part) && known ? state.mask : "";
  panel.state = state;
  panel.labels = labelsOf(/** @type {any} */ (told.header), state.part);
  panel.answer = await masked(api, state, mask);
  const { header } = panel.answer;
  panel.rule = header.rule;
  boxes.line.textContent = known ? (header.switched ? "" : say("mask.kept")) : say("mask.unknown");
  boxes.line.hidden = known && header.switched;
  if (!boxes.tools.firstChild) {
    // The mask is the same for all heads: there is none to choose.
    boxes.tools.append(...choosers(state, api.model(), say).slice(0, -1));
    boxes.key.append(...STATES.map((name, place) => make("span", {}, sample(place, element), say(name))));
  }
  choose(boxes.tools, state);
  panel.switches.show(panel.rule, mask, header, panel.labels.queries);
  boxes.changed.textContent = changed(header, say);
  draw(panel);
  verdict(panel);
  const most = element.clientWidth < 560 ? 5 : 6;
  refilled(boxes.forms, forms(panel.rule, header.conventions, panel.labels, state, most, say));
  boxes.said.classList.toggle("stale", panel.said?.header.mask !== mask);
  panel.said = header.switched ? await said(api, mask) : null;
  boxes.said.classList.remove("stale");
  effects(panel);
  if (panel.said) draw(panel);
}

/** Whether a part takes another mask: the self-attention that makes what the model says. @param {string} part */
function takes(part) {
  return part === "attention" || part === "decoder.attention";
}

/** The answer for a mask; a saved file that does not hold it has the layer's own, from which the rest is known. @param {Api} api @param {State} state @param {string} mask @returns {Promise<Answer>} */
async function masked(api, { part, layer }, mask) {
  try {
    return await api.get("mask", { part, layer, mask });
  } catch (error) {
    if (!(error instanceof Refused) || error.kind !== "absent" || mask === "") throw error;
    const { header, arrays } = await api.get("mask", { part, layer, mask: "" });
    const rule = parsed(mask) ?? FULL;
    const { queries, keys } = header;
    if (header.pooled[0] * header.pooled[1] > 1) throw error;
    const [own, data] = [arrays.seen.data, cellsOf(rule, queries, keys)];
    const count = (/** @type {(place: number) => boolean} */ holds) => data.reduce((sum, _, place) => sum + Number(holds(place)), 0);
    const cells = { seen: count((place) => data[place] === 1), hidden: count((place) => data[place] === 0), padding: count((place) => data[place] === 2) };
    const differs = { opened: count((place) => data[place] === 1 && own[place] !== 1), closed: count((place) => data[place] !== 1 && own[place] === 1) };
    return { header: { ...header, mask, rule, cells, changed: differs }, arrays: { seen: { shape: [queries, keys], data } } };
  }
}

/** What the model says with a mask; null where a saved file does not hold it. @param {Api} api @param {string} mask */
async function said(api, mask) {
  try {
    return await api.get("masked", { mask });
  } catch (error) {
    if (!(error instanceof Refused) || error.kind !== "absent") throw error;
    return null;
  }
}

/** @param {HTMLElement} element @param {State} state @param {Say} say @returns {Panel} */
function built(element, state, say) {
  const picture = new MaskPicture(say("mask.picture"), {
    choose: (query, key) => go({ query, key }),
    hover: (query, key, x, y) => tell(x, y, hovered(panel, query, key)),
    leave: hush,
  });
  const box = (/** @type {string} */ name) => make("div", { class: name });
  const boxes = { line: make("p", { class: "caption cause" }), tools: box("row-of-tools"), changed: make("p", { class: "quiet" }), room: box("head-room"), key: box("mask-legend quiet"),
    verdict: box("mask-verdict"), said: box("mask-said"), moved: make("p", { class: "caption cause" }), forms: box("mask-forms") };
  /** @type {Panel} */
  const panel = { picture, boxes, say, state, switches: new Switches(say), row: behind(say("mask.row_table")), positions: behind(say("mask.positions_table")),
    labels: { queries: [], keys: [] }, answer: null, said: null, rule: { ...FULL } };
  picture.matrix.above.addEventListener("keydown", (event) => {
    if (!picture.matrix.key(event)) return;
    event.preventDefault();
    event.stopPropagation();
  });
  element.replaceChildren(boxes.tools, boxes.line, panel.switches.element, boxes.changed,
    make("div", { class: "head-layout" }, make("div", { class: "head-drawing" }, boxes.room, boxes.key), make("div", { class: "row-numbers" }, boxes.verdict, boxes.said)),
    boxes.moved, make("h3", { class: "mask-heading" }, say("mask.forms")), make("p", { class: "caption" }, say("mask.forms_told")), boxes.forms, panel.row.element, panel.positions.element);
  let width = 0;
  new ResizeObserver(() => {
    if (boxes.room.isConnected && panel.answer && boxes.room.clientWidth !== width) draw(panel);
    width = boxes.room.clientWidth;
  }).observe(boxes.room);
  panels.set(element, panel);
  return panel;
}

/** How the mask differs from the layer's own. @param {any} header @param {Say} say */
function changed({ changed: { opened, closed }, cells, queries, keys, pooled }, say) {
  const lines = [say("mask.cells", { ...cells, queries, keys })];
  if (opened || closed) lines.push(say("mask.changed", { opened, closed }));
  if (pooled[0] * pooled[1] > 1) lines.push(say("mask.pooled", { queries: pooled[0], keys: pooled[1] }));
  return lines.join(" ");
}

/** @param {Panel} panel */
function draw({ answer, said, picture, boxes, labels, state }) {
  if (!answer) return;
  const { seen } = answer.arrays;
  const [rows, columns] = seen.shape;
  const [tall, wide] = answer.header.pooled;
  const far = said ? apart(said) : new Float32Array(rows * tall);
  const bars = Float32Array.from({ length: rows }, (_, row) => far.subarray(row * tall, (row + 1) * tall).reduce((most, each) => Math.max(most, each), 0));
  const end = bars.reduce((most, each) => Math.max(most, each), 0);
  if (picture.element.parentElement !== boxes.room) boxes.room.replaceChildren(picture.element);
  picture.showMask(/** @type {Uint8Array} */ (seen.data), { rows, columns, labels, tall, wide, bars, end: end > MOVED ? end : 1 }, boxes.room.clientWidth || 320);
  picture.choose(state.query, state.key);
}

/** Why the chosen query may look at the chosen key, or must not. @param {Panel} panel */
function verdict(panel) {
  const { boxes, rule, state, labels, say, answer } = panel;
  const { query, key } = state;
  if (!labels.queries.length || !labels.keys.length) return boxes.verdict.replaceChildren(make("p", {}, say("cell.empty")));
  const fields = { query: placed(labels.queries, query), key: placed(labels.keys, key) };
  const found = reasons(rule, query, key);
  const may = found.every(({ holds }) => holds);
  const decides = found.find(({ holds }) => !holds);
  const lines = found.map((reason) => make("li", { class: reason.holds ? "" : "against", "aria-current": reason === decides ? "true" : null },
    make("span", { class: "verdict" }, reason.holds ? "✓ " : "✗ "), say(reason.key, reason.fields)));
  const line = say(may ? "mask.may" : "mask.may_not", fields);
  boxes.verdict.replaceChildren(make("p", { class: "cell-sentence" }, line), make("ul", { class: "mask-why" }, ...(lines.length ? lines : [make("li", {}, make("span", { class: "verdict" }, "✓ "), say("mask.why.full"))])));
  const reason = decides ?? found[0];
  panel.row.speak(`${line} ${reason ? say(reason.key, reason.fields) : say("mask.why.full")}`);
  panel.row.fill(say("mask.row_of", { query: fields.query }), [say("head.key"), say("mask.state"), say("mask.reason")], () => Array.from({ length: Math.min(answer?.header.keys ?? 0, 512) }, (_, place) => {
    const reasoned = reasons(rule, query, place);
    const because = reasoned.find(({ holds }) => !holds) ?? reasoned[0];
    return [placed(labels.keys, place), say(STATES[cellOf(rule, query, place)]), because ? say(because.key, because.fields) : say("mask.why.full")];
  }));
}

/** What the model says, before and after. @param {Panel} panel */
function effects({ boxes, said, state, labels, say, answer, positions, rule }) {
  const header = answer?.header;
  const token = placed(labels.queries, state.query);
  boxes.moved.hidden = !said || said.header.mask === "";
  if (!said) {
    positions.fill("", [], () => []);
    return boxes.said.replaceChildren(...(header?.switched ? [make("p", { class: "quiet" }, say("mask.absent"))] : []));
  }
  const far = apart(said);
  const { says, mask } = said.header;
  const features = says === "features";
  const measure = say(features ? "mask.share" : "mask.divergence", { value: figures(far[state.query]) });
  boxes.said.replaceChildren(make("h3", {}, say(`mask.says.${says}`, { query: token })), ...(features ? [] : pairs(guesses(said, state.query), mask === "", say)),
    ...(mask === "" ? [make("p", { class: "quiet" }, say("mask.try"))] : [make("p", {}, measure)]));
  const count = far.reduce((sum, each) => sum + Number(!(each <= MOVED)), 0);
  const end = far.reduce((most, each) => Math.max(most, each || 0), 0);
  const opens = header.own.startsWith("causal") && header.changed.opened > 0;
  const lines = [say(features ? "mask.bars_share" : "mask.bars", { end: figures(end) }), say("mask.moved", { count, all: far.length })];
  if (opens && says === "next") lines.push(say(rule.causal ? "mask.answer_prefix" : "mask.answer"));
  boxes.moved.textContent = lines.join(" ");
  const head = features ? [say("mask.position"), say("mask.share_name")] : [say("mask.position"), "KL", say("mask.before"), say("mask.after")];
  positions.fill(say("mask.positions_of"), head, () => Array.from(far.subarray(0, 512), (each, position) => {
    if (features) return [placed(labels.queries, position), String(each)];
    const told = guesses(said, position).map(({ name, before, after }) => /** @type {const} */ ([name, before, after]));
    const best = (/** @type {1 | 2} */ which) => told.reduce((high, guess) => (guess[which] > high[which] ? guess : high), told[0]);
    return [placed(labels.queries, position), String(each), ...[best(1), best(2)].map((guess, place) => `${guess[0]} ${guess[place === 0 ? 1 : 2]}`)];
  }));
}

/** What stands beside the pointer. @param {Panel} panel @param {number} query @param {number} key */
function hovered({ rule, labels, say, answer }, query, key) {
  const [tall, wide] = answer?.header.pooled ?? [1, 1];
  const found = reasons(rule, query, key);
  const because = found.find(({ holds }) => !holds) ?? found[0];
  const several = tall * wide > 1 ? [say("head.field", { queries: tall, keys: wide })] : [];
  return [`${placed(labels.queries, query)} → ${placed(labels.keys, key)}`, say(STATES[cellOf(rule, query, key)]), ...(because ? [say(because.key, because.fields)] : []), ...several];
}

/** @param {KeyboardEvent} event @param {State} state @returns {Partial<State> | null} */
function keys(event, state) {
  if (!latest?.answer || event.target instanceof HTMLSelectElement || event.target instanceof HTMLInputElement) return null;
  const { queries, keys: count, pooled } = latest.answer.header;
  const within = (/** @type {number} */ place, /** @type {number} */ length) => Math.max(0, Math.min(length - 1, place));
  const by = event.shiftKey ? 8 : 1;
  if (event.key === "ArrowUp" || event.key === "ArrowDown") return { query: within(state.query + (event.key === "ArrowUp" ? -1 : 1) * pooled[0] * by, queries) };
  if (event.key === "ArrowLeft" || event.key === "ArrowRight") return { key: within(state.key + (event.key === "ArrowLeft" ? -1 : 1) * pooled[1] * by, count) };
  if (event.key === "Home") return { key: 0 };
  if (event.key === "End") return { key: count - 1 };
  if (event.key === "PageUp" || event.key === "PageDown") return { layer: Math.max(0, state.layer + (event.key === "PageUp" ? -1 : 1)) };
  return null;
}
