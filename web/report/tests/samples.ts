// Small columns for the tests: four items, of which the last is unscored.
import type { Columns, Head, Side } from "../src/data.ts";

export function side(change: Partial<Side> = {}): Side {
  return {
    unscored: [0, 0, 0, 1],
    wrong: [1, 0, 3, 0],
    total: [2, 4, 3, 0],
    snippet: ["A dog.", "A cat.", "Three birds.", ""],
    measures: { words: [2, 2, 2, null], score: [0.5, 0, 1, null] },
    facets: { split: [0, 1, 0, -1] },
    terms: { hallucinated: [[0], [], [0, 0, 1], []] },
    positions: [[10], [], [0, 50, 99], []],
    ...change,
  };
}

export function columns(...sides: Side[]): Columns {
  return {
    ids: ["10", "9", "img 2", "x"],
    groups: ["10", "9", "2", "x"],
    sides: sides.length ? sides : [side()],
    dictionary: ["dog", "bird"],
    facetValues: { split: ["random", "popular"] },
    reasons: ["RESPONSE_MISSING"],
  };
}

export function head(change: Partial<Head> = {}): Head {
  return {
    runs: [{ title: "model", signature: "chair|v:1", id: "r1" }], count: 4, chunk: 2, measures: [], facets: [],
    terms: [], words: ["supported", "hallucinated"], key: "labels", ...change,
  };
}
