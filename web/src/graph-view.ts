/** A small graph as inline SVG: shapes for roles, line styles for what is known, and every name a link. */
import { html, svg, nothing, type PropertyDeclarations } from "lit";
import { arrow, path, placed, word, type Dot, type Line, type PlacedDot, type PlacedLine } from "./drawing";
import { toEntity } from "./url-state";
import { PageElement } from "./page-element";

const LEAST = 0.8; // below this scale text is hard to read, so the drawing scrolls instead

export class GraphView extends PageElement {
  static override properties: PropertyDeclarations = {
    dots: { attribute: false },
    drawn: { attribute: false },
    label: { type: String },
    room: { state: true },
  };
  declare dots: Dot[];
  declare drawn: Line[];
  declare label: string;
  declare room: number;
  #watch = new ResizeObserver(([entry]) => {
    const room = Math.floor(entry?.contentRect.width ?? 0);
    if (room && Math.abs(room - this.room) > 4) this.room = room;
  });

  constructor() {
    super();
    this.dots = [];
    this.drawn = [];
    this.label = "";
    this.room = 0;
  }

  override connectedCallback(): void {
    super.connectedCallback();
    this.room = Math.floor(this.getBoundingClientRect().width) || 600;
    this.#watch.observe(this);
    void document.fonts.ready.then(() => this.requestUpdate()); // widths are measured in the page's font
  }

  override disconnectedCallback(): void {
    super.disconnectedCallback();
    this.#watch.disconnect();
  }

  override render() {
    if (!this.dots.length) return nothing;
    const drawing = placed(this.dots, this.drawn, this.room);
    const scale = Math.max(LEAST, Math.min(1, this.room / drawing.width));
    const wide = drawing.width * scale > this.room + 1;
    return html`<div class="canvas" tabindex=${wide ? "0" : nothing} role=${wide ? "region" : nothing} aria-label=${wide ? this.label : nothing}>
      <svg viewBox="0 0 ${drawing.width} ${drawing.height}" width=${drawing.width * scale} height=${drawing.height * scale} role="group" aria-label=${this.label}>
        ${drawing.lines.map(stroke)} ${drawing.lines.map(name)} ${drawing.dots.map(dot)}
      </svg>
    </div>`;
  }
}

function stroke(line: PlacedLine) {
  const points = line.reversed ? [...line.points].reverse() : line.points;
  const size = Math.max(9, line.width * 2);
  const { tip, end } = arrow(points, size);
  const route = path([...points.slice(0, -1), end]);
  return svg`<g class="line ${line.look}" aria-hidden="true">
    <path d=${route} stroke-width=${line.width} fill="none"/>
    <polygon points=${tip}/>
  </g>`;
}

function name(line: PlacedLine) {
  const { x, y } = line.at;
  const height = line.number ? 34 : 19;
  return svg`<g class="name ${line.look}">${line.note ? svg`<title>${line.note}</title>` : nothing}
    <rect x=${x - line.labelWidth / 2} y=${y - height / 2} width=${line.labelWidth} height=${height} rx="4"/>
    <text x=${x} y=${line.number ? y - 3.5 : y + 4.5}><tspan class="word">${word(line)}</tspan>${line.label}</text>
    ${line.number && svg`<text class="number" x=${x} y=${y + 12}>${line.number}</text>`}
  </g>`;
}

function dot(one: PlacedDot) {
  const { x, y, width, height, rows, shape } = one;
  const round = shape === "anchor" ? 5 : height / 2;
  const top = y - (rows.length * 17 + (one.under ? 15 : 0)) / 2;
  const body = svg`
    ${rows.join(" ") === one.label ? nothing : svg`<title>${one.label} ${one.under}</title>`}
    <rect class="body" x=${x - width / 2} y=${y - height / 2} width=${width} height=${height} rx=${round}/>
    ${shape === "target" ? svg`<rect class="inner" x=${x - width / 2 + 4} y=${y - height / 2 + 4} width=${width - 8} height=${height - 8} rx=${round - 4}/>` : nothing}
    ${rows.map((row, index) => svg`<text x=${x} y=${top + 13 + index * 17}>${row}</text>`)}
    ${one.under ? svg`<text class="under" x=${x} y=${top + 11 + rows.length * 17}>${one.under}</text>` : nothing}`;
  return one.iri
    ? svg`<a class="dot ${shape}" href=${toEntity(one.iri)}>${body}</a>`
    : svg`<g class="dot ${shape}">${body}</g>`;
}

customElements.define("graph-view", GraphView);
