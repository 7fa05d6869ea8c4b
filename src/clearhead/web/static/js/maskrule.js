// @ts-check
/**
 * Masks as words of the address ("causal.window-8.padding-2"), and what they say of a query and a key, with the rule that decides it.
 *
 * `mask_rule.py` has the same once more: the page names the rule that decides each pair under the pointer, and a saved file draws masks
 * that nobody computed for it, both without asking. A test holds the two to each other, word by word and pair by pair.
 */

/**
 * @typedef {object} Rule who may look at whom, as `mask_rule.py` has it
 * @property {boolean} causal
 * @property {number | null} window
 * @property {number | null} prefix
 * @property {number[]} documents where the second and the further ones begin
 * @property {number} padding
 */

/** @typedef {{key: string, fields: Record<string, string | number>, holds: boolean}} Reason a rule, and whether it lets this pair pass */

const NUMBER = /^[1-9]\d{0,6}$/;
const PARTS = ["causal", "window", "prefix", "documents", "padding"];

/** @type {Readonly<Rule>} */
export const FULL = Object.freeze({ causal: false, window: null, prefix: null, documents: [], padding: 0 });

/**
 * The rule that words stand for; null where they stand for none, and for "", the model's own.
 * @param {string} words "full", or parts joined by points, each at most once, in the order of `PARTS`
 * @returns {Rule | null}
 */
export function parsed(words) {
  const rule = { ...FULL };
  let before = -1;
  for (const word of words === "full" ? [] : words.split(".")) {
    const [name, ...numbers] = word.split("-");
    const place = PARTS.indexOf(name);
    if (place <= before || !numbers.every((each) => NUMBER.test(each))) return null;
    before = place;
    const [first] = numbers.map(Number);
    if (name === "causal" ? numbers.length : name === "documents" ? !numbers.length : numbers.length !== 1) return null;
    if (name === "causal") rule.causal = true;
    else if (name === "documents") rule.documents = numbers.map(Number);
    else rule[/** @type {"window" | "prefix" | "padding"} */ (name)] = first;
  }
  const rising = rule.documents.every((each, place) => place === 0 || each > rule.documents[place - 1]);
  return rising && (rule.prefix === null || rule.causal) ? rule : null;
}

/**
 * The rule without what lies beyond a text: a prefix ends with it, padding leaves one token, no document begins behind its end. A window
 * stays: those of the layers may be wider than a text as well.
 * @param {Rule} rule
 * @param {number} length of the text, in tokens
 * @returns {Rule}
 */
export function within(rule, length) {
  return {
    ...rule,
    prefix: rule.prefix === null ? null : Math.min(rule.prefix, length),
    documents: rule.documents.filter((each) => each < length),
    padding: Math.min(rule.padding, length - 1),
  };
}

/** A rule as an address has it. @param {Rule} rule */
export function written({ causal, window, prefix, documents, padding }) {
  const parts = [
    causal && "causal",
    window !== null && `window-${window}`,
    prefix !== null && `prefix-${prefix}`,
    documents.length > 0 && ["documents", ...documents].join("-"),
    padding > 0 && `padding-${padding}`,
  ];
  return parts.filter((each) => each !== false).join(".") || "full";
}

/** Which document a token belongs to, counted from 1. @param {Rule} rule @param {number} place */
export function documentOf({ documents }, place) {
  return 1 + documents.filter((begin) => begin <= place).length;
}

/** What each rule says of a query and a key. @param {Rule} rule @param {number} query @param {number} key @returns {Reason[]} */
export function reasons(rule, query, key) {
  const { causal, window, prefix, documents, padding } = rule;
  const fields = { query, key };
  /** @type {Reason[]} */
  const found = [];
  if (causal && prefix !== null && key < prefix && key > query) found.push({ key: "mask.why.prefix", fields: { ...fields, prefix }, holds: true });
  else if (causal) found.push({ key: key <= query ? "mask.why.causal" : "mask.why.future", fields, holds: key <= query });
  if (window !== null) {
    const holds = key > query - window;
    found.push({ key: holds ? "mask.why.window" : "mask.why.far", fields: { ...fields, window, first: String(query - window).replace("-", "−") }, holds });
  }
  if (documents.length) {
    const [own, other] = [documentOf(rule, query), documentOf(rule, key)];
    found.push({ key: own === other ? "mask.why.document" : "mask.why.documents", fields: { ...fields, own, other }, holds: own === other });
  }
  if (padding > 0) found.push({ key: key < padding ? "mask.why.padding" : "mask.why.real", fields: { ...fields, padding }, holds: key >= padding });
  return found;
}

/** The rule that decides: the first that hides the pair, else the first that there is. @param {Reason[]} found @returns {Reason | undefined} */
export function decisive(found) {
  return found.find(({ holds }) => !holds) ?? found[0];
}

/** 0 hidden, 1 seen, 2 hidden and the key is padding. @param {Rule} rule @param {number} query @param {number} key */
export function cellOf(rule, query, key) {
  if (reasons(rule, query, key).every(({ holds }) => holds)) return 1;
  return key < rule.padding ? 2 : 0;
}

/** How many of the keys a query sees. @param {Rule} rule @param {number} query @param {number} keys */
export function countOf(rule, query, keys) {
  let count = 0;
  for (let key = 0; key < keys; key++) count += Number(cellOf(rule, query, key) === 1);
  return count;
}

/** All cells of a mask, row by row. @param {Rule} rule @param {number} queries @param {number} keys */
export function cellsOf(rule, queries, keys) {
  return Uint8Array.from({ length: queries * keys }, (_, place) => cellOf(rule, Math.floor(place / keys), place % keys));
}
