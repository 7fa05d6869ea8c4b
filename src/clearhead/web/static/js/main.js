// @ts-check
/** The frame: reads the address, opens the prompt, has each section draw itself, and says calmly what went wrong. */

import { apiOf, carriesAnswers, isBack, loadModel, open, Refused } from "clearhead/api.js";
import { bar, foot, tabs, markTab } from "clearhead/bar.js";
import { keepingFocus, make } from "clearhead/dom.js";
import { help, listen } from "clearhead/keys.js";
import { exampleList, showPrompt } from "clearhead/prompt.js";
import { computes, mayWait, whenNear } from "clearhead/near.js";
import { saving } from "clearhead/save.js";
import { follow, reach, settle } from "clearhead/scroll.js";
import { loadTexts, say, speak } from "clearhead/say.js";
import { begin, current, FIRST, go, parsed, watch } from "clearhead/state.js";
import { views as known } from "clearhead/views.js";
import { resolved } from "clearhead/places.js";

/** @typedef {import("clearhead/state.js").State} State */
/** @typedef {import("clearhead/state.js").View} View */

/** A section that waits is drawn when a person comes near. @type {Map<string, {body: HTMLElement, line: HTMLElement, stop: AbortController, work: Promise<unknown>, waits: boolean}>} */
const panels = new Map();
const file = carriesAnswers();

/** The state that holds where the address is silent. @type {State} */
let first = FIRST;
/** @type {any} */
let model = null;
/** The sections that mean something for the model. */
let views = known;
let turn = 0;
let opening = new AbortController();
let lost = false;
let placing = false;

/** @param {string} id @returns {HTMLElement} */
const byId = (id) => /** @type {HTMLElement} */ (document.getElementById(id));

async function start() {
  const wanted = new URLSearchParams(location.search).get("lang");
  first = parsed(document.documentElement.dataset.state ?? "", { ...FIRST, lang: language(navigator.language) });
  if (wanted) first = { ...first, lang: language(wanted) };
  begin(first);
  watch(changed);
  // As a link it would take the place of the state in the address.
  byId("skip").addEventListener("click", (event) => (event.preventDefault(), byId("main").focus()));
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => {
    if (!model || current().theme) return;
    frame();
    if (apiOf().opened()) void drawAll(true);
  });
  await loadTexts();
  speak(current().lang);
  await began();
}

/** @param {string} name @returns {"en" | "zh"} */
const language = (name) => (name.startsWith("zh") ? "zh" : "en");

async function began() {
  try {
    model = await loadModel();
  } catch (error) {
    return trouble(error, () => void began());
  }
  views = known.filter(({ fits }) => !fits || fits(model));
  listen(views, (id) => reach(id));
  follow(views.map(({ id }) => id));
  frame();
  await openPrompt();
}

/** Draws everything around the sections, in the language and theme of the state. */
function frame() {
  keepingFocus(surround);
}

function surround() {
  const state = current();
  if (state.theme) document.documentElement.dataset.theme = state.theme;
  else delete document.documentElement.dataset.theme;
  document.title = `${model.name} · clearhead`;
  byId("skip").textContent = say("frame.skip");
  byId("bar").replaceChildren(...bar(model, state, say));
  byId("tabs").replaceChildren(...tabs(views, state, say));
  byId("tabs").setAttribute("aria-label", say("frame.views"));
  byId("foot").replaceChildren(...foot(say));
  byId("help")?.remove();
  document.body.append(help(say, views.length));
  showPrompt(byId("prompt"), state, model, say, file);
}

/** The section of that name, or the first one. @param {string} name */
const viewed = (name) => (views.find(({ id }) => id === name) ?? views[0]).id;

/** One forward of the model on the prompt of the state; then every section is drawn. */
async function openPrompt() {
  opening.abort();
  const mine = (opening = new AbortController());
  // A file holds one prompt, whatever an address says.
  const { text, target } = file ? first : current();
  const example = exampleList(model)[0] ?? { text: "" };
  document.body.classList.add("busy");
  try {
    const given = text === null ? { text: example.text, target: example.target ?? null } : { text, target };
    // A target in the address of another model's page means nothing to this one.
    if (model.kind !== "encoder_decoder") given.target = null;
    const opened = await open(given.text, given.target, mine.signal);
    // Where nobody says what was written it is what the model writes by itself.
    given.target = opened.target;
    if (mine.signal.aborted) return;
    calm();
    place(resolved({ ...current(), ...given, view: viewed(current().view) }, model, opened));
    keepingFocus(() => showPrompt(byId("prompt"), current(), model, say, file));
    document.body.classList.remove("busy");
    await drawAll(true);
  } catch (error) {
    if (mine.signal.aborted) return;
    byId("views").classList.add("stale");
    trouble(error, () => void openPrompt());
  } finally {
    if (mine === opening) document.body.classList.remove("busy");
  }
}

/**
 * @param {State} state
 * @param {State} before
 */
async function changed(state, before) {
  markTab(state.view);
  if (state.lang !== before.lang) speak(state.lang);
  if (!model) return;
  const renewed = state.lang !== before.lang || state.theme !== before.theme;
  if (renewed) frame();
  if (placing) return;
  // What the server said is said anew in the other language.
  const said = state.lang !== before.lang && byId("notice").firstChild;
  if (said || state.text !== before.text || state.target !== before.target) return openPrompt();
  if (document.body.classList.contains("busy")) return;
  const opened = apiOf().opened();
  if (!opened) return;
  place(resolved(state, model, opened));
  await drawAll(renewed, before);
}

/** Takes a state whose places all exist, without drawing. @param {State} state */
function place(state) {
  placing = true;
  go(state);
  placing = false;
}

