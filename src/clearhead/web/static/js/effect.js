// @ts-check
/** Beside a weight, what would be without it: the model runs again with it set to 0. A weight is not a cause. */
import { Refused } from "clearhead/api.js";
import { make } from "clearhead/dom.js";
import { NOTHING, picture, signed } from "clearhead/effectpicture.js";
import { change, table } from "clearhead/effecttable.js";
import { refilled } from "clearhead/headtools.js";
import { placed, visible } from "clearhead/labels.js";
import { figures } from "clearhead/say.js";
import { go } from "clearhead/state.js";

/** @typedef {import("clearhead/state.js").State} State */
/** @typedef {import("clearhead/state.js").Say} Say */
/** @typedef {import("clearhead/state.js").Api} Api */
/** @typedef {import("clearhead/effectpicture.js").Pair} Pair */
/** @typedef {import("clearhead/effecttable.js").Outcome} Outcome */

/**
 * @typedef {object} Row what `effects` answers; all but `difference` null where the model says no tokens
 * @property {number | null} position whose answer is asked for
 * @property {string} token that it found best there
 * @property {Outcome} ran
 * @property {Outcome} without_head
 * @property {number} listed how many weights there are to look at
 * @property {Removed[] | null} keys from the largest weight on
 * @property {number | null} difference from what ran
 */

/** @typedef {{key: number, weight: number} & Outcome} Removed a weight, and what the model says without it */

/**
 * @typedef {object} One what `effect` answers
 * @property {number | null} position
 * @property {string | null} token
 * @property {number} key
 * @property {number} weight
 * @property {Outcome} ran
 * @property {Outcome} without_weight
 * @property {Outcome} without_head
 * @property {number | null} difference
 */

/**
 * @typedef {object} Asked
 * @property {State} state
 * @property {Api} api
 * @property {Say} say
 * @property {import("clearhead/labels.js").Labels} labels
 * @property {any} cell what the cell's answer said
 * @property {string[]} own the tokens whose answers can be asked for
 */

/** A forward that takes longer is made only when somebody asks for it. */
const SOON = 0.15;
/** From how many seconds on the row is asked for in pieces: a person may go on between two of them. */
const SLOW = 1;
/** The name of the button, and of what comes in its place: the focus goes with it. */
const ANSWER = "answer";

/** The rows of an opened prompt that somebody asked for; they are not asked for twice. @type {WeakMap<object, Set<string>>} */
const wanted = new WeakMap();

/** Fills the card of a cell. @param {HTMLElement} box @param {Asked} asked */
export async function without(box, asked) {
  const { api, say } = asked;
  const seconds = api.opened().seconds;
  // A file carries its answers; the page asks them all.
  if (seconds <= SOON || isFile() || wantedOf(api).has(name(asked))) return computed(box, asked);
  const compute = make("button", { type: "button", class: "main-button", "data-name": ANSWER }, say("effect.compute"));
  compute.addEventListener("click", () => {
    wantedOf(api).add(name(asked));
    void later(() => computed(box, asked));
  });
  const told = say("effect.compute_told", { seconds: figures(Number(seconds.toPrecision(2))) });
  box.removeAttribute("aria-busy");
  refilled(box, [...above(asked), ...choice(asked), make("p", {}, compute, " ", make("span", { class: "quiet" }, told)), cause(say)]);
}

/** @param {Api} api */
function wantedOf(api) {
  const opened = api.opened();
  const found = wanted.get(opened) ?? new Set();
  wanted.set(opened, found);
  return found;
}

/** What belongs to one row of a prompt. @param {Asked} asked */
function name({ state: { part, layer, head, query, at } }) {
  return [part, layer, head, query, at].join(" ");
}

/** What a person asked for: one who has moved on meanwhile is shown something else. @param {() => Promise<void>} work */
async function later(work) {
  try {
    await work();
  } catch (error) {
    if (!(error instanceof DOMException) || error.name !== "AbortError") throw error;
  }
}

/** @param {HTMLElement} box @param {Asked} asked */
async function computed(box, asked) {
  const { state, api, say, cell } = asked;
  const { part, layer, head, query, key } = state;
  const slow = api.opened().seconds > SLOW && !isFile();
  const fields = { part, layer, head, query, ...(atQuery(asked) ? { at: query } : {}) };
  box.setAttribute("aria-busy", "true");
  if (!box.firstChild || box.querySelector(".main-button")) refilled(box, [...above(asked), busy(say), cause(say)]);
  const row = await allowed(slow ? pieces(box, api, fields) : rowOf(api, fields));
  const listed = row?.keys?.find((each) => each.key === key);
  const one = listed || !row?.keys || !cell.visible ? null : await allowed(api.get("effect", { ...fields, key }));
  const removed = listed ?? /** @type {One | undefined} */ (one?.header);
  box.removeAttribute("aria-busy");
  refilled(box, [...above(asked), ...choice(asked), ...found(asked, row, removed), cause(say)]);
}

/** @param {Say} say */
function busy(say) {
  return make("p", { class: "quiet", role: "status", tabindex: -1, "data-name": ANSWER }, make("progress"), " ", say("effect.busy"));
}

/** @param {Api} api @param {Record<string, string | number>} fields @returns {Promise<Row>} */
async function rowOf(api, fields) {
  return (await api.get("effects", fields)).header;
}

