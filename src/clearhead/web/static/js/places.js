// @ts-check
/** Which parts, layers, heads and positions there are to look at, and the nearest one to what an address asks. */

/** @typedef {import("clearhead/state.js").State} State */

/** The attentions of a model. @param {any} model @returns {string[]} */
export function parts(model) {
  return model.kind === "encoder_decoder" ? ["encoder.attention", "decoder.attention", "decoder.cross_attention"] : ["attention"];
}

/**
 * How many tokens look and are looked at in an attention.
 * @param {string} part
 * @param {any} opened what /api/open said
 * @returns {{queries: number, keys: number}}
 */
export function lengths(part, opened) {
  const own = opened.tokens.length;
  const source = (opened.source?.tokens ?? []).length;
  if (part === "encoder.attention") return { queries: source, keys: source };
  return { queries: own, keys: part === "decoder.cross_attention" ? source : own };
}

/**
 * A state whose places all exist; a position that is not named (-1) is the last token that looks, and the first that is looked at.
 * @param {State} state
 * @param {any} model
 * @param {any} opened
 * @returns {State}
 */
export function resolved(state, model, opened) {
  const known = parts(model);
  const part = known.includes(state.part) ? state.part : /** @type {string} */ (known[known.length - 1]);
  const { queries, keys } = lengths(part, opened);
  const within = (/** @type {number} */ place, /** @type {number} */ count) => Math.max(0, Math.min(place, count - 1));
  return {
    ...state,
    part,
    layer: within(state.layer, part === "encoder.attention" ? model.encoder_layers ?? model.layers : model.layers),
    head: within(state.head, model.heads),
    query: state.query < 0 ? Math.max(0, queries - 1) : within(state.query, queries),
    key: state.key < 0 ? 0 : within(state.key, keys),
  };
}
