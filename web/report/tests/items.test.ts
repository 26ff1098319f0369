import assert from "node:assert/strict";
import { gzipSync } from "node:zlib";
import { test } from "node:test";
import { Details, unpack, type Detail, type Mark, type Passage, type Triplet } from "../src/data.ts";
import { labelBox, nameBox, shared } from "../src/edgelabels.ts";
import { keyAction, placeAfter } from "../src/keys.ts";
import { layOut, litFirst } from "../src/scene.ts";
import { SearchIndex } from "../src/search.ts";
import { inRows, spansOf } from "../src/spans.ts";
import { columns, head } from "./samples.ts";

const packed = (value: unknown): string => gzipSync(JSON.stringify(value)).toString("base64");

function detail(text: string): Detail {
  return { words: ["right", "wrong"], summary: "", passages: [{ label: "", text, marks: [] }], claims: [], lists: [], facts: [], graph: [] };
}

test("data is unpacked", async () => {
  assert.deepEqual(await unpack(packed({ a: "ü" })), { a: "ü" });
});

test("details are decoded when they are needed, and only so many are kept", async () => {
  const decoded: number[] = [];
  const details = new Details(2, (n) => {
    decoded.push(n);
    return packed([[detail(`${2 * n}`)], [detail(`${2 * n + 1}`)]]);
  }, () => "", 1);
  assert.equal((await details.of(3))[0]?.passages[0]?.text, "3");
  await details.of(2);
  assert.deepEqual(decoded, [1]);
  await details.of(0);
  await details.of(3);
  assert.deepEqual(decoded, [1, 0, 1]);
  await assert.rejects(new Details(2, () => packed([])).of(0), RangeError);
});

test("pictures come from blocks of their own", async () => {
  const details = new Details(2, () => "", (n) => (n ? "" : packed(["a.jpg", ""])));
  assert.deepEqual([await details.image(0), await details.image(1), await details.image(2)], ["a.jpg", "", ""]);
});

test("search finds words in responses, ids and evidence", async () => {
  const texts = ["A DOG runs", "a cat", "dogs and Ünder", ""];
  const details = new Details(2, (n) => packed([[detail(texts[2 * n] ?? "")], [detail(texts[2 * n + 1] ?? "")]]));
  const index = new SearchIndex(head(), columns(), details);
  let steps = 0;
  await index.fill(() => { steps += 1; });
  assert.ok(index.ready && steps > 0);
  const found = (query: string): number[] => [0, 1, 2, 3].filter(index.matcher(query));
  assert.deepEqual(found("dog"), [0, 2]);
  assert.deepEqual(found("dog runs"), [0]);
  assert.deepEqual(found("ünder"), [2]);
  assert.deepEqual(found("img"), [2]);
});

test("before texts are read, ids and snippets are searched", () => {
  const index = new SearchIndex(head(), columns(), new Details(2, () => ""));
  assert.deepEqual([0, 1, 2, 3].filter(index.matcher("birds")), [2]);
});

function painted(text: string, marks: Mark[]): [string, number | null][] {
  return spansOf({ label: "", text, marks }).map((span) => [span.text, span.mark ? span.mark[2] : null]);
}

test("spans cover the text once; hallucinated marks win, then earlier ones", () => {
  assert.deepEqual(painted("a dog runs", [[2, 5, 0, 0], [2, 10, 1, 1]]), [["a ", null], ["dog runs", 1]]);
  assert.deepEqual(painted("abcd", [[0, 3, 0, 0], [1, 4, 0, 1]]), [["abc", 0], ["d", 0]]);
  assert.deepEqual(painted("abc", [[-5, 99, 1, 0], [2, 1, 0, 0]]), [["abc", 1]]);
  assert.deepEqual(painted("abc", []), [["abc", null]]);
});

test("positions count code points, as in Python", () => {
  assert.deepEqual(painted("😀 dog", [[2, 5, 1, 0]]), [["😀 ", null], ["dog", 1]]);
});

test("a scene has each name once, inside the picture, the same each time", () => {
  const graph: Triplet[] = [["Man", "holds", "pen"], ["man", "sits at", "desk"], ["pen", "on", "desk"]];
  const scene = layOut(graph, new Set([1]));
  assert.deepEqual(scene.nodes.map((node) => [node.name, node.lit]), [["Man", true], ["pen", false], ["desk", true]]);
  assert.ok(scene.nodes.every((node) => node.x > 0 && node.x < 1 && node.y > 0 && node.y < 1));
  assert.deepEqual(layOut(graph, new Set([1])), scene);
});

