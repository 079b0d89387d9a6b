/** A small graph placed by dagre: what it holds, and where each part of it goes. */
import { graphlib, layout } from "@dagrejs/dagre";
import { lines } from "./format";

export interface Dot {
  id: string;
  label: string;
  under: string;
  shape: "anchor" | "variable" | "target";
  iri: string | null;
}

export interface Line {
  from: string;
  to: string;
  label: string;
  number: string;
  note?: string; // shown on hovering
  width: number;
  look: "solid" | "missing" | "negated" | "alternative";
  reversed: boolean; // the triple points against the direction of drawing
}

export interface Point {
  x: number;
  y: number;
}

export interface PlacedDot extends Dot, Point {
  width: number;
  height: number;
  rows: string[];
}

export interface PlacedLine extends Line {
  points: Point[];
  at: Point;
  labelWidth: number;
}

export interface Placed {
  dots: PlacedDot[];
  lines: PlacedLine[];
  width: number;
  height: number;
}

const MARGIN = 8;
const ROW = 17;
const SHRINK = 0.88; // rather a little smaller than from top to bottom
const pen = document.createElement("canvas").getContext("2d");

function measure(text: string, size: number): number {
  if (!pen) return text.length * size * 0.56;
  pen.font = `${size}px "Plex Sans", system-ui, sans-serif`;
  return pen.measureText(text).width;
}

/** Graph and sizes in one direction of drawing. */
function place(dots: Dot[], drawn: Line[], direction: "LR" | "TB"): Placed {
  const graph = new graphlib.Graph({ multigraph: true });
  const flat = direction === "LR";
  graph.setGraph({ rankdir: direction, nodesep: flat ? 18 : 14, ranksep: flat ? 52 : 56, edgesep: 12, marginx: MARGIN, marginy: MARGIN });
  const sized = dots.map((dot): PlacedDot => {
    const rows = lines(dot.label, flat ? 22 : 14);
    const wide = Math.max(...rows.map((row) => measure(row, 14) * (dot.shape === "anchor" ? 1 : 1.12)), measure(dot.under, 12));
    const round = dot.shape === "anchor" ? 24 : 36;
    return { ...dot, rows, width: Math.ceil(wide) + round, height: rows.length * ROW + (dot.under ? 15 : 0) + 16, x: 0, y: 0 };
  });
  for (const dot of sized) graph.setNode(dot.id, { width: dot.width, height: dot.height });
  drawn.forEach((line, index) => {
    const width = labelWidth(line);
    graph.setEdge(line.from, line.to, { width, height: line.number ? 34 : 20, labelpos: "c" }, String(index));
  });
  layout(graph);
  const placed = sized.map((dot) => ({ ...dot, ...(graph.node(dot.id) as unknown as Point) }));
  const routes = drawn.map((line, index): PlacedLine => {
    const edge = graph.edge({ v: line.from, w: line.to, name: String(index) }) as unknown as Point & { points: Point[] };
    return { ...line, points: edge.points, at: { x: edge.x, y: edge.y }, labelWidth: labelWidth(line) };
  });
  const size = graph.graph() as { width?: number; height?: number };
  return { dots: placed, lines: routes, width: size.width ?? 0, height: size.height ?? 0 };
}

/** The word before a relation that is negated or one of several alternatives. */
export const word = (line: Line) => (line.look === "negated" ? "not " : line.look === "alternative" ? "or " : "");

const labelWidth = (line: Line) =>
  Math.ceil(Math.max(measure(word(line) + line.label, 13), measure(line.number, 13))) + 12;

/** The drawing, from left to right where that fits the room, from top to bottom where that fits better. */
export function placed(dots: Dot[], drawn: Line[], room: number): Placed {
  const flat = place(dots, drawn, "LR");
  if (flat.width * SHRINK <= room) return flat;
  const tall = place(dots, drawn, "TB");
  return tall.width < flat.width ? tall : flat;
}

/** A smooth path through points: straight ends, rounded corners. */
export function path(points: Point[]): string {
  const [first, ...rest] = points;
  if (!first) return "";
  let text = `M${first.x},${first.y}`;
  rest.forEach((point, index) => {
    const next = rest[index + 1];
    if (!next) text += `L${point.x},${point.y}`;
    else if (index === rest.length - 2) text += `Q${point.x},${point.y} ${next.x},${next.y}`;
    else text += `Q${point.x},${point.y} ${(point.x + next.x) / 2},${(point.y + next.y) / 2}`;
  });
  return rest.length > 1 ? text.replace(/L[^LQ]*$/, "") : text;
}

/** The triangle of an arrow that ends at the last of the points. */
export function arrow(points: Point[], size: number): { tip: string; end: Point } {
  const tip = points.at(-1) ?? { x: 0, y: 0 };
  const before = points.at(-2) ?? tip;
  const far = Math.hypot(tip.x - before.x, tip.y - before.y) || 1;
  const [dx, dy] = [(tip.x - before.x) / far, (tip.y - before.y) / far];
  const end = { x: tip.x - dx * size, y: tip.y - dy * size };
  const half = size * 0.5;
  return { tip: `${tip.x},${tip.y} ${end.x - dy * half},${end.y + dx * half} ${end.x + dy * half},${end.y - dx * half}`, end };
}
