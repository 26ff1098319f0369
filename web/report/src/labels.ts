// Labels that a person gives to items and claims: kept in the browser, exported as a file.
import { RIGHT, WRONG, type Claim, type Head } from "./data.ts";

export const ANSWERS = ["agree", "disagree", "unsure"] as const;
export type Answer = (typeof ANSWERS)[number];

/** A line of the exported file. */
export interface LabelLine {
  item: string;
  /** Index of the claim in the item's evidence; absent for a label of the whole item. */
  claim?: number;
  text?: string;
  /** What the run said. */
  verdict: "supported" | "not_supported" | "unscored";
  label: Answer;
  annotator: string;
  signature: string;
  /** Identity of the run that was labelled; absent in files of other tools. */
  run?: string;
}

/** What became of the lines of a file. */
export interface Imported {
  /** Labels that were read. */
  read: number;
  /** Lines that are not labels. */
  refused: number;
  /** Labels of items that the page lacks. */
  unknown: number;
  /** Labels that were read, but given to another run. */
  others: number;
}

export const WHOLE = -1;

function isLabel(value: unknown): value is LabelLine {
  if (typeof value !== "object" || value === null) return false;
  const line = value as Partial<LabelLine>;
  return typeof line.item === "string" && ANSWERS.includes(line.label as Answer);
}

function parsed(line: string): LabelLine | null {
  try {
    const value: unknown = JSON.parse(line);
    return isLabel(value) ? value : null;
  } catch {
    return null;
  }
}

function keyOf(item: string, claim: number): string {
  return JSON.stringify([item, claim]);
}

/** The labels of one run and one annotator. */
export class Labels {
  private readonly lines = new Map<string, LabelLine>();
  /** The signature that new labels get; that of a run under way changes. */
  signature: string;

  constructor(
    private readonly head: Head,
    private readonly store: Pick<Storage, "getItem" | "setItem"> | null,
    public annotator = "",
  ) {
    this.signature = head.runs[0]?.signature ?? "";
    try {
      const saved = JSON.parse(store?.getItem(head.key) ?? "{}") as { annotator?: string; lines?: unknown[] };
      this.annotator = String(saved.annotator ?? annotator);
      for (const line of saved.lines ?? []) if (isLabel(line)) this.take(line);
    } catch {
      // Unreadable labels are left alone until the first new one replaces them.
    }
  }

  get(item: string, claim = WHOLE): Answer | null {
    return this.lines.get(keyOf(item, claim))?.label ?? null;
  }

  /** Return whether an item, or any claim of it, has a label. */
  touched(item: string): boolean {
    return this.itemsLabelled().has(item);
  }

  itemsLabelled(): Set<string> {
    return new Set([...this.lines.values()].map((line) => line.item));
  }

  get size(): number {
    return this.lines.size;
  }

  /** Set a label, or take it back if it is set already. */
  toggle(item: string, claim: number, label: Answer, verdict: number, about?: Claim): void {
    const key = keyOf(item, claim);
    if (this.lines.get(key)?.label === label) this.lines.delete(key);
    else {
      this.lines.set(key, {
        item,
        ...(claim === WHOLE ? {} : { claim, text: about?.text ?? "" }),
        verdict: verdict === RIGHT ? "supported" : verdict === WRONG ? "not_supported" : "unscored",
        label,
        annotator: this.annotator,
        signature: this.signature,
        run: this.run,
      });
    }
    this.save();
  }

  /** Set the annotator's name, also in the labels given so far; imported ones of others keep theirs. */
  rename(annotator: string): void {
    for (const [key, line] of this.lines) {
      if (line.annotator === this.annotator) this.lines.set(key, { ...line, annotator });
    }
    this.annotator = annotator;
    this.save();
  }

  /** Return the file's text: one JSON object for each label. */
  exported(): string {
    return [...this.lines.values()].map((line) => `${JSON.stringify(line)}\n`).join("");
  }

  /** Add the labels of a file that are of known items. */
  imported(text: string, known: (item: string) => boolean): Imported {
    const told = { read: 0, refused: 0, unknown: 0, others: 0 };
    for (const line of text.split(/\r?\n/).filter((each) => each.trim())) {
      const value = parsed(line);
      if (!value) told.refused += 1;
      else if (!known(value.item)) told.unknown += 1;
      else {
        this.take(value);
        told.read += 1;
        if (value.run && value.run !== this.run) told.others += 1;
      }
    }
    this.save();
    return told;
  }

  private get run(): string {
    return this.head.runs[0]?.id ?? "";
  }

  private take(line: LabelLine): void {
    const claim = Number.isInteger(line.claim) ? (line.claim as number) : WHOLE;
    this.lines.set(keyOf(line.item, claim), line);
  }

  private save(): void {
    const content = JSON.stringify({ annotator: this.annotator, lines: [...this.lines.values()] });
    try {
      this.store?.setItem(this.head.key, content);
    } catch {
      // A full or closed storage: the labels stay in memory and can still be exported.
    }
  }
}

/** Return the browser's storage; null where pages from files may not use it. */
export function storage(): Storage | null {
  try {
    return globalThis.localStorage ?? null;
  } catch {
    return null;
  }
}
