// @ts-check
/** The sections of the page, in the order in which they stand. */

import { view as alignment } from "clearhead/alignment.js";
import { view as atlas } from "clearhead/atlas.js";
import { view as cache } from "clearhead/cache.js";
import { view as cell } from "clearhead/cell.js";
import { view as flow } from "clearhead/flow.js";
import { view as head } from "clearhead/head.js";
import { view as mask } from "clearhead/mask.js";
import { view as tokens } from "clearhead/tokens.js";

/** @type {import("clearhead/state.js").View[]} */
export const views = [tokens, flow, atlas, head, cell, mask, cache, alignment];
