// @ts-check
/** How a person goes through the steps of the cache: back, on, by itself, with a slider; and whether keys or values are shown. */
import { make } from "clearhead/dom.js";
import { go } from "clearhead/state.js";

/** @typedef {import("clearhead/state.js").Say} Say */

/** Milliseconds from step to step while it plays. */
const PACE = 700;

/** @typedef {{shown: () => number, most: () => number}} Steps how many are shown, and how many there are */

export class Tools {
  /** @param {Steps} steps @param {Say} say */
  constructor(steps, say) {
    this.steps = steps;
    this.say = say;
    /** Of what plays; 0 while nothing does. */
    this.timer = 0;
    this.playing = this.button("▶▶", "play", say("cache.play"), () => (this.timer ? this.halt() : this.play()));
    this.slider = make("input", { type: "range", min: 0, step: 1, "aria-label": say("cache.slider") });
    this.slider.addEventListener("input", () => this.to(Number(this.slider.value)));
    this.place = make("output", {});
    this.sides = [this.side("", say("cache.keys")), this.side("values", say("cache.values"))];
    this.element = make("div", { class: "row-of-tools" },
      make("span", { class: "joined" }, this.button("◀", "back", say("cache.back"), () => this.to(this.steps.shown() - 1)), this.playing,
        this.button("▶", "on", say("cache.on"), () => this.to(this.steps.shown() + 1))),
      make("label", {}, this.slider, this.place),
      make("span", { class: "joined", role: "group", "aria-label": say("cache.side") }, ...this.sides));
  }

  /** @param {string} text @param {string} name @param {string} told @param {() => void} onclick */
  button(text, name, told, onclick) {
    return make("button", { type: "button", class: "chip", "data-do": name, "aria-label": told, title: told, onclick }, text);
  }

  /** @param {string} held @param {string} told */
  side(held, told) {
    return make("button", { type: "button", class: "chip", "data-side": held || "keys", onclick: () => go({ held }) }, told);
  }

  /** By hand: what plays stops. @param {number} steps */
  to(steps) {
    this.halt();
    go({ steps: Math.max(0, Math.min(this.steps.most(), steps)) });
  }

  /** Brings all to what is shown. @param {string} held */
  show(held) {
    const [shown, most] = [this.steps.shown(), this.steps.most()];
    this.slider.max = String(most);
    this.slider.value = String(shown);
    this.slider.disabled = !most;
    this.place.textContent = this.say("cache.place", { step: shown, steps: most });
    for (const each of this.sides) each.setAttribute("aria-pressed", String(each.dataset.side === (held || "keys")));
  }

  play() {
    const [shown, most] = [this.steps.shown(), this.steps.most()];
    // Where a person wants nothing to move, it is at the end at once.
    if (matchMedia("(prefers-reduced-motion: reduce)").matches) return go({ steps: shown < most ? most : 0 });
    if (shown >= most) go({ steps: 0 });
    this.timer = setInterval(() => {
      const next = this.steps.shown() + 1;
      if (!this.element.isConnected || next > most) return this.halt();
      go({ steps: next });
      if (next >= most) this.halt();
    }, PACE);
    this.played();
  }

  halt() {
    clearInterval(this.timer);
    this.timer = 0;
    this.played();
  }

  played() {
    this.playing.textContent = this.timer ? "❚❚" : "▶▶";
    for (const name of ["title", "aria-label"]) this.playing.setAttribute(name, this.say(this.timer ? "cache.pause" : "cache.play"));
  }
}
