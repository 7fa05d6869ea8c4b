// @ts-check
/** What a step of the cache does, in words: what is read, what is computed, what is spared. */
import { compared, triangle, work } from "clearhead/cachecosts.js";
import { make } from "clearhead/dom.js";
import { placed } from "clearhead/labels.js";
import { figures, short, whole } from "clearhead/say.js";

/** @typedef {import("clearhead/state.js").Say} Say */

/**
 * @typedef {object} Step one token that was written
 * @property {number} position
 * @property {number} id
 * @property {string} piece
 * @property {string} text what became whole with it
 * @property {number} flops
 * @property {number} flops_without
 * @property {number | null} difference
 * @property {number | null} largest
 */

/** @typedef {{kv_heads: number, window: number | null, token: number, prompt: number, context: number}} Size bytes of a kind of cache */

/**
 * @typedef {object} CacheHeader what `cache` answers, beside its arrays
 * @property {number} asked
 * @property {number} prefill
 * @property {number} prefill_flops
 * @property {Step[]} steps
 * @property {string | null} end the mark with which the model ends its text behind them
 * @property {number} layers
 * @property {number} heads
 * @property {number} kv_heads
 * @property {number} head_width
 * @property {number} context
 * @property {string} kind
 * @property {number} epsilon
 * @property {number} bytes_each
 * @property {(number | null)[]} windows
 * @property {number | null} ring
 * @property {number | null} source
 * @property {number} source_flops
 * @property {{own: Size, multi_head: Size, grouped?: Size, multi_query: Size, window: Size}} bytes
 * @property {number} memory
 * @property {{keys: number, values: number}} most
 */

/** The first column that the last of so many tokens reads in a layer. @param {CacheHeader} header @param {number} layer @param {number} tokens */
export function firstOf({ windows }, layer, tokens) {
  return Math.max(0, tokens - (windows[layer] ?? tokens));
}

/** How many columns the last of so many tokens reads, in the layer that reads most. @param {CacheHeader} header @param {number} tokens */
export function readOf({ windows }, tokens) {
  return Math.max(...windows.map((each) => Math.min(tokens, each ?? tokens)));
}

/** How many of so many tokens are not kept any more: a ring lets the oldest go. @param {CacheHeader} header @param {number} tokens */
export function goneOf({ ring }, tokens) {
  return ring === null ? 0 : Math.max(0, tokens - ring);
}

/** How many times as much a step would be without a cache. @param {Step} step */
export const ratio = ({ flops, flops_without }) => figures(Number((flops_without / flops).toPrecision(3)));

/** @param {CacheHeader} header @param {Step} step @param {Say} say */
function spares({ source }, step, say) {
  return say(source === null ? "cache.ratio" : "cache.ratio_source", { ratio: ratio(step) });
}

/** Where the writing ended before it was asked to. @param {CacheHeader} header @param {number} shown @param {Say} say */
function ended({ steps, asked, context, end }, shown, say) {
  if (shown < steps.length || steps.length >= asked) return null;
  return quiet(end === null ? say("cache.ended", { context: whole(context) }) : say("cache.ended_mark", { mark: end }));
}

/** @param {...string} text */
const quiet = (...text) => make("p", { class: "quiet" }, ...text);

/**
 * What the chosen step does, and a line that says it shortly.
 * @param {CacheHeader} header
 * @param {number} shown how many steps
 * @param {string[]} labels of all tokens
 * @param {Say} say
 * @returns {{line: string, told: HTMLElement[]}}
 */
export function stepped(header, shown, labels, say) {
  const { prefill, source, ring } = header;
  const tokens = prefill + shown;
  const gone = goneOf(header, tokens);
  const told = shown ? written(header, shown, labels, say) : prefilled(header, say);
  const kept = [
    gone && ring !== null ? quiet(say("cache.gone", { first: placed(labels, gone) })) : null,
    source === null ? null : quiet(say("cache.source", { source: whole(source) })),
  ];
  const all = [...told.first, ...kept, ...told.last, ended(header, shown, say)];
  return { line: told.line, told: all.filter((each) => each !== null) };
}

/** @param {CacheHeader} header @param {Say} say */
function prefilled({ prefill, layers, prefill_flops, ring }, say) {
  const line = say("cache.step_none");
  const fields = { tokens: whole(prefill), layers, ring: ring ?? 0 };
  const all = say(ring !== null && prefill > ring ? "cache.prefill_ring" : "cache.prefill_told", fields);
  return {
    line,
    first: [make("h3", {}, line), make("p", {}, all)],
    last: [make("p", {}, say("cache.prefill_work", { flops: short(prefill_flops) })), quiet(say("cache.counted"))],
  };
}

/** @param {CacheHeader} header @param {number} shown @param {string[]} labels @param {Say} say */
function written(header, shown, labels, say) {
  const { prefill, layers, steps, windows } = header;
  const [step, tokens] = [steps[shown - 1], prefill + shown];
  const seen = readOf(header, tokens);
  const kept = tokens - goneOf(header, tokens);
  const fields = { seen: whole(seen), tokens: whole(tokens), kept: whole(kept) };
  const reads = kept < tokens ? "cache.step_reads_kept" : seen < tokens ? "cache.step_reads_some" : "cache.step_reads";
  const title = say("cache.step", { step: shown, token: placed(labels, step.position) });
  return {
    line: `${title}. ${spares(header, step, say)}`,
    first: [
      make("h3", {}, title),
      make("p", {}, say("cache.step_told", { layers }), say(reads, fields)),
      windows.some((each) => each !== null) ? quiet(say("cache.step_window")) : null,
    ],
    last: [make("p", {}, spares(header, step, say)), compared(header, shown, say)],
  };
}

/** What a step computes, and what it would without a cache. @param {CacheHeader} header @param {number} shown @param {Say} say */
export function spared({ prefill, steps, windows, source, source_flops }, shown, say) {
  if (!shown) return [];
  const before = whole(prefill + shown - 1);
  const widest = windows.reduce((most, each) => (most === null || each === null ? null : Math.max(most, each)), 0);
  const picture = triangle(prefill + shown, widest, say("cache.triangle", { before }));
  const again = source === null ? [] : [make("br"), say("cache.old_source", { source: whole(source), flops: short(source_flops) })];
  return [
    make("figure", {}, picture),
    make("div", { class: "spared" },
      make("p", { class: "quiet" }, make("i", { class: "swatch new" }), say("cache.new_row"), make("br"),
        make("i", { class: "swatch again" }), say("cache.old_rows", { before }), ...again),
      work(steps[shown - 1], say), quiet(say("cache.counted"))),
  ];
}

/** The steps as rows of a table. @param {CacheHeader} header @param {string[]} labels */
export function rows(header, labels) {
  return header.steps.map((step) => [
    placed(labels, step.position), whole(readOf(header, step.position + 1)), whole(step.flops), whole(step.flops_without), ratio(step),
    step.difference === null ? "–" : String(step.difference),
  ]);
}
