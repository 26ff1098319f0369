import assert from "node:assert/strict";
import { test } from "node:test";
import { changeOf, facetValue, FLIP, FLIPS, flipOf, flipStyle, sampled, Selection, sorted } from "../src/filter.ts";
import { emptyView, type View } from "../src/state.ts";
import type { Side } from "../src/data.ts";
import { columns, side } from "./samples.ts";

const all = (): boolean => true;

function kept(change: Partial<View>, without = ""): number[] {
  const view = { ...emptyView(), ...change };
  return new Selection(columns(), view, all, () => false).without(without);
}

test("without filters every item is kept", () => assert.deepEqual(kept({}), [0, 1, 2, 3]));

test("each filter keeps the items that pass it", () => {
  assert.deepEqual(kept({ facets: { split: ["random"] } }), [0, 2]);
  assert.deepEqual(kept({ facets: { split: ["random", "popular"] } }), [0, 1, 2]);
  assert.deepEqual(kept({ ranges: { score: [0.5, 1] } }), [0, 2]);
  assert.deepEqual(kept({ terms: { hallucinated: "bird" } }), [2]);
  assert.deepEqual(kept({ positions: [40, 60] }), [2]);
  assert.deepEqual(kept({ terms: { hallucinated: "nothing like it" } }), []);
});

test("a chart sees what passes the other filters", () => {
  const change = { facets: { split: ["popular"] }, ranges: { score: [0, 0.2] as [number, number] } };
  assert.deepEqual(kept(change), [1]);
  assert.deepEqual(kept(change, "f.split"), [1]);
  assert.deepEqual(kept(change, "r.score"), [1]);
  assert.deepEqual(kept({ facets: { split: ["popular"] } }, "f.split"), [0, 1, 2, 3]);
});

test("search and labels decide by the given tests", () => {
  const view = { ...emptyView(), query: "dog", unlabelled: true };
  assert.deepEqual(new Selection(columns(), view, (i) => i < 3, (i) => i === 0).without(""), [1, 2]);
});

test("items are sorted by number, share, length and id", () => {
  const order = (change: Partial<View>): number[] => sorted(columns(), { ...emptyView(), ...change }, [0, 1, 2, 3]);
  assert.deepEqual(order({}), [2, 0, 1, 3]);
  assert.deepEqual(order({ sort: "rate" }), [2, 0, 1, 3]);
  assert.deepEqual(order({ sort: "rate", ascending: true }), [1, 0, 2, 3], "an item without claims is last");
  assert.deepEqual(order({ sort: "order" }), [0, 1, 2, 3]);
  assert.deepEqual(order({ sort: "order", ascending: true }), [3, 2, 1, 0]);
  assert.deepEqual(order({ sort: "id" }).map((i) => columns().ids[i]), ["9", "10", "img 2", "x"]);
});

test("a comparison says which run is right and by how much they differ", () => {
  const both = columns(side(), side({ wrong: [0, 2, 3, 0] }));
  assert.deepEqual([0, 1, 2, 3].map((i) => FLIPS[flipOf(both, i)]),
    ["A wrong, B right", "A right, B wrong", "both wrong", "not scored in both"]);
  assert.deepEqual([0, 1, 2, 3].map((i) => changeOf(both, i)), [-1, 2, 0, 0]);
  assert.equal(facetValue(both, 0, FLIP, 1), "A right, B wrong");
  assert.deepEqual([0, 1, 2].map((i) => flipStyle(both, i)), [" right", " wrong", ""]);
});

test("items that only one run has right come first, then the largest changes", () => {
  const scored = (wrong: number[]): Side => side({ wrong, unscored: [0, 0, 0, 0] });
  assert.deepEqual(sorted(columns(scored([9, 1, 0, 1]), scored([1, 0, 1, 1])), emptyView("change"), [0, 1, 2, 3]), [1, 2, 0, 3]);
});

test("a sample is repeatable, has its size, and depends on the seed", () => {
  const one = [...sampled(1000, 50, 1)];
  assert.equal(new Set(one).size, 50);
  assert.deepEqual(one, [...sampled(1000, 50, 1)]);
  assert.notDeepEqual(one, [...sampled(1000, 50, 2)]);
  assert.equal(sampled(3, 10, 1).size, 3);
});

test("every item is sampled about equally often", () => {
  const counts = new Array(10).fill(0) as number[];
  for (let seed = 0; seed < 2000; seed++) for (const i of sampled(10, 3, seed)) counts[i] = (counts[i] ?? 0) + 1;
  // 600 expected; five standard deviations are about 102.
  for (const count of counts) assert.ok(Math.abs(count - 600) < 105, String(counts));
});
