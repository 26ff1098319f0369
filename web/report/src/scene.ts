// Positions of the nodes of a scene graph: a small force layout that gives the same picture each time.
import type { Triplet } from "./data.ts";

export interface Node {
  name: string;
  x: number;
  y: number;
  lit: boolean;
}

export interface Edge {
  from: number;
  to: number;
  label: string;
  lit: boolean;
}

export interface Scene {
  nodes: Node[];
  edges: Edge[];
  /** How many triplets are left out. */
  hidden: number;
}

const MOST_NODES = 26;

/** Lay out a graph in a unit square. Lit triplets and their neighbours come first if it is large. */
export function layOut(graph: Triplet[], lit: Set<number>): Scene {
  const shown = chosen(graph, lit);
  const nodes: Node[] = [];
  const places = new Map<string, number>();
  const at = (name: string): number => {
    const key = name.trim().toLowerCase();
    if (!places.has(key)) {
      places.set(key, nodes.length);
      nodes.push({ name: name.trim(), x: 0, y: 0, lit: false });
    }
    return places.get(key) as number;
  };
  const edges = shown.map((index) => {
    const [subject, relation, object] = graph[index] as Triplet;
    return { from: at(subject), to: at(object), label: relation, lit: lit.has(index) };
  });
  for (const edge of edges.filter((each) => each.lit)) {
    for (const end of [edge.from, edge.to]) (nodes[end] as Node).lit = true;
  }
  place(nodes, edges);
  return { nodes, edges, hidden: graph.length - shown.length };
}

function chosen(graph: Triplet[], lit: Set<number>): number[] {
  const near = new Set([...lit].flatMap((i) => ends(graph[i])));
  const rank = (i: number): number => (lit.has(i) ? 0 : ends(graph[i]).some((e) => near.has(e)) ? 1 : 2);
  const order = graph.map((_, i) => i).sort((a, b) => rank(a) - rank(b) || a - b);
  const names = new Set<string>();
  const kept: number[] = [];
  for (const i of order) {
    const more = ends(graph[i]).filter((e) => !names.has(e));
    if (names.size + more.length > MOST_NODES && !lit.has(i)) continue;
    for (const name of more) names.add(name);
    kept.push(i);
  }
  return kept.sort((a, b) => a - b);
}

function ends(triplet: Triplet | undefined): string[] {
  return triplet ? [triplet[0].trim().toLowerCase(), triplet[2].trim().toLowerCase()] : [];
}

// Fruchterman-Reingold: nodes repel each other, edges pull, steps shrink.
function place(nodes: Node[], edges: Edge[]): void {
  const count = nodes.length;
  nodes.forEach((node, i) => {
    node.x = 0.5 + 0.4 * Math.cos((2 * Math.PI * i) / count);
    node.y = 0.5 + 0.4 * Math.sin((2 * Math.PI * i) / count);
  });
  const ideal = 0.9 * Math.sqrt(1 / Math.max(count, 1));
  for (let step = 0; step < 150; step++) {
    const moves = nodes.map(() => [0, 0] as [number, number]);
    for (let a = 0; a < count; a++) for (let b = a + 1; b < count; b++) push(nodes, moves, a, b, ideal);
    for (const { from, to } of edges) if (from !== to) pull(nodes, moves, from, to, ideal);
    const heat = 0.08 * (1 - step / 150);
    nodes.forEach((node, i) => {
      const [dx, dy] = moves[i] as [number, number];
      const length = Math.hypot(dx, dy) || 1;
      node.x = Math.min(0.96, Math.max(0.04, node.x + (dx / length) * Math.min(length, heat)));
      node.y = Math.min(0.94, Math.max(0.06, node.y + (dy / length) * Math.min(length, heat)));
    });
  }
}

function push(nodes: Node[], moves: [number, number][], a: number, b: number, ideal: number): void {
  const [p, q] = [nodes[a] as Node, nodes[b] as Node];
  const [dx, dy] = [p.x - q.x, p.y - q.y];
  const distance = Math.max(Math.hypot(dx, dy), 1e-3);
  move(moves, a, b, (dx / distance) * (ideal * ideal) / distance, (dy / distance) * (ideal * ideal) / distance);
}

function pull(nodes: Node[], moves: [number, number][], a: number, b: number, ideal: number): void {
  const [p, q] = [nodes[a] as Node, nodes[b] as Node];
  const [dx, dy] = [p.x - q.x, p.y - q.y];
  const distance = Math.hypot(dx, dy);
  move(moves, a, b, (-dx * distance) / ideal, (-dy * distance) / ideal);
}

function move(moves: [number, number][], a: number, b: number, dx: number, dy: number): void {
  const [first, second] = [moves[a] as [number, number], moves[b] as [number, number]];
  first[0] += dx;
  first[1] += dy;
  second[0] -= dx;
  second[1] -= dy;
}
