// @ts-check
/**
 * The one state of the page, and the address that holds it: what is shown is a function of it, so a link opens the same picture.
 *
 * A view reads the state that it is given, and changes it with `go({query: 3})`; the frame then calls `show` again.
 */

/**
 * @typedef {object} State
 * @property {string} view the section that the person looks at, by its name in `views.js`
 * @property {string | null} text the prompt; null before one was typed: an example is opened
 * @property {string | null} target what an encoder-decoder has written so far
 * @property {string} part attention, or encoder.attention, decoder.attention, decoder.cross_attention
 * @property {number} layer
 * @property {number} head
 * @property {number} query a position: the token that looks; the frame puts the last one in the place of -1 before a view is shown
 * @property {number} key a position: the token that is looked at; likewise the first one
 * @property {string} stage the tensor whose numbers the flow has open, or ""
 * @property {string} sort how the atlas orders its heads, or "" for the order of the model
 * @property {string} drawing how a head is drawn: "" (matrix) or "arcs"
 * @property {string} mask another mask than the model's own, as `GET mask` takes it: "causal.window-8", "full"; "" for the model's
 * @property {number} steps how many tokens the cache is shown growing by
 * @property {string} held what the cache's picture shows: "" (keys) or "values"
 * @property {string} at whose answer is asked for where a weight is taken away: "" (that at the end) or "query" (that at the query)
 * @property {string} align what the alignment shows: "" (mean of all layers), "layer" (mean of its heads) or "head"
 * @property {"en" | "zh"} lang
 * @property {"" | "light" | "dark"} theme "" follows the system
 */

/** @typedef {(key: string, fields?: Record<string, string | number>) => string} Say a text of the page in the person's language */

/** @typedef {{header: any, arrays: Record<string, Numbers>}} Answer JSON is a header without arrays */

/** @typedef {{shape: number[], data: Uint8Array | Float32Array}} Numbers of an answer, row by row */

/**
 * @typedef {object} Api what answers questions about the opened prompt; the questions of a view that is drawn again are given up
 * @property {(path: string, query?: Record<string, string | number>) => Promise<Answer>} get "model", or a name of the session: "tokens",
 *   "head" with {part, layer, head}. Throws Refused, or AbortError when the person moved on: let both pass, the frame shows them
 * @property {() => any} model what /api/model said
 * @property {() => any} opened what /api/open said: session, seconds, tokens, source, cut
 */

/**
 * @typedef {object} View a section of the page
 * @property {string} id its name; the strings `ID.title` and `ID.caption` stand above it
 * @property {(element: HTMLElement, state: State, api: Api, say: Say) => Promise<void> | void} show draws into the element. It is called
 *   again with the same element when the state changed, and with a new, empty one when the prompt, the language or the theme did
 * @property {(event: KeyboardEvent, state: State, element: HTMLElement) => Partial<State> | null} [keys] what a key changes while the focus
 *   is in this section, whose element is that of `show`; null leaves the key to the browser
 * @property {(model: any) => boolean} [fits] whether the section means anything for the model; it does for all where this is left out
 * @property {(keyof State)[]} [uses] the fields after whose change it is drawn again; all of them where this is left out
 */

/** @type {Readonly<State>} */
export const FIRST = Object.freeze({
  view: "tokens",
  text: null,
  target: null,
  part: "attention",
  layer: 0,
  head: 0,
  query: -1,
  key: -1,
  stage: "",
  sort: "",
  drawing: "",
  mask: "",
  steps: 8,
  held: "",
  at: "",
  align: "",
  lang: "en",
  theme: "",
});

/** Fields that are one of a few words; another one is as if it were not there. @type {Map<string, string[]>} */
const WORDS = new Map(Object.entries({
  sort: ["", "previous", "induction", "sink", "entropy"],
  drawing: ["", "arcs"],
  held: ["", "values"],
  at: ["", "query"],
  align: ["", "layer", "head"],
  lang: ["en", "zh"],
  theme: ["", "light", "dark"],
}));

/** @type {State} */
let now = { ...FIRST };

/** Where what the person looks at stands in the window, told by `scroll.js`. @type {(state: State) => unknown} */
let standing = () => null;

/** @type {((state: State, before: State) => void)[]} */
const watchers = [];

/**
 * The state that an address holds: what it does not name is as at first, what makes no sense is left out.
 * @param {string} hash
 * @param {Readonly<State>} [rest]
 * @returns {State}
 */
export function parsed(hash, rest = FIRST) {
  /** @type {Record<string, string | number | null>} */
  const found = { ...rest };
  for (const [name, value] of new URLSearchParams(hash.replace(/^#/, ""))) {
    if (!Object.hasOwn(FIRST, name)) continue;
    if (WORDS.get(name)?.includes(value) === false) continue;
    if (typeof FIRST[/** @type {keyof State} */ (name)] !== "number") found[name] = value;
    else if (/^\d{1,7}$/.test(value)) found[name] = Number(value);
  }
  return /** @type {State} */ (/** @type {unknown} */ (found));
}

/**
 * The address of a state, with only what differs from the first.
 * @param {State} state
 */
export function address(state) {
  const told = new URLSearchParams();
  for (const name of /** @type {(keyof State)[]} */ (Object.keys(FIRST))) {
    const value = state[name];
    if (name === "view" || name === "lang" || (value !== FIRST[name] && value !== null)) told.set(name, String(value));
  }
  return `#${told}`;
}

/** The state that the page shows now. */
export function current() {
  return now;
}

/**
 * Changes the state and the address, and has the page drawn again.
 * @param {Partial<State>} change
 * @param {{step?: boolean}} [how] step: the browser's back button returns to what was before
 */
export function go(change, { step = false } = {}) {
  const before = now;
  now = { ...now, ...change };
  if (address(now) === address(before)) return;
  remember(step, before);
  for (const each of watchers) each(now, before);
}

/**
 * Calls when the state changed.
 * @param {(state: State, before: State) => void} watcher
 */
export function watch(watcher) {
  watchers.push(watcher);
}

/**
 * Takes the state from the address, now and whenever a person edits it or goes back.
 * @param {State} first what holds where the address is silent
 */
export function begin(first) {
  now = parsed(location.hash, first);
  clean();
  addEventListener("hashchange", () => {
    clearTimeout(pending);
    const before = now;
    now = parsed(location.hash, { ...first, lang: now.lang, theme: now.theme });
    clean();
    if (address(now) !== address(before)) for (const each of watchers) each(now, before);
  });
}

/** What made no sense in an address does not stay there. */
function clean() {
  if (location.hash && location.hash !== address(now)) write("replaceState", now, history.state);
}

/**
 * Has `tell` say, whenever the person goes a step on, where what they looked at stood: the browser gives it back as `history.state`.
 * @param {(state: State) => unknown} tell
 */
export function keepStanding(tell) {
  standing = tell;
}

let pending = 0;

/** @param {boolean} step @param {State} before */
function remember(step, before) {
  clearTimeout(pending);
  if (step) {
    write("replaceState", before, standing(before));
    return write("pushState", now, null);
  }
  // A key that is held changes the state thirty times a second; a browser counts how often a page writes its address.
  pending = setTimeout(() => write("replaceState", now, null), 80);
}

/** @param {"pushState" | "replaceState"} how @param {State} state @param {unknown} held */
function write(how, state, held) {
  try {
    history[how](held, "", address(state));
  } catch (error) {
    // A frame without an origin of its own (a notebook) may be refused; the state here is what is shown.
    if (!(error instanceof DOMException)) throw error;
  }
}
