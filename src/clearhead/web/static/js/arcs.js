// @ts-check
/** One head as arcs: the tokens that look above, the tokens that are looked at below, and a curve between them the darker the larger the weight. */
import { widthOf } from "clearhead/axis.js";
import { draw } from "clearhead/dom.js";

/** @typedef {import("clearhead/labels.js").Labels} Labels */
/** @typedef {{query: number, key: number, weight: number, strong?: boolean}} Arc strong: drawn as the chosen one is, whichever that is */

const HIGH = 190;
const MOST = 700;
const LINE = 14;

/** The largest weights of a matrix of bytes from a threshold on, with the tokens that its fields begin at. @param {import("clearhead/matrix.js").Field} field @param {number} most what 255 stands for @param {number} threshold @param {number} tall @param {number} wide @returns {Arc[]} */
export function above(field, most, threshold, tall, wide) {
  /** @type {Arc[]} */
  const found = [];
  const least = Math.max(1, Math.ceil(255 * Math.sqrt(threshold / most)));
  field.values.forEach((value, place) => {
    if (value < least) return;
    const row = Math.floor(place / field.columns);
    found.push({ query: row * tall, key: (place - row * field.columns) * wide, weight: most * (value / 255) ** 2 });
  });
  return strongest(found);
}

/** The weights of one query. @param {number} query @param {ArrayLike<number>} weights @returns {Arc[]} */
export function ofQuery(query, weights) {
  const all = Array.from(weights, (weight, key) => ({ query, key, weight }));
  const least = all.reduce((most, { weight }) => Math.max(most, weight), 0) / 1000;
  return strongest(all.filter(({ weight }) => weight > least));
}

/** @param {Arc[]} arcs */
function strongest(arcs) {
  return arcs.sort((one, other) => other.weight - one.weight).slice(0, MOST).reverse();
}

/**
 * The picture, as wide as the tokens need.
 *
 * @param {Labels} labels
 * @param {Arc[]} arcs the weakest first; the last is drawn darkest
 * @param {{query: number, key: number}} chosen
 * @param {number} width that there is
 * @param {{query: (place: number) => void, key: (place: number) => void}} choose
 * @param {number} [full] the weight of the darkest line; the largest of all if it is left out
 * @returns {SVGElement}
 */
export function arcsOf(labels, arcs, chosen, width, choose, full = arcs[arcs.length - 1]?.weight || 1) {
  const count = Math.max(labels.queries.length, labels.keys.length, 1);
  const within = (/** @type {number} */ room) => Math.min(72, Math.max(count > 700 ? 5 : LINE, room / count));
  const level = [...labels.queries, ...labels.keys].every((label) => widthOf(label) <= within(width - 24) - 1);
  // The last of labels that are slanted reaches beyond its place.
  const edge = level ? 24 : 64;
  const pitch = within(width - edge);
  const long = Math.max(width, Math.ceil(count * pitch) + edge);
  const slant = level ? 22 : 74;
  const [above, below] = [slant, slant + HIGH];
  const picture = draw("svg", { class: "arcs", width: long, height: below + slant, viewBox: `0 0 ${long} ${below + slant}` });
  const at = (/** @type {number} */ place) => 16 + (place + 0.5) * pitch;
  picture.append(...arcs.map(({ query, key, weight, strong = query === chosen.query && key === chosen.key }) => {
    const [from, to, bend] = [at(query), at(key), HIGH * 0.5];
    const path = `M${from.toFixed(1)} ${above + 4}C${from.toFixed(1)} ${above + bend} ${to.toFixed(1)} ${below - bend} ${to.toFixed(1)} ${below - 4}`;
    return draw("path", { d: path, class: strong ? "arc chosen" : "arc", "stroke-opacity": Math.max(0.05, Math.sqrt(weight / full)).toFixed(3), "stroke-width": (1 + (2.5 * weight) / full).toFixed(2) });
  }));
  const step = Math.max(1, Math.ceil(LINE / pitch));
  for (const [names, y, side, mark] of /** @type {[string[], number, "query" | "key", number][]} */ ([
    [labels.queries, above, "query", chosen.query],
    [labels.keys, below, "key", chosen.key],
  ])) {
    names.forEach((name, place) => {
      const near = place !== mark && Math.abs(place - mark) < step;
      if (place !== mark && (near || place % step)) return;
      const text = draw("text", { class: place === mark ? "token chosen" : "token" }, name);
      if (level) set(text, at(place), side === "query" ? y - 8 : y + 16, "middle");
      else text.setAttribute("transform", `translate(${(at(place) + (side === "query" ? 3 : -2)).toFixed(1)} ${side === "query" ? y - 4 : y + 8}) rotate(${side === "query" ? -55 : 55})`);
      text.addEventListener("click", () => choose[side](place));
      picture.append(text);
    });
  }
  return picture;
}

/** @param {Element} text @param {number} x @param {number} y @param {string} anchor */
function set(text, x, y, anchor) {
  text.setAttribute("x", x.toFixed(1));
  text.setAttribute("y", String(y));
  text.setAttribute("text-anchor", anchor);
}
