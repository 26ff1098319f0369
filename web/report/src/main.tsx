// Starts the page: copies buttons, then the items, once their columns are decoded.
import { render } from "preact";
import { App } from "./app.tsx";
import { Details, unpack, type Columns, type Head } from "./data.ts";

function block(id: string): string {
  return document.getElementById(id)?.textContent ?? "";
}

function copyButtons(): void {
  for (const button of document.querySelectorAll<HTMLButtonElement>("button[data-copy]")) {
    button.hidden = false;
    button.addEventListener("click", () => void copy(button));
  }
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

async function start(): Promise<void> {
  copyButtons();
  const root = document.getElementById("app");
  if (!root) return;
  if (typeof DecompressionStream === "undefined") {
    root.textContent = "This browser is too old to show the items; the scores above are complete.";
    return;
  }
  const head = JSON.parse(block("page-head")) as Head;
  const columns = (await unpack(block("page-columns"))) as Columns;
  const details = new Details(
    head.chunk,
    (number) => block(`page-chunk-${number}`),
    (number) => block(`page-images-${number}`),
  );
  root.textContent = "";
  render(<App head={head} columns={columns} details={details} />, root);
  document.documentElement.dataset["ready"] = "true";
}

void start();
