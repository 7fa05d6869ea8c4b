// @ts-check
/** A section as a picture: PNG, twice as fine as the screen, or SVG, whose texts stay texts. */

import { make } from "clearhead/dom.js";
import { redrawn } from "clearhead/redrawn.js";
import { current } from "clearhead/state.js";

const FINE = 2;
/** The longest side of a canvas, in pixels, that browsers agree to. */
const LONGEST = 16000;

/**
 * The buttons of a section.
 * @param {string} id of the section
 * @param {import("clearhead/state.js").Say} say
 * @returns {HTMLElement[]}
 */
export function saving(id, say) {
  return /** @type {const} */ (["png", "svg"]).map((kind) => make("button", {
    type: "button",
    class: "chip",
    "data-save": kind,
    title: say(`save.${kind}_told`),
    "aria-label": say(`save.${kind}_told`),
    onclick: (event) => void save(event.currentTarget, id, kind),
  }, say(`save.${kind}`)));
}

/** @param {HTMLElement} button @param {string} id @param {"png" | "svg"} kind */
async function save(button, id, kind) {
  const panel = button.closest("section");
  if (!panel) return;
  const picture = redrawn(panel);
  const blob = kind === "svg" ? asFile(picture) : await painted(picture);
  if (blob) hand(blob, `${nameOf(id)}.${kind}`);
}

/** What a picture is called: clearhead-head-3-2. @param {string} id */
function nameOf(id) {
  const { layer, head, query, key } = current();
  return ["clearhead", id, ...(id === "head" || id === "cell" ? [layer, head] : []), ...(id === "cell" ? [query, key] : [])].join("-");
}

/** @param {SVGElement} picture */
function asFile(picture) {
  return new Blob([`<?xml version="1.0" encoding="UTF-8"?>\n${new XMLSerializer().serializeToString(picture)}`], { type: "image/svg+xml" });
}

/** The picture as pixels. @param {SVGElement} picture @returns {Promise<Blob | null>} */
export async function painted(picture) {
  const [width, height] = [Number(picture.getAttribute("width")), Number(picture.getAttribute("height"))];
  const scale = Math.min(FINE, LONGEST / Math.max(width, height, 1));
  const address = URL.createObjectURL(asFile(picture));
  try {
    const image = new Image();
    image.src = address;
    await image.decode();
    const canvas = make("canvas", { width: Math.ceil(width * scale), height: Math.ceil(height * scale) });
    canvas.getContext("2d")?.drawImage(image, 0, 0, canvas.width, canvas.height);
    return await new Promise((resolve) => canvas.toBlob(resolve, "image/png"));
  } finally {
    URL.revokeObjectURL(address);
  }
}

/** Gives a file to the person. @param {Blob} blob @param {string} name */
function hand(blob, name) {
  const href = URL.createObjectURL(blob);
  make("a", { href, download: name }).click();
  setTimeout(() => URL.revokeObjectURL(href), 10000);
}
