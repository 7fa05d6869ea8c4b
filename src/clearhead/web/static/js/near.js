// @ts-check
/** What need not be computed before a person comes near: sections that ask for forwards of their own, where a forward takes a while. */

const FORWARDS = new Set(["mask", "cache"]);
/** FLOPs of a forward that nobody waits for. By what there is to compute, not by the clock: a busy machine shows the same page. */
const QUICK = 2 ** 35;
/** Pixels from what is in sight that are near. */
const NEAR = 600;

/** Whether a section asks for forwards of its own: it comes last. @param {string} id */
export const computes = (id) => FORWARDS.has(id);

/**
 * Whether a section may wait until a person comes near.
 * @param {string} id
 * @param {HTMLElement} element it stands in
 * @param {any} model what is told of it
 * @param {any} opened what is told of the prompt
 */
export function mayWait(id, element, model, opened) {
  const tokens = opened.tokens.length + (opened.source?.tokens.length ?? 0);
  if (!computes(id) || 2 * model.parameters * tokens <= QUICK) return false;
  const { top, bottom } = element.getBoundingClientRect();
  return top > innerHeight + NEAR || bottom < -NEAR;
}

/** Calls once, when the element comes near. @param {HTMLElement} element @param {() => void} call */
export function whenNear(element, call) {
  const watcher = new IntersectionObserver((seen) => {
    if (!seen.some(({ isIntersecting }) => isIntersecting)) return;
    watcher.disconnect();
    call();
  }, { rootMargin: `${NEAR}px 0px` });
  watcher.observe(element);
}
