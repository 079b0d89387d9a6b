/** The explanation of an answer: its triples drawn and listed, known ones solid, missing ones dashed. */
import { html, nothing, type PropertyDeclarations } from "lit";
import { explain, ApiError } from "./api";
import type { Dot, Line } from "./drawing";
import "./graph-view";
import * as icons from "./icons";
import { toEntity } from "./url-state";
import { PageElement } from "./page-element";
import type { NamedEntity, Witness, WitnessTriple } from "./types";
import { percent } from "./format";

function toLine(triple: WitnessTriple): Line {
  const number = triple.known || triple.confidence == null ? "" : percent(triple.confidence);
  return {
    from: triple.subject.entity,
    to: triple.object.entity,
    label: triple.predicate.label,
    number: triple.negated ? "" : triple.known ? "" : number || "missing",
    width: 2,
    look: triple.negated ? "negated" : triple.known ? "solid" : "missing",
    reversed: false,
  };
}

/** The entities of a witness, with the shapes of target, variable and anchor. */
function toDots(witness: Witness): Dot[] {
  const names = new Map<string, NamedEntity>();
  for (const triple of witness.triples)
    for (const end of [triple.subject, triple.object]) if (!names.has(end.entity)) names.set(end.entity, end);
  const variables = new Map(witness.witness.map((one) => [one.entity, one.variable]));
  return [...names.values()].map((one) => ({
    id: one.entity,
    label: one.label,
    under: variables.get(one.entity) ?? (one.entity === witness.answer.entity ? (witness.answer.type ?? "") : ""),
    shape: one.entity === witness.answer.entity ? "target" : variables.has(one.entity) ? "variable" : "anchor",
    iri: one.entity,
  }));
}

/** The triples as lines towards the answer, like those of the query towards its target. */
function toLines(witness: Witness): Line[] {
  const drawn = witness.triples.map(toLine);
  const far = new Map([[witness.answer.entity, 0]]);
  for (const [name, steps] of far)
    for (const line of drawn) {
      const other = line.from === name ? line.to : line.to === name ? line.from : name;
      if (!far.has(other)) far.set(other, steps + 1); // a loop over a Map includes what is added to it
    }
  const steps = (name: string) => far.get(name) ?? far.size;
  return drawn.map((line) =>
    steps(line.from) < steps(line.to) ? { ...line, from: line.to, to: line.from, reversed: true } : line,
  );
}

export class AnswerWitness extends PageElement {
  static override properties: PropertyDeclarations = {
    query: { type: String },
    entity: { type: String },
    row: { attribute: false },
    mode: { type: String },
    found: { state: true },
    fault: { state: true },
  };
  declare query: string;
  declare entity: string;
  declare row: Record<string, string> | null; // of a query with several variables
  declare mode: string;
  declare found: Witness | null;
  declare fault: string;

  constructor() {
    super();
    this.query = "";
    this.entity = "";
    this.row = null;
    this.mode = "";
    this.found = null;
    this.fault = "";
  }

  override connectedCallback(): void {
    super.connectedCallback();
    void this.#load();
  }

  async #load(): Promise<void> {
    try {
      this.found = await explain(this.query, this.entity, this.row, this.mode);
    } catch (error) {
      if (!(error instanceof ApiError)) this.say("gone");
      this.fault = error instanceof Error ? error.message : String(error);
    }
  }

  override render() {
    if (this.fault) return html`<p class="plain">${icons.warning()} ${this.fault}</p>`;
    if (!this.found) return html`<div class="waiting" role="status"><span class="unseen">Loading the explanation</span><i></i><i></i><i></i></div>`;
    const { triples, notes, answer } = this.found;
    const missing = triples.filter((triple) => !triple.known && !triple.negated).length;
    return html`
      <p class="verdict">${verdict(this.found, missing)}</p>
      ${triples.length
        ? html`<div class="reason">
            <graph-view .dots=${toDots(this.found)} .drawn=${toLines(this.found)} label="Why ${answer.label} is an answer"></graph-view>
            <ul class="triples">
              ${triples.map(item)}
            </ul>
          </div>`
        : nothing}
      ${notes.map((note) => html`<p class="note">${note}</p>`)}
      <p class="more"><a href=${toEntity(answer.entity)}>More about ${answer.label}</a></p>
    `;
  }
}

function verdict(witness: Witness, missing: number): string {
  if (witness.answer.known) return "All triples of this answer are in the graph.";
  if (witness.answer.against) return `${witness.answer.label} is not an answer: ${witness.answer.against}`;
  if (witness.triples.some((triple) => triple.negated && triple.known))
    return "The graph has a triple that the query excludes.";
  if (!missing) return "These triples are in the graph; the answer as a whole is predicted.";
  return `${missing === 1 ? "One triple" : `${missing} triples`} of this answer ${missing === 1 ? "is" : "are"} missing from the graph.`;
}

function item(triple: WitnessTriple) {
  const part = (one: NamedEntity) => html`<a href=${toEntity(one.entity)}>${one.label}</a>`;
  const expected = triple.confidence == null ? "missing" : `missing, confidence ${percent(triple.confidence)}`;
  const state = triple.negated
    ? html`<span class="state">${triple.known ? "in the graph, but excluded" : "not in the graph, as required"}</span>`
    : triple.known
      ? html`<span class="state known">${icons.known()} in the graph</span>`
      : html`<span class="state predicted">${icons.predicted()} ${expected}</span>`;
  return html`<li class=${triple.known ? "known" : "missing"}>
    <span>${triple.negated ? html`<b>not</b> ` : nothing}${part(triple.subject)} <em>${triple.predicate.label}</em> ${part(triple.object)}</span>${state}
  </li>`;
}

customElements.define("answer-witness", AnswerWitness);
