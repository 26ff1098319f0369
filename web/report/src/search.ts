// Search in ids at once, and in responses chunk by chunk.
import type { Columns, Detail, Details, Head } from "./data.ts";

/** Texts of all items in lower case; filled when someone searches. */
export class SearchIndex {
  private readonly texts: string[] = [];
  private filling: Promise<void> | null = null;

  constructor(
    private readonly head: Head,
    private readonly columns: Columns,
    private readonly details: Details,
  ) {}

  /** Return whether every text is ready to be searched. */
  get ready(): boolean {
    return this.texts.length >= this.head.count;
  }

  /** Read all texts; `step` is called now and then while this goes on. */
  fill(step: () => void): Promise<void> {
    this.filling ??= this.readAll(step);
    return this.filling;
  }

  private async readAll(step: () => void): Promise<void> {
    const chunks = Math.ceil(this.head.count / this.head.chunk);
    for (let number = 0; number < chunks; number++) {
      for (const sides of await this.details.chunk(number)) {
        const names = this.shortText(this.texts.length);
        this.texts.push(`${names}\n${textOf(sides)}`);
      }
      if (number % 16 === 15) step();
    }
    step();
  }

  /** Return a test for items that hold every word of a query. */
  matcher(query: string): (index: number) => boolean {
    const words = query.toLowerCase().split(/\s+/).filter(Boolean);
    return (index) => {
      const text = this.texts[index] ?? this.shortText(index);
      return words.every((word) => text.includes(word));
    };
  }

  private shortText(index: number): string {
    const snippets = this.columns.sides.map((side) => side.snippet[index] ?? "");
    return [this.columns.ids[index], this.columns.groups[index], ...snippets].join("\n").toLowerCase();
  }
}

function textOf(sides: Detail[]): string {
  const parts: string[] = [];
  for (const side of sides) {
    for (const passage of side.passages) parts.push(passage.text);
    if (side.thought) parts.push(side.thought.text);
    for (const claim of side.claims) parts.push(claim.text);
    for (const list of side.lists) parts.push(...list.entries);
    for (const [, value] of side.facts) parts.push(value);
  }
  return parts.join("\n").toLowerCase();
}
