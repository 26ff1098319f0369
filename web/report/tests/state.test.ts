import assert from "node:assert/strict";
import { test } from "node:test";
import { cleared, emptyView, filterCount, fromHash, toHash, toggled, type View } from "../src/state.ts";

const full: View = {
  query: "a & b=c#d", sort: "rate", ascending: true, facets: { "field:category": ["a,b", "ü"] },
  ranges: { score: [0.25, 1] }, terms: { hallucinated: "dining table" }, positions: [10, 20], sample: [50, 7],
  unlabelled: true, item: "id/with ?&#", side: 1,
};

test("a view survives the way through the URL", () => {
  assert.deepEqual(fromHash(`#${toHash(full)}`), full);
  assert.deepEqual(fromHash(toHash(emptyView())), emptyView());
  assert.equal(toHash(emptyView()), "");
});

test("a page of two runs has another default order", () => {
  assert.equal(toHash(emptyView("change"), "change"), "");
  assert.equal(fromHash("", "change").sort, "change");
});

test("nonsense in the URL is ignored", () => {
  const view = fromHash("#sort=nonsense&r.score=abc&at=1&sample=..&run=9&unknown=1");
  assert.deepEqual(view, emptyView());
});

test("filters are counted and cleared, the opened item stays", () => {
  assert.equal(filterCount(full), 7);
  assert.equal(filterCount(emptyView()), 0);
  const plain = cleared(full);
  assert.equal(filterCount(plain), 0);
  assert.deepEqual([plain.item, plain.sort, plain.side], [full.item, "rate", 1]);
});

test("a facet's value is chosen and taken back", () => {
  const once = toggled(emptyView(), "split", "random");
  assert.deepEqual(once.facets, { split: ["random"] });
  assert.deepEqual(toggled(once, "split", "popular").facets, { split: ["random", "popular"] });
  assert.deepEqual(toggled(once, "split", "random").facets, {});
});
