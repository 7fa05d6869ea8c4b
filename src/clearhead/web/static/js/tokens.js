// @ts-check
/** Text, pieces, ids: every token drawn over the characters that it covers. */

import { make } from "clearhead/dom.js";
import { whole } from "clearhead/say.js";
import { boxes, hex, visible } from "clearhead/spans.js";
import { go } from "clearhead/state.js";

/** @typedef {import("clearhead/spans.js").Token} Token */
/** @typedef {import("clearhead/state.js").State} State */
/** @typedef {import("clearhead/state.js").Say} Say */
/** @typedef {{text: string, letters: string[], tokens: Token[]}} Row its characters are code points */
/** @typedef {{rows: {row: Row, field: "query" | "key", pieces: HTMLElement[], told: HTMLElement}[], marked: HTMLElement[]}} Drawn */

/** @type {WeakMap<HTMLElement, Drawn>} */
const drawn = new WeakMap();

/** @type {import("clearhead/state.js").View} */
export const view = {
  id: "tokens",
  uses: ["query", "key", "part"],
  async show(element, state, api, say) {
    const found = drawn.get(element) ?? begin(element, (await api.get("tokens")).header, api, say);
    mark(found, state, say);
  },
  keys(event, state) {
    const target = event.target instanceof HTMLElement ? event.target.closest("[data-place]") : null;
    const [field, count] = [target?.getAttribute("data-field"), Number(target?.getAttribute("data-count"))];
    if (field !== "query" && field !== "key") return null;
    const steps = new Map([["ArrowLeft", -1], ["ArrowRight", 1], ["Home", -Infinity], ["End", Infinity]]);
    const step = steps.get(event.key);
    if (step === undefined) return null;
    const place = Math.max(0, Math.min(state[field] + step, count - 1));
    /** @type {HTMLElement | null | undefined} */ (target?.closest(".pieces")?.querySelector(`[data-place="${place}"]`))?.focus();
    return { [field]: place };
  },
};

/**
 * @param {HTMLElement} element
 * @param {any} told
 * @param {import("clearhead/state.js").Api} api
 * @param {Say} say
 */
function begin(element, told, api, say) {
  const cut = api.opened().cut;
  if (cut) element.append(make("p", { class: "line" }, say("tokens.cut", { cut: whole(cut), context: whole(api.model().context) })));
  /** @type {Drawn} */
  const found = { rows: [], marked: [] };
  if (told.source) {
    element.append(rowOf(found, lettered(told.source), "key", say("tokens.source"), api, say));
  }
  element.append(rowOf(found, lettered(told), "query", told.source ? say("tokens.target") : "", api, say));
  drawn.set(element, found);
  return found;
}

/** @param {{text: string, tokens: Token[]}} told @returns {Row} */
function lettered({ text, tokens }) {
  return { text, tokens, letters: Array.from(text) };
}

/**
 * @param {Drawn} found
 * @param {Row} row
 * @param {"query" | "key"} field
 * @param {string} title
 * @param {import("clearhead/state.js").Api} api
 * @param {Say} say
 */
function rowOf(found, row, field, title, api, say) {
  /** @type {HTMLElement[]} */
  const pieces = [];
  const place = make("div", { class: "pieces", role: "group", "aria-label": title || say("tokens.title") });
  boxes(row.text, row.tokens).forEach((box, index) => {
    place.append(boxOf(row, box, index, field, pieces, say));
    if (/[\n\r]$/.test(box.text)) place.append(make("span", { class: "break" }));
  });
  const told = make("p", { class: "told", "aria-live": "polite" });
  found.rows.push({ row, field, pieces, told });
  const count = say("tokens.count", {
    characters: whole(row.letters.length),
    tokens: whole(row.tokens.length),
    vocab: whole(api.model().vocab),
  });
  return make("div", { class: "token-row" }, title ? make("h3", {}, title) : null, make("p", { class: "quiet" }, count), place, told, fold(row, say));
}

/**
 * One box: the characters above; below, the id of each token that covers them, and a tick for each byte where they share them.
 * @param {Row} row
 * @param {import("clearhead/spans.js").Box} box
 * @param {number} index
 * @param {"query" | "key"} field
 * @param {HTMLElement[]} pieces
 * @param {Say} say
 */
