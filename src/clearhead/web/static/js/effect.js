// @ts-check
/** Beside a weight, what would be without it: the model runs again with it set to 0. A weight is not a cause. */
import { Refused } from "clearhead/api.js";
import { make } from "clearhead/dom.js";
import { digits, NOTHING, picture, signed } from "clearhead/effectpicture.js";
import { refilled } from "clearhead/headtools.js";
import { placed, visible } from "clearhead/labels.js";
import { figures } from "clearhead/say.js";
import { go } from "clearhead/state.js";

/** @typedef {import("clearhead/state.js").State} State */
/** @typedef {import("clearhead/state.js").Say} Say */
/** @typedef {import("clearhead/state.js").Api} Api */
/** @typedef {import("clearhead/effectpicture.js").Pair} Pair */
/** @typedef {{logit: number, logprob: number, best: string}} Said */

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
const LISTED = 12;
/** From how many seconds on the row is asked for in pieces, of so many weights: a person may go on between two of them. */
const [SLOW, PIECE] = [1, 4];
/** The name of the button, and of what comes in its place: the focus goes with it. */
const ANSWER = "answer";

/** Whether the answer at the query is asked for, not the last one. */
let atQuery = false;

/** The rows that somebody asked for; they are not asked for twice. @type {Set<string>} */
const wanted = new Set();

/** Fills the card of a cell. @param {HTMLElement} box @param {Asked} asked */
export async function without(box, asked) {
  const { api, say } = asked;
  const passes = Math.min(LISTED, asked.labels.keys.length) + 2;
  const seconds = api.opened().seconds;
  // A file carries its answers; the page asks them all.
  const soon = seconds <= SOON || isFile() || wanted.has(name(asked));
  if (soon) return computed(box, asked);
  const compute = make("button", { type: "button", class: "main-button", "data-name": ANSWER }, say("effect.compute", { passes, seconds: figures(Number((passes * seconds).toPrecision(1))) }));
  compute.addEventListener("click", () => {
    wanted.add(name(asked));
    void later(() => computed(box, asked));
  });
  box.removeAttribute("aria-busy");
  refilled(box, [...above(asked), ...choice(box, asked), make("p", {}, compute), cause(say)]);
}

/** What belongs to one row of one prompt. @param {Asked} asked */
function name({ api, state: { part, layer, head, query } }) {
  return [api.opened().session, part, layer, head, query, atQuery].join(" ");
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
  const { state: { part, layer, head, query, key }, api, say, cell } = asked;
  const fields = { part, layer, head, query, ...(choosable(asked) && atQuery ? { at: query } : {}) };
  box.setAttribute("aria-busy", "true");
  if (!box.firstChild || box.querySelector(".main-button")) refilled(box, [...above(asked), make("p", { class: "quiet", role: "status", tabindex: -1, "data-name": ANSWER }, make("progress", api.opened().seconds > SLOW ? { max: LISTED, value: 0 } : {}), " ", say("effect.busy")), cause(say)]);
  const row = await allowed(api.opened().seconds > SLOW && !isFile() ? pieces(box, asked, fields) : api.get("effects", fields));
  const listed = row?.header.keys?.find((/** @type {any} */ each) => each.key === key);
  const one = listed || !row?.header.keys || !cell.visible ? null : await allowed(api.get("effect", { ...fields, key }));
  box.removeAttribute("aria-busy");
  refilled(box, [...above(asked), ...choice(box, asked), ...found(asked, row?.header, listed ?? one?.header), cause(say)]);
}

/** The row, some weights at a time. @param {HTMLElement} box @param {Asked} asked @param {Record<string, string | number>} fields */
async function pieces(box, { api, labels }, fields) {
  const whole = await api.get("effects", { ...fields, from: 0 });
  const keys = [...(whole.header.keys ?? [])];
  for (let from = PIECE; from < LISTED && keys.length === from && from < labels.keys.length; from += PIECE) {
    box.querySelector("progress")?.setAttribute("value", String(from));
    keys.push(...(await api.get("effects", { ...fields, from })).header.keys);
  }
  return { ...whole, header: { ...whole.header, keys: whole.header.keys && keys } };
}

/** Whether the page is a saved file, which carries its answers. */
function isFile() {
  return document.getElementById("answers") !== null;
}

/** An answer, or nothing where a file does not hold it. @param {Promise<import("clearhead/state.js").Answer>} answer */
async function allowed(answer) {
  return answer.catch((error) => {
    if (!(error instanceof Refused) || error.kind !== "absent") throw error;
    return null;
  });
}

/** Title, and what is done. @param {Asked} asked */
function above({ say, labels, state, cell }) {
  const fields = { query: placed(labels.queries, state.query), key: placed(labels.keys, state.key) };
  return [make("h3", {}, say("effect.title")), make("p", { class: "caption" }, say(cell.visible ? "effect.told" : "effect.told_hidden", fields))];
}

