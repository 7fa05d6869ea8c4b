// @ts-check
/** The switches of a mask: each rule on or off, with its number, and where documents begin. */
import { make } from "clearhead/dom.js";
import { refilled } from "clearhead/headtools.js";
import { placed } from "clearhead/labels.js";
import { documentOf, written } from "clearhead/maskrule.js";
import { go } from "clearhead/state.js";

/** @typedef {import("clearhead/maskrule.js").Rule} Rule */
/** @typedef {import("clearhead/state.js").Say} Say */
/** @typedef {{window: number, prefix: number, documents: number[], padding: number}} Numbers what the rules had last, for when they are switched on again */

export class Switches {
  /** @param {Say} say */
  constructor(say) {
    this.say = say;
    this.row = make("div", { class: "row-of-tools mask-switches", role: "group", "aria-label": say("mask.switches") });
    this.strip = make("div", { class: "mask-documents", hidden: true });
    this.about = make("ul", { class: "quiet mask-about" });
    this.element = make("div", {}, this.row, this.strip, this.about);
    /** @type {Numbers} */
    this.numbers = { window: 4, prefix: 3, documents: [], padding: 2 };
    /** @type {Rule} */
    this.rule = { causal: false, window: null, prefix: null, documents: [], padding: 0 };
    this.own = "";
    /** @type {string[]} */
    this.labels = [];
    this.drawn = "";
  }

  /**
   * @param {Rule} rule that is shown
   * @param {string} mask the words of the address: "" for the model's own
   * @param {any} header of the mask's answer
   * @param {string[]} labels of the tokens
   */
  show(rule, mask, header, labels) {
    this.rule = rule;
    this.labels = labels;
    this.own = header.everywhere ? header.own : "";
    const { window, prefix, documents, padding } = rule;
    if (window !== null) this.numbers.window = window;
    if (prefix !== null) this.numbers.prefix = prefix;
    if (padding) this.numbers.padding = padding;
    if (documents.length) this.numbers.documents = documents;
    this.row.hidden = !header.switched;
    if (header.switched) refilled(this.row, this.tools(mask));
    this.fillStrip(header.switched && documents.length > 0);
    const on = [["causal", rule.causal && prefix === null], ["prefix", prefix !== null], ["window", window !== null], ["documents", documents.length > 0], ["padding", padding > 0]];
    const lines = on.filter(([, is]) => is).map(([name]) => this.say(`mask.about.${name}`, { window: window ?? 0, prefix: prefix ?? 0, padding }));
    this.about.replaceChildren(...(lines.length ? lines : [this.say("mask.about.full")]).map((line) => make("li", {}, line)));
  }

  /** @param {Partial<Rule>} change */
  change(change) {
    const next = { ...this.rule, ...change };
    if (!next.causal) next.prefix = null; // it opens what causal hides, and nothing else
    const words = written(next);
    go({ mask: words === this.own ? "" : words });
  }

  /** @param {string} mask @returns {HTMLElement[]} */
  tools(mask) {
    const { rule, say, numbers } = this;
    const chip = (/** @type {string} */ name, /** @type {boolean} */ pressed, /** @type {() => void} */ onclick) =>
      make("button", { type: "button", class: "chip", "data-name": name, "aria-pressed": String(pressed), onclick }, say(`mask.${name}`));
    const number = (/** @type {"window" | "prefix" | "padding"} */ name) => {
      const most = Math.max(1, this.labels.length);
      const field = make("input", { type: "number", class: "mask-number", min: 1, max: most, value: rule[name] ?? 1, "data-name": `${name}-number`, "aria-label": say(`mask.${name}_number`) });
      field.addEventListener("change", () => {
        const value = Math.round(field.valueAsNumber);
        if (value >= 1) this.change({ [name]: Math.min(value, 9999999) });
        else field.value = String(rule[name]);
      });
      return field;
    };
    const joined = (/** @type {HTMLElement} */ button, /** @type {HTMLElement | false} */ field) => make("span", { class: "mask-switch" }, button, field);
    const middle = Math.max(1, Math.floor(this.labels.length / 2));
    return [
      chip("own", mask === "", () => go({ mask: "" })),
      chip("causal", rule.causal, () => this.change({ causal: !rule.causal })),
      joined(chip("window", rule.window !== null, () => this.change({ window: rule.window === null ? numbers.window : null })), rule.window !== null && number("window")),
      joined(chip("prefix", rule.prefix !== null, () => this.change(rule.prefix === null ? { prefix: numbers.prefix, causal: true } : { prefix: null })), rule.prefix !== null && number("prefix")),
      joined(chip("documents", rule.documents.length > 0, () => this.change({ documents: rule.documents.length ? [] : numbers.documents.length ? numbers.documents : [middle] })), rule.documents.length > 0 && this.begins()),
      joined(chip("padding", rule.padding > 0, () => this.change({ padding: rule.padding ? 0 : numbers.padding })), rule.padding > 0 && number("padding")),
    ];
  }

  /** Where documents begin, typed. */
  begins() {
    const field = make("input", { type: "text", inputmode: "numeric", class: "mask-begins", value: this.rule.documents.join(", "), "data-name": "documents-begin", "aria-label": this.say("mask.begins") });
    field.addEventListener("change", () => this.change({ documents: rising((field.value.match(/\d{1,7}/g) ?? []).map(Number)) }));
    return field;
  }

  /** The tokens, coloured by their document; one that is pressed begins another. @param {boolean} shown */
  fillStrip(shown) {
    this.strip.hidden = !shown;
    const { labels, rule, say } = this;
    const drawn = shown ? JSON.stringify([rule.documents, labels]) : "";
    if (drawn === this.drawn) return;
    this.drawn = drawn;
    const stop = Math.min(labels.length - 1, rule.documents[0] ?? 1);
    const buttons = labels.map((label, place) => {
      const begins = rule.documents.includes(place);
      const toggle = () => this.change({ documents: begins ? rule.documents.filter((each) => each !== place) : rising([...rule.documents, place]) });
      return make("button", { type: "button", class: `mask-token tint-${(documentOf(rule, place) - 1) % 4}${begins ? " begins" : ""}`, "data-name": `token-${place}`, "data-token": place,
        "aria-pressed": String(begins), tabindex: place === stop ? 0 : -1, disabled: place === 0, "aria-label": say("mask.token", { token: placed(labels, place), document: documentOf(rule, place) }), onclick: toggle }, label);
    });
    const row = make("div", { class: "mask-tokens", role: "group", "aria-label": say("mask.begins") }, ...buttons);
    row.addEventListener("keydown", (event) => {
      const step = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
      const from = event.target instanceof HTMLElement ? Number(event.target.dataset.token) : NaN;
      const next = step === undefined || Number.isNaN(from) ? undefined : buttons[from + step];
      if (step === undefined || Number.isNaN(from)) return;
      event.preventDefault();
      event.stopPropagation();
      if (!next || next.disabled) return;
      for (const each of buttons) each.tabIndex = each === next ? 0 : -1;
      next.focus();
    });
    refilled(this.strip, [make("p", { class: "quiet" }, say("mask.choose")), row]);
  }
}

/** Each once, in order, none before the second token. @param {number[]} places */
function rising(places) {
  return [...new Set(places.filter((each) => each > 0))].sort((one, other) => one - other);
}
