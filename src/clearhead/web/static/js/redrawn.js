// @ts-check
/**
 * What stands on the page as one SVG: texts as text where each line of them stands, boxes and lines as shapes, canvases as images, SVG as it
 * is. Nothing of HTML is in it, so that every program reads it and a canvas may draw it.
 */

import { draw } from "clearhead/dom.js";

/** What is of use on the page alone. */
const LEFT_OUT = ".tools, .table-behind, .joined, .visually-hidden, .chip:not([aria-pressed]), input, output, [hidden]";
/** What style sheets say of a shape or a text. */
const SHAPE = ["stroke-width", "stroke-dasharray", "stroke-opacity", "fill-opacity", "opacity", "text-anchor"];
const FONT = ["font-size", "font-family", "font-weight"];
const SIDES = /** @type {const} */ (["Top", "Right", "Bottom", "Left"]);
const letters = new Intl.Segmenter("zh", { granularity: "grapheme" });

/** @typedef {{left: number, top: number, clips: number}} Sheet where the picture begins in the window, and how many of its boxes cut what is in them */

/**
 * An element as a picture.
 * @param {HTMLElement} element
 * @returns {SVGElement}
 */
export function redrawn(element) {
  const { left, top, width, height } = element.getBoundingClientRect();
  const picture = draw("svg", { width: Math.ceil(width), height: Math.ceil(height), viewBox: `0 0 ${Math.ceil(width)} ${Math.ceil(height)}` });
  add(element, picture, { left, top, clips: 0 });
  return picture;
}

/** @param {Node} node @param {SVGElement} into @param {Sheet} sheet */
function add(node, into, sheet) {
  if (node instanceof Text) return into.append(...lines(node, sheet));
  if (!(node instanceof Element) || node.matches(LEFT_OUT) || !node.checkVisibility()) return;
  const style = getComputedStyle(node);
  const place = within(node.getBoundingClientRect(), sheet);
  if (style.visibility === "hidden" || !(place.width || place.height)) return;
  if (node instanceof SVGElement) return into.append(copied(node, style, place));
  const group = draw("g", { opacity: style.opacity === "1" ? null : style.opacity });
  into.append(group);
  group.append(...box(style, place));
  if (node instanceof HTMLCanvasElement) return group.append(image(node, style, place));
  if (node instanceof HTMLSelectElement) return group.append(...chosen(node, style, place));
  const room = clipped(node, style) ? cut(group, place, sheet) : group;
  for (const child of node.childNodes) add(child, room, sheet);
}

/** @param {DOMRect} rectangle @param {Sheet} sheet */
function within({ left, top, width, height }, sheet) {
  return { x: left - sheet.left, y: top - sheet.top, width, height };
}

/** @typedef {ReturnType<typeof within>} Place */

/** The ground, the frame and the single lines of a box. @param {CSSStyleDeclaration} style @param {Place} place @returns {SVGElement[]} */
function box(style, { x, y, width, height }) {
  const rx = Math.min(parseFloat(style.borderTopLeftRadius) || 0, width / 2, height / 2);
  const widths = SIDES.map((side) => (style[`border${side}Style`] === "none" ? 0 : parseFloat(style[`border${side}Width`])));
  const [thick = 0] = widths;
  const framed = thick > 0 && widths.every((each) => each === thick);
  /** @type {SVGElement[]} */
  const shapes = [];
  const ground = paint("fill", style.backgroundColor);
  if (ground) shapes.push(draw("rect", { x, y, width, height, rx, ...ground }));
  const share = parseFloat(style.getPropertyValue("--share"));
  if (share >= 0 && style.backgroundImage !== "none") {
    // A bar along the lower edge, as style sheets draw it with a gradient.
    const [full, rest] = [...style.backgroundImage.matchAll(/rgba?\([^)]*\)|color\([^)]*\)/g)].filter((_, number) => number % 2 === 0).map(([colour]) => colour);
    shapes.push(draw("rect", { x, y: y + height - 3, width, height: 3, ...paint("fill", rest ?? "") }), draw("rect", { x, y: y + height - 3, width: (width * Math.min(100, share)) / 100, height: 3, ...paint("fill", full ?? "") }));
  }
  if (framed) shapes.push(frame(x, y, width, height, rx, thick, style.borderTopColor, style.borderTopStyle));
  else {
    SIDES.forEach((side, number) => {
      const line = widths[number] ?? 0;
      if (!line) return;
      const [x1, y1] = side === "Right" ? [x + width - line / 2, y] : side === "Bottom" ? [x, y + height - line / 2] : side === "Left" ? [x + line / 2, y] : [x, y + line / 2];
      const [x2, y2] = side === "Top" || side === "Bottom" ? [x + width, y1] : [x1, y + height];
      const stroke = paint("stroke", style[`border${side}Color`]);
      if (stroke) shapes.push(draw("line", { x1, y1, x2, y2, "stroke-width": line, "stroke-dasharray": dashes(style[`border${side}Style`], line), ...stroke }));
    });
  }
  const ring = /(.*?)\s?0px 0px 0px ([\d.]+)px( inset)?$/.exec(style.boxShadow);
  if (ring?.[1] && Number(ring[2])) shapes.push(frame(x, y, width, height, rx, Number(ring[2]), ring[1], "solid"));
  if (style.outlineStyle === "solid" && parseFloat(style.outlineWidth) === 1) shapes.push(frame(x - 1, y - 1, width + 2, height + 2, 0, 1, style.outlineColor, "solid"));
  return shapes;
}

