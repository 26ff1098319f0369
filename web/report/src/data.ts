// The data that the page carries: one small head, the columns of all items, and chunks of details.

/** Verdicts by number, as the page's data has them. */
export const RIGHT = 0, WRONG = 1, UNSCORED = 2;
export type Verdict = 0 | 1 | 2;

/** How a mark is shown: as a verdict, or as a part of the reference that the response lacks. */
export const MISSED = 3;
export type Shade = Verdict | 3;

/** A marked span of a passage: start, end, shade and the index of its claim (-1: none). */
export type Mark = [start: number, end: number, shade: Shade, claim: number];

export interface Passage {
  label: string;
  text: string;
  marks: Mark[];
}

export interface Claim {
  text: string;
  verdict: Verdict;
  /** Names and values that explain the verdict. */
  reasons: [string, string][];
  /** Indices of the triplets of the scene graph that the claim was checked against. */
  matched: number[];
  /** What the claim is, where an item has claims of several kinds. */
  kind?: string;
}

export interface Listing {
  label: string;
  /** "wrong", "missed" or empty. */
  style: string;
  entries: string[];
}

export type Triplet = [subject: string, relation: string, object: string];

/** Everything that the detail view shows of an item in one run. */
export interface Detail {
  /** What a good and a bad verdict on this item's claims are called. */
  words: [right: string, wrong: string];
  summary: string;
  passages: Passage[];
  /** What the model thought before it answered; absent without one. */
  thought?: Passage;
  claims: Claim[];
  lists: Listing[];
  facts: [string, string][];
  graph: Triplet[];
}

/** What the list, the charts and the filters need of every item, column by column. */
export interface Side {
  /** 0: scored; otherwise the index of the reason, plus 1. */
  unscored: number[];
  wrong: number[];
  total: number[];
  snippet: string[];
  measures: Record<string, (number | null)[]>;
  facets: Record<string, number[]>;
  terms: Record<string, number[][]>;
  /** Places of hallucinations in the response, in percent of its length. */
  positions: number[][];
}

export interface Columns {
  ids: string[];
  groups: string[];
  sides: Side[];
  /** The texts that terms refer to. */
  dictionary: string[];
  facetValues: Record<string, string[]>;
  reasons: string[];
}

export interface Named {
  name: string;
  label: string;
}

export interface Facet extends Named {
  /** Whether its bars show the share of wrong claims; otherwise the number of items. */
  rates: boolean;
}

export interface Head {
  /** Each with an identity: a hash of its settings and of what it scored. */
  runs: { title: string; signature: string; id: string }[];
  count: number;
  chunk: number;
  measures: Named[];
  facets: Facet[];
  terms: Named[];
  /** What a good and a bad verdict are called. */
  words: [right: string, wrong: string];
  /** Key of the labels in the browser's storage. */
  key: string;
}

/** Decode base64 and gunzip it; the browser does both natively. */
export async function unpack(base64: string): Promise<unknown> {
  const bytes = Uint8Array.from(atob(base64.trim()), (c) => c.charCodeAt(0));
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
  return JSON.parse(await new Response(stream).text());
}

/** Details of the items, decoded chunk by chunk when they are needed. */
export class Details {
  private readonly chunks = new Map<number, Promise<Detail[][]>>();

  constructor(
    private readonly size: number,
    private readonly packed: (chunk: number) => string,
    private readonly images: (chunk: number) => string = () => "",
    private readonly keep = 48,
  ) {}

  /** Return the details of an item, one for each run. */
  async of(index: number): Promise<Detail[]> {
    const chunk = await this.chunk(Math.floor(index / this.size));
    const found = chunk[index % this.size];
    if (!found) throw new RangeError(`the page has no item ${index}`);
    return found;
  }

  /** Return the source of an item's picture; empty without one. */
  async image(index: number): Promise<string> {
    const packed = this.images(Math.floor(index / this.size));
    if (!packed) return "";
    return ((await unpack(packed)) as string[])[index % this.size] ?? "";
  }

  /** Return a chunk; the least recently used one is dropped when too many are held. */
  chunk(number: number): Promise<Detail[][]> {
    const held = this.chunks.get(number) ?? (unpack(this.packed(number)) as Promise<Detail[][]>);
    this.chunks.delete(number);
    this.chunks.set(number, held);
    for (const oldest of this.chunks.keys()) {
      if (this.chunks.size <= this.keep) break;
      this.chunks.delete(oldest);
    }
    return held;
  }
}
