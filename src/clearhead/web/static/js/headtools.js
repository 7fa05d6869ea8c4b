// @ts-check
/** What the views of heads share: choosing part, layer and head; a number as a bar. */
import { make } from "clearhead/dom.js";
import { parts } from "clearhead/places.js";
import { figures } from "clearhead/say.js";
import { go } from "clearhead/state.js";

/** @typedef {import("clearhead/state.js").State} State */
/** @typedef {import("clearhead/state.js").Say} Say */

/** Fields for the part, where there are several, the layer and the head. @param {State} state @param {any} model @param {Say} say @returns {HTMLElement[]} */
export function choosers(state, model, say) {
  const names = parts(model);
  const layers = state.part === "encoder.attention" ? model.encoder_layers ?? model.layers : model.layers;
  const numbers = (/** @type {number} */ count) => Array.from({ length: count }, (_, place) => /** @type {[string, string]} */ ([String(place), String(place)]));
  return [
    names.length > 1 && chooser("part", say("head.part"), names.map((name) => [name, say(`part.${name}`)]), state.part, (part) => go({ part })),
    chooser("layer", say("head.layer"), numbers(layers), String(state.layer), (layer) => go({ layer: Number(layer) })),
    chooser("head", say("head.head"), numbers(model.heads), String(state.head), (head) => go({ head: Number(head) })),
  ].filter((each) => each !== false);
}

/** @param {string} field @param {string} label @param {[string, string][]} options value and text @param {string} chosen @param {(value: string) => void} choose */
function chooser(field, label, options, chosen, choose) {
  const select = make("select", { "data-field": field, "data-name": field }, ...options.map(([value, text]) => make("option", { value, selected: value === chosen }, text)));
  select.addEventListener("change", () => choose(select.value));
  return make("label", { class: "choice" }, label, select);
}

/** Brings the fields of `choosers` to the state. @param {HTMLElement} box @param {State} state */
export function choose(box, state) {
  for (const select of box.querySelectorAll("select")) {
    const field = select.dataset.field;
    if (field === "part" || field === "layer" || field === "head") select.value = String(state[field]);
  }
}

/** Calls when a room that is seen has another width. @param {HTMLElement} room @param {() => unknown} draw */
export function atWidth(room, draw) {
  let width = 0;
  new ResizeObserver(() => {
    if (room.isConnected && room.clientWidth !== width) draw();
    width = room.clientWidth;
  }).observe(room);
}

/** Fills a box anew; the focus stays on what has the same name. @param {HTMLElement} box @param {Node[]} children */
export function refilled(box, children) {
  const focused = document.activeElement;
  const name = focused instanceof HTMLElement && box.contains(focused) ? focused.dataset.name : undefined;
  box.replaceChildren(...children);
  if (name === undefined) return;
  for (const each of box.querySelectorAll("[data-name]")) if (each instanceof HTMLElement && each.dataset.name === name) each.focus({ preventScroll: true });
}

/**
 * A name, a bar and a number; pressed, it opens what it stands for.
 *
 * @param {string} name
 * @param {number} value
 * @param {number} whole of which the bar is a share
 * @param {boolean} chosen
 * @param {() => void} onclick
 * @param {string} title
 */
export function bar(name, value, whole, chosen, onclick, title) {
  const long = make("span", { class: "bar-fill" });
  long.style.width = `${whole > 0 ? (100 * Math.abs(value)) / whole : 0}%`;
  return make("button", { type: "button", class: "bar", "data-name": name, "aria-current": chosen ? "true" : null, onclick, title: `${title} · ${value}` },
    make("span", { class: "bar-name" }, name), make("span", { class: "bar-track" }, long), make("span", { class: "bar-number" }, figures(value)));
}
