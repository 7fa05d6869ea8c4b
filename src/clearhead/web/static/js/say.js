// @ts-check
/** The texts of the page, in English and Chinese, and how its numbers are written. */

/** @type {Record<string, string>} */
let strings = {};

/** @type {Record<string, Record<string, string>>} */
const tables = {};

/** Loads the texts of both languages: from the page itself where it is an exported file, else from the server. */
export async function loadTexts() {
  const carried = document.getElementById("strings");
  if (carried) return void Object.assign(tables, JSON.parse(carried.textContent || "{}"));
  await Promise.all(["en", "zh"].map(async (lang) => (tables[lang] = await (await fetch(`/static/${lang}.json`)).json())));
}

/**
 * The page speaks a language from here on.
 * @param {"en" | "zh"} lang
 */
export function speak(lang) {
  strings = tables[lang] ?? {};
  document.documentElement.lang = lang === "zh" ? "zh-Hans" : "en";
}

/**
 * A text with its fields put in; the key itself where the table has none, which a test refuses.
 * @type {import("clearhead/state.js").Say}
 */
export function say(key, fields = {}) {
  const text = strings[key] ?? key;
  return text.replace(/\{(\w+)\}/g, (whole, name) => (name in fields ? String(fields[name]) : whole));
}

/**
 * Whether the table has a text.
 * @param {string} key
 */
export function has(key) {
  return key in strings;
}

/**
 * A number to four significant digits: 0.1234, 12.34, 1234, 1.234e-7.
 * @param {number | null | undefined} value
 */
export function figures(value) {
  if (value === null || value === undefined || Number.isNaN(value)) return "–";
  if (value === 0 || !Number.isFinite(value)) return String(value).replace("-", "−");
  const size = Math.abs(value);
  const text = size < 1e-4 || size >= 1e7 ? value.toExponential(3) : String(Number(value.toPrecision(4)));
  return text.replace(/-/g, "−");
}

/**
 * A whole number with its thousands apart: 1 234 567.
 * @param {number} value
 */
export function whole(value) {
  return Math.round(value).toLocaleString("en-US").replace(/,/g, "\u202f");
}

/**
 * A large number, short: 1.23 M.
 * @param {number} value
 */
export function short(value) {
  const steps = ["", "\u202fk", "\u202fM", "\u202fG", "\u202fT", "\u202fP"];
  let step = 0;
  let rest = value;
  while (rest >= 1000 && step < steps.length - 1) [rest, step] = [rest / 1000, step + 1];
  return `${Number(rest.toPrecision(3))}${steps[step]}`;
}

/**
 * Bytes: 1.5 KB.
 * @param {number} value
 */
export function bytes(value) {
  const steps = ["B", "KB", "MB", "GB", "TB"];
  let step = 0;
  let rest = value;
  while (rest >= 1024 && step < steps.length - 1) [rest, step] = [rest / 1024, step + 1];
  return `${Number(rest.toPrecision(3))}\u202f${steps[step]}`;
}
