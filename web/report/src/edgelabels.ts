// Where the labels of a scene graph's edges stand, so that they do not cover names or each other.
import type { Edge, Node } from "./scene.ts";

/** The part of the picture that a text takes, as shares of its width and height. */
export interface Box {
  left: number;
  right: number;
  top: number;
  bottom: number;
}

/** Letters of names and relations, a line's height, and how far above its circle a name stands. */
const NAME = 0.0115, RELATION = 0.0098, LINE = 0.037, ABOVE = 0.025;
/** Places to try: shares of the way between the nodes, then distances from the edge. */
const ALONG = [0.5, 0.4, 0.6, 0.3, 0.7], BESIDE = [-0.008, 0.036, -0.045, 0.07];
/** Above this many edges, only lit ones are named. */
const MOST_NAMED = 24;
/** Longer texts are cut. */
export const LONGEST = 26;
/** A name this close to the picture's side starts or ends at its node. */
export const SIDE = 0.15;

/** Return the box of a node's name. */
export function nameBox(node: Node): Box {
  const wide = NAME * Math.min(node.name.length, LONGEST);
  const left = node.x < SIDE ? node.x : node.x > 1 - SIDE ? node.x - wide : node.x - wide / 2;
  return { left, right: left + wide, top: node.y - ABOVE - LINE, bottom: node.y - ABOVE / 2 };
}

/** Return the box of an edge's label. */
export function labelBox(edge: Edge): Box {
  const half = (RELATION * Math.min(edge.label.length, LONGEST)) / 2;
  return { left: edge.x - half, right: edge.x + half, top: edge.y - LINE * 0.8, bottom: edge.y + LINE * 0.2 };
}

/** Place the labels of edges, the lit ones first; one without a free place is named only if it is lit. */
export function placeLabels(nodes: Node[], edges: Edge[]): void {
  const taken = nodes.map(nameBox);
  const order = [...edges].sort((a, b) => Number(b.lit) - Number(a.lit));
  for (const edge of order) {
    const covered = placeLabel(edge, nodes, taken);
    edge.named = edge.lit || (edges.length <= MOST_NAMED && covered === 0);
    if (edge.named) taken.push(labelBox(edge));
  }
}

/** Put a label where it covers least; return how much it covers. */
function placeLabel(edge: Edge, nodes: Node[], taken: Box[]): number {
  const [from, to] = [nodes[edge.from] as Node, nodes[edge.to] as Node];
  let [best, x, y] = [Infinity, 0, 0];
  for (const beside of BESIDE) {
    for (const along of ALONG) {
      edge.x = from.x + along * (to.x - from.x);
      edge.y = from.y + along * (to.y - from.y) + beside;
      const covered = coveredBy(labelBox(edge), taken);
      if (covered < best) [best, x, y] = [covered, edge.x, edge.y];
    }
  }
  [edge.x, edge.y] = [x, y];
  return best;
}

/** Return how much of a box others cover, or the picture cuts off. */
function coveredBy(box: Box, others: Box[]): number {
  const whole = (box.right - box.left) * (box.bottom - box.top);
  const inside = shared(box, { left: 0, right: 1, top: 0, bottom: 1 });
  const cut = whole - inside > 1e-9 ? whole - inside : 0;
  return others.reduce((sum, other) => sum + shared(box, other), cut);
}

/** Return the area that two boxes share. */
export function shared(a: Box, b: Box): number {
  const wide = Math.min(a.right, b.right) - Math.max(a.left, b.left);
  const tall = Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top);
  return wide > 0 && tall > 0 ? wide * tall : 0;
}
