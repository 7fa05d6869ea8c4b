// @ts-check
/** Elements in one call. Texts are set as text, never read as HTML. */

/** @typedef {Record<string, string | number | boolean | ((event: any) => void) | null | undefined>} Attributes */
/** @typedef {Node | string | null | undefined | false} Child */

/**
 * An HTML element: `make("button", {class: "quiet", onclick: open}, "Open")`.
 * @template {keyof HTMLElementTagNameMap} N
 * @param {N} name
 * @param {Attributes} [attributes] a function is a listener; true is an empty attribute; null, undefined and false are left out
 * @param {...Child} children
 * @returns {HTMLElementTagNameMap[N]}
 */
export function make(name, attributes = {}, ...children) {
  return filled(document.createElement(name), attributes, children);
}

/**
 * An element of SVG.
 * @template {keyof SVGElementTagNameMap} N
 * @param {N} name
 * @param {Attributes} [attributes]
 * @param {...Child} children
 * @returns {SVGElementTagNameMap[N]}
 */
export function draw(name, attributes = {}, ...children) {
  return filled(document.createElementNS("http://www.w3.org/2000/svg", name), attributes, children);
}

/**
 * @template {Element} E
 * @param {E} element
 * @param {Attributes} attributes
 * @param {Child[]} children
 */
function filled(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (typeof value === "function") element.addEventListener(name.slice(2), value);
    else if (value !== null && value !== undefined && value !== false) element.setAttribute(name, value === true ? "" : String(value));
  }
  element.append(...children.filter((child) => child !== null && child !== undefined && child !== false));
  return element;
}

/**
 * Draws anew and gives the focus back to the element of the same name.
 * @param {() => void} drawing
 */
export function keepingFocus(drawing) {
  const id = document.activeElement?.id;
  drawing();
  const again = id ? document.getElementById(id) : null;
  if (again && again !== document.activeElement) again.focus({ preventScroll: true });
}
