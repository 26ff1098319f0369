// Charts that filter. Each has a table behind it, and controls that work without a mouse.
import { useRef, useState } from "preact/hooks";
import type { ComponentChildren, JSX } from "preact";
import { allZero, counted, figure, percent, type Bar, type Bin } from "./summaries.ts";

const WIDTH = 300, FLOOR = 66;

function Frame(props: { title: string; unit?: string; active: boolean; clear: () => void; children: ComponentChildren }): JSX.Element {
  return (
    <figure class={`chart${props.active ? " active" : ""}`}>
      <figcaption>
        {props.title}
        {props.active ? <button type="button" class="link" onClick={props.clear}>clear</button> : props.unit && <span class="unit">{props.unit}</span>}
      </figcaption>
      {props.children}
    </figure>
  );
}

export interface HistogramProps {
  title: string;
  unit: string;
  /** What the bars count, in the singular. */
  noun: string;
  all: Bin[];
  shown: Bin[];
  range: [number, number] | null;
  choose: (range: [number, number] | null) => void;
}

/** A histogram: drag over bars, or type two numbers, to keep the items within. */
export function Histogram(props: HistogramProps): JSX.Element | null {
  const { all, shown, range, choose } = props;
  const svg = useRef<SVGSVGElement>(null);
  const [drag, setDrag] = useState<[number, number] | null>(null);
  if (!all.length) return null;
  const most = Math.max(...all.map((bin) => bin.count), 1);
  const wide = WIDTH / all.length;
  const binAt = (event: PointerEvent): number => {
    const box = (svg.current as SVGSVGElement).getBoundingClientRect();
    const at = ((event.clientX - box.left) / box.width) * all.length;
    return Math.min(all.length - 1, Math.max(0, Math.floor(at)));
  };
  const finish = (): void => {
    if (!drag) return;
    const [from, to] = [Math.min(...drag), Math.max(...drag)];
    setDrag(null);
    choose([(all[from] as Bin).low, (all[to] as Bin).high]);
  };
  const [low, high] = [(all[0] as Bin).low, (all.at(-1) as Bin).high];
  const chosen = drag
    ? [Math.min(...drag) * wide, (Math.max(...drag) + 1) * wide]
    : range && [((range[0] - low) / (high - low)) * WIDTH, ((range[1] - low) / (high - low)) * WIDTH];
  return (
    <Frame title={props.title} active={range !== null} clear={() => choose(null)}>
      <svg
        ref={svg} viewBox={`0 0 ${WIDTH} ${FLOOR}`} preserveAspectRatio="none" class="histogram" role="img"
        aria-label={`${props.title}: ${all.map((bin) => `${figure(bin.low)} to ${figure(bin.high)}: ${bin.count}`).join("; ")}`}
        onPointerDown={(event) => {
          (event.currentTarget as SVGSVGElement).setPointerCapture(event.pointerId);
          setDrag([binAt(event), binAt(event)]);
        }}
        onPointerMove={(event) => drag && setDrag([drag[0], binAt(event)])}
        onPointerUp={finish}
        onPointerCancel={() => setDrag(null)}
      >
        {all.map((bin, i) => {
          const tall = (bin.count / most) * (FLOOR - 4);
          const kept = ((shown[i]?.count ?? 0) / most) * (FLOOR - 4);
          return (
            <g key={i}>
              <title>{`${figure(bin.low)} to ${figure(bin.high)}: ${(shown[i]?.count ?? 0).toLocaleString("en-US")} of ${counted(bin.count, props.noun)}`}</title>
              <rect x={i * wide} y={0} width={wide} height={FLOOR} class="hit" />
              <rect x={i * wide + 0.75} y={FLOOR - tall} width={Math.max(wide - 1.5, 1)} height={tall} class="bar-all" />
              <rect x={i * wide + 0.75} y={FLOOR - kept} width={Math.max(wide - 1.5, 1)} height={kept} class="bar-shown" />
            </g>
          );
        })}
        <line x1={0} x2={WIDTH} y1={FLOOR} y2={FLOOR} class="axis" />
        {chosen && <rect x={Math.max(0, chosen[0] as number)} y={1} width={Math.max(2, Math.min(WIDTH, chosen[1] as number) - Math.max(0, chosen[0] as number))} height={FLOOR - 1} class="brush" />}
      </svg>
      <p class="scale" aria-hidden="true">
        <span>{figure(low)}</span>
        <span>{`highest bar: ${counted(most, props.noun)}`}</span>
        <span>{`${figure(high)}${props.unit ? ` ${props.unit}` : ""}`}</span>
      </p>
      <details>
        <summary>Range and table</summary>
        <RangeFields title={props.title} low={range?.[0] ?? low} high={range?.[1] ?? high} choose={choose} />
        <DataTable head={["from", "to", "shown", "all"]} rows={all.map((bin, i) => [figure(bin.low), figure(bin.high), figure(shown[i]?.count ?? 0), figure(bin.count)])} />
      </details>
    </Frame>
  );
}

