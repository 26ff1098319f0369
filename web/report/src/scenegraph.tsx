// The scene graph as a picture, with the claim's match lit up, and as a table.
import { useMemo } from "preact/hooks";
import type { JSX } from "preact";
import type { Triplet } from "./data.ts";
import { LONGEST, SIDE } from "./edgelabels.ts";
import { layOut, litFirst, type Node } from "./scene.ts";

const WIDTH = 640, HEIGHT = 360;

export function SceneGraph(props: { of: string; graph: Triplet[]; lit: number[] }): JSX.Element {
  const scene = useMemo(() => layOut(props.graph, new Set(props.lit)), [props.graph, props.lit]);
  const at = (index: number): [number, number] => {
    const node = scene.nodes[index] as Node;
    return [node.x * WIDTH, node.y * HEIGHT];
  };
  // What the claim was compared with is read first.
  const rows = useMemo(() => litFirst(props.graph, props.lit), [props.graph, props.lit]);
  return (
    <details class="scene" open={props.lit.length > 0 || props.graph.length <= 12}>
      <summary>Scene graph, {props.graph.length} triplets{props.lit.length ? `, ${props.lit.length} compared with the claim` : ""}</summary>
      <div class="scroll picture-box" tabIndex={0} role="region" aria-label={`Picture of the scene graph${props.of}`}>
        <svg viewBox={`0 0 ${WIDTH} ${HEIGHT}`} role="img" aria-label="Scene graph; the table below lists its triplets">
          {scene.edges.map((edge, i) => {
            const [[x1, y1], [x2, y2]] = [at(edge.from), at(edge.to)];
            return (
              <g key={i} class={edge.lit ? "edge lit" : "edge"}>
                <line x1={x1} y1={y1} x2={x2} y2={y2} />
                {edge.named && <text x={edge.x * WIDTH} y={edge.y * HEIGHT} text-anchor="middle">{short(edge.label)}</text>}
              </g>
            );
          })}
          {scene.nodes.map((node, i) => (
            <g key={i} class={node.lit ? "node lit" : "node"}>
              <circle cx={node.x * WIDTH} cy={node.y * HEIGHT} r={node.lit ? 6 : 4} />
              <text x={node.x * WIDTH} y={node.y * HEIGHT - 9} text-anchor={node.x > 1 - SIDE ? "end" : node.x < SIDE ? "start" : "middle"}>{short(node.name)}</text>
            </g>
          ))}
        </svg>
      </div>
      {scene.hidden > 0 && <p class="muted">{scene.hidden} more triplets are in the table.</p>}
      <div class="scroll short" tabIndex={0} role="region" aria-label={`Triplets of the scene graph${props.of}`}>
        <table>
          <thead><tr><th scope="col">subject</th><th scope="col">relation</th><th scope="col">object</th></tr></thead>
          <tbody>
            {rows.map((i) => (
              <tr key={i} class={props.lit.includes(i) ? "lit" : ""}>{props.graph[i]?.map((part, j) => <td key={j}>{part}</td>)}</tr>
            ))}
          </tbody>
        </table>
      </div>
    </details>
  );
}

function short(text: string): string {
  return text.length > LONGEST ? `${text.slice(0, LONGEST - 1)}…` : text;
}
