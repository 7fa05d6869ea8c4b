// @ts-check
/**
 * One scale of colours for every weight: from the paper (nothing) over blue-green or ochre to the far end (everything).
 *
 * It runs along blue and yellow alone, which all common kinds of colour-blindness tell apart, and its lightness only ever goes one way, so
 * that it reads in grey too. The anchors are points of OKLab (Ottosson 2020), in which equal steps look equal; the table is walked at an
 * even pace, whatever the distances of its anchors are.
 */

/** @typedef {"light" | "dark"} Theme */
/** @typedef {[number, number, number]} Triple */

const STEPS = 256;

/** Lightness, chroma, hue in degrees. @type {Record<Theme, Triple[]>} */
const ANCHORS = {
  light: [[0.985, 0.004, 95], [0.88, 0.075, 100], [0.7, 0.085, 190], [0.5, 0.11, 245], [0.26, 0.1, 272]],
  dark: [[0.225, 0.014, 265], [0.38, 0.1, 265], [0.55, 0.1, 235], [0.75, 0.1, 165], [0.96, 0.13, 103]],
};

/** Red, green, blue (0 to 255) of a point of OKLab. @param {Triple} lab @returns {Triple} */
function rgb([lightness, a, b]) {
  const l = (lightness + 0.3963377774 * a + 0.2158037573 * b) ** 3;
  const m = (lightness - 0.1055613458 * a - 0.0638541728 * b) ** 3;
  const s = (lightness - 0.0894841775 * a - 1.291485548 * b) ** 3;
  const linear = [
    4.0767416621 * l - 3.3077115913 * m + 0.2309699292 * s,
    -1.2684380046 * l + 2.6097574011 * m - 0.3413193965 * s,
    -0.0041960863 * l - 0.7034186147 * m + 1.707614701 * s,
  ];
  const [red, green, blue] = linear.map((value) => {
    const within = Math.min(1, Math.max(0, value));
    return Math.round(255 * (within <= 0.0031308 ? 12.92 * within : 1.055 * within ** (1 / 2.4) - 0.055));
  });
  return [red, green, blue];
}

/** @param {Triple} anchor @returns {Triple} */
function lab([lightness, chroma, hue]) {
  const angle = (hue * Math.PI) / 180;
  return [lightness, chroma * Math.cos(angle), chroma * Math.sin(angle)];
}

/** The scale as `STEPS` points of OKLab, equally far from each other. @param {Theme} theme @returns {Triple[]} */
function walked(theme) {
  const points = ANCHORS[theme].map(lab);
  const far = (/** @type {Triple} */ p, /** @type {Triple} */ q) => Math.hypot(p[0] - q[0], p[1] - q[1], p[2] - q[2]);
  const lengths = points.slice(1).map((point, place) => far(point, points[place]));
  const whole = lengths.reduce((sum, length) => sum + length, 0);
  return Array.from({ length: STEPS }, (_, step) => {
    let left = (whole * step) / (STEPS - 1);
    let place = 0;
    while (place < lengths.length - 1 && left > lengths[place]) left -= lengths[place++];
    const [from, to] = [points[place], points[place + 1]];
    const share = Math.min(1, left / lengths[place]);
    return /** @type {Triple} */ (from.map((value, axis) => value + share * (to[axis] - value)));
  });
}

/** @type {Partial<Record<Theme, Triple[]>>} */
const made = {};

/** The 256 colours of the scale, made once a theme. @param {Theme} theme @returns {Triple[]} */
export function scale(theme) {
  return (made[theme] ??= walked(theme).map(rgb));
}

/**
 * How far along the scale a share of the largest weight is drawn: its square root, since most weights of a long row are small and would
 * all look like nothing. The legend has its numbers where they are drawn.
 *
 * @param {number} share from 0 to 1
 */
export function along(share) {
  return Math.sqrt(Math.min(1, Math.max(0, share)));
}

/** Colour of a share, for CSS and SVG. @param {number} share from 0 to 1 @param {Theme} theme */
export function colour(share, theme) {
  const [red, green, blue] = scale(theme)[Math.round(along(share) * (STEPS - 1))];
  return `rgb(${red} ${green} ${blue})`;
}

/**
 * The pixel of each byte of a picture of weights, as ImageData keeps it. The bytes are roots already: 255 √(weight / most).
 *
 * @param {Theme} theme
 * @param {number} [end] where 255 is drawn: 1 is the far end of the scale
 */
export function pixels(theme, end = 1) {
  const bytes = new Uint8ClampedArray(4 * STEPS);
  const colours = scale(theme);
  for (let value = 0; value < STEPS; value++) bytes.set([...colours[Math.round(value * end)], 255], 4 * value);
  return new Uint32Array(bytes.buffer);
}

/** Whether an element stands on dark paper: its text is light. @param {Element} element @returns {Theme} */
export function themeOf(element) {
  const [red = 0, green = 0, blue = 0] = (getComputedStyle(element).color.match(/[\d.]+/g) ?? []).map(Number);
  return 0.2126 * red + 0.7152 * green + 0.0722 * blue > 127 ? "dark" : "light";
}

/**
 * A strip of the scale with numbers at the places where they are drawn.
 *
 * @param {number} most what the far end stands for
 * @param {string} label what is drawn, for people and screen readers
 * @returns {HTMLElement}
 */
export function legend(most, label) {
  const box = document.createElement("figure");
  box.className = "legend";
  const canvas = document.createElement("canvas");
  canvas.width = STEPS;
  canvas.height = 1;
  canvas.setAttribute("aria-hidden", "true");
  const ticks = document.createElement("div");
  ticks.className = "legend-ticks";
  for (const share of [0, 0.05, 0.25, 0.5, 1]) {
    const tick = document.createElement("span");
    tick.textContent = (share * most).toLocaleString("en", { maximumSignificantDigits: 2 });
    tick.style.left = `${100 * along(share)}%`;
    ticks.append(tick);
  }
  const caption = document.createElement("figcaption");
  caption.textContent = label;
  const strip = document.createElement("div");
  strip.className = "legend-strip";
  strip.append(canvas, ticks);
  box.append(caption, strip);
  const draw = () => {
    const context = canvas.getContext("2d");
    const image = new ImageData(STEPS, 1);
    scale(themeOf(box)).forEach((each, step) => image.data.set([...each, 255], 4 * step));
    context?.putImageData(image, 0, 0);
  };
  requestAnimationFrame(draw);
  return box;
}
