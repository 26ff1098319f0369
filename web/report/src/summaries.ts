// Counts that the charts draw.
import type { Columns, Side } from "./data.ts";
import { facetValue, FLIP, FLIPS } from "./filter.ts";

export interface Bin {
  low: number;
  high: number;
  count: number;
}

/** Return bins of equal width over the finite values; whole numbers get whole bins. */
export function histogram(values: (number | null | undefined)[], most = 24, span?: [number, number]): Bin[] {
  const known = values.filter((v): v is number => typeof v === "number" && Number.isFinite(v));
  if (!known.length && !span) return [];
  let [low, high] = span ?? [Infinity, -Infinity];
  if (!span) for (const v of known) [low, high] = [Math.min(low, v), Math.max(high, v)];
  const width = binWidth(low, high, most, known.every(Number.isInteger));
  const start = Math.floor(low / width + 1e-9) * width;
  const whole = known.every(Number.isInteger);
  // The last bin holds its upper end; whole numbers have bins of their own.
  const count = Math.max(1, whole && !span ? Math.floor((high - start) / width + 1e-9) + 1 : Math.ceil((high - start) / width - 1e-9));
  const bins = Array.from({ length: count }, (_, i) => ({
    low: tidy(start + i * width), high: tidy(start + (i + 1) * width), count: 0,
  }));
  for (const v of known) {
    const bin = bins[Math.min(count - 1, Math.max(0, Math.floor((v - start) / width + 1e-9)))];
    if (bin) bin.count += 1;
  }
  return bins;
}

function binWidth(low: number, high: number, most: number, whole: boolean): number {
  const raw = Math.max((high - low) / most, 1e-9);
  const power = 10 ** Math.floor(Math.log10(raw));
  const width = [1, 2, 2.5, 5, 10].map((step) => step * power).find((w) => w >= raw - 1e-12) ?? raw;
  if (high === low) return whole ? 1 : Math.abs(high) / 10 || 0.1;
  return whole ? Math.max(1, Math.ceil(width)) : width;
}

function tidy(value: number): number {
  return Number(value.toPrecision(10));
}

export interface Bar {
  label: string;
  count: number;
  /** Rate of wrong claims among the items; null without claims. */
  rate: number | null;
}

/** Count terms over items: each item counts once for each of its terms. */
export function topTerms(columns: Columns, side: number, kind: string, indices: number[], most: number): Bar[] {
  const counts = new Map<number, number>();
  const lists = columns.sides[side]?.terms[kind] ?? [];
  for (const i of indices) for (const term of new Set(lists[i] ?? [])) counts.set(term, (counts.get(term) ?? 0) + 1);
  return [...counts]
    .sort(([a, x], [b, y]) => y - x || a - b)
    .slice(0, most)
    .map(([term, count]) => ({ label: columns.dictionary[term] ?? "", count, rate: null }));
}

/** Return how the bars of a kind of terms are drawn: filled for what was made up, hollow for what was missed. */
export function barStyle(kind: string): string {
  return { missed: "missed", unknown: "unknown" }[kind] ?? "wrong";
}

/** Count items by a facet's values, with the rate of wrong claims of each. */
export function byFacet(columns: Columns, side: number, facet: string, indices: number[]): Bar[] {
  const data = columns.sides[side] as Side;
  const sums = new Map<string, [number, number, number]>();
  for (const i of indices) {
    const value = facetValue(columns, side, facet, i);
    const sum = sums.get(value) ?? [0, 0, 0];
    sum[0] += 1;
    sum[1] += data.wrong[i] ?? 0;
    sum[2] += data.total[i] ?? 0;
    sums.set(value, sum);
  }
  const order = facet === FLIP ? FLIPS : columns.facetValues[facet] ?? [];
  return [...sums]
    .map(([label, [count, wrong, total]]) => ({ label, count, rate: total ? wrong / total : null }))
    .sort((a, b) => order.indexOf(a.label) - order.indexOf(b.label));
}

/** Return bins of the places of hallucinations in the response, in percent of its length. */
export function positionBins(side: Side, indices: number[]): Bin[] {
  const all: number[] = [];
  for (const i of indices) all.push(...(side.positions[i] ?? []));
  return all.length ? histogram(all, 10, [0, 100]) : [];
}

/** Return a number as text: whole, or with up to three decimals. */
export function figure(value: number): string {
  if (Number.isInteger(value)) return value.toLocaleString("en-US");
  return String(Number(value.toFixed(3)));
}

/** Return whether bars of rates have nothing to draw, because nothing is wrong. */
export function allZero(bars: Bar[]): boolean {
  return bars.every((bar) => !bar.rate);
}

export function percent(value: number): string {
  return `${(value * 100).toFixed(1)} %`;
}

export function counted(count: number, noun: string): string {
  return `${count.toLocaleString("en-US")} ${noun}${count === 1 ? "" : "s"}`;
}