/** @param {number} x @param {number} y @param {number} width @param {number} height @param {number} rx @param {number} thick @param {string} colour @param {string} kind */
function frame(x, y, width, height, rx, thick, colour, kind) {
  return draw("rect", { x: x + thick / 2, y: y + thick / 2, width: Math.max(0, width - thick), height: Math.max(0, height - thick), rx: Math.max(0, rx - thick / 2),
    fill: "none", "stroke-width": thick, "stroke-dasharray": dashes(kind, thick), ...(paint("stroke", colour) ?? { stroke: "none" }) });
}

/** @param {string} kind @param {number} thick */
function dashes(kind, thick) {
  return kind === "dashed" ? `${3 * thick} ${3 * thick}` : kind === "dotted" ? `${thick} ${thick}` : null;
}

/** @param {HTMLCanvasElement} canvas @param {CSSStyleDeclaration} style @param {Place} place */
function image(canvas, style, place) {
  const rendering = style.imageRendering === "pixelated" ? "image-rendering: pixelated" : null;
  return draw("image", { ...place, href: canvas.width && canvas.height ? canvas.toDataURL() : "", preserveAspectRatio: "none", style: rendering });
}

/** What is chosen of a list. @param {HTMLSelectElement} select @param {CSSStyleDeclaration} style @param {Place} place */
function chosen(select, style, { x, y, width, height }) {
  const text = select.selectedOptions[0]?.textContent ?? "";
  const left = x + parseFloat(style.paddingLeft) + parseFloat(style.borderLeftWidth) + 2;
  return [
    draw("text", { x: left, y: y + height / 2, "dominant-baseline": "central", ...fontOf(style), ...paint("fill", style.color) }, text),
    draw("path", { d: `M${x + width - 15} ${y + height / 2 - 2}l4 4l4 -4`, fill: "none", "stroke-width": 1.5, ...paint("stroke", style.color) }),
  ];
}

/** Whether a box shows a part of what is in it. @param {Element} element @param {CSSStyleDeclaration} style */
function clipped(element, style) {
  if (style.overflowX === "visible" && style.overflowY === "visible") return false;
  return style.borderTopLeftRadius !== "0px" || element.scrollWidth > element.clientWidth + 1 || element.scrollHeight > element.clientHeight + 1;
}

/** A group of which no more than a place is seen. @param {SVGElement} group @param {Place} place @param {Sheet} sheet */
function cut(group, place, sheet) {
  const id = `cut-${sheet.clips++}`;
  const inside = draw("g", { "clip-path": `url(#${id})` });
  group.append(draw("clipPath", { id }, draw("rect", { ...place })), inside);
  return inside;
}

