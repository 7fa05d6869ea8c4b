// @ts-check
/**
 * Questions and answers. The answers that the page carries (an exported file) are looked at before the network is asked.
 *
 * @typedef {import("clearhead/state.js").Answer} Answer
 * @typedef {import("clearhead/state.js").Api} Api
 * @typedef {import("clearhead/state.js").Numbers} Numbers
 */

/** An answer that cannot be had: one line for the person. */
export class Refused extends Error {
  /**
   * @param {string} message
   * @param {"refused" | "lost" | "absent"} kind refused: the server said no; lost: it does not answer; absent: not in this file
   * @param {number} [status]
   */
  constructor(message, kind, status = 0) {
    super(message);
    this.kind = kind;
    this.status = status;
  }
}

const KEPT = 96 * 2 ** 20;

/** @type {Map<string, {answer: Answer, size: number}>} */
const kept = new Map();

/** Questions that are on their way, by address: whoever asks the same waits for the same answer. @type {Map<string, {answer: Promise<Answer>, stop: AbortController, askers: number}>} */
const underway = new Map();

/** @type {Record<string, {kind: string, body: string}> | null} */
let carried = null;

/** @type {{text: string | null, target: string | null}} */
let asked = { text: null, target: null };

/** @type {any} */
let opened = null;

/** @type {any} */
let model = null;

/** @type {Promise<unknown> | null} */
let opening = null;

/** Reads the answers that the page carries. Returns whether it is such a file. */
export function carriesAnswers() {
  const element = document.getElementById("answers");
  carried = element ? JSON.parse(element.textContent || "{}") : null;
  return carried !== null;
}

/** @returns {Promise<any>} what is told of the model */
export async function loadModel() {
  model = (await answered("model", "/api/model", {})).header;
  return model;
}

/**
 * Opens a prompt: from here on questions are about it.
 * @param {string} text
 * @param {string | null} target
 * @param {AbortSignal} [signal]
 * @returns {Promise<any>}
 */
export async function open(text, target, signal) {
  asked = { text, target };
  const body = JSON.stringify(target === null ? { text } : { text, target });
  const headers = { "Content-Type": "application/json" };
  opened = (await answered("open", "/api/open", { method: "POST", body, headers, signal })).header;
  kept.clear();
  return opened;
}

/**
 * What a view asks with; all its questions are given up together.
 * @param {AbortSignal} [signal]
 * @returns {Api}
 */
export function apiOf(signal) {
  return {
    async get(path, query = {}) {
      const answer = await get(path, query, signal);
      signal?.throwIfAborted();
      return answer;
    },
    model: () => model,
    opened: () => opened,
  };
}

/**
 * The name of a question, which is also its key in a file: the fields of the query in alphabetical order.
 * @param {string} path
 * @param {Record<string, string | number>} query
 */
export function question(path, query) {
  const fields = Object.keys(query).sort().map((name) => `${encodeURIComponent(name)}=${encodeURIComponent(query[name])}`);
  return fields.length ? `${path}?${fields.join("&")}` : path;
}

/** The address of the opened prompt as one HTML file. @param {Record<string, string | number>} query */
export function exportAddress(query) {
  return carried || !opened ? "" : `/api/s/${opened.session}/${question("export", query)}`;
}

/** Whether the server answers again. */
export async function isBack() {
  try {
    return (await fetch("/api/model", { cache: "no-store" })).ok;
  } catch {
    return false;
  }
}

/**
 * @param {string} path
 * @param {Record<string, string | number>} query
 * @param {AbortSignal} [signal]
 */
async function get(path, query, signal) {
  const key = question(path, query);
  const before = kept.get(key);
  if (before) {
    kept.delete(key);
    kept.set(key, before);
    return before.answer;
  }
  if (path === "model") return { header: model, arrays: {} };
  try {
    return await joined(key, `/api/s/${opened.session}/${key}`, signal);
  } catch (error) {
    // The server keeps only the latest prompts: one that has gone is opened again, once.
    if (!(error instanceof Refused) || error.status !== 404) throw error;
    await again();
    return await joined(key, `/api/s/${opened.session}/${key}`, signal);
  }
}

