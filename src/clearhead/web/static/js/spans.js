// @ts-check
/**
 * Which characters each token covers, as boxes: a box is never smaller than what a person reads as one character, so that no character is
 * cut; a token that covers only some bytes of one shares its box.
 */

/** @typedef {{id: number, piece: string, start: number, end: number, bytes?: [number, number] | null, special?: boolean, unknown?: boolean}} Token */
/** @typedef {{text: string, start: number, end: number, tokens: number[]}} Box of characters `start` to `end`, drawn whole, and the tokens that cover them */

/**
 * Boxes of a text, in order; a special token, which covers nothing, has a box without text.
 * @param {string} text
 * @param {Token[]} tokens `start` and `end` count code points
 * @returns {Box[]}
 */
export function boxes(text, tokens) {
  const letters = Array.from(text);
  const inside = insides(text);
  /** @type {Box[]} */
  const found = [];
  tokens.forEach(({ start, end }, place) => {
    const last = found[found.length - 1];
    if (start === end) found.push({ text: "", start, end, tokens: [place] });
    else if (last && last.end > last.start && (start < last.end || (inside.has(start) && start === last.end))) {
      last.tokens.push(place);
      last.end = Math.max(last.end, end);
    } else found.push({ text: "", start, end, tokens: [place] });
  });
  for (const box of found) box.text = letters.slice(box.start, box.end).join("");
  return found;
}

/** The places, in code points, that lie within one character as a person reads it (a family of emoji, a letter and its accent). @param {string} text */
function insides(text) {
  const places = new Set();
  let place = 0;
  for (const { segment } of new Intl.Segmenter().segment(text)) {
    const length = Array.from(segment).length;
    for (let step = 1; step < length; step++) places.add(place + step);
    place += length;
  }
  return places;
}

/**
 * The bytes of UTF-8 that a token holds, in hexadecimal: all of its characters', or those that `bytes` names.
 * @param {string[]} letters of the text: code points
 * @param {Token} token
 * @returns {string[]}
 */
export function hex(letters, { start, end, bytes }) {
  const all = new TextEncoder().encode(letters.slice(start, end).join(""));
  const own = bytes ? all.slice(bytes[0], bytes[1] + 1) : all;
  return [...own].map((byte) => byte.toString(16).toUpperCase().padStart(2, "0"));
}

const MARKS = new Map([[" ", "·"], ["\u00a0", "⍽"], ["\u3000", "□"], ["\t", "⇥"], ["\n", "↵"], ["\r", "␍"]]);

/**
 * A text with its white space made visible, as runs of what is text and what is a mark.
 * @param {string} text
 * @returns {{text: string, mark: boolean}[]}
 */
export function visible(text) {
  /** @type {{text: string, mark: boolean}[]} */
  const runs = [];
  for (const letter of text) {
    const shown = MARKS.get(letter) ?? (/[\p{Cc}\p{Cf}\p{Z}]/u.test(letter) && letter !== "\u200d" ? `U+${hexOf(letter)}` : null);
    const last = runs[runs.length - 1];
    if (last && last.mark === (shown !== null)) last.text += shown ?? letter;
    else runs.push({ text: shown ?? letter, mark: shown !== null });
  }
  const first = runs[0];
  if (first && /^\p{M}/u.test(first.text)) first.text = `◌${first.text}`;
  return runs;
}

/** @param {string} letter */
function hexOf(letter) {
  return (letter.codePointAt(0) ?? 0).toString(16).toUpperCase().padStart(4, "0");
}
