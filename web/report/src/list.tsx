// The list of items. Only the rows in view exist, so that its length does not matter.
import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";
import type { JSX } from "preact";
import type { Columns, Head } from "./data.ts";
import { changeOf, flipStyle, FLIPS, flipOf, rateOf } from "./filter.ts";
import { placeAfter } from "./keys.ts";
import type { Labels } from "./labels.ts";
import { percent } from "./summaries.ts";

export const ROW = 58;
const BEYOND = 6;

export interface ListProps {
  head: Head;
  columns: Columns;
  side: number;
  order: number[];
  selected: number;
  labels: Labels;
  open: (index: number) => void;
  /** Open an item by a key, which keeps the focus in the list. */
  move: (index: number) => void;
}

export function ItemList(props: ListProps): JSX.Element {
  const box = useRef<HTMLDivElement>(null);
  const [window, setWindow] = useState<[number, number]>([0, 20]);
  const look = (): void => {
    const { scrollTop, clientHeight } = box.current as HTMLDivElement;
    const first = Math.max(0, Math.floor(scrollTop / ROW) - BEYOND);
    const last = Math.ceil((scrollTop + (clientHeight || 600)) / ROW) + BEYOND;
    setWindow(([a, b]) => (a === first && b === last ? [a, b] : [first, last]));
  };
  useLayoutEffect(look, [props.order]);
  useEffect(() => {
    const observer = new ResizeObserver(look);
    observer.observe(box.current as HTMLDivElement);
    return () => observer.disconnect();
  }, []);
  const position = props.order.indexOf(props.selected);
  const press = (event: KeyboardEvent): void => {
    const place = placeAfter(event, position, props.order.length, Math.floor((box.current?.clientHeight ?? 0) / ROW));
    const next = props.order[place ?? -1];
    if (next === undefined) return;
    event.preventDefault();
    props.move(next);
  };
  // Newer data of a run under way must not move the list.
  useEffect(() => reveal(box.current as HTMLDivElement, position), [props.selected]);
  const rows = props.order.slice(window[0], window[1]);
  return (
    <div
      ref={box} class="list" id="items-list" role="listbox" tabIndex={0} onScroll={look} onKeyDown={press}
      aria-label={`Items, ${props.order.length.toLocaleString("en-US")} shown`}
      {...(rows.includes(props.selected) ? { "aria-activedescendant": `row-${props.selected}` } : {})}
    >
      <Spacer height={props.order.length * ROW}>
        {rows.map((index, i) => (
          <Row key={index} {...props} index={index} place={window[0] + i} />
        ))}
      </Spacer>
    </div>
  );
}

/** Scroll a row into view, as little as possible. */
function reveal(box: HTMLDivElement, position: number): void {
  if (position < 0) return;
  const [top, bottom] = [position * ROW, (position + 1) * ROW];
  if (top < box.scrollTop) box.scrollTop = top;
  else if (bottom > box.scrollTop + box.clientHeight) box.scrollTop = bottom - box.clientHeight;
}

// Heights and places are set on the style object: the page's policy forbids style attributes.
function Spacer(props: { height: number; children: JSX.Element[] }): JSX.Element {
  return <div class="spacer" role="presentation" style={{ height: `${props.height}px` }}>{props.children}</div>;
}

function Row(props: ListProps & { index: number; place: number }): JSX.Element {
  const { columns, index, side: run } = props;
  const side = columns.sides[run] ?? columns.sides[0];
  if (!side) return <></>;
  const unscored = side.unscored[index] ?? 0;
  const wrong = side.wrong[index] ?? 0;
  return (
    <div
      id={`row-${index}`} role="option" class={`row${index === props.selected ? " selected" : ""}`}
      aria-selected={index === props.selected} aria-setsize={props.order.length} aria-posinset={props.place + 1}
      style={{ top: `${props.place * ROW}px` }} onClick={() => props.open(index)}
    >
      <span class="row-id">{columns.ids[index]}</span>
      <span class={`row-score${columns.sides.length > 1 ? flipStyle(columns, index) : wrong ? " wrong" : ""}`}>
        {columns.sides.length > 1 ? <Flip columns={columns} index={index} wrong={props.head.words[1]} />
          : unscored ? "unscored" : side.total[index] === 1 ? props.head.words[wrong ? 1 : 0]
          : side.total[index] ? `${wrong} of ${side.total[index]}` : "–"}
        {props.labels.touched(columns.ids[index] ?? "") && <span title="labelled"> ✓</span>}
      </span>
      <span class="row-text" dir="auto">{unscored ? columns.reasons[unscored - 1] : side.snippet[index]}</span>
      {!unscored && (side.total[index] ?? 0) > 1 && (
        <svg class="row-bar" viewBox="0 0 100 4" preserveAspectRatio="none" role="img" aria-label={percent(rateOf(side, index))}>
          <rect x="0" y="0" width="100" height="4" class="track" />
          <rect x="0" y="0" width={rateOf(side, index) * 100} height="4" class="fill wrong" />
        </svg>
      )}
    </div>
  );
}

function Flip(props: { columns: Columns; index: number; wrong: string }): JSX.Element {
  const { columns, index } = props;
  // Of a single claim, the words alone say all.
  const single = columns.sides.every((side) => side.total[index] === 1);
  const change = single ? 0 : changeOf(columns, index);
  const sign = change > 0 ? `+${change}` : String(change).replace("-", "−");
  return <>{FLIPS[flipOf(columns, index)]}{change ? `, ${sign} ${props.wrong}` : ""}</>;
}
