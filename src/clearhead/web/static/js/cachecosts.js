// @ts-check
/** What a step costs with a cache and without, and what the cache weighs. */
import { draw, make } from "clearhead/dom.js";
import { bytes, figures, short, whole } from "clearhead/say.js";

/** @typedef {import("clearhead/state.js").Say} Say */
/** @typedef {import("clearhead/cachesteps.js").CacheHeader} CacheHeader */
/** @typedef {{text: string, told: {prompt: number, context: number}, own: boolean}} Kind a kind of cache, and its bytes */

const SIDE = 132;

/**
 * The pairs of tokens that a forward works on, a row for each token that looks: the new row, and those that are spared.
 * @param {number} tokens
 * @param {number | null} window of the widest layer
 * @param {string} label
 */
export function triangle(tokens, window, label) {
  const row = Math.max(2.5, SIDE / tokens);
  const seen = Math.min(tokens, window ?? tokens) / tokens;
  const old = SIDE - row;
  const band = (1 - seen) * SIDE;
  const cut = `L${Math.max(0, old - seen * SIDE).toFixed(1)} ${old.toFixed(1)}L0 ${(seen * SIDE).toFixed(1)}Z`;
  const corner = band > 0 ? cut : `L0 ${old.toFixed(1)}Z`;
  const box = { viewBox: `-1 -1 ${SIDE + 2} ${SIDE + 2}`, width: SIDE + 2, height: SIDE + 2 };
  return draw("svg", { class: "triangle", ...box, role: "img", "aria-label": label },
    draw("rect", { class: "triangle-frame", width: SIDE, height: SIDE }),
    tokens > 1 ? draw("path", { class: "triangle-again", d: `M0 0L${old.toFixed(1)} ${old.toFixed(1)}${corner}` }) : null,
    draw("rect", { class: "triangle-new", x: band.toFixed(1), y: old.toFixed(1), width: (seen * SIDE).toFixed(1), height: row.toFixed(1) }));
}

/**
 * A name, a bar and a number.
 * @param {string} name
 * @param {number} value
 * @param {number} most
 * @param {string} shown
 * @param {string} kind
 */
function line(name, value, most, shown, kind) {
  const fill = make("span", { class: "bar-fill" });
  fill.style.width = `${most > 0 ? Math.max(0.4, (100 * value) / most) : 0}%`;
  return make("li", { class: `cost-line ${kind}` },
    make("span", { class: "cost-name" }, name),
    make("span", { class: "bar-track" }, fill),
    make("data", { class: "bar-number", value: String(value), title: whole(value) }, shown));
}

/** FLOPs of a step both ways. @param {{flops: number, flops_without: number}} step @param {Say} say */
export function work({ flops, flops_without }, say) {
  return make("ul", { class: "cost-lines" },
    line(say("cache.with"), flops, flops_without, short(flops), "own"),
    line(say("cache.without"), flops_without, flops_without, short(flops_without), ""));
}

/** The kinds of heads that a cache may have, each once, the model's own marked, and a window. @param {CacheHeader} header @param {Say} say */
function kinds(header, say) {
  const { bytes: of, kv_heads, windows, memory, source } = header;
  const named = [
    { size: of.multi_head, name: "cache.multi_head" },
    ...(of.grouped ? [{ size: of.grouped, name: "cache.grouped" }] : []),
    { size: of.multi_query, name: "cache.multi_query" },
  ];
  const first = named.filter(({ size }, place) => named.findIndex((other) => other.size.kv_heads === size.kv_heads) === place);
  /** @type {Kind[]} */
  const found = first.map(({ size, name }) => {
    const own = size.kv_heads === kv_heads;
    const text = say(name, { groups: size.kv_heads });
    return { text: own ? say("cache.this", { name: text }) : text, told: size, own };
  });
  const windowed = windows.some((each) => each !== null);
  found.push({ text: say(windowed ? "cache.window_own" : "cache.window", { window: of.window.window ?? 0 }), told: of.window, own: false });
  if (source !== null) found.push({ text: say("cache.memory", { source }), told: { prompt: memory, context: memory }, own: false });
  return found;
}

/** Bars for the prompt and for a full context. @param {CacheHeader} header @param {Say} say */
export function weights(header, say) {
  const rows = kinds(header, say);
  const group = (/** @type {"prompt" | "context"} */ length, /** @type {string} */ title) => {
    const most = Math.max(...rows.map(({ told }) => told[length]));
    const lines = rows.map(({ text, told, own }) => line(text, told[length], most, bytes(told[length]), own ? "own" : ""));
    return make("div", {}, make("h4", {}, title), make("ul", { class: "cost-lines" }, ...lines));
  };
  return make("div", { class: "cache-weights" },
    group("prompt", say("cache.for_prompt", { tokens: whole(header.prefill) })),
    group("context", say("cache.for_context", { tokens: whole(header.context) })));
}

/** The formula with the numbers of a length put in. @param {CacheHeader} header @param {number} tokens @param {Say} say */
export function formula({ layers, kv_heads, head_width, bytes_each, ring }, tokens, say) {
  const kept = ring === null ? tokens : Math.min(tokens, ring);
  const total = 2 * layers * kv_heads * head_width * kept * bytes_each;
  const numbers = `2 · ${layers} · ${kv_heads} · ${head_width} · ${kept} · ${bytes_each}`;
  return make("p", { class: "formula" }, `${say("cache.bytes")} = 2 · L · K · d · S · b = ${numbers} = `,
    make("data", { value: String(total), "data-total": true }, bytes(total)));
}

/**
 * So many last places of the largest logit may two right orders of summing part: each sum rounds by about √n of them, n up to some ten
 * thousand terms, and a logit goes through a few such sums. Measured in float32: 1 (the model that comes with clearhead) to 8 (SmolLM2).
 * A fault of a cache changes logits by a share of their size, far more than that.
 */
const PLACES = 256;
/** In types of 16 bits these would be as much as the logit itself, and any fault would pass: there no more than such a share of it. */
const SHARE = 0.05;
/** Logits that are all nearly 0 are sums of larger terms, which round by their own size: the largest counts as no smaller than this. */
const SMALLEST = 1e-3;

/**
 * Whether a difference is no more than rounding.
 * @param {number} difference
 * @param {number} largest logit
 * @param {number} epsilon of the type
 */
export function rounding(difference, largest, epsilon) {
  return difference <= Math.min(PLACES * epsilon, SHARE) * Math.max(largest, SMALLEST);
}

/** What the two ways' logits say, of the steps so far. @param {CacheHeader} header @param {number} shown @param {Say} say */
export function compared({ steps, epsilon, kind }, shown, say) {
  const known = steps.slice(0, shown).flatMap(({ difference, largest }) =>
    difference === null || largest === null ? [] : [{ difference, largest }]);
  if (!known.length) return make("p", {}, say("cache.not_compared"));
  const worst = Math.max(...known.map(({ difference }) => difference));
  const largest = Math.max(...known.map((each) => each.largest));
  const same = rounding(worst, largest, epsilon);
  const some = known.length < shown ? ` ${say("cache.compared_some", { shown, compared: known.length })}` : "";
  return make("p", { class: same ? "cache-same" : "cache-differs" },
    make("span", { class: "verdict" }, same ? "✓ " : "✗ "), say("cache.difference"), " ",
    make("data", { value: String(worst), "data-difference": true, title: String(worst) }, worst ? worst.toExponential(1).replace("-", "−") : "0"),
    say(same ? "cache.rounding" : "cache.differs", { largest: figures(largest), kind }), some);
}