/** The row, some weights at a time. @param {HTMLElement} box @param {Api} api @param {Record<string, string | number>} fields */
async function pieces(box, api, fields) {
  const first = await rowOf(api, { ...fields, from: 0 });
  if (!first.keys) return first;
  const keys = [...first.keys];
  while (keys.length < first.listed) {
    const progress = box.querySelector("progress");
    progress?.setAttribute("max", String(first.listed));
    progress?.setAttribute("value", String(keys.length));
    const more = (await rowOf(api, { ...fields, from: keys.length })).keys ?? [];
    if (!more.length) break;
    keys.push(...more);
  }
  return { ...first, keys };
}

/** Whether the page is a saved file, which carries its answers. */
function isFile() {
  return document.getElementById("answers") !== null;
}

/** An answer, or nothing where a file does not hold it. @template A @param {Promise<A>} answer @returns {Promise<A | null>} */
async function allowed(answer) {
  return answer.catch((error) => {
    if (!(error instanceof Refused) || error.kind !== "absent") throw error;
    return null;
  });
}

/** Title, and what is done. @param {Asked} asked */
function above({ say, labels, state, cell }) {
  const fields = { query: placed(labels.queries, state.query), key: placed(labels.keys, state.key) };
  const told = say(cell.visible ? "effect.told" : "effect.told_hidden", fields);
  return [make("h3", {}, say("effect.title")), make("p", { class: "caption" }, told)];
}

/** @param {Say} say */
function cause(say) {
  return make("p", { class: "caption cause" }, say("effect.cause"));
}

/** Whether another answer than the last can depend on this query. @param {Asked} asked */
function choosable({ api, state, own }) {
  return api.model().kind !== "encoder" && state.part !== "encoder.attention" && state.query !== own.length - 1;
}

/** Whether the answer at the query is asked for, not the last one. @param {Asked} asked */
function atQuery(asked) {
  return choosable(asked) && asked.state.at === "query";
}

/** Which answer is asked for. @param {Asked} asked @returns {HTMLElement[]} */
function choice(asked) {
  if (!choosable(asked)) return [];
  const { say, state } = asked;
  const option = (/** @type {string} */ value, /** @type {string} */ text) => make("option", { value, selected: value === state.at }, text);
  const select = make("select", { "data-name": "at" }, option("", say("effect.at_end")), option("query", say("effect.at_query")));
  select.addEventListener("change", () => go({ at: select.value }));
  return [make("p", {}, make("label", { class: "choice" }, say("effect.at"), select))];
}

/**
 * The numbers.
 * @param {Asked} asked
 * @param {Row | null} row
 * @param {Removed | One | undefined} one what is said of this key
 * @returns {HTMLElement[]}
 */
function found(asked, row, one) {
  const { say, state, labels, own, api, cell } = asked;
  if (!row) return [make("p", { class: "quiet" }, say("effect.absent"))];
  if (row.position === null || !row.keys) return [make("p", {}, say("effect.no_answer"))];
  const [token, place] = [visible(row.token), placed(own, row.position)];
  const pairs = row.keys.map((each) => /** @type {Pair} */ ({ key: each.key, weight: each.weight, change: change(each, row.ran) }));
  const outcome = one && ("without_weight" in one ? one.without_weight : one);
  if (one && outcome && !pairs.some(({ key }) => key === state.key)) {
    pairs.push({ key: state.key, weight: one.weight, change: change(outcome, row.ran) });
  }
  const choose = (/** @type {number} */ key) => go({ key });
  const picked = api.model().kind === "encoder" ? "effect.asked_encoder" : "effect.asked";
  return [
    make("p", {}, say(picked, { position: place, token })),
    table(row, outcome && { outcome, weight: figures(one.weight) }, placed(labels.queries, state.query), ANSWER, say),
    ...(outcome || !cell.visible ? [] : [make("p", { class: "quiet" }, say("effect.absent"))]),
    ...(pairs.length ? [
      make("h4", {}, say("effect.picture")),
      make("p", { class: "effect-sentence" }, sentence(asked, pairs, place)),
      picture(pairs, state.key, (key) => placed(labels.keys, key), choose, say),
      make("p", { class: "quiet" }, say("effect.sides", { token })),
    ] : [make("p", {}, say("effect.blind"))]),
  ];
}

/** Whether the largest weight does most. @param {Asked} asked @param {Pair[]} pairs @param {string} position */
function sentence(asked, pairs, position) {
  const { say, labels, state, api, own } = asked;
  const [first] = /** @type {[Pair]} */ (pairs);
  const most = pairs.reduce((high, each) => (Math.abs(each.change) > Math.abs(high.change) ? each : high));
  const fields = { weight: figures(first.weight), key: placed(labels.keys, first.key), change: signed(first.change), position };
  if (Math.abs(most.change) < NOTHING) {
    const last = state.layer === api.model().layers - 1 && state.part !== "encoder.attention" && state.query !== own.length - 1;
    return `${say("effect.sentence_none", fields)}${last && !atQuery(asked) ? ` ${say("effect.unread")}` : ""}`;
  }
  if (most === first) return say("effect.sentence_same", fields);
  return say("effect.sentence", { ...fields, most: signed(most.change), cause: placed(labels.keys, most.key), small: figures(most.weight) });
}
