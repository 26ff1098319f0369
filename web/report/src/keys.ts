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

export function isTyping(target: EventTarget | null): boolean {
  return target instanceof HTMLElement && /^(INPUT|SELECT|TEXTAREA)$/.test(target.tagName);
}
