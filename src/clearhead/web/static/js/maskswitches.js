// @ts-check
/** The switches of a mask: each rule on or off, with its number, and where documents begin. */
import { make } from "clearhead/dom.js";
import { refilled } from "clearhead/headtools.js";
import { placed } from "clearhead/labels.js";
import { documentOf, FULL, within, written } from "clearhead/maskrule.js";
import { go } from "clearhead/state.js";

/** @typedef {import("clearhead/maskrule.js").Rule} Rule */
/** @typedef {import("clearhead/maskasked.js").MaskHeader} MaskHeader */
/** @typedef {import("clearhead/state.js").Say} Say */

/** The widest window that an address may ask for. */
const WIDEST = 9999999;

export class Switches {
  /** @param {Say} say */
  constructor(say) {
    this.say = say;
    this.row = make("div", { class: "row-of-tools mask-switches", role: "group", "aria-label": say("mask.switches") });
    this.strip = make("div", { class: "mask-documents", hidden: true });
    this.about = make("ul", { class: "quiet mask-about" });
    this.element = make("div", {}, this.row, this.strip, this.about);
    /** What the rules had last, for when they are switched on again. @type {Partial<Rule>} */
    this.last = {};
    /** What they have when they are switched on first. @type {Rule} */
    this.first = FULL;
    /** @type {Rule} */
    this.rule = FULL;
    this.own = "";
    /** @type {string[]} */
    this.labels = [];
    this.drawn = "";
    /** Whether a prefix has just gone with the rule that it needs. */
    this.went = false;
  }

  /**
   * @param {MaskHeader} header of the mask's answer
   * @param {string} mask the words of the address: "" for the model's own
   * @param {string[]} labels of the tokens
   */
  show({ rule, first, own, everywhere, switched, part }, mask, labels) {
    Object.assign(this, { rule, first, labels, own: everywhere ? own : "" });
    const { window, prefix, documents, padding } = rule;
    if (window !== null) this.last.window = window;
    if (prefix !== null) this.last.prefix = prefix;
    if (padding) this.last.padding = padding;
    if (documents.length) this.last.documents = documents;
    this.row.hidden = !switched;
    if (switched) refilled(this.row, this.tools(mask));
    this.fillStrip(switched && documents.length > 0);
    const told = this.told(part);
    this.about.replaceChildren(...told.map((key) => make("li", {}, this.say(key, { window: window ?? 0, prefix: prefix ?? 0, padding }))));
    this.went = false;
  }

  /** What is said of the rules that are on. @param {string} part @returns {string[]} */
  told(part) {
    const { window, prefix, documents, padding, causal } = this.rule;
    const limited = window !== null || documents.length > 0 || padding > 0;
    const wide = window !== null && window >= this.labels.length;
    const lines = [
      causal && prefix === null && "mask.about.causal",
      prefix !== null && (limited ? "mask.about.prefix_limited" : "mask.about.prefix"),
      window !== null && (wide ? "mask.about.window_wide" : "mask.about.window"),
      documents.length > 0 && "mask.about.documents",
      padding > 0 && "mask.about.padding",
    ].filter((each) => each !== false);
    if (!lines.length) lines.push(part.endsWith("cross_attention") ? "mask.about.cross" : "mask.about.full");
    if (this.went) lines.push("mask.prefix_went");
    return lines;
  }

  /** @param {Partial<Rule>} change */
  change(change) {
    const next = within({ ...this.rule, ...change }, this.labels.length);
    if (!next.causal && next.prefix !== null) {
      next.prefix = null; // it opens what causal hides, and nothing else
      this.went = true;
    }
    const words = written(next);
    go({ mask: words === this.own ? "" : words });
  }

  /** What a rule is switched on with. @template {"window" | "prefix" | "documents" | "padding"} Name @param {Name} name @returns {Rule[Name]} */
  number(name) {
    // What was switched on for a longer text may lie beyond this one.
    const last = within({ ...FULL, ...this.last }, this.labels.length)[name];
    return last === null || last === 0 || (Array.isArray(last) && !last.length) ? this.first[name] : last;
  }

