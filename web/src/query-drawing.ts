/** The query as a graph: anchors, variables and the target, with the attention that each path gets. */
import { html, nothing, type PropertyDeclarations } from "lit";
import type { Dot, Line } from "./drawing";
import "./graph-view";
import { toEntity } from "./url-state";
import { PageElement } from "./page-element";
import type { QueryEdge, QueryNode } from "./types";
import { percent } from "./format";

const THIN = 1.5;
const THICK = 6; // what full attention adds

const ROLES = { anchor: "entity", variable: "variable", target: "target" };

function toDot(node: QueryNode): Dot {
  const under = node.role === "anchor" ? "" : (node.type ?? ""); // a type only if the query states it
  return { id: String(node.id), label: node.name, under, shape: node.role, iri: node.entity };
}

function toLine(edge: QueryEdge): Line {
  return {
    from: String(edge.from),
    to: String(edge.to),
    label: edge.label,
    number: edge.attention === null ? "" : percent(edge.attention),
    width: edge.attention === null ? THIN : THIN + THICK * edge.attention,
    note: edge.heads?.length ? `Attention of each head: ${edge.heads.map(percent).join(", ")}` : "",
    look: edge.negated ? "negated" : edge.alternative ? "alternative" : "solid",
    reversed: edge.inverse,
  };
}

/** An edge in words, for screen readers. */
function sentence(edge: QueryEdge, names: Map<number, string>): string {
  const [from, to] = [names.get(edge.from) ?? "", names.get(edge.to) ?? ""];
  const triple = edge.inverse ? `${to} ${edge.label} ${from}` : `${from} ${edge.label} ${to}`;
  const type = edge.negated ? "not: " : edge.alternative ? "or: " : "";
  return type + triple + (edge.attention === null ? "" : `, attention ${percent(edge.attention)}`);
}

export class QueryDrawing extends PageElement {
  static override properties: PropertyDeclarations = {
    nodes: { attribute: false },
    edges: { attribute: false },
    conditions: { attribute: false },
  };
  declare nodes: QueryNode[];
  declare edges: QueryEdge[];
  declare conditions: string[];

  constructor() {
    super();
    this.nodes = [];
    this.edges = [];
    this.conditions = [];
  }

  override render() {
    const names = new Map(this.nodes.map((node) => [node.id, node.name]));
    return html`<figure class="drawing">
      <graph-view .dots=${this.nodes.map(toDot)} .drawn=${this.edges.map(toLine)} label="The query as a graph"></graph-view>
      <figcaption>
        <ul class="unseen">
          ${this.edges.map((edge) => html`<li>${sentence(edge, names)}</li>`)}
        </ul>
        ${this.conditions.map((text) => html`<p class="likely condition"><span class="code">${text}</span></p>`)}
        ${this.#likely()} ${this.#legend()}
      </figcaption>
    </figure>`;
  }

  #likely() {
    const between = this.nodes.filter((node) => node.role === "variable" && node.likely.length);
    return between.map(
      (node) => html`<p class="likely">
        <span class="code">${node.name}</span> is likely
        ${node.likely.slice(0, 3).map((one, index) => html`${index ? ", " : ""}<a href=${toEntity(one.entity)}>${one.label}</a>`)}
      </p>`,
    );
  }

  #legend() {
    const roles = new Set(this.nodes.map((node) => node.role));
    const some = (test: (edge: QueryEdge) => boolean) => this.edges.some(test);
    return html`<ul class="legend">
      ${[...roles].sort().map((role) => html`<li><i class="key ${role}"></i>${ROLES[role]}</li>`)}
      ${some((edge) => edge.attention !== null) ? html`<li><i class="key attention"></i>width and number: attention</li>` : nothing}
      ${some((edge) => edge.negated) ? html`<li><i class="key negated"></i>excluded</li>` : nothing}
      ${some((edge) => edge.alternative) ? html`<li><i class="key alternative"></i>alternative</li>` : nothing}
    </ul>`;
  }
}

customElements.define("query-drawing", QueryDrawing);
