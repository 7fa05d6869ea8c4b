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
  // On the far half of the window it stands on the other side. Its size is not asked, for that would lay the page out at every move.
  const [right, low] = [x > innerWidth / 2, y > innerHeight / 2];
  box.style.transform = `translate(${x + (right ? -14 : 16)}px, ${y + (low ? -12 : 18)}px) translate(${right ? -100 : 0}%, ${low ? -100 : 0}%)`;
}

/** Takes the note away. */
export function hush() {
  note?.classList.remove("shown");
}
