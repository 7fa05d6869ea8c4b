// @ts-check
/** One small note beside the pointer or the chosen cell; there is never more than one. */

/** @type {HTMLElement | null} */
let note = null;

function made() {
  if (note?.isConnected) return note;
  note = document.createElement("div");
  note.className = "tooltip";
  note.setAttribute("aria-hidden", "true"); // a screen reader hears the live region of the table
  document.body.append(note);
  return note;
}

/**
 * Shows lines beside a point of the window; it keeps within the window.
 *
 * @param {number} x of the window
 * @param {number} y of the window
 * @param {string[]} lines the first is set in bold
 */
export function tell(x, y, lines) {
  const box = made();
  box.replaceChildren(...lines.map((line, place) => {
    const row = document.createElement(place === 0 ? "strong" : "span");
    row.textContent = line;
    return row;
  }));
  box.classList.add("shown");
  const [width, height] = [box.offsetWidth, box.offsetHeight];
  const left = x + 16 + width > innerWidth ? Math.max(4, x - width - 12) : x + 16;
  const top = y + 18 + height > innerHeight ? Math.max(4, y - height - 12) : y + 18;
  box.style.transform = `translate(${Math.round(left)}px, ${Math.round(top)}px)`;
}

/** Takes the note away. */
export function hush() {
  note?.classList.remove("shown");
}