/** As `drawSections`; the element of the sections says how many drawings are under way, for whoever waits for a picture. @param {boolean} anew @param {State} [before] */
async function drawAll(anew, before) {
  await counted(() => drawSections(anew, before));
}

/** @param {() => Promise<void>} draw */
async function counted(draw) {
  const { dataset } = byId("views");
  const add = (/** @type {number} */ count) => (dataset.drawing = String(Number(dataset.drawing ?? 0) + count));
  add(1);
  await draw().finally(() => add(-1));
}

/**
 * Draws the sections: first the one that the person looks at, then the others as their answers come, last those that ask for forwards of
 * their own, or, where that would keep the model from what the person wants next, not before somebody comes near.
 * @param {boolean} anew every section gets an empty element
 * @param {State} [before]
 */
async function drawSections(anew, before) {
  const mine = anew ? ++turn : turn;
  const state = current();
  // While the sections are empty the column keeps its length, so that what a person looks at stays where it is.
  if (anew) {
    byId("views").style.minHeight = `${byId("views").offsetHeight}px`;
    lay();
  }
  const rank = (/** @type {View} */ { id }) => (id === state.view ? 0 : computes(id) ? 2 : 1);
  const wanted = views.filter((view) => anew || !before || concerns(view, state, before));
  for (const place of [0, 1, 2]) {
    const some = wanted.filter((view) => rank(view) === place && !(place === 2 && putOff(view)));
    const ended = await Promise.allSettled(some.map((view) => drawView(view).then(() => {
      if (anew && mine === turn) settle(current().view);
    })));
    for (const each of ended) if (each.status === "rejected") throw each.reason;
    if (mine !== turn) return;
  }
  if (anew) byId("views").style.minHeight = "";
}

/** Whether a section is drawn later: it may wait, and is watched. @param {View} view */
function putOff(view) {
  const panel = panels.get(view.id);
  const element = panel?.body.parentElement;
  if (file || !panel || !element || !mayWait(view.id, element, model, apiOf().opened())) return false;
  if (panel.waits) return true;
  panel.waits = true;
  if (!panel.body.firstChild) panel.line.textContent = say("frame.later");
  whenNear(element, () => {
    panel.waits = false;
    void counted(() => drawView(view));
  });
  return true;
}

/** Whether a section looks different now. @param {View} view @param {State} state @param {State} before */
function concerns(view, state, before) {
  const fields = view.uses ?? /** @type {(keyof State)[]} */ (Object.keys(state)).filter((name) => name !== "view");
  return fields.some((name) => state[name] !== before[name]);
}

/** One drawing of a section at a time: the one before is given up, and has ended when the next begins. @param {View} view */
async function drawView(view) {
  const panel = panels.get(view.id);
  if (!panel) return;
  panel.stop.abort();
  const mine = (panel.stop = new AbortController());
  const work = panel.work.then(() => (mine.signal.aborted ? undefined : drawInto(panel, view, mine.signal)));
  panel.work = work.catch(() => undefined);
  await work;
}

/**
 * @param {{body: HTMLElement, line: HTMLElement}} panel
 * @param {View} view
 * @param {AbortSignal} signal
 */
async function drawInto({ body, line }, view, signal) {
  // It may measure itself, so it is in sight while it draws; what could not be drawn anew does not stay as if it were.
  body.hidden = false;
  try {
    await view.show(body, current(), apiOf(signal), say);
    if (!signal.aborted) line.replaceChildren();
  } catch (error) {
    if (signal.aborted) return;
    if (error instanceof Refused && error.kind === "lost") return trouble(error, () => void openPrompt());
    body.hidden = true;
    line.replaceChildren(message(error), ...(error instanceof Refused && error.kind === "absent" ? [back()] : []));
    if (!(error instanceof Refused)) throw error;
  }
}

/** To the head and the tensor that a file was made for. */
function back() {
  const { part, layer, head, query, key, stage, mask } = first;
  return make("button", { type: "button", class: "chip", onclick: () => go({ part, layer, head, query, key, stage, mask }) }, say("error.back"));
}

/** Empty sections, each with its title and what it shows. */
function lay() {
  for (const { stop } of panels.values()) stop.abort();
  panels.clear();
  byId("views").replaceChildren(...views.map(({ id }) => {
    const body = make("div", { class: "body" });
    const line = make("p", { class: "line", role: "status" });
    panels.set(id, { body, line, stop: new AbortController(), work: Promise.resolve(), waits: false });
    return make("section", { id: `view-${id}`, "data-view": id, "aria-labelledby": `title-${id}`, class: "panel" },
      make("header", {}, make("h2", { id: `title-${id}`, tabindex: -1 }, say(`${id}.title`)), make("div", { class: "tools" }, ...saving(id, say))),
      make("p", { class: "caption" }, say(`${id}.caption`)), line, body);
  }));
}

/** @param {unknown} error */
function message(error) {
  if (!(error instanceof Refused)) return say("error.page");
  return error.kind === "refused" ? error.message : say(error.message);
}

/**
 * One line above the sections, and a way to try again; a server that comes back is noticed.
 * @param {unknown} error
 * @param {() => void} retry
 */
function trouble(error, retry) {
  const notice = byId("notice");
  notice.className = "notice";
  notice.replaceChildren(make("span", {}, message(error)), make("button", { type: "button", class: "chip", onclick: retry }, say("error.retry")));
  if (!(error instanceof Refused)) throw error;
  if (error.kind !== "lost" || lost) return;
  lost = true;
  const timer = setInterval(async () => {
    if (lost && !(await isBack())) return;
    clearInterval(timer);
    if (lost) retry();
    lost = false;
  }, 1500);
}

function calm() {
  lost = false;
  byId("views").classList.remove("stale");
  byId("notice").className = "";
  byId("notice").replaceChildren();
}

await start();
