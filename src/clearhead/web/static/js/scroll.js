// @ts-check
/** One column of sections: going to one, and knowing which one a person looks at. */

import { current, go, keepStanding } from "clearhead/state.js";

/** Whether the page, and not the person, moves the column. */
let ours = true;

/** Where the top of the section stood that the person came back to, in pixels from that of the window; null: it begins there. @type {number | null} */
let stood = null;

/**
 * Goes to a section, because a person chose it.
 * @param {string} id
 */
export function reach(id) {
  go({ view: id }, { step: true });
  [ours, stood] = [true, null];
  const section = document.getElementById(`view-${id}`);
  const calm = matchMedia("(prefers-reduced-motion: reduce)").matches;
  section?.scrollIntoView({ behavior: calm ? "auto" : "smooth", block: "start" });
  document.getElementById(`title-${id}`)?.focus({ preventScroll: true });
}

/**
 * Keeps the section of the address in place while those above it grow, until the person moves.
 * @param {string} id
 */
export function settle(id) {
  // Of a page that nobody has moved yet the first section is in sight, with the prompt above it.
  if (!ours || (id === "tokens" && scrollY <= 0 && stood === null)) return;
  const section = document.getElementById(`view-${id}`);
  if (section && stood !== null) return scrollBy({ top: section.getBoundingClientRect().top - stood, behavior: "instant" });
  section?.scrollIntoView({ block: "start" });
  // The box of the tensor that is open may stand far below the title, on a phone behind the sheet with its numbers.
  const box = section?.querySelector("[data-stage][aria-pressed=true]")?.getBoundingClientRect();
  if (box && box.bottom > innerHeight / 2) scrollBy(0, box.top - innerHeight * 0.3);
}

/**
 * Writes the section that a person scrolled to into the state, and has the browser's back button show what was seen, where it stood.
 * @param {string[]} ids
 */
export function follow(ids) {
  // The browser's own way back knows nothing of sections that are still to be drawn.
  history.scrollRestoration = "manual";
  const back = () => {
    [ours, stood] = [true, typeof history.state === "number" ? history.state : null];
    settle(current().view);
  };
  addEventListener("hashchange", back);
  back();
  keepStanding(({ view }) => document.getElementById(`view-${view}`)?.getBoundingClientRect().top ?? null);
  for (const kind of ["wheel", "touchmove", "pointerdown", "keydown"]) addEventListener(kind, () => (ours = false), { passive: true });
  let timer = 0;
  addEventListener("scroll", () => {
    clearTimeout(timer);
    timer = setTimeout(() => {
      if (ours) return;
      const tops = ids.map((id) => document.getElementById(`view-${id}`)?.getBoundingClientRect().top ?? Infinity);
      const last = tops.filter((top) => top < innerHeight * 0.45).length;
      const id = ids[Math.max(0, last - 1)];
      if (id && id !== current().view) go({ view: id });
    }, 160);
  }, { passive: true });
}
