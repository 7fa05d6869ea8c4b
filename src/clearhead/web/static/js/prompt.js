// @ts-check
/** The field in which a person types, with examples; two fields where the model reads one text and writes another. */

import { make } from "clearhead/dom.js";
import { go } from "clearhead/state.js";

/** @typedef {{text: string, target?: string | null}} Example */

/**
 * Draws the field anew.
 * @param {HTMLElement} element
 * @param {import("clearhead/state.js").State} state
 * @param {any} model what /api/model said
 * @param {import("clearhead/state.js").Say} say
 * @param {boolean} closed an exported file: it holds one prompt and can open no other
 */
export function showPrompt(element, state, model, say, closed) {
  const two = model.kind === "encoder_decoder";
  const text = field("text", state.text ?? "", say(two ? "prompt.source" : "prompt.label"), closed);
  const target = two ? field("target", state.target ?? "", say("prompt.target"), closed) : null;
  const open = () => {
    // What was written to another text is no answer to this one: the model writes its own, unless a person has typed one.
    const typed = target && (text.area.value === state.text || target.area.value !== state.target);
    go({ text: text.area.value, target: typed ? target.area.value : null, query: -1, key: -1 }, { step: true });
  };
  const form = make("form", { class: two ? "prompt two" : "prompt", "aria-label": say("prompt.label") }, text.box, target?.box,
    closed ? null : make("button", { class: "main-button", type: "submit" }, say("prompt.open")));
  form.addEventListener("submit", (event) => (event.preventDefault(), open()));
  form.addEventListener("keydown", (event) => {
    if (event.key !== "Enter" || event.shiftKey || event.isComposing || !(event.target instanceof HTMLTextAreaElement)) return;
    event.preventDefault();
    if (!closed) open();
  });
  element.replaceChildren(form, closed ? make("p", { class: "caption" }, say("prompt.closed")) : examples(model, state, say), make("p", { class: "caption intro" }, say("frame.intro")));
  for (const each of [text, target]) if (each) grow(each.area);
}

/**
 * @param {string} id
 * @param {string} value
 * @param {string} label
 * @param {boolean} closed
 */
function field(id, value, label, closed) {
  const area = make("textarea", { id, rows: 1, spellcheck: "false", autocomplete: "off", autocapitalize: "off", "data-given": value, readonly: closed });
  // What a person has typed and not opened yet stays when the page is drawn anew, in the other language for one.
  const before = document.getElementById(id);
  area.value = before instanceof HTMLTextAreaElement && before.getAttribute("data-given") === value ? before.value : value;
  area.addEventListener("input", () => grow(area));
  return { area, box: make("div", { class: "field" }, make("label", { for: id }, label), area) };
}

/** As high as its text, up to a third of the window. @param {HTMLTextAreaElement} area */
function grow(area) {
  area.style.height = "auto";
  area.style.height = `${Math.min(area.scrollHeight + 2, Math.max(innerHeight / 3, 80))}px`;
}

/**
 * @param {any} model
 * @param {import("clearhead/state.js").State} state
 * @param {import("clearhead/state.js").Say} say
 */
function examples(model, state, say) {
  const chips = exampleList(model).map(({ text, target = null }) => make("button", {
    type: "button",
    class: "chip",
    "aria-pressed": String(text === state.text && (target === null || target === state.target)),
    onclick: () => go({ text, target, query: -1, key: -1 }, { step: true }),
  }, shortened(target ? `${text} → ${target}` : text)));
  return make("div", { class: "examples" }, chips.length ? make("span", { class: "quiet" }, say("prompt.examples")) : null, ...chips,
    make("span", { class: "quiet hint" }, say("prompt.hint")));
}

/** The examples of a model. @param {any} model @returns {Example[]} */
export function exampleList(model) {
  return (model.prompts ?? []).map((/** @type {string | Example} */ each) => (typeof each === "string" ? { text: each } : each));
}

/** @param {string} text */
function shortened(text) {
  const letters = Array.from(text.replace(/\s+/g, " "));
  return letters.length > 42 ? `${letters.slice(0, 40).join("")}…` : letters.join("");
}
