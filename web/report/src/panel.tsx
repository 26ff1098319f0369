// All charts of the page, built from the columns.
import { useMemo } from "preact/hooks";
import type { JSX } from "preact";
import { Bars, Histogram } from "./charts.tsx";
import type { Columns, Facet, Head, Named, Side } from "./data.ts";
import { FLIP, type Selection } from "./filter.ts";
import { useRows } from "./rows.ts";
import { toggled, type View } from "./state.ts";
import { barStyle, byFacet, histogram, positionBins, topTerms, type Bin } from "./summaries.ts";

const TOP = 12, FEW = 5;

interface PanelProps {
  head: Head;
  columns: Columns;
  view: View;
  selection: Selection;
  shown: number[];
  set: (change: Partial<View>) => void;
}

export function ChartPanel(props: PanelProps): JSX.Element {
  const { head, columns } = props;
  const facets = columns.sides.length > 1 ? [{ name: FLIP, label: "Which run is right", rates: false }, ...head.facets] : head.facets;
  const grid = useRows();
  // High charts stand beside high ones: short lists of values come after the histograms.
  const last = head.terms.length ? facets.filter((facet) => (columns.facetValues[facet.name]?.length ?? FEW + 1) <= FEW) : [];
  return (
    <details class="charts" open>
      <summary>Charts and filters</summary>
      <p class="muted hint">Click a bar, or drag over a histogram, to keep only its items.</p>
      <div ref={grid} class="chart-grid">
        {facets.filter((facet) => !last.includes(facet)).map((facet) => <FacetChart key={facet.name} {...props} facet={facet} />)}
        {head.terms.map((kind) => <TermChart key={kind.name} {...props} kind={kind} />)}
        {head.measures.map((measure) => <MeasureChart key={measure.name} {...props} measure={measure} />)}
        <PositionChart {...props} />
        {last.map((facet) => <FacetChart key={facet.name} {...props} facet={facet} />)}
      </div>
    </details>
  );
}

function FacetChart(props: PanelProps & { facet: Facet }): JSX.Element | null {
  const { head, columns, view, facet, selection, set } = props;
  const bars = useMemo(
    () => byFacet(columns, view.side, facet.name, selection.without(`f.${facet.name}`)),
    [columns, view.side, facet.name, selection],
  );
  const chosen = view.facets[facet.name] ?? [];
  if (bars.length < 2 && !chosen.length) return null;
  const rates = facet.rates && bars.some((bar) => bar.rate !== null);
  const without = { ...view.facets };
  delete without[facet.name];
  return (
    <Bars title={rates ? `${facet.label}: share ${head.words[1]}` : facet.label} bars={bars} rates={rates} style={rates ? "wrong" : ""} wrong={head.words[1]} chosen={chosen}
      choose={(value) => set({ facets: toggled(view, facet.name, value).facets })} clear={() => set({ facets: without })} />
  );
}

function TermChart(props: PanelProps & { kind: Named }): JSX.Element | null {
  const { columns, view, kind, selection, set } = props;
  const bars = useMemo(
    () => topTerms(columns, view.side, kind.name, selection.without(`t.${kind.name}`), TOP),
    [columns, view.side, kind.name, selection],
  );
  const known = useMemo(() => columns.sides[view.side]?.terms[kind.name]?.some((terms) => terms.length) ?? false, [columns, view.side, kind.name]);
  const chosen = view.terms[kind.name];
  const without = { ...view.terms };
  delete without[kind.name];
  return (
    <Bars title={kind.label} bars={bars} rates={false} stays={known} run={columns.sides.length > 1 ? "AB"[view.side] ?? "" : ""} style={barStyle(kind.name)} wrong={props.head.words[1]} chosen={chosen === undefined ? [] : [chosen]}
      choose={(term) => set({ terms: chosen === term ? without : { ...view.terms, [kind.name]: term } })} clear={() => set({ terms: without })} />
  );
}

function MeasureChart(props: PanelProps & { measure: Named }): JSX.Element | null {
  const { columns, view, measure, selection, set } = props;
  const column = (columns.sides[view.side] as Side).measures[measure.name] ?? [];
  const all = useMemo(() => histogram(column), [column]);
  const shown = useMemo(() => {
    const indices = selection.without(`r.${measure.name}`);
    return counts(all, indices.map((i) => column[i]));
  }, [column, selection, all]);
  const without = { ...view.ranges };
  delete without[measure.name];
  // Two values, such as right and wrong, are what the charts of values are for.
  if (all.length < 2 || new Set(column.filter((v) => v !== null)).size < 3) return null;
  return (
    <Histogram title={measure.label} unit="" noun="item" all={all} shown={shown} range={view.ranges[measure.name] ?? null}
      choose={(range) => set({ ranges: range ? { ...view.ranges, [measure.name]: range } : without })} />
  );
}

function PositionChart(props: PanelProps): JSX.Element | null {
  const { columns, view, selection, set } = props;
  const side = columns.sides[view.side] as Side;
  const all = useMemo(() => positionBins(side, columns.ids.map((_, i) => i)), [side]);
  const shown = useMemo(() => positionBins(side, selection.without("at")), [side, selection]);
  return (
    <Histogram title="Hallucinations by place in the response" unit="%" noun="hallucination" all={all} shown={shown} range={view.positions}
      choose={(positions) => set({ positions })} />
  );
}

/** Count values in bins that were made from all values. */
function counts(bins: Bin[], values: (number | null | undefined)[]): Bin[] {
  const first = bins[0];
  const result = bins.map((bin) => ({ ...bin, count: 0 }));
  if (!first) return result;
  const width = first.high - first.low;
  for (const value of values) {
    if (typeof value !== "number") continue;
    const bin = result[Math.min(bins.length - 1, Math.max(0, Math.floor((value - first.low) / width + 1e-9)))];
    if (bin) bin.count += 1;
  }
  return result;
}