/** @param {Say} say */
function cause(say) {
  return make("p", { class: "caption cause" }, say("effect.cause"));
}

/** Whether another answer than the last can depend on this query. @param {Asked} asked */
function choosable({ api, state, own }) {
  return api.model().kind !== "encoder" && state.part !== "encoder.attention" && state.query !== own.length - 1;
}

/** Which answer is asked for. @param {HTMLElement} box @param {Asked} asked @returns {HTMLElement[]} */
function choice(box, asked) {
  if (!choosable(asked)) return [];
  const { say } = asked;
  const select = make("select", { "data-name": "at" }, ...["end", "query"].map((each) => make("option", { value: each, selected: (each === "query") === atQuery }, say(each === "query" ? "effect.at_query" : "effect.at_end"))));
  select.addEventListener("change", () => {
    atQuery = select.value === "query";
    void later(() => without(box, asked));
  });
  return [make("p", {}, make("label", { class: "choice" }, say("effect.at"), select))];
}

/** The numbers. @param {Asked} asked @param {any} row what `effects` said @param {any} one what is said of this key @returns {HTMLElement[]} */
function found(asked, row, one) {
  const { say, state, labels, own, api, cell } = asked;
  if (!row) return [make("p", { class: "quiet" }, say("effect.absent"))];
  if (row.position === null) return [make("p", {}, say("effect.no_answer"))];
  const [token, place] = [visible(row.token), placed(own, row.position)];
  const pairs = /** @type {Pair[]} */ (row.keys.map((/** @type {any} */ { key, weight, logprob }) => ({ key, weight, change: logprob - row.ran.logprob })));
  const said = one && (one.without_weight ?? one);
  if (said && !pairs.some(({ key }) => key === state.key)) pairs.push({ key: state.key, weight: one.weight, change: said.logprob - row.ran.logprob });
  const choose = (/** @type {number} */ key) => go({ key });
  return [
    make("p", {}, say(api.model().kind === "encoder" ? "effect.asked_encoder" : "effect.asked", { position: place, token })),
    table(asked, row, said, one?.weight),
    ...(said || !cell.visible ? [] : [make("p", { class: "quiet" }, say("effect.absent"))]),
    ...(pairs.length ? [
      make("h4", {}, say("effect.picture")),
      make("p", { class: "effect-sentence" }, sentence(asked, pairs, place)),
      picture(pairs, state.key, (key) => placed(labels.keys, key), choose, say),
      make("p", { class: "quiet" }, say("effect.sides", { token })),
    ] : [make("p", {}, say("effect.blind"))]),
  ];
}

/** As it ran, without the weight, without the head. @param {Asked} asked @param {any} row @param {Said | null | undefined} said @param {number} weight */
function table({ say, labels, state }, row, said, weight) {
  const line = (/** @type {string} */ name, /** @type {Said} */ { logit, logprob, best }, /** @type {boolean} */ ran) => make("tr", {}, make("th", { scope: "row" }, name), make("td", {}, visible(best)),
    make("td", {}, digits(logit)), make("td", {}, digits(Math.exp(logprob), say("effect.percent", { value: figures(Number((100 * Math.exp(logprob)).toPrecision(4))) }))),
    make("td", {}, ran ? "" : digits(logprob - row.ran.logprob, signed(logprob - row.ran.logprob))));
  const heads = ["", say("effect.best"), say("effect.logit"), say("effect.probability"), say("effect.change")];
  const lines = [line(say("effect.ran"), row.ran, true), ...(said ? [line(say("effect.weight", { weight: figures(weight) }), said, false)] : []),
    line(say("effect.head", { query: placed(labels.queries, state.query) }), row.without_head, false)];
  return make("div", { class: "scroller", tabindex: 0, "data-name": ANSWER, role: "region", "aria-label": say("effect.table") }, make("table", { class: "effect-table" },
    make("thead", {}, make("tr", {}, ...heads.map((text) => make("th", { scope: "col" }, text)))), make("tbody", {}, ...lines)));
}

/** Whether the largest weight does most. @param {Asked} asked @param {Pair[]} pairs @param {string} position */
function sentence({ say, labels, state, api, own }, pairs, position) {
  const [first] = /** @type {[Pair]} */ (pairs);
  const most = pairs.reduce((high, each) => (Math.abs(each.change) > Math.abs(high.change) ? each : high));
  const fields = { weight: figures(first.weight), key: placed(labels.keys, first.key), change: signed(first.change), position };
  if (Math.abs(most.change) < NOTHING) {
    const model = api.model();
    const last = state.layer === model.layers - 1 && state.part !== "encoder.attention" && (state.query !== own.length - 1);
    return `${say("effect.sentence_none", fields)}${last && !atQuery ? ` ${say("effect.unread")}` : ""}`;
  }
  if (most === first) return say("effect.sentence_same", fields);
  return say("effect.sentence", { ...fields, most: signed(most.change), cause: placed(labels.keys, most.key), small: figures(most.weight) });
}
