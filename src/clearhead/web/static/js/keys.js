// @ts-check
/** The keyboard: what each key does, the dialog that says so, and who gets a key. */

import { make } from "clearhead/dom.js";
import { current, go } from "clearhead/state.js";

/** Keys of the whole page and of its sections: what is pressed, and the string that tells what it does. */
const TOLD = [
  ["Tab", "help.tab"],
  ["← → ↑ ↓", "help.arrows"],
  ["Enter", "help.enter"],
  ["Page Up, Page Down", "help.layer"],
  ["[ ]", "help.head"],
  ["+ − 0", "help.zoom"],
  ["1 … {count}", "help.numbers"],
  ["/", "help.slash"],
  ["?", "help.question"],
  ["Esc", "help.escape"],
];

/**
 * The dialog of the keys and of the page's words.
 * @param {import("clearhead/state.js").Say} say
 * @param {number} count how many sections there are
 */
export function help(say, count) {
  const rows = TOLD.map(([key, told]) => make("tr", {}, make("th", { scope: "row" }, make("kbd", {}, key.replace("{count}", String(count)))), make("td", {}, say(told))));
  const dialog = make("dialog", { id: "help", "aria-labelledby": "help-title", class: "help" },
    make("h2", { id: "help-title" }, say("help.title")),
    make("p", {}, say("help.about")),
    make("table", {}, make("tbody", {}, ...rows)),
    make("p", { class: "caption" }, say("help.weight")),
    make("form", { method: "dialog" }, make("button", { class: "main-button" }, say("help.close"))));
  dialog.addEventListener("click", (event) => event.target === dialog && dialog.close());
  return dialog;
}

/**
 * Listens to the page's keys.
 * @param {import("clearhead/state.js").View[]} views
 * @param {(id: string) => void} reach goes to a section
 */
export function listen(views, reach) {
  addEventListener("keydown", (event) => {
    if (event.defaultPrevented || event.ctrlKey || event.metaKey || event.altKey) return;
    const target = event.target instanceof Element ? event.target : null;
    if (target?.closest("input, textarea, select, dialog")) return;
    if (ofPage(event, views, reach)) return event.preventDefault();
    const section = target?.closest("section[data-view]");
    const view = views.find(({ id }) => id === section?.getAttribute("data-view"));
    const body = section?.querySelector(".body");
    const change = body instanceof HTMLElement ? view?.keys?.(event, current(), body) : null;
    if (!change) return;
    event.preventDefault();
    go(change);
  });
}

/**
 * @param {KeyboardEvent} event
 * @param {import("clearhead/state.js").View[]} views
 * @param {(id: string) => void} reach
 */
function ofPage(event, views, reach) {
  if (event.key === "?" || event.key === "？") {
    const dialog = document.getElementById("help");
    if (dialog instanceof HTMLDialogElement && !dialog.open) dialog.showModal();
    return true;
  }
  if (event.key === "/") {
    document.getElementById("text")?.focus();
    return true;
  }
  const chosen = views[Number(event.key) - 1];
  if (!/^[1-9]$/.test(event.key) || !chosen) return false;
  reach(chosen.id);
  return true;
}
