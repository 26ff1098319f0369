// Divides a passage into marked and unmarked spans.
import { WRONG, type Mark, type Passage } from "./data.ts";

/** Characters of a passage that fits beside its label. */
const SHORT = 160;

/** Return whether passages are shown as rows, each beside its label, such as answers in several modes. */
export function inRows(passages: Passage[]): boolean {
  return passages.length > 1 && passages.every((passage) => passage.label.length <= SHORT / 4 && passage.text.length <= SHORT);
}

export interface Span {
  text: string;
  mark: Mark | null;
}

/**
 * Return the spans in order. Marks may overlap, be empty or lie outside; a character belongs to the
 * first hallucinated mark that covers it, otherwise to the first other one. Positions count code
 * points, as Python's do.
 */
export function spansOf(passage: Passage): Span[] {
  const letters = Array.from(passage.text);
  const owner = new Int32Array(letters.length).fill(-1);
  const order = passage.marks.map((_, i) => i);
  // Later marks are painted over by earlier ones, and all by hallucinated ones.
  order.sort((a, b) => rank(passage.marks[a]) - rank(passage.marks[b]) || b - a);
  for (const index of order) {
    const [start, end] = passage.marks[index] as Mark;
    owner.fill(index, Math.max(0, start), Math.max(0, Math.min(end, letters.length)));
  }
  const spans: Span[] = [];
  for (let at = 0; at < letters.length;) {
    let end = at + 1;
    while (end < letters.length && owner[end] === owner[at]) end += 1;
    spans.push({ text: letters.slice(at, end).join(""), mark: passage.marks[owner[at] as number] ?? null });
    at = end;
  }
  return spans;
}

function rank(mark: Mark | undefined): number {
  return mark?.[2] === WRONG ? 1 : 0;
}