test("names of a scene do not cover each other, and parts without a common edge stay apart", () => {
  const graph: Triplet[] = [["man", "wears", "hat"], ["man", "holds", "cup"], ["sky", "is", "blue"], ["building facades", "are", "nearby"]];
  const { nodes } = layOut(graph, new Set());
  for (const [i, a] of nodes.entries()) for (const b of nodes.slice(i + 1)) {
    const apart = Math.abs(a.x - b.x) * 640 > 3.5 * (a.name.length + b.name.length) || Math.abs(a.y - b.y) * 360 > 14;
    assert.ok(apart, `${a.name} and ${b.name}`);
  }
});

test("labels of edges cover neither names nor each other; one without a free place is left out", () => {
  const graph: Triplet[] = [
    ["street", "filled with", "people"], ["people", "having", "no visible interaction"], ["person", "using", "phone"],
    ["woman", "holding", "phone"], ["woman", "carrying", "purse"], ["woman", "carrying", "shopping bag"], ["man", "holding", "phone"],
    ["woman", "is", "standing"], ["woman", "looking", "camera"], ["man", "wearing", "suit"], ["man", "is", "bald"], ["purse", "is", "black"],
  ];
  const { nodes, edges } = layOut(graph, new Set([0, 1, 2]));
  const named = edges.filter((edge) => edge.named);
  const boxes = [...nodes.map(nameBox), ...named.map(labelBox)];
  for (const [i, edge] of named.entries()) {
    const others = boxes.filter((_, at) => at !== nodes.length + i);
    assert.deepEqual(others.filter((box) => shared(labelBox(edge), box) > 0), [], edge.label);
  }
  assert.ok(edges.every((edge) => edge.named || !edge.lit));
  assert.ok(named.length > edges.length / 2);
});

test("the table of a scene begins with the lit triplets", () => {
  assert.deepEqual(litFirst([["a", "on", "b"], ["c", "on", "d"], ["e", "on", "f"]], [2, 1]), [1, 2, 0]);
});

test("short passages with labels are rows; a single or a long one is not", () => {
  const passage = (text: string): Passage => ({ label: "base", text, marks: [] });
  assert.equal(inRows([passage("A."), passage("B. A cup.")]), true);
  assert.equal(inRows([passage("A.")]), false);
  assert.equal(inRows([passage("A."), passage("word ".repeat(50))]), false);
});

test("edges between the same two nodes have one label", () => {
  const { edges } = layOut([["skillet", "filled with", "food"], ["food", "in", "skillet"]], new Set([1]));
  assert.deepEqual(edges.map(({ label, lit }) => [label, lit]), [["filled with, in", true]]);
});

test("a large scene keeps the lit triplets", () => {
  const graph = Array.from({ length: 100 }, (_, i): Triplet => [`a${i}`, "near", `b${i}`]);
  const scene = layOut(graph, new Set([99]));
  assert.ok(scene.nodes.some((node) => node.name === "a99" && node.lit));
  assert.ok(scene.nodes.length <= 28 && scene.hidden > 80);
});

test("keys act, unless someone types or the browser owns them", () => {
  const key = (name: string, more = {}) => ({ key: name, ctrlKey: false, metaKey: false, altKey: false, ...more });
  assert.deepEqual(keyAction(key("j"), false), { kind: "move", step: 1 });
  assert.deepEqual(keyAction(key("2"), false), { kind: "label", answer: "disagree" });
  assert.equal(keyAction(key("j"), true), null);
  assert.equal(keyAction(key("c", { ctrlKey: true }), false), null);
  assert.equal(keyAction(key("4"), false), null);
  assert.deepEqual(keyAction(key("Escape"), true), { kind: "escape" });
});

test("arrows, pages, Home and End move in the list and stop at its ends", () => {
  const place = (name: string, at: number, more = {}) =>
    placeAfter({ key: name, ctrlKey: false, metaKey: false, altKey: false, ...more }, at, 30, 10);
  assert.deepEqual([place("ArrowDown", -1), place("ArrowDown", 3), place("ArrowUp", 0), place("ArrowDown", 29)], [0, 4, 0, 29]);
  assert.deepEqual([place("PageDown", 3), place("PageUp", 3), place("Home", 9), place("End", 9)], [13, 0, 0, 29]);
  assert.deepEqual([place("x", 3), place("End", 3, { ctrlKey: true })], [null, null]);
  assert.equal(placeAfter({ key: "End", ctrlKey: false, metaKey: false, altKey: false }, 0, 0, 10), null);
});
