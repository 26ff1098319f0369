// Keeps a page of the viewer up to date while a run is under way. Only the viewer's pages hold this
// script: a report that is sent on asks for nothing.
import { UPDATED } from "./events.ts";
import { morph } from "./morph.ts";

/** Milliseconds between looks, at least; making the page must take little of the machine's time. */
const LEAST = 3_000;
const SHARE = 20;

async function look(): Promise<void> {
  const began = performance.now();
  const answer = await fetch(location.pathname + location.search, { cache: "no-store" });
  const fresh = new DOMParser().parseFromString(await answer.text(), "text/html");
  const [held, next] = [document.getElementById("first"), fresh.getElementById("first")];
  if (!held || !next) throw new Error("the viewer has no such run any more");
  // The first items need the script that shows them, which a page without items does not have.
  if (fresh.getElementById("page-head") && !document.getElementById("page-head")) return location.reload();
  const goesOn = "live" in next.dataset;
  takeData(fresh);
  document.title = fresh.title;
  morph(held, next);
  dispatchEvent(new Event(UPDATED));
  if (goesOn) setTimeout(start, Math.max(LEAST, SHARE * (performance.now() - began)));
}

/** Put the data of the newer page in the place of this one's. */
function takeData(fresh: Document): void {
  for (const block of document.querySelectorAll("script[id]")) block.remove();
  for (const block of fresh.querySelectorAll("script[id]")) document.body.append(document.adoptNode(block));
}

function start(): void {
  look().catch(() => {
    const told = document.getElementById("live-state");
    if (told) told.textContent = "The viewer does not answer; this page tries again.";
    setTimeout(start, 2 * LEAST);
  });
}

if (document.getElementById("first")?.dataset["live"] !== undefined) setTimeout(start, LEAST);
