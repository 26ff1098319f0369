// Which items the list shows, and in which order. Plain functions over the columns.
import type { Columns, Side } from "./data.ts";
import type { View } from "./state.ts";

/** Facet that pages of two runs have: which of them is right. */
export const FLIP = "flip";
export const FLIPS = ["A right, B wrong", "A wrong, B right", "both wrong", "both right", "not scored in both"];

type Test = (index: number) => boolean;

/** Return the value of an item in a facet. */
export function facetValue(columns: Columns, side: number, facet: string, index: number): string {
  if (facet === FLIP) return FLIPS[flipOf(columns, index)] as string;
  const code = columns.sides[side]?.facets[facet]?.[index] ?? -1;
  return columns.facetValues[facet]?.[code] ?? "";
}

/** Return which run is right on an item, as an index of FLIPS. */
export function flipOf(columns: Columns, index: number): number {
  const [a, b] = columns.sides as [Side, Side];
  if (a.unscored[index] || b.unscored[index]) return 4;
  const wrongA = (a.wrong[index] ?? 0) > 0, wrongB = (b.wrong[index] ?? 0) > 0;
  if (wrongA === wrongB) return wrongA ? 2 : 3;
  return wrongB ? 0 : 1;
}

/** Return how the list marks an item of two runs: as wrong where the second is worse, as right where it is better. */
export function flipStyle(columns: Columns, index: number): string {
  return [" wrong", " right"][flipOf(columns, index)] ?? "";
}

/** Return the rate of wrong claims of an item; -1 without claims. */
export function rateOf(side: Side, index: number): number {
  const total = side.total[index] ?? 0;
  return total ? (side.wrong[index] ?? 0) / total : -1;
}

/** Return a repeatable random sample of indices, in increasing order. */
export function sampled(count: number, size: number, seed: number): Set<number> {
  const order = Array.from({ length: count }, (_, i) => i);
  const random = generator(seed);
  const taken = Math.min(size, count);
  for (let i = 0; i < taken; i++) {
    const j = i + Math.floor(random() * (count - i));
    [order[i], order[j]] = [order[j] as number, order[i] as number];
  }
  return new Set(order.slice(0, taken));
}

// mulberry32, a small generator that gives the same sample in every browser.
function generator(seed: number): () => number {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let t = Math.imul(state ^ (state >>> 15), 1 | state);
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
    return ((t ^ (t >>> 14)) >>> 0) / 4294967296;
  };
}

/** Return the tests of a view, by the filter that they belong to. */
function testsOf(columns: Columns, view: View, matches: Test, labelled: Test): Map<string, Test> {
  const tests = new Map<string, Test>();
  const side = columns.sides[view.side] as Side;
  if (view.query) tests.set("q", matches);
  if (view.unlabelled) tests.set("unlabelled", (i) => !labelled(i));
  if (view.sample) {
    const taken = sampled(columns.ids.length, ...view.sample);
    tests.set("sample", (i) => taken.has(i));
  }
  for (const [facet, values] of Object.entries(view.facets)) {
    tests.set(`f.${facet}`, (i) => values.includes(facetValue(columns, view.side, facet, i)));
  }
  for (const [name, [low, high]] of Object.entries(view.ranges)) {
    const column = side.measures[name] ?? [];
    tests.set(`r.${name}`, (i) => {
      const value = column[i];
      return value !== null && value !== undefined && value >= low && value <= high;
    });
  }
  for (const [kind, term] of Object.entries(view.terms)) {
    const code = columns.dictionary.indexOf(term);
    tests.set(`t.${kind}`, (i) => side.terms[kind]?.[i]?.includes(code) ?? false);
  }
  if (view.positions) {
    const [low, high] = view.positions;
    tests.set("at", (i) => side.positions[i]?.some((p) => p >= low && p < high) ?? false);
  }
  return tests;
}

/** What passes every filter, and, for a chart, what passes every filter but the chart's own. */
export class Selection {
  private readonly tests: Map<string, Test>;
  private readonly count: number;

  constructor(columns: Columns, view: View, matches: Test, labelled: Test) {
    this.tests = testsOf(columns, view, matches, labelled);
    this.count = columns.ids.length;
  }

  /** Return the indices that pass every filter but the named one. */
  without(filter: string): number[] {
    const tests = [...this.tests].filter(([name]) => name !== filter).map(([, test]) => test);
    const kept: number[] = [];
    for (let i = 0; i < this.count; i++) if (tests.every((test) => test(i))) kept.push(i);
    return kept;
  }
}

/** Return indices in the order that the view asks for; equal items keep the order of the run. */
export function sorted(columns: Columns, view: View, indices: number[]): number[] {
  const side = columns.sides[view.side] as Side;
  const sign = view.ascending ? 1 : -1;
  const by: Record<View["sort"], (i: number) => number | string> = {
    order: (i) => -i,
    count: (i) => side.wrong[i] ?? 0,
    // Items without claims have no rate: they come last in either order.
    rate: (i) => (side.total[i] ? rateOf(side, i) : sign * 2),
    length: (i) => side.measures["words"]?.[i] ?? 0,
    id: (i) => columns.ids[i] ?? "",
    // Items that only one run has right come first.
    change: (i) => Math.abs(changeOf(columns, i)) + (flipOf(columns, i) < 2 ? FLIPPED : 0),
  };
  const value = by[view.sort];
  if (view.sort === "id") {
    const order = new Intl.Collator("en", { numeric: true });
    // The first click on a column of names sorts from A to Z.
    return [...indices].sort((a, b) => -sign * order.compare(String(value(a)), String(value(b))));
  }
  return [...indices].sort((a, b) => sign * ((value(a) as number) - (value(b) as number)) || a - b);
}

/** More than any number of claims of an item. */
const FLIPPED = 1e6;

/** Return by how many wrong claims the second run differs from the first. */
export function changeOf(columns: Columns, index: number): number {
  const [a, b] = columns.sides;
  if (!a || !b || flipOf(columns, index) === 4) return 0;
  return (b.wrong[index] ?? 0) - (a.wrong[index] ?? 0);
}
