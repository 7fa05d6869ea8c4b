// @ts-check
/**
 * The table behind a canvas: what is drawn, for people who do not see it. It is out of sight until it is opened, and a live region says
 * what was chosen.
 */

/**
 * @typedef {object} Behind
 * @property {HTMLElement} element holds both
 * @property {(caption: string, head: string[], rows: () => string[][]) => void} fill writes the table anew, when it is open
 * @property {(line: string) => void} speak says a line when the reader has time
 */

/** @param {string} label of the fold that opens the table @returns {Behind} */
export function behind(label) {
  const element = document.createElement("div");
  const fold = document.createElement("details");
  fold.className = "table-behind";
  const summary = document.createElement("summary");
  summary.textContent = label;
  const table = document.createElement("table");
  const room = document.createElement("div");
  room.className = "scroller";
  room.tabIndex = 0;
  room.append(table);
  fold.append(summary, room);
  const live = document.createElement("p");
  live.className = "visually-hidden";
  live.setAttribute("aria-live", "polite");
  element.append(fold, live);
  /** @type {() => void} */
  let write = () => {};
  fold.addEventListener("toggle", () => fold.open && write());
  return {
    element,
    fill: (caption, head, rows) => {
      write = () => fill(table, caption, head, rows());
      if (fold.open) write();
    },
    speak: (line) => {
      if (live.textContent !== line) live.textContent = line;
    },
  };
}

/** @param {HTMLTableElement} table @param {string} caption @param {string[]} head @param {string[][]} rows the first cell of each names it */
function fill(table, caption, head, rows) {
  const title = document.createElement("caption");
  title.textContent = caption;
  const top = document.createElement("tr");
  top.append(...head.map((text) => cell("th", text, "col")));
  const first = document.createElement("thead");
  first.append(top);
  const body = document.createElement("tbody");
  body.append(...rows.map((texts) => {
    const line = document.createElement("tr");
    line.append(...texts.map((text, place) => (place === 0 ? cell("th", text, "row") : cell("td", text))));
    return line;
  }));
  table.replaceChildren(title, first, body);
}

/** @param {"th" | "td"} name @param {string} text @param {string} [scope] */
function cell(name, text, scope) {
  const element = document.createElement(name);
  element.textContent = text;
  if (scope) element.setAttribute("scope", scope);
  return element;
}
