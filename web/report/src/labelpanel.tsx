// Labelling: who labels, how far it is, a random sample, and the file to take away.
import { useState } from "preact/hooks";
import type { JSX } from "preact";
import type { Head } from "./data.ts";
import type { Imported, Labels } from "./labels.ts";
import type { View } from "./state.ts";
import { counted } from "./summaries.ts";

export interface LabelPanelProps {
  head: Head;
  /** The ids of the page's items. */
  known: ReadonlyMap<string, number>;
  labels: Labels;
  view: View;
  set: (change: Partial<View>) => void;
  redraw: () => void;
}

export function LabelPanel(props: LabelPanelProps): JSX.Element {
  const { head, labels, view, set, redraw } = props;
  const [told, setTold] = useState("");
  const size = view.sample?.[0] ?? Math.min(100, head.count);
  const read = async (event: JSX.TargetedEvent<HTMLInputElement>): Promise<void> => {
    const file = event.currentTarget.files?.[0];
    if (!file) return;
    setTold(importedText(file.name, labels.imported(await file.text(), (item) => props.known.has(item))));
    redraw();
  };
  return (
    <details class="label-panel">
      <summary>{labels.size ? `Labels: ${counted(labels.size, "label")} on ${counted(labels.itemsLabelled().size, "item")}` : "Label items: none labelled yet"}{view.sample ? ` of a sample of ${view.sample[0]}` : ""}</summary>
      <div class="toolbar">
        <label>Annotator <input type="text" value={labels.annotator} size={12} onChange={(event) => { labels.rename(event.currentTarget.value); redraw(); }} /></label>
        <label>Random sample of <input type="number" min={1} max={head.count} value={size}
          onChange={(event) => view.sample && set({ sample: [event.currentTarget.valueAsNumber || 1, view.sample[1]] })} id="sample-size" /></label>
        <button type="button" aria-pressed={view.sample !== null}
          onClick={() => set({ sample: view.sample ? null : [Number((document.getElementById("sample-size") as HTMLInputElement).value) || 1, 1] })}>
          {view.sample ? "Show all items" : "Show the sample"}
        </button>
        <label><input type="checkbox" checked={view.unlabelled} onChange={(event) => set({ unlabelled: event.currentTarget.checked })} /> only unlabelled items</label>
        <button type="button" disabled={!labels.size} onClick={() => save(labels.exported(), "labels.jsonl")}>Export labels</button>
        <label>Import labels <input type="file" accept=".jsonl" onChange={read} /></label>
      </div>
      <p class="muted" role="status">{told || `${head.runs.length > 1 ? "Labels are of run A. " : ""}Labels stay in this browser until you export them.`}</p>
    </details>
  );
}

function importedText(name: string, { read, refused, unknown, others }: Imported): string {
  return [
    `${counted(read, "label")} read from ${name}`,
    ...(others ? [`${others.toLocaleString("en-US")} of them given to another run: check that its responses are the same`] : []),
    ...(unknown ? [`${counted(unknown, "label")} of items that this page lacks, left out`] : []),
    ...(refused ? [`${counted(refused, "line")} without a label, left out`] : []),
  ].join("; ");
}

function save(text: string, name: string): void {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(new Blob([text], { type: "application/jsonl" }));
  link.download = name;
  link.click();
  URL.revokeObjectURL(link.href);
}
