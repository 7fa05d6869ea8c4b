// @ts-check
/** What stands around the sections: the model's name and sizes, switches, tabs, and the last line. */

import { carriesAnswers, exportAddress } from "clearhead/api.js";
import { make } from "clearhead/dom.js";
import { short, whole } from "clearhead/say.js";
import { reach } from "clearhead/scroll.js";
import { address, current, go } from "clearhead/state.js";

/** @typedef {import("clearhead/state.js").State} State */
/** @typedef {import("clearhead/state.js").Say} Say */

/**
 * @param {any} model
 * @param {State} state
 * @param {Say} say
 * @returns {HTMLElement[]}
 */
export function bar(model, state, say) {
  const name = make("h1", {}, make("span", { class: "brand" }, "clearhead"), make("span", { class: "model" }, model.name));
  const sizes = make("p", { class: "sizes", title: `${whole(model.parameters)}` }, say("frame.sizes", {
    kind: say(`kind.${model.kind}`),
    parameters: short(model.parameters),
    layers: model.layers,
    heads: model.heads,
    width: whole(model.width),
    vocab: whole(model.vocab),
    context: whole(model.context),
  }), model.kv_heads === model.heads ? "" : say("frame.shared", { kv_heads: model.kv_heads }));
  return [make("div", { class: "who" }, name, sizes), make("div", { class: "switches" }, ...switches(state, say))];
}

/** @param {State} state @param {Say} say */
function switches(state, say) {
  const other = state.lang === "zh" ? "en" : "zh";
  const dark = state.theme ? state.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
  return [
    carriesAnswers() ? null : make("button", { type: "button", class: "chip", id: "save", onclick: save, title: say("frame.save_told") }, say("frame.save")),
    make("button", { type: "button", class: "chip", id: "language", lang: other === "zh" ? "zh-Hans" : "en", onclick: () => go({ lang: other }) }, say("frame.language")),
    make("button", {
      type: "button",
      class: "chip icon",
      id: "theme",
      "aria-label": say(dark ? "frame.light" : "frame.dark"),
      title: say(dark ? "frame.light" : "frame.dark"),
      onclick: () => go({ theme: dark ? "light" : "dark" }),
    }, dark ? "☀" : "☾"),
    make("button", {
      type: "button",
      class: "chip icon",
      id: "ask",
      "aria-label": say("frame.help"),
      title: say("frame.help"),
      onclick: () => /** @type {HTMLDialogElement | null} */ (document.getElementById("help"))?.showModal(),
    }, "?"),
  ].filter((each) => each !== null);
}

/** Saves what is seen as one file that opens without a server. */
function save() {
  const { text: _text, target: _target, theme: _theme, ...place } = current();
  make("a", { href: exportAddress(place), download: `clearhead-${place.view}.html` }).click();
}

/**
 * @param {import("clearhead/state.js").View[]} views
 * @param {State} state
 * @param {Say} say
 * @returns {HTMLElement[]}
 */
export function tabs(views, state, say) {
  return [make("ol", {}, ...views.map(({ id }) => make("li", {}, make("a", {
    href: address({ ...state, view: id }),
    "data-tab": id,
    "aria-current": id === state.view ? "true" : null,
    onclick: (event) => (event.preventDefault(), reach(id)),
  }, say(`${id}.tab`)))))];
}

/** Shows which section is looked at. @param {string} id */
export function markTab(id) {
  for (const tab of document.querySelectorAll("[data-tab]")) {
    if (tab.getAttribute("data-tab") === id) tab.setAttribute("aria-current", "true");
    else tab.removeAttribute("aria-current");
  }
}

/** @param {Say} say */
export function foot(say) {
  return [make("p", {}, say(carriesAnswers() ? "frame.file" : "frame.local"))];
}
