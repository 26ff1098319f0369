// What a key does.
import { ANSWERS, type Answer } from "./labels.ts";

export type Action =
  | { kind: "move" | "claim"; step: number }
  | { kind: "label"; answer: Answer }
  | { kind: "search" | "escape" };

type Key = Pick<KeyboardEvent, "key" | "ctrlKey" | "metaKey" | "altKey">;

/** Return the action of a key; null for keys that belong to the browser or to a text field. */
export function keyAction(event: Key, typing: boolean): Action | null {
  if (event.ctrlKey || event.metaKey || event.altKey) return null;
  if (event.key === "Escape") return { kind: "escape" };
  if (typing) return null;
  switch (event.key) {
    case "j": return { kind: "move", step: 1 };
    case "k": return { kind: "move", step: -1 };
    case "c": return { kind: "claim", step: 1 };
    case "C": return { kind: "claim", step: -1 };
    case "/": return { kind: "search" };
  }
  const answer = ANSWERS[Number(event.key) - 1];
  return answer ? { kind: "label", answer } : null;
}

/** Return the place in the list that a key leads to; null for keys that do not move. */
export function placeAfter(event: Key, place: number, count: number, page: number): number | null {
  if (event.ctrlKey || event.metaKey || event.altKey || !count) return null;
  const steps: Record<string, number> = {
    ArrowDown: place + 1, ArrowUp: place - 1, PageDown: place + page, PageUp: place - page, Home: 0, End: count - 1,
  };
  const wanted = steps[event.key];
  return wanted === undefined ? null : Math.min(count - 1, Math.max(0, wanted));
}

export function isTyping(target: EventTarget | null): boolean {
  return target instanceof HTMLElement && /^(INPUT|SELECT|TEXTAREA)$/.test(target.tagName);
}