function RangeFields(props: { title: string; low: number; high: number; choose: (range: [number, number]) => void }): JSX.Element {
  const change = (index: 0 | 1) => (event: JSX.TargetedEvent<HTMLInputElement>) => {
    const value = event.currentTarget.valueAsNumber;
    if (!Number.isNaN(value)) props.choose(index ? [props.low, value] : [value, props.high]);
  };
  return (
    <p class="range">
      <label>from <input type="number" step="any" value={props.low} aria-label={`${props.title}, from`} onChange={change(0)} /></label>
      <label>to <input type="number" step="any" value={props.high} aria-label={`${props.title}, to`} onChange={change(1)} /></label>
    </p>
  );
}

export interface BarsProps {
  title: string;
  bars: Bar[];
  /** Whether bars show the rate of wrong claims; otherwise they show counts. */
  rates: boolean;
  style: string;
  /** What wrong claims are called. */
  wrong: string;
  chosen: string[];
  /** Whether the chart stays where the other filters leave nothing to draw, so that nothing moves. */
  stays?: boolean;
  /** The letter of the charted run, on a page of two. */
  run?: string;
  choose: (label: string) => void;
  clear: () => void;
}

/** Return a label that breaks after underscores, as in external_factual_course. */
function breakable(label: string): ComponentChildren {
  return label && label.split("_").map((part, i) => (i ? ["_", <wbr key={i} />, part] : part));
}

/** Bars with labels: click one to keep its items. */
export function Bars(props: BarsProps): JSX.Element | null {
  if (!props.bars.length && !props.stays) return null;
  const value = (bar: Bar): number => (props.rates ? bar.rate ?? 0 : bar.count);
  const most = Math.max(...props.bars.map(value), 1e-9);
  const rated = props.bars.some((bar) => bar.rate !== null);
  return (
    <Frame title={props.title} unit={props.rates ? "share, items" : "items"} active={props.chosen.length > 0} clear={props.clear}>
      {props.rates && props.bars.length > 0 && allZero(props.bars) && <p class="muted">Nothing is {props.wrong} in the items shown.</p>}
      {!props.bars.length && <p class="muted">None in the items shown{props.run && `, in run ${props.run}. “Charts of” chooses the other run`}.</p>}
      <ul class="bars">
        {props.bars.slice(0, 60).map((bar) => (
          <li key={bar.label}>
            <button type="button" aria-pressed={props.chosen.includes(bar.label)} onClick={() => props.choose(bar.label)}>
              <span class="bar-label" dir="auto" title={bar.label}>{breakable(bar.label) || "(none)"}</span>
              <svg class="bar-track" viewBox="0 0 100 10" preserveAspectRatio="none" aria-hidden="true">
                <rect x="0" y="1" height="8" width={Math.max((value(bar) / most) * 100, value(bar) ? 1 : 0)} class={`fill ${props.style}`} />
              </svg>
              <span class="bar-value">{props.rates && bar.rate !== null ? `${percent(bar.rate)}, ` : ""}{bar.count.toLocaleString("en-US")}</span>
            </button>
          </li>
        ))}
      </ul>
      <details>
        <summary>Table</summary>
        <DataTable head={["value", "items", ...(rated ? ["share wrong"] : [])]}
          rows={props.bars.map((bar) => [bar.label || "(none)", figure(bar.count), ...(rated ? [bar.rate === null ? "" : percent(bar.rate)] : [])])} />
      </details>
    </Frame>
  );
}

function DataTable(props: { head: string[]; rows: string[][] }): JSX.Element {
  return (
    <div class="scroll" tabIndex={0} role="region" aria-label="Table of the chart">
      <table>
        <thead><tr>{props.head.map((cell) => <th key={cell} scope="col">{cell}</th>)}</tr></thead>
        <tbody>{props.rows.slice(0, 200).map((row, i) => <tr key={i}>{row.map((cell, j) => <td key={j}>{cell}</td>)}</tr>)}</tbody>
      </table>
    </div>
  );
}
