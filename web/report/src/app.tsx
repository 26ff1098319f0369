// The interactive part of the page: charts, filters, list and details, around one state.
import { useCallback, useEffect, useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";
import type { JSX } from "preact";
import { Details, type Columns, type Detail, type Head } from "./data.ts";
import { ItemDetail } from "./detail.tsx";
import { ChartPanel } from "./panel.tsx";
import { Selection, sorted } from "./filter.ts";
import { isTyping, keyAction } from "./keys.ts";
import { Labels, storage, WHOLE, type Answer } from "./labels.ts";
import { LabelPanel } from "./labelpanel.tsx";
import { ItemList } from "./list.tsx";
import { SearchIndex } from "./search.ts";
import { cleared, filterCount, fromHash, isAnchor, toHash, type SortKey, type View } from "./state.ts";
import { counted } from "./summaries.ts";

export interface AppProps {
  head: Head;
  columns: Columns;
  details: Details;
}

const SORTS: [SortKey, string][] = [
  ["count", "number wrong"], ["rate", "share wrong"], ["length", "response length"],
  ["order", "order of the run"], ["id", "id"],
];

/** Share of the window's height below which an opened item is as good as out of sight. */
const MOSTLY = 0.5;

export function App({ head, columns, details }: AppProps): JSX.Element {
  const two = columns.sides.length > 1;
  // The letters that the table of scores and the list use.
  const names = head.runs.map((run, i) => `${"AB"[i]}: ${run.title}`);
  const [view, setView] = useView(two ? "change" : "count");
  const labels = useMemo(() => new Labels(head, storage()), [head.key]);
  labels.signature = head.runs[0]?.signature ?? "";
  const [, setRevision] = useState(0);
  const redraw = useCallback(() => setRevision((n) => n + 1), []);
  const search = useMemo(() => new SearchIndex(head, columns, details), [head, columns, details]);
  useEffect(() => { if (view.query) void search.fill(redraw); }, [view.query, search]);

  // Labels only decide what is shown while the filter for unlabelled items is on.
  const stamp = view.unlabelled ? labels.size : 0;
  const filters = JSON.stringify({ ...view, item: "" });
  const selection = useMemo(() => {
    const done = view.unlabelled ? labels.itemsLabelled() : new Set<string>();
    return new Selection(columns, view, search.matcher(view.query), (i) => done.has(columns.ids[i] ?? ""));
  }, [columns, filters, stamp, search.ready]);
  const shown = useMemo(() => selection.without(""), [selection]);
  const order = useMemo(() => sorted(columns, view, shown), [shown, view.sort, view.ascending, view.side]);

  const byId = useMemo(() => new Map(columns.ids.map((id, i) => [id, i])), [columns]);
  const selected = view.item ? byId.get(view.item) ?? -1 : -1;
  const opened = useDetail(details, selected);
  const sides = opened?.sides ?? null;
  const [active, setActive] = useState(-1);
  useEffect(() => setActive(-1), [selected]);
  const open = useCallback((index: number) => setView((v) => ({ ...v, item: columns.ids[index] ?? "" })), [columns]);

  const pane = useRef<HTMLDivElement>(null);
  const tapped = useRef(false);
  const choose = useCallback((index: number) => {
    tapped.current = true;
    open(index);
  }, [open]);
  // On a narrow window the item is below the list, and a tap would seem to do nothing.
  useLayoutEffect(() => {
    const box = pane.current as HTMLDivElement;
    if (sides && tapped.current && box.getBoundingClientRect().top > innerHeight * MOSTLY) box.scrollIntoView({ block: "start" });
    if (sides) tapped.current = false;
  }, [sides]);

  const label = (claim: number, answer: Answer): void => {
    const about = sides?.[0]?.claims[claim];
    const whole = columns.sides[0]?.unscored[selected] ? 2 : (columns.sides[0]?.wrong[selected] ?? 0) > 0 ? 1 : 0;
    labels.toggle(columns.ids[selected] ?? "", claim, answer, about?.verdict ?? whole, about);
    redraw();
  };
  const field = useRef<HTMLInputElement>(null);
  useKeys({
    move: (step) => {
      const next = order[Math.min(order.length - 1, Math.max(0, order.indexOf(selected) + step))];
      if (next !== undefined) open(next);
    },
    search: () => field.current?.focus(),
    label: (answer) => selected >= 0 && label(active >= 0 ? active : WHOLE, answer),
    claim: (step) => {
      const count = sides?.[0]?.claims.length ?? 0;
      if (!count) return;
      setActive((at) => (at + step + count) % count);
      requestAnimationFrame(() => pane.current?.querySelector("mark.active")?.scrollIntoView({ block: "nearest" }));
    },
    escape: () => (active >= 0 ? setActive(-1) : setView((v) => ({ ...v, item: "" }))),
  });

  const set = (change: Partial<View>): void => setView((v) => ({ ...v, ...change }));
  return (
    <>
      <h2 id="items">Items</h2>
      <ChartPanel head={head} columns={columns} view={view} selection={selection} shown={shown} set={set} />
      <div class="toolbar" role="search">
        <input ref={field} type="search" placeholder="Search ids, responses and evidence ( / )" aria-label="Search" value={view.query}
          onInput={(event) => set({ query: event.currentTarget.value })} />
        <label>Sort by <select value={view.sort} onChange={(event) => set({ sort: event.currentTarget.value as SortKey })}>
          {(two ? [...SORTS, ["change", "change between the runs"] as const] : SORTS).map(([key, name]) => <option key={key} value={key}>{name}</option>)}
        </select></label>
        <button type="button" aria-pressed={view.ascending} onClick={() => set({ ascending: !view.ascending })} title="Reverse the order">{view.ascending ? "↑" : "↓"}<span class="sr"> reverse the order</span></button>
        {two && <label>Charts of <select value={view.side} onChange={(event) => set({ side: Number(event.currentTarget.value) })}>
          {names.map((name, i) => <option key={i} value={i}>{name}</option>)}
        </select></label>}
        {filterCount(view) > 0 && <button type="button" onClick={() => setView(cleared)}>Clear {counted(filterCount(view), "filter")}</button>}
      </div>
      <p class="count" role="status">
        {order.length === head.count ? `All ${counted(head.count, "item")}` : `${order.length.toLocaleString("en-US")} of ${counted(head.count, "item")}`}
        {view.query && !search.ready ? " (searching…)" : ""}
        <span class="muted keys"> · keys: j k next and previous, c next claim, 1 2 3 label, / search</span>
      </p>
      <LabelPanel head={head} known={byId} labels={labels} view={view} set={set} redraw={redraw} />
      <div class="browser">
        <ItemList head={head} columns={columns} side={view.side} order={order} selected={selected} labels={labels} open={choose} move={open} />
        <div ref={pane} class="pane">
          {selected >= 0 && sides ? (
            <ItemDetail key={selected} id={columns.ids[selected] ?? ""} group={columns.groups[selected] ?? ""} sides={sides} image={opened?.image ?? ""}
              titles={two ? names : [""]}
              reasons={columns.sides.map((side) => columns.reasons[(side.unscored[selected] ?? 0) - 1] ?? "")}
              labels={labels} active={active} activate={setActive} label={label} />
          ) : (
            <p class="muted empty">{view.item && selected < 0 ? `The page has no item ${view.item}.` : order.length ? "Choose an item." : "No item passes the filters."}</p>
          )}
        </div>
      </div>
    </>
  );
}

/** The view, kept in the URL: typing replaces the entry of the history, opening an item adds one. */
function useView(sort: SortKey): [View, (next: (view: View) => View) => void] {
  const [view, setState] = useState(() => fromHash(location.hash, sort));
  const latest = useRef(view);
  latest.current = view;
  useEffect(() => {
    const read = (): void => {
      // A link to a place on the page is not a view: the view goes back into the URL.
      if (isAnchor(location.hash)) history.replaceState(null, "", `#${toHash(latest.current, sort)}`);
      else setState(fromHash(location.hash, sort));
    };
    addEventListener("hashchange", read);
    return () => removeEventListener("hashchange", read);
  }, []);
  useEffect(() => {
    const hash = toHash(view, sort);
    if (hash !== location.hash.replace(/^#/, "")) history.replaceState(null, "", `#${hash}`);
  }, [view]);
  return [view, setState];
}

interface Opened {
  index: number;
  sides: Detail[];
  image: string;
}

function useDetail(details: Details, index: number): Opened | null {
  const [held, setHeld] = useState<Opened | null>(null);
  useEffect(() => {
    let current = true;
    if (index >= 0) {
      void Promise.all([details.of(index), details.image(index)])
        .then(([sides, image]) => current && setHeld({ index, sides, image }));
    }
    return () => { current = false; };
  }, [index, details]);
  return held?.index === index ? held : null;
}

interface Actions {
  move: (step: number) => void;
  search: () => void;
  label: (answer: Answer) => unknown;
  claim: (step: number) => void;
  escape: () => void;
}

function useKeys(actions: Actions): void {
  const latest = useRef(actions);
  latest.current = actions;
  useEffect(() => {
    const press = (event: KeyboardEvent): void => {
      const action = keyAction(event, isTyping(event.target));
      if (!action) return;
      const { move, claim, label, search, escape } = latest.current;
      event.preventDefault();
      if (action.kind === "move") move(action.step);
      else if (action.kind === "claim") claim(action.step);
      else if (action.kind === "label") label(action.answer);
      else if (action.kind === "search") search();
      else {
        (document.activeElement as HTMLElement | null)?.blur();
        escape();
      }
    };
    addEventListener("keydown", press);
    return () => removeEventListener("keydown", press);
  }, []);
}

