// @ts-check
/** What a token is called beside a picture: the characters that it covers, whole, with blanks that can be seen. */

/** @typedef {{id: number, piece: string, start: number, end: number, bytes?: [number, number] | null}} Token */
/** @typedef {{text: string, tokens: Token[], source?: {text: string, tokens: Token[]} | null}} Told what /tokens says */
/** @typedef {{queries: string[], keys: string[]}} Labels */

const LONGEST = 14;
const segments = new Intl.Segmenter("zh", { granularity: "grapheme" });

/** Blanks as signs, and no more than a few characters, none of them cut. @param {string} text */
export function visible(text) {
  // Joiners and marks that change their neighbour are nothing to see when they stand alone.
  if (/^[\p{Cf}\p{Mn}]+$/u.test(text)) return Array.from(text, (each) => `U+${each.codePointAt(0)?.toString(16).toUpperCase().padStart(4, "0")}`).join(" ");
  const signs = text.replace(/ /g, "·").replace(/\n/g, "↵").replace(/\t/g, "⇥").replace(/\r/g, "␍");
  // What is short in code units is short in characters; most tokens are, and a segmenter takes 2 KB for each text.
  if (signs.length <= LONGEST) return signs;
  const whole = [...segments.segment(signs)].map((each) => each.segment);
  return whole.length > LONGEST ? `${whole.slice(0, LONGEST - 1).join("")}…` : whole.join("");
}

/** Digits below the line. @param {string} digits */
const low = (digits) => digits.replace(/\d/g, (digit) => String.fromCharCode(0x2080 + Number(digit)));

/** @param {Token} token @param {string[]} characters of the text */
function name(token, characters) {
  if (token.start === token.end) return visible(token.piece);
  const covered = characters.slice(token.start, token.end).join("");
  const bytes = new TextEncoder().encode(covered).length;
  const part = token.bytes && token.bytes[1] - token.bytes[0] + 1 < bytes;
  // Of a character that several tokens share, each says which of its bytes it is.
  return part && token.bytes ? visible(covered) + low([...new Set(token.bytes)].join("₋")) : visible(covered);
}

/** The names of an answer's tokens: every section asks for them. @type {WeakMap<object, string[]>} */
const known = new WeakMap();

/** @param {{text: string, tokens: Token[]}} told */
function names(told) {
  const before = known.get(told);
  if (before) return before;
  const characters = Array.from(told.text);
  const found = told.tokens.map((token) => name(token, characters));
  known.set(told, found);
  return found;
}

/**
 * The tokens that look and the tokens that are looked at, in a part of the model.
 *
 * @param {Told} told
 * @param {string} part
 * @returns {Labels}
 */
export function labelsOf(told, part) {
  const own = names(told);
  const source = told.source ? names(told.source) : own;
  if (part === "encoder.attention") return { queries: source, keys: source };
  return { queries: own, keys: part.endsWith("cross_attention") ? source : own };
}

/** A position and its token: 3 “cat”. @param {string[]} labels @param {number} place */
export function placed(labels, place) {
  return labels[place] === undefined ? String(place) : `${place} “${labels[place]}”`;
}