/** A text as it stands, a piece a line. @param {Text} node @param {Sheet} sheet @returns {SVGElement[]} */
function lines(node, sheet) {
  const parent = node.parentElement;
  if (!parent || !node.data.trim()) return [];
  /** @type {{text: string, left: number, right: number, top: number, height: number}[]} */
  const found = [];
  const range = document.createRange();
  for (const { segment, index } of letters.segment(node.data)) {
    range.setStart(node, index);
    range.setEnd(node, index + segment.length);
    const place = range.getBoundingClientRect();
    // A blank that the browser has let go has no width.
    if (!place.width) continue;
    const last = found[found.length - 1];
    if (last && Math.abs(last.top - place.top) < place.height / 2 && place.left >= last.left) {
      last.text += segment;
      last.right = place.right;
    } else found.push({ text: segment, left: place.left, right: place.right, top: place.top, height: place.height });
  }
  const style = getComputedStyle(parent);
  const above = ascent(style);
  return found.filter(({ text }) => text.trim()).map(({ text, left, right, top, height }) => draw("text", {
    x: left - sheet.left,
    y: top - sheet.top + above * height,
    textLength: right - left,
    lengthAdjust: "spacingAndGlyphs",
    "xml:space": "preserve",
    ...fontOf(style),
    ...paint("fill", style.color),
  }, text));
}

/** @type {CanvasRenderingContext2D | null} */
let ruler = null;

/** Which part of a line's height is above the line on which letters stand. @param {CSSStyleDeclaration} style */
function ascent(style) {
  ruler ??= document.createElement("canvas").getContext("2d");
  if (!ruler) return 0.8;
  ruler.font = `${style.fontWeight} ${style.fontSize} ${style.fontFamily}`;
  const { fontBoundingBoxAscent: up, fontBoundingBoxDescent: down } = ruler.measureText("x");
  return up + down > 0 ? up / (up + down) : 0.8;
}

/** @param {CSSStyleDeclaration} style @returns {Record<string, string>} */
function fontOf(style) {
  return Object.fromEntries(FONT.map((name) => [name, style.getPropertyValue(name)]));
}

/** An SVG of the page, with what its style sheets say of it written into it. @param {SVGElement} element @param {CSSStyleDeclaration} style @param {Place} place */
function copied(element, style, place) {
  const copy = /** @type {SVGElement} */ (element.cloneNode(true));
  write(element, copy);
  for (const [name, value] of Object.entries(place)) copy.setAttribute(name, String(value));
  copy.setAttribute("overflow", style.overflowX === "visible" ? "visible" : "hidden");
  return copy;
}

/** @param {Element} from @param {Element} to */
function write(from, to) {
  const style = getComputedStyle(from);
  for (const { name } of [...to.attributes]) if (/^(class|style|role|tabindex|aria-.*|data-.*)$/.test(name)) to.removeAttribute(name);
  for (const name of [...SHAPE, ...FONT]) {
    const value = style.getPropertyValue(name);
    if (value && value !== "none" && value !== "1" && !(FONT.includes(name) && !from.matches("text, tspan"))) to.setAttribute(name, value);
  }
  for (const name of ["fill", "stroke"]) {
    const value = style.getPropertyValue(name);
    if (!from.matches("svg, g, defs, marker, title")) for (const [attribute, said] of Object.entries(paint(name, value) ?? { [name]: "none" })) to.setAttribute(attribute, said);
  }
  [...from.children].forEach((child, place) => {
    const copy = to.children[place];
    if (copy) write(child, copy);
  });
}

/** @type {Map<string, [number, number, number, number]>} */
const known = new Map();
/** @type {CanvasRenderingContext2D | null} */
let pot = null;

/** A colour of CSS as SVG of any age has it; null where nothing would be seen. @param {string} name fill or stroke @param {string} colour @returns {Record<string, string> | null} */
function paint(name, colour) {
  if (!colour || colour === "none" || colour === "transparent") return null;
  let found = known.get(colour);
  if (!found) {
    pot ??= document.createElement("canvas").getContext("2d", { willReadFrequently: true });
    if (!pot) return null;
    pot.clearRect(0, 0, 1, 1);
    pot.fillStyle = colour;
    pot.fillRect(0, 0, 1, 1);
    const [red = 0, green = 0, blue = 0, alpha = 0] = pot.getImageData(0, 0, 1, 1).data;
    known.set(colour, (found = [red, green, blue, alpha]));
  }
  const [red, green, blue, alpha] = found;
  if (!alpha) return null;
  const plain = `#${[red, green, blue].map((part) => part.toString(16).padStart(2, "0")).join("")}`;
  return alpha === 255 ? { [name]: plain } : { [name]: plain, [`${name}-opacity`]: (alpha / 255).toFixed(3) };
}
