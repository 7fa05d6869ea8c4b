// @ts-check
/**
 * How the stages of a forward are wired: which stand on the residual stream, which on a branch beside it, and where everything is drawn.
 * It goes by names alone, so a block that has no norm before its branch, or both branches side by side, is drawn as it is.
 */

/**
 * @typedef {object} Stage as /flow tells it
 * @property {string} name
 * @property {string[]} axes
 * @property {number[]} shape
 * @property {number} parameters
 * @property {number} flops
 * @property {number} bytes
 * @property {string} formula
 * @property {{file: string, line: number, text: string} | null} source
 * @property {Record<string, number | null>} summary
 */

/** @typedef {{kind: "stage" | "block", lane: "spine" | "branch", x: number, y: number, width: number, height: number, stage?: Stage, block?: number, open?: boolean, name: string, title?: string}} Item */
/** @typedef {{kind: "path" | "cross" | "plus", points: [number, number][], arrow: boolean}} Wire */
/** @typedef {{items: Item[], wires: Wire[], bottom: number, ports: Map<string, Item>}} Column */

export const ROW = 46;
const GAP = 14;
const FOLDED = 22;
const FEW = 4;
const FIELD = 40;
const SEAM = 4;
const SPINE = 18;
const INDENT = 42;
const BRANCH = 30;

const BRANCHES = ["attention", "cross_attention", "feedforward"];
const SIDE_BY_SIDE = [["q", "k", "v"], ["gate", "up"]];
const SUMS = new Set(["middle", "crossed", "output"]);

/** The number of a stage's block, or null. @param {string} name */
export function blockOf(name) {
  const found = /(?:^|\.)blocks\.(\d+)\./.exec(name);
  return found ? Number(found[1]) : null;
}

/** A name without the model's part and the block: `attention.q`. @param {string} name */
export function ownName(name) {
  return name.replace(/^(encoder|decoder)\./, "").replace(/^blocks\.\d+\./, "");
}

/**
 * One stack of blocks, from the top down.
 * @param {Stage[]} stages of the stack, in the order of the forward
 * @param {number} opened the block that is shown from inside
 * @param {{left: number, top: number, width: number}} where
 * @returns {Column}
 */
export function column(stages, opened, { left, top, width }) {
  /** @type {Column} */
  const drawn = { items: [], wires: [], bottom: top, ports: new Map() };
  const spine = left + SPINE;
  const place = { drawn, spine, x: left + INDENT, width: width - INDENT, y: top };
  const blocks = [...new Set(stages.map(({ name }) => blockOf(name)).filter((block) => block !== null))].sort((one, other) => one - other);
  // Keys and values of the source are computed before the decoder's embedding, so it is the last stage of a block that parts the rest.
  const last = stages.findLastIndex(({ name }) => blockOf(name) !== null);
  const loose = stages.filter(({ name }) => blockOf(name) === null);
  const early = loose.filter((stage) => stages.indexOf(stage) < last);
  for (const stage of early) onSpine(place, stage);
  folded(place, blocks.filter((block) => block < opened));
  if (blocks.includes(opened)) {
    add(place, { kind: "block", lane: "spine", x: place.x, width: place.width, height: FOLDED, block: opened, open: true, name: String(opened) });
    inside(place, stages.filter(({ name }) => blockOf(name) === opened));
  }
  folded(place, blocks.filter((block) => block > opened));
  for (const stage of loose) if (!early.includes(stage)) onSpine(place, stage);
  const end = drawn.items[drawn.items.length - 1];
  drawn.wires.unshift({ kind: "path", arrow: true, points: [[spine, top + ROW / 2], [spine, (end?.y ?? top) + (end?.height ?? 0) / 2]] });
  drawn.bottom = place.y;
  return drawn;
}

/** @typedef {{drawn: Column, spine: number, x: number, width: number, y: number}} Place */

/** @param {Place} place @param {Omit<Item, "y">} item @param {number} [gap] @returns {Item} */
function add(place, item, gap = GAP) {
  const whole = { ...item, y: place.y };
  place.drawn.items.push(whole);
  place.y += item.height + gap;
  if (item.stage) place.drawn.ports.set(item.stage.name, whole);
  return whole;
}

/** Blocks that are not opened: a row each where they are few, else small fields side by side. @param {Place} place @param {number[]} blocks */
function folded(place, blocks) {
  const few = blocks.length <= FEW;
  const across = few ? 1 : Math.max(1, Math.floor((place.width + SEAM) / (FIELD + SEAM)));
  const width = (place.width - SEAM * (across - 1)) / across;
  blocks.forEach((block, index) => {
    const x = place.x + (index % across) * (width + SEAM);
    place.drawn.items.push({ kind: "block", lane: "spine", x, y: place.y, width, height: FOLDED, block, open: false, name: few ? "" : "small" });
    if (index % across === across - 1 || index === blocks.length - 1) place.y += FOLDED + SEAM;
  });
  if (blocks.length) place.y += GAP - SEAM;
}

