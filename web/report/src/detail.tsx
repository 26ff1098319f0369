// One item: its responses with marked spans, the reason of each verdict, picture and scene graph.
import { useState } from "preact/hooks";
import type { JSX } from "preact";
import { MISSED, RIGHT, UNSCORED, WRONG, type Claim, type Detail, type Listing, type Passage, type Shade } from "./data.ts";
import { ANSWERS, WHOLE, type Answer, type Labels } from "./labels.ts";
import { meaningOf } from "./meanings.ts";
import { SceneGraph } from "./scenegraph.tsx";
import { inRows, spansOf } from "./spans.ts";

const STYLE: Record<Shade, string> = { [RIGHT]: "right", [WRONG]: "wrong", [UNSCORED]: "unscored", [MISSED]: "missed" };

/** Return what a verdict is called. */
function wordOf(shade: Shade, words: [string, string]): string {
  return shade === RIGHT || shade === WRONG ? words[shade] : STYLE[shade];
}

export interface DetailProps {
  id: string;
  group: string;
  titles: string[];
  sides: Detail[];
  image: string;
  reasons: string[];
  labels: Labels;
  active: number;
  activate: (claim: number) => void;
  label: (claim: number, answer: Answer) => void;
}

export function ItemDetail(props: DetailProps): JSX.Element {
  return (
    <article class="detail" aria-labelledby="detail-id">
      <header>
        <h3 id="detail-id" tabIndex={-1}>{props.id}</h3>
        {props.group && props.group !== props.id && <p class="muted">in {props.group}</p>}
        <LabelButtons labels={props.labels} item={props.id} claim={WHOLE} choose={(answer) => props.label(WHOLE, answer)} what="this item" />
      </header>
      {props.image && <Picture source={props.image} id={props.id} />}
      <div class={`sides${props.sides.length > 1 ? " two" : ""}`}>
        {props.sides.map((side, run) => (
          <SideView key={run} {...props} side={side} title={props.titles[run] ?? ""} reason={props.reasons[run] ?? ""} main={run === 0} />
        ))}
      </div>
    </article>
  );
}

function SideView(props: DetailProps & { side: Detail; title: string; reason: string; main: boolean }): JSX.Element {
  const { side } = props;
  const [own, setOwn] = useState(-1);
  // Labels and keys go to the first run's claims; the other run has a selection of its own.
  const active = props.main ? props.active : own;
  const activate = props.main ? props.activate : setOwn;
  const claim = side.claims[active];
  // Regions of two runs need names of their own.
  const of = props.title && ` of ${props.title}`;
  return (
    <section class="side">
      {props.title && <h4>{props.title}</h4>}
      {props.reason && <p class="unscored-note"><b>Unscored:</b> {props.reason}</p>}
      {side.summary && <p class="muted">{side.summary}</p>}
      <div class={inRows(side.passages) ? "passages rows" : "passages"}>
        {side.passages.map((passage, i) => <Marked key={i} words={side.words} passage={passage} claims={side.claims} active={active} activate={activate} />)}
      </div>
      {side.thought && (
        <details class="thought">
          <summary>{side.thought.label}</summary>
          <Marked words={side.words} passage={{ ...side.thought, label: "" }} claims={[]} active={-1} activate={() => undefined} />
        </details>
      )}
      {side.lists.map((list) => <Chips key={list.label} list={list} />)}
      {claim && <Why claim={claim} words={side.words} />}
      {side.claims.length > 0 && (
        <ClaimTable of={of} words={side.words} claims={side.claims} active={active} activate={activate} item={props.id}
          labels={props.main ? props.labels : null} label={props.label} />
      )}
      {side.graph.length > 0 && <SceneGraph of={of} graph={side.graph} lit={claim?.matched ?? []} />}
      {side.facts.length > 0 && (
        <dl class="facts">
          {side.facts.map(([name, value], i) => [<dt key={`n${i}`}>{name}</dt>, <dd key={`v${i}`} dir="auto">{value}</dd>])}
        </dl>
      )}
    </section>
  );
}

function Picture(props: { source: string; id: string }): JSX.Element {
  const [missing, setMissing] = useState(false);
  if (missing) return <p class="muted">The picture can't be shown: {props.source.startsWith("data:") ? "it is damaged" : props.source}</p>;
  return <img class="picture" src={props.source} alt={`Picture of item ${props.id}`} loading="lazy" decoding="async" onError={() => setMissing(true)} />;
}

