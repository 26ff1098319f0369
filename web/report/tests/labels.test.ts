import assert from "node:assert/strict";
import { test } from "node:test";
import { Labels, WHOLE } from "../src/labels.ts";
import { head } from "./samples.ts";

class Store {
  private readonly held = new Map<string, string>();
  getItem(key: string): string | null { return this.held.get(key) ?? null; }
  setItem(key: string, value: string): void { this.held.set(key, value); }
}

const claim = { text: "dog", verdict: 1 as const, reasons: [], matched: [] };

test("labels are kept in the browser and exported with what the run said", () => {
  const store = new Store();
  const labels = new Labels(head(), store, "ann");
  labels.toggle("7", WHOLE, "agree", 1);
  labels.toggle("7", 0, "disagree", 1, claim);
  const again = new Labels(head(), store);
  assert.equal(again.annotator, "ann");
  assert.equal(again.get("7", 0), "disagree");
  assert.deepEqual(again.exported().trim().split("\n").map((line) => JSON.parse(line)), [
    { item: "7", verdict: "not_supported", label: "agree", annotator: "ann", signature: "chair|v:1", run: "r1" },
    { item: "7", claim: 0, text: "dog", verdict: "not_supported", label: "disagree", annotator: "ann", signature: "chair|v:1", run: "r1" },
  ]);
  assert.deepEqual([...again.itemsLabelled()], ["7"]);
});

test("the same label again takes it back, another replaces it", () => {
  const labels = new Labels(head(), null);
  labels.toggle("7", WHOLE, "agree", 0);
  labels.toggle("7", WHOLE, "unsure", 0);
  assert.equal(labels.get("7"), "unsure");
  labels.toggle("7", WHOLE, "unsure", 0);
  assert.equal(labels.size, 0);
});

test("an exported file can be imported; other lines and labels of other items are left out", () => {
  const labels = new Labels(head(), null, "ann");
  labels.toggle("7", 3, "unsure", 2, claim);
  const other = new Labels(head(), new Store());
  labels.toggle("of another run", WHOLE, "agree", 0);
  const text = `${labels.exported()}not json\n[]\n{"item": 7, "label": "agree"}\n{"item": "x", "label": "maybe"}\n`;
  assert.deepEqual(other.imported(text, (item) => item === "7"), { read: 1, refused: 4, unknown: 1, others: 0 });
  assert.equal(other.size, 1);
  assert.equal(other.get("7", 3), "unsure");
});

test("labels of another run with the same ids are counted", () => {
  const labels = new Labels(head(), null);
  labels.toggle("7", WHOLE, "agree", 1);
  const other = new Labels(head({ runs: [{ title: "other", signature: "chair|v:1", id: "r2" }] }), null);
  assert.deepEqual(other.imported(labels.exported(), () => true), { read: 1, refused: 0, unknown: 0, others: 1 });
});

test("a broken or full storage loses no label of the session", () => {
  const broken = { getItem: () => "{", setItem: () => { throw new Error("full"); } };
  const labels = new Labels(head(), broken);
  labels.toggle("7", WHOLE, "agree", 0);
  assert.equal(labels.get("7"), "agree");
});

test("renaming the annotator renames the labels, but not those of other annotators", () => {
  const others = new Labels(head(), null, "ann");
  others.toggle("8", WHOLE, "agree", 0);
  const labels = new Labels(head(), null);
  labels.toggle("7", WHOLE, "agree", 0);
  labels.imported(others.exported(), () => true);
  labels.rename("bob");
  const names = labels.exported().trim().split("\n").map((line) => JSON.parse(line).annotator);
  assert.deepEqual(names, ["bob", "ann"]);
});
