// Starts the page: copies buttons, then the items, once their columns are decoded.
import { render } from "preact";
import { App } from "./app.tsx";
import { UPDATED } from "./events.ts";
import { Details, unpack, type Columns, type Head } from "./data.ts";

function block(id: string): string {
  return document.getElementById(id)?.textContent ?? "";
}

/** Show the buttons that need this script. */
function showButtons(): void {
  for (const button of document.querySelectorAll<HTMLButtonElement>("button[data-copy]")) button.hidden = false;
}

function copyOnClick(): void {
  document.addEventListener("click", (event) => {
    const button = (event.target as Element | null)?.closest<HTMLButtonElement>("button[data-copy]");
    if (button) void copy(button);
  });
}

async function copy(button: HTMLButtonElement): Promise<void> {
  const source = document.getElementById(button.dataset["copy"] ?? "");
  try {
    await navigator.clipboard.writeText(source?.textContent ?? "");
    button.textContent = "Copied";
  } catch {
    // Pages from files may not write to the clipboard: select the text instead.
    if (source) getSelection()?.selectAllChildren(source);
    button.textContent = "Selected: press Ctrl+C";
  }
}

async function show(root: HTMLElement): Promise<void> {
  showButtons();
  const head = JSON.parse(block("page-head")) as Head;
  const columns = (await unpack(block("page-columns"))) as Columns;
  const details = new Details(
    head.chunk,
    (number) => block(`page-chunk-${number}`),
    (number) => block(`page-images-${number}`),
  );
  if (!document.documentElement.dataset["ready"]) root.textContent = "";
  render(<App head={head} columns={columns} details={details} />, root);
  document.documentElement.dataset["ready"] = "true";
}

async function start(): Promise<void> {
  copyOnClick();
  const root = document.getElementById("app");
  if (!root) return;
  if (typeof DecompressionStream === "undefined") {
    root.textContent = "This browser is too old to show the items; the scores above are complete.";
    return;
  }
  await show(root);
  addEventListener(UPDATED, () => void show(root));
}

void start();