function boxOf(row, box, index, field, pieces, say) {
  const special = box.start === box.end;
  const only = box.tokens.length === 1;
  const letters = special
    ? make("span", { class: "letters badge" }, row.tokens[box.tokens[0] ?? 0]?.piece ?? "")
    : make("span", { class: "letters" }, ...visible(box.text).map(({ text, mark }) => (mark ? make("span", { class: "mark" }, text) : text)));
  const buttons = box.tokens.map((place) => {
    const token = /** @type {Token} */ (row.tokens[place]);
    const ticks = only && !token.bytes ? null : make("span", { class: "ticks", title: hex(row.letters, token).join(" ") },
      ...hex(row.letters, token).map(() => make("i")));
    const button = make("button", {
      type: "button",
      class: "piece-token",
      tabindex: -1,
      "data-place": place,
      "data-field": field,
      "data-count": row.tokens.length,
      "aria-label": line(row, place, say),
      onclick: () => go({ [field]: place }),
      onpointerenter: () => tell(field, button, line(row, place, say)),
    }, only ? letters : null, ticks, make("span", { class: "id" }, String(token.id)));
    pieces[place] = button;
    return button;
  });
  const unknown = box.tokens.some((place) => row.tokens[place]?.unknown);
  const kind = special ? "special" : unknown ? "unknown" : `tint-${index % 4}`;
  return make("span", { class: `piece ${kind}${only ? "" : " shared"}` }, only ? null : letters, only ? buttons[0] : make("span", { class: "sharers" }, ...buttons));
}

/**
 * What is known of a token, in one line.
 * @param {Row} row
 * @param {number} place
 * @param {Say} say
 */
function line(row, place, say) {
  const token = /** @type {Token} */ (row.tokens[place]);
  const fields = { place, id: token.id, piece: token.piece, start: token.start, end: token.end - 1, bytes: hex(row.letters, token).join(" ") };
  if (token.start === token.end) return say("tokens.told_special", fields);
  if (token.unknown) return say("tokens.told_unknown", fields);
  if (token.bytes) return say(token.bytes[0] === token.bytes[1] ? "tokens.told_byte" : "tokens.told_bytes", { ...fields, first: token.bytes[0] + 1, last: token.bytes[1] + 1 });
  return say(token.end - token.start === 1 ? "tokens.told_one" : "tokens.told", fields);
}

/** @param {string} field @param {HTMLElement} button @param {string} text */
function tell(field, button, text) {
  const told = button.closest(".token-row")?.querySelector(".told");
  if (told) told.textContent = text;
}

/** @param {Drawn} found @param {State} state @param {Say} say */
function mark(found, state, say) {
  for (const each of found.marked) {
    each.removeAttribute("aria-pressed");
    each.tabIndex = -1;
  }
  found.marked = [];
  for (const { row, field, pieces, told } of found.rows) {
    // In an encoder's own attention the query is a place of the source, too.
    const place = Math.min(state[field], row.tokens.length - 1);
    const button = pieces[place];
    if (!button) continue;
    button.setAttribute("aria-pressed", "true");
    button.tabIndex = 0;
    told.textContent = line(row, place, say);
    found.marked.push(button);
  }
}

/** The same as a table, made when somebody opens it. @param {Row} row @param {Say} say */
function fold(row, say) {
  const details = make("details", { class: "table-behind" }, make("summary", {}, say("tokens.table")));
  details.addEventListener("toggle", () => {
    if (details.querySelector("table")) return;
    const head = ["tokens.place", "tokens.id", "tokens.piece", "tokens.characters", "tokens.bytes"].map((key) => make("th", { scope: "col" }, say(key)));
    const lines = row.tokens.map((token, place) => make("tr", {},
      make("th", { scope: "row" }, String(place)),
      make("td", {}, String(token.id)),
      make("td", {}, make("code", {}, token.piece)),
      make("td", {}, token.start === token.end ? say("tokens.none") : row.letters.slice(token.start, token.end).join("")),
      make("td", {}, make("code", {}, hex(row.letters, token).join(" ")))));
    details.append(make("div", { class: "scroller" }, make("table", {}, make("thead", {}, make("tr", {}, ...head)), make("tbody", {}, ...lines))));
  });
  return details;
}
