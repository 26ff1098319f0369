import assert from "node:assert/strict";
import { test } from "node:test";
import { meaningOf } from "../src/meanings.ts";
import { chartsInRow } from "../src/rows.ts";

test("the token probability of an answer says what it is; plain names say nothing", () => {
  assert.match(meaningOf("token probability"), /log-probabilities/);
  assert.equal(meaningOf("judge"), "");
  assert.equal(meaningOf("constructor"), "");
});

test("charts fill as few rows as fit, about equally", () => {
  assert.equal(chartsInRow(5, 1888), 5);
  assert.equal(chartsInRow(7, 1888), 4);
  assert.equal(chartsInRow(7, 1248), 3);
  assert.equal(chartsInRow(3, 1888), 3);
  assert.equal(chartsInRow(5, 364), 1);
  assert.equal(chartsInRow(0, 0), 1);
});
