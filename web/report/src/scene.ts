// Positions of the nodes of a scene graph: a small force layout that gives the same picture each time.
import type { Triplet } from "./data.ts";
import { LONGEST, placeLabels } from "./edgelabels.ts";

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
  /** Where the label stands: the middle of its baseline. */
  x: number;
  y: number;
  /** Whether the label is shown; the table has all of them. */
  named: boolean;
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
  const kept = chosen(graph, lit);
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
  const edges = joined(kept.map((index) => {
    const [subject, relation, object] = graph[index] as Triplet;
    return { from: at(subject), to: at(object), label: relation, lit: lit.has(index), x: 0, y: 0, named: false };
  }));
  for (const edge of edges.filter((each) => each.lit)) {
    for (const end of [edge.from, edge.to]) (nodes[end] as Node).lit = true;
  }
  place(nodes, edges);
  placeLabels(nodes, edges);
  return { nodes, edges, hidden: graph.length - kept.length };
}

/** Return the indices of a graph's triplets, the lit ones first. */
export function litFirst(graph: Triplet[], lit: number[]): number[] {
  const all = graph.map((_, i) => i);
  return [...all.filter((i) => lit.includes(i)), ...all.filter((i) => !lit.includes(i))];
}

/** Join the edges between the same two nodes, whose labels would cover each other. */
function joined(edges: Edge[]): Edge[] {
  const found = new Map<string, Edge>();
  for (const edge of edges) {
    const key = [edge.from, edge.to].sort((a, b) => a - b).join();
    const held = found.get(key);
    if (held) Object.assign(held, { label: `${held.label}, ${edge.label}`, lit: held.lit || edge.lit });
    else found.set(key, { ...edge });
  }
  return [...found.values()];
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

const STEPS = 200;
/** Pull to the middle, so that parts without a common edge stay near each other. */
const GRAVITY = 2;
/** Space that names need, as shares of the picture's width and height. */
const LETTER = 0.0115, LINE = 0.085, MARGIN = 0.06;

// Fruchterman-Reingold with gravity: nodes repel each other, edges pull, steps shrink. The result is
// stretched to the picture, then names that cover each other are moved apart.
function place(nodes: Node[], edges: Edge[]): void {
  const count = nodes.length;
  nodes.forEach((node, i) => {
    node.x = 0.5 + 0.4 * Math.cos((2 * Math.PI * i) / count);
    node.y = 0.5 + 0.4 * Math.sin((2 * Math.PI * i) / count);
  });
  const ideal = 0.9 * Math.sqrt(1 / Math.max(count, 1));
  for (let step = 0; step < STEPS; step++) {
    const moves = nodes.map((node) => [GRAVITY * (0.5 - node.x), GRAVITY * (0.5 - node.y)] as [number, number]);
    for (let a = 0; a < count; a++) for (let b = a + 1; b < count; b++) push(nodes, moves, a, b, ideal);
    for (const { from, to } of edges) if (from !== to) pull(nodes, moves, from, to, ideal);
    const heat = 0.08 * (1 - step / STEPS);
    nodes.forEach((node, i) => {
      const [dx, dy] = moves[i] as [number, number];
      const length = Math.hypot(dx, dy) || 1;
      node.x += (dx / length) * Math.min(length, heat);
      node.y += (dy / length) * Math.min(length, heat);
    });
  }
  stretch(nodes, "x");
  stretch(nodes, "y");
  for (let step = 0; step < STEPS && spread(nodes); step++);
}

/** Move and stretch one coordinate so that the nodes fill the picture. */
function stretch(nodes: Node[], axis: "x" | "y"): void {
  const all = nodes.map((node) => node[axis]);
  const [low, high] = [Math.min(...all), Math.max(...all)];
  for (const node of nodes) {
    node[axis] = high - low < 1e-6 ? 0.5 : MARGIN + ((node[axis] - low) / (high - low)) * (1 - 2 * MARGIN);
  }
}

/** Move nodes apart whose names cover each other; return whether there were any. */
function spread(nodes: Node[]): boolean {
  let moved = false;
  nodes.forEach((a, i) => {
    for (const b of nodes.slice(i + 1)) {
      const wide = (LETTER * (shown(a.name) + shown(b.name))) / 2 - Math.abs(a.x - b.x);
      const tall = LINE - Math.abs(a.y - b.y);
      if (wide <= 0 || tall <= 0) continue;
      moved = true;
      const [axis, by] = wide < tall ? (["x", wide] as const) : (["y", tall] as const);
      const sign = a[axis] <= b[axis] ? 1 : -1;
      a[axis] = inside(a[axis] - (sign * by) / 2);
      b[axis] = inside(b[axis] + (sign * by) / 2);
    }
  });
  return moved;
}

function shown(name: string): number {
  return Math.min(name.length, LONGEST) + 2;
}

function inside(at: number): number {
  return Math.min(1 - MARGIN, Math.max(MARGIN, at));
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