function Marked(props: { passage: Passage; words: [string, string]; claims: Claim[]; active: number; activate: (claim: number) => void }): JSX.Element {
  const { passage } = props;
  return (
    <div class="passage">
      {passage.label && <b class="passage-label">{passage.label}</b>}
      <p class="response" dir="auto">
        {spansOf(passage).map((span, i) => {
          if (!span.mark) return span.text;
          const [, , verdict, claim] = span.mark;
          const about = props.claims[claim];
          const hint = `${wordOf(verdict, props.words)}${about ? `: ${about.reasons.map(([name, value]) => `${name} ${value}`).join("; ")}` : ""}`;
          if (claim < 0) return <mark key={i} class={STYLE[verdict]} title={hint}>{span.text}</mark>;
          return (
            <mark key={i} class={`${STYLE[verdict]}${claim === props.active ? " active" : ""}`} role="button" tabIndex={0}
              aria-label={`${span.text}: ${hint}`} title={hint}
              onClick={() => props.activate(claim)} onMouseEnter={() => props.activate(claim)} onFocus={() => props.activate(claim)}
            >{span.text}</mark>
          );
        })}
      </p>
    </div>
  );
}

function Chips(props: { list: Listing }): JSX.Element {
  const { label, style, entries } = props.list;
  return (
    <p class="listing"><b>{label}</b>{entries.map((entry, i) => [" ", <span key={i} class={`chip ${style}`} dir="auto">{entry}</span>])}</p>
  );
}

/** The reason of the selected claim's verdict. */
function Why(props: { claim: Claim; words: [string, string] }): JSX.Element {
  const { claim } = props;
  return (
    <div class={`why ${STYLE[claim.verdict]}`} role="status">
      <p><b>{claim.text}</b> – {wordOf(claim.verdict, props.words)}</p>
      <dl class="facts">{claim.reasons.map(([name, value], i) => [<dt key={`n${i}`}><Term name={name} /></dt>, <dd key={`v${i}`}>{value}</dd>])}</dl>
    </div>
  );
}

/** A reason's name. Where it is not plain, a press or a tap shows what it means. */
function Term(props: { name: string }): JSX.Element {
  const meaning = meaningOf(props.name);
  if (!meaning) return <>{props.name}</>;
  return <details class="term"><summary title={meaning}>{props.name}</summary><p>{meaning}</p></details>;
}

interface ClaimTableProps {
  of: string;
  words: [string, string];
  claims: Claim[];
  active: number;
  activate: (claim: number) => void;
  item: string;
  labels: Labels | null;
  label: (claim: number, answer: Answer) => void;
}

function ClaimTable(props: ClaimTableProps): JSX.Element {
  return (
    <div class="scroll claims-box" tabIndex={0} role="region" aria-label={`Claims${props.of}`}>
      <table class="claims">
        <thead><tr><th scope="col">claim</th><th scope="col">verdict</th>{props.labels && <th scope="col">your label</th>}</tr></thead>
        <tbody>
          {props.claims.map((claim, i) => (
            <tr key={i} class={i === props.active ? "active" : ""} onClick={() => props.activate(i)}>
              <th scope="row"><button type="button" class="link plain" aria-pressed={i === props.active} onClick={() => props.activate(i)}>{claim.text}</button>{claim.kind && <small>{claim.kind}</small>}</th>
              <td><span class={`verdict ${STYLE[claim.verdict]}`}>{wordOf(claim.verdict, props.words)}</span></td>
              {props.labels && <td>
                {i !== props.active && !props.labels.get(props.item, i) && <button type="button" class="link narrow" aria-label={`Label ${claim.text}`}
                  onClick={() => props.activate(i)}>label</button>}
                <LabelButtons labels={props.labels} item={props.item} claim={i} choose={(answer) => props.label(i, answer)} what={claim.text} />
              </td>}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

function LabelButtons(props: { labels: Labels; item: string; claim: number; choose: (answer: Answer) => void; what: string }): JSX.Element {
  const given = props.labels.get(props.item, props.claim);
  return (
    <span class="label-buttons" role="group" aria-label={`Label ${props.what}`}>
      {ANSWERS.map((answer, i) => (
        <button key={answer} type="button" aria-pressed={given === answer} title={`${answer} (key ${i + 1})`}
          onClick={(event) => { event.stopPropagation(); props.choose(answer); }}>{answer}</button>
      ))}
    </span>
  );
}
