// @ts-check
/** The sections of the page, in the order in which they stand. */

import { view as flow } from "clearhead/flow.js";
import { view as tokens } from "clearhead/tokens.js";

/** @type {import("clearhead/state.js").View[]} */
export const views = [tokens, flow];
