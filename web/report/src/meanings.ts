// What the names of reasons mean, where a reader may not know.

const MEANINGS: Record<string, string> = {
  "token probability":
    "By the language model's log-probabilities of its answer's tokens: how probable this answer is "
    + "among all offered ones. It is not calibrated.",
};

/** Return what a reason's name means; empty for plain ones. */
export function meaningOf(name: string): string {
  return Object.hasOwn(MEANINGS, name) ? MEANINGS[name] as string : "";
}