/**
 * Asks, or waits for the answer that somebody else asked for; the question is given up when all have left.
 * @param {string} key
 * @param {string} address
 * @param {AbortSignal} [signal]
 * @returns {Promise<Answer>}
 */
async function joined(key, address, signal) {
  signal?.throwIfAborted();
  const one = underway.get(address) ?? begun(key, address);
  one.askers++;
  return new Promise((found, failed) => {
    signal?.addEventListener("abort", () => {
      failed(signal.reason);
      one.askers--;
      if (one.askers || underway.get(address) !== one) return;
      underway.delete(address);
      one.stop.abort();
    });
    one.answer.then(found, failed);
  });
}

/** @param {string} key @param {string} address */
function begun(key, address) {
  const stop = new AbortController();
  const answer = answered(key, address, { signal: stop.signal }).finally(() => {
    if (underway.get(address) === one) underway.delete(address);
  });
  const one = { answer, stop, askers: 0 };
  underway.set(address, one);
  return one;
}

async function again() {
  opening ??= open(asked.text ?? "", asked.target).finally(() => (opening = null));
  await opening;
}

/**
 * @param {string} key
 * @param {string} address
 * @param {RequestInit} how
 * @returns {Promise<Answer>}
 */
async function answered(key, address, how) {
  if (carried) {
    if (!carried[key]) throw new Refused("error.absent", "absent");
    const bytes = Uint8Array.from(atob(carried[key].body), (letter) => letter.charCodeAt(0));
    const found = read(carried[key].kind, bytes.buffer);
    keep(key, found, bytes.byteLength);
    return found;
  }
  // What the server says of a mistake is in the language of the page.
  const headers = { ...how.headers, "Accept-Language": document.documentElement.lang };
  const response = await fetch(address, { ...how, headers }).catch((error) => {
    if (error instanceof DOMException && error.name === "AbortError") throw error;
    throw new Refused("error.lost", "lost");
  });
  if (!response.ok) throw new Refused(await reason(response), "refused", response.status);
  const body = await response.arrayBuffer();
  const answer = read(response.headers.get("Content-Type") ?? "", body);
  if (address.startsWith("/api/s/")) keep(key, answer, body.byteLength);
  return answer;
}

/** @param {Response} response */
async function reason(response) {
  const told = await response.json().catch(() => null);
  return told && typeof told.error === "string" ? told.error : `${response.status} ${response.statusText}`;
}

/**
 * JSON; or numbers packed behind a header of JSON.
 * @param {string} kind
 * @param {ArrayBuffer} body
 * @returns {Answer}
 */
export function read(kind, body) {
  const text = new TextDecoder();
  if (kind.startsWith("application/json")) return { header: JSON.parse(text.decode(body)), arrays: {} };
  const length = new DataView(body).getUint32(0, true);
  const header = JSON.parse(text.decode(new Uint8Array(body, 4, length)));
  /** @type {Record<string, Numbers>} */
  const arrays = {};
  let place = 4 + length;
  for (const { name, kind: sort, shape } of header.arrays) {
    const count = shape.reduce((/** @type {number} */ product, /** @type {number} */ size) => product * size, 1);
    const data = sort === "u8" ? new Uint8Array(body, place, count) : new Float32Array(body, place, count);
    arrays[name] = { shape, data };
    place += Math.ceil(data.byteLength / 4) * 4;
  }
  return { header, arrays };
}

/**
 * @param {string} key
 * @param {Answer} answer
 * @param {number} size
 */
function keep(key, answer, size) {
  kept.set(key, { answer, size });
  let total = 0;
  for (const each of kept.values()) total += each.size;
  for (const [name, each] of kept) {
    if (total <= KEPT) return;
    kept.delete(name);
    total -= each.size;
  }
}
