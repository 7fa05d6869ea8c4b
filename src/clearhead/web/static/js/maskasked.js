// @ts-check
/** What the mask lens asks for: the mask of a layer, and what the model says with a mask. */
import { Refused } from "clearhead/api.js";
import { cellsOf, FULL, parsed, within, written } from "clearhead/maskrule.js";

/** @typedef {import("clearhead/state.js").Api} Api */
/** @typedef {import("clearhead/state.js").State} State */
/** @typedef {import("clearhead/state.js").Numbers} Numbers */
/** @typedef {import("clearhead/maskrule.js").Rule} Rule */

/**
 * @typedef {object} MaskHeader of the answer to "mask"
 * @property {string} part
 * @property {number} layer
 * @property {number} queries
 * @property {number} keys
 * @property {[number, number]} pooled how many queries and keys a cell stands for
 * @property {string} mask the words of what is shown
 * @property {string} own those of the layer's own
 * @property {boolean} everywhere whether all layers of the part have the same of their own
 * @property {Rule} rule
 * @property {boolean} cut whether more was asked for than the text has room for
 * @property {Rule} first the numbers with which rules are switched on
 * @property {boolean} switched whether the part takes another mask
 * @property {{seen: number, hidden: number, padding: number}} cells
 * @property {number} blind how many of the first queries see nothing
 * @property {{opened: number, closed: number}} changed against the layer's own
 * @property {Conventions} conventions
 */

/**
 * @typedef {object} Conventions how programs write a mask down
 * @property {Record<string, string[]>} written how each writes "may look" and "must not"
 * @property {Record<string, boolean[]>} taken what the two are where one is read as another, by "written, read"
 */

/**
 * @typedef {object} MaskedHeader of the answer to "masked"
 * @property {string} mask
 * @property {number} best how many tokens are told of each side
 * @property {"next" | "here" | "features"} says
 * @property {Record<string, string>} pieces by id
 */

/** @typedef {{header: MaskHeader, arrays: Record<string, Numbers>}} MaskAnswer */
/** @typedef {{header: MaskedHeader, arrays: Record<string, Numbers>}} MaskedAnswer */

/**
 * The answer for a mask; a saved file that does not hold it has the layer's own, from which the rest is known.
 * @param {Api} api
 * @param {State} state
 * @param {string} mask
 * @returns {Promise<MaskAnswer>}
 */
export async function maskOf(api, { part, layer }, mask) {
  try {
    return await api.get("mask", { part, layer, mask });
  } catch (error) {
    if (!(error instanceof Refused) || error.kind !== "absent" || mask === "") throw error;
    /** @type {MaskAnswer} */
    const own = await api.get("mask", { part, layer, mask: "" });
    if (own.header.pooled[0] * own.header.pooled[1] > 1) throw error;
    return replaced(own, mask);
  }
}

/** The same layer with another mask. @param {MaskAnswer} own @param {string} mask @returns {MaskAnswer} */
function replaced({ header, arrays }, mask) {
  const { queries, keys } = header;
  const wanted = parsed(mask) ?? FULL;
  const rule = within(wanted, keys);
  const data = cellsOf(rule, queries, keys);
  const ran = arrays.seen.data;
  const count = (/** @type {(place: number) => boolean} */ holds) => data.reduce((sum, _, place) => sum + Number(holds(place)), 0);
  const rows = Array.from({ length: queries }, (_, row) => data.subarray(row * keys, (row + 1) * keys));
  return {
    header: {
      ...header,
      mask: written(rule),
      rule,
      cut: JSON.stringify(rule) !== JSON.stringify(wanted),
      cells: {
        seen: count((place) => data[place] === 1),
        hidden: count((place) => data[place] === 0),
        padding: count((place) => data[place] === 2),
      },
      blind: rows.filter((row) => !row.includes(1)).length,
      changed: {
        opened: count((place) => data[place] === 1 && ran[place] !== 1),
        closed: count((place) => data[place] !== 1 && ran[place] === 1),
      },
    },
    arrays: { seen: { shape: [queries, keys], data } },
  };
}

/**
 * What the model says with a mask; null where a saved file does not hold it.
 * @param {Api} api
 * @param {string} mask
 * @returns {Promise<MaskedAnswer | null>}
 */
export async function saidWith(api, mask) {
  try {
    return await api.get("masked", { mask });
  } catch (error) {
    if (!(error instanceof Refused) || error.kind !== "absent") throw error;
    return null;
  }
}
