// How many charts stand beside each other.
import { useLayoutEffect, useRef } from "preact/hooks";
import type { RefObject } from "preact";

/** Pixels: the least width of a chart, and the gap between two. */
const LEAST = 304, GAP = 14;

/** Return how many charts a row has, so that rows are as many as they must be and about equally full. */
export function chartsInRow(count: number, width: number): number {
  const most = Math.max(1, Math.floor((width + GAP) / (LEAST + GAP)));
  const rows = Math.max(1, Math.ceil(count / most));
  return Math.max(1, Math.ceil(count / rows));
}

/** Keep an element's `--row` right: the number of its children that stand in a row. */
export function useRows(): RefObject<HTMLDivElement> {
  const grid = useRef<HTMLDivElement>(null);
  const divide = (): void => {
    const box = grid.current as HTMLDivElement;
    // A folded panel has no width; it is divided when it opens.
    if (box.clientWidth) box.style.setProperty("--row", String(chartsInRow(box.children.length, box.clientWidth)));
  };
  useLayoutEffect(divide);
  useLayoutEffect(() => {
    const observer = new ResizeObserver(divide);
    observer.observe(grid.current as HTMLDivElement);
    return () => observer.disconnect();
  }, []);
  return grid;
}