/** @param {Place} place @param {Stage} stage @param {string} [ending] of its title: a sum whose block has no norm before the branch is normed itself */
function onSpine(place, stage, ending = "") {
  const item = add(place, { kind: "stage", lane: "spine", x: place.x, width: place.width, height: ROW, stage, name: ownName(stage.name), title: ownName(stage.name) + ending });
  const middle = item.y + ROW / 2;
  place.drawn.wires.push({ kind: "path", arrow: false, points: [[place.spine, middle], [place.x, middle]] });
  if (SUMS.has(item.name) || item.name === "positions") place.drawn.wires.push({ kind: "plus", arrow: false, points: [[place.spine, middle]] });
  return item;
}

/** The stages of the opened block: branches beside the stream, sums on it. @param {Place} place @param {Stage[]} stages */
function inside(place, stages) {
  const of = (/** @type {string} */ name) => stages.find((stage) => ownName(stage.name) === name);
  const parallel = !of("middle");
  const from = place.y - GAP / 2;
  /** @type {Item | null} */
  let aside = null;
  for (const branch of BRANCHES) {
    const own = stages.filter((stage) => ownName(stage.name).startsWith(`${branch}.`));
    if (!own.length) continue;
    const end = along(place, [of(`${branch}_norm`), ...own], parallel ? from : place.y - GAP / 2);
    const sum = of({ attention: "middle", cross_attention: "crossed", feedforward: "output" }[branch] ?? "");
    if (sum) {
      const item = onSpine(place, sum, of(`${branch}_norm`) ? "" : "_normed");
      join(place, end, item);
      if (aside) join(place, aside, item, 8);
    } else if (parallel) aside = end;
  }
  const known = new Set([...place.drawn.ports.keys()]);
  for (const stage of stages) if (!known.has(stage.name)) onSpine(place, stage);
}

/**
 * The stages of a branch, one below the other; those that are computed from the same thing stand side by side.
 * @param {Place} place
 * @param {(Stage | undefined)[]} stages
 * @param {number} from where the branch leaves the stream
 * @returns {Item} the last
 */
function along(place, stages, from) {
  const x = place.x + BRANCH;
  const width = place.width - BRANCH;
  const rows = grouped(stages.filter((stage) => stage !== undefined));
  /** @type {Item[]} */
  let before = [];
  for (const row of rows) {
    const size = (width - GAP * (row.length - 1)) / row.length;
    const top = place.y;
    const items = row.map((stage, index) => {
      place.y = top;
      return add(place, { kind: "stage", lane: "branch", x: x + index * (size + GAP), width: size, height: ROW, stage, name: ownName(stage.name) });
    });
    if (!before.length) leave(place, read(items), from, x);
    for (const above of before) {
      const turn = above.y + ROW + 5;
      for (const below of read(items)) {
        place.drawn.wires.push({ kind: "path", arrow: true, points: [[mid(above), above.y + ROW], [mid(above), turn], [mid(below), turn], [mid(below), below.y]] });
      }
    }
    before = items;
  }
  return /** @type {Item} */ (before[0]);
}

/** Those of a row that read the stream: keys and values of cross-attention read the source. @param {Item[]} row */
const read = (row) => row.filter(({ name }) => name !== "cross_attention.k" && name !== "cross_attention.v");

/** From the stream to the first row of a branch: into its side, or from above where several read it. @param {Place} place @param {Item[]} row @param {number} from @param {number} x */
function leave(place, row, from, x) {
  const [only] = row;
  if (!only) return;
  const middle = only.y + ROW / 2;
  /** @type {[number, number][][]} */
  const paths = row.length === 1
    ? [[[place.spine, from], [place.x + 8, from], [place.x + 8, middle], [x, middle]]]
    : row.map((item) => [[place.spine, from], [mid(item), from], [mid(item), item.y]]);
  for (const points of paths) place.drawn.wires.push({ kind: "path", arrow: true, points });
}

/** @param {Item} item */
const mid = (item) => item.x + item.width / 2;

/** Runs of stages that stand side by side. @param {Stage[]} stages @returns {Stage[][]} */
function grouped(stages) {
  /** @type {Stage[][]} */
  const rows = [];
  const last = (/** @type {string} */ name) => name.slice(name.lastIndexOf(".") + 1);
  for (const stage of stages) {
    const own = last(stage.name);
    const row = rows[rows.length - 1];
    const mates = SIDE_BY_SIDE.find((names) => names.includes(own));
    if (row && mates && row.every(({ name }) => mates.includes(last(name)))) row.push(stage);
    else rows.push([stage]);
  }
  const order = SIDE_BY_SIDE.flat();
  for (const row of rows) row.sort((one, other) => order.indexOf(last(one.name)) - order.indexOf(last(other.name)));
  return rows;
}

/** The end of a branch back to the sum on the stream. @param {Place} place @param {Item} end @param {Item} sum @param {number} [shift] */
function join(place, end, sum, shift = 0) {
  const middle = sum.y - GAP / 2 + 1;
  const x = place.x + 8 + shift;
  const target = sum.y + ROW / 2;
  const points = /** @type {[number, number][]} */ ([[end.x, end.y + ROW / 2], [x, end.y + ROW / 2], [x, middle], [place.spine + 9, middle], [place.spine + 9, target - 6]]);
  place.drawn.wires.push({ kind: "path", arrow: false, points });
}
