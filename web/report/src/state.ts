// The state of the view, and its form in the URL, so that a link opens the same view.

export type SortKey = "order" | "count" | "rate" | "length" | "id" | "change";

export interface View {
  query: string;
  sort: SortKey;
  ascending: boolean;
  /** Facet -> chosen values; items have one of them in each facet. */
  facets: Record<string, string[]>;
  /** Measure -> lowest and highest value. */
  ranges: Record<string, [number, number]>;
  /** Kind of term -> the term that items must have. */
  terms: Record<string, string>;
  /** Range of positions in the response, in percent. */
  positions: [number, number] | null;
  /** Size and seed of a random sample; null: all items. */
  sample: [number, number] | null;
  /** Only items that still have no label. */
  unlabelled: boolean;
  /** The id of the opened item. */
  item: string;
  /** The run whose columns are charted, in a comparison. */
  side: number;
}

const SORTS: readonly string[] = ["order", "count", "rate", "length", "id", "change"];

/** Return a view without filters; pages of two runs show what changed first. */
export function emptyView(sort: SortKey = "count"): View {
  return {
    query: "", sort, ascending: false, facets: {}, ranges: {}, terms: {},
    positions: null, sample: null, unlabelled: false, item: "", side: 0,
  };
}

export function toHash(view: View, sort: SortKey = "count"): string {
  const out = new URLSearchParams();
  if (view.query) out.set("q", view.query);
  if (view.sort !== sort) out.set("sort", view.sort);
  if (view.ascending) out.set("up", "1");
  for (const [name, values] of Object.entries(view.facets)) {
    for (const value of values) out.append(`f.${name}`, value);
  }
  for (const [name, [low, high]] of Object.entries(view.ranges)) out.set(`r.${name}`, `${low}..${high}`);
  for (const [kind, term] of Object.entries(view.terms)) out.set(`t.${kind}`, term);
  if (view.positions) out.set("at", view.positions.join(".."));
  if (view.sample) out.set("sample", view.sample.join(".."));
  if (view.unlabelled) out.set("unlabelled", "1");
  if (view.side) out.set("run", String(view.side));
  if (view.item) out.set("item", view.item);
  return out.toString();
}

export function fromHash(hash: string, sort: SortKey = "count"): View {
  const view = emptyView(sort);
  for (const [key, value] of new URLSearchParams(hash.replace(/^#/, ""))) read(view, key, value);
  return view;
}

/** Return whether a fragment names an element instead of a view. */
export function isAnchor(hash: string): boolean {
  return hash.length > 1 && !hash.includes("=");
}

function read(view: View, key: string, value: string): void {
  const name = key.slice(2);
  if (key === "q") view.query = value;
  else if (key === "sort" && SORTS.includes(value)) view.sort = value as SortKey;
  else if (key === "up") view.ascending = true;
  else if (key === "at") view.positions = pair(value);
  else if (key === "sample") view.sample = pair(value);
  else if (key === "unlabelled") view.unlabelled = true;
  else if (key === "run") view.side = value === "1" ? 1 : 0;
  else if (key === "item") view.item = value;
  else if (key.startsWith("f.")) (view.facets[name] ??= []).push(value);
  else if (key.startsWith("t.")) view.terms[name] = value;
  else if (key.startsWith("r.")) {
    const range = pair(value);
    if (range) view.ranges[name] = range;
  }
}

function pair(value: string): [number, number] | null {
  const [low, high] = value.split("..").map((part) => (part ? Number(part) : NaN));
  return Number.isFinite(low) && Number.isFinite(high) ? [low as number, high as number] : null;
}

/** Return how many filters are set; sorting and the opened item are none. */
export function filterCount(view: View): number {
  const chosen = Object.values(view.facets).filter((values) => values.length).length;
  return chosen + Object.keys(view.ranges).length + Object.keys(view.terms).length
    + [view.query, view.positions, view.sample, view.unlabelled].filter(Boolean).length;
}

/** Return the view without its filters. */
export function cleared(view: View): View {
  return { ...emptyView(), sort: view.sort, ascending: view.ascending, item: view.item, side: view.side };
}

/** Return the view with a facet's value chosen, or no longer chosen. */
export function toggled(view: View, facet: string, value: string): View {
  const held = view.facets[facet] ?? [];
  const values = held.includes(value) ? held.filter((v) => v !== value) : [...held, value];
  const facets = { ...view.facets, [facet]: values };
  if (!values.length) delete facets[facet];
  return { ...view, facets };
}