  /** @param {string} mask @returns {HTMLElement[]} */
  tools(mask) {
    const { rule } = this;
    const { causal, window, prefix, documents, padding } = rule;
    const switched = (/** @type {"window" | "prefix" | "documents" | "padding"} */ name, /** @type {boolean} */ on, /** @type {() => HTMLElement} */ field) => {
      const change = on ? { [name]: FULL[name] } : { [name]: this.number(name), causal: causal || name === "prefix" };
      // A single token can be neither padding nor two documents.
      const nothing = !on && written(within({ ...FULL, causal: true, [name]: this.number(name) }, this.labels.length)) === "causal";
      return make("span", { class: "mask-switch" }, this.chip(name, on, () => this.change(change), nothing), on && field());
    };
    return [
      this.chip("own", mask === "", () => go({ mask: "" })),
      this.chip("causal", causal, () => this.change({ causal: !causal })),
      switched("window", window !== null, () => this.field("window", WIDEST)),
      switched("prefix", prefix !== null, () => this.field("prefix", this.labels.length)),
      switched("documents", documents.length > 0, () => this.begins()),
      switched("padding", padding > 0, () => this.field("padding", this.labels.length - 1)),
    ];
  }

  /** A rule to press. @param {string} name @param {boolean} pressed @param {() => void} onclick @param {boolean} [disabled] it would change nothing */
  chip(name, pressed, onclick, disabled = false) {
    return make("button", {
      type: "button", class: "chip", "data-name": name, "aria-pressed": String(pressed), onclick, disabled,
      title: disabled ? this.say("mask.one_token") : null,
    }, this.say(`mask.${name}`));
  }

  /** The number of a rule. @param {"window" | "prefix" | "padding"} name @param {number} most */
  field(name, most) {
    const field = make("input", {
      type: "number", class: "mask-number", min: 1, max: most, value: this.rule[name] ?? 1,
      "data-name": `${name}-number`, "aria-label": this.say(`mask.${name}_number`),
    });
    field.addEventListener("change", () => {
      const value = Math.round(field.valueAsNumber);
      const kept = value >= 1 ? Math.min(value, most) : this.rule[name];
      field.value = String(kept);
      this.change({ [name]: kept });
    });
    return field;
  }

  /** Where documents begin, typed. */
  begins() {
    const field = make("input", {
      type: "text", inputmode: "numeric", class: "mask-begins", value: this.rule.documents.join(", "),
      "data-name": "documents-begin", "aria-label": this.say("mask.begins"),
    });
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
    const buttons = labels.map((_, place) => this.token(place, place === stop));
    const row = make("div", { class: "mask-tokens", role: "group", "aria-label": say("mask.begins") }, ...buttons);
    row.addEventListener("keydown", (event) => {
      const step = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
      const from = event.target instanceof HTMLElement ? Number(event.target.dataset.token) : NaN;
      if (step === undefined || Number.isNaN(from)) return;
      event.preventDefault();
      event.stopPropagation();
      const next = buttons[from + step];
      if (!next || next.disabled) return;
      for (const each of buttons) each.tabIndex = each === next ? 0 : -1;
      next.focus();
    });
    refilled(this.strip, [make("p", { class: "quiet" }, say("mask.choose")), row]);
  }

  /** A token with which a document may begin. @param {number} place @param {boolean} stop whether the tabulator stops at it */
  token(place, stop) {
    const { labels, rule, say } = this;
    const [begins, own] = [rule.documents.includes(place), documentOf(rule, place)];
    const toggle = () => this.change({
      documents: begins ? rule.documents.filter((each) => each !== place) : rising([...rule.documents, place]),
    });
    return make("button", {
      type: "button", class: `mask-token tint-${(own - 1) % 4}${begins ? " begins" : ""}`, "data-name": `token-${place}`, "data-token": place,
      "aria-pressed": String(begins), tabindex: stop ? 0 : -1, disabled: place === 0,
      "aria-label": say("mask.token", { token: placed(labels, place), document: own }), onclick: toggle,
    }, labels[place]);
  }
}

/** Each once, in order, none before the second token. @param {number[]} places */
function rising(places) {
  return [...new Set(places.filter((each) => each > 0))].sort((one, other) => one - other);
}
