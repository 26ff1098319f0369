import assert from "node:assert/strict";
import { test } from "node:test";
import { allZero, barStyle, byFacet, figure, histogram, positionBins, topTerms } from "../src/summaries.ts";
import { columns, side } from "./samples.ts";

test("bins hold every value once, also the largest", () => {
  for (const values of [[0, 0.5, 1], [3, 3, 3], [-1.5, 2, 7.25], [0, 1, 2, 3, 40], [1e-7, 2e-7]]) {
    const bins = histogram(values);
    assert.equal(bins.reduce((sum, bin) => sum + bin.count, 0), values.length, String(values));
    assert.ok((bins[0]?.low ?? 1) <= Math.min(...values) + 1e-12);
    assert.ok((bins.at(-1)?.high ?? 0) >= Math.max(...values) - 1e-12);
  }
});

test("fractions end at 1, whole numbers have whole bins, unknown values count nowhere", () => {
  assert.equal(histogram([0, 0.3, 1]).at(-1)?.high, 1);
  assert.deepEqual(histogram([1, 2, 2]).map((bin) => [bin.low, bin.count]), [[1, 1], [2, 2]]);
  assert.deepEqual(histogram([null, undefined]), []);
});

test("terms count items, not mentions", () => {
  assert.deepEqual(topTerms(columns(), 0, "hallucinated", [0, 1, 2], 5).map((bar) => [bar.label, bar.count]),
    [["dog", 2], ["bird", 1]]);
});

test("facets have counts and rates", () => {
  assert.deepEqual(byFacet(columns(), 0, "split", [0, 1, 2]), [
    { label: "random", count: 2, rate: 4 / 5 }, { label: "popular", count: 1, rate: 0 },
  ]);
});

test("a chart of rates knows that nothing is wrong", () => {
  const bars = byFacet(columns(), 0, "split", [0, 1, 2]);
  assert.deepEqual([allZero(bars), allZero(bars.filter((bar) => bar.label === "popular"))], [false, true]);
});

test("places of hallucinations fall into ten bins", () => {
  const bins = positionBins(side(), [0, 2]);
  assert.equal(bins.length, 10);
  assert.deepEqual([bins[0]?.count, bins[1]?.count, bins[5]?.count, bins[9]?.count], [1, 1, 1, 1]);
  assert.deepEqual(positionBins(side(), [1]), []);
});

test("numbers are short", () => assert.deepEqual([figure(1234), figure(0.12345)], ["1,234", "0.123"]));

test("bars of what was made up are filled, those of what was missed are hollow", () => {
  assert.deepEqual(["hallucinated", "relations", "missed", "unknown"].map(barStyle), ["wrong", "wrong", "missed", "unknown"]);
});
