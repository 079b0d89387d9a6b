/** The table of answers: known ones first, then predicted ones by rank; a row opens to its explanation. */
import { html, nothing, svg, type PropertyDeclarations } from "lit";
import { repeat } from "lit/directives/repeat.js";
import * as icons from "./icons";
import { toEntity } from "./url-state";
import { PageElement } from "./page-element";
import { save, toCsv } from "./download";
import type { Answers, KnownAnswer, PredictedAnswer } from "./types";
import "./witness";
import { count, percent, score } from "./format";

type Show = "all" | "known" | "predicted";
export type Row = (KnownAnswer & { source: "known"; times: number }) | (PredictedAnswer & { source: "predicted" });

const FEW = 10; // known rows at first, so that predicted ones are visible
const STEP = 200; // rows to add at a time

/** All answers as rows, in display order. */
export function rowsOf(answers: Answers): Row[] {
  const target = targetOf(answers);
  return [
    ...knownOf(answers),
    ...answers.predicted.map((one) => ({ ...one, ...named(one, target), source: "predicted" as const })),
  ];
}

/** Name and label of an answer by the value of the target variable. */
function named(one: KnownAnswer | PredictedAnswer, target: string) {
  const term = one.row[target];
  return term && term.value !== one.entity ? { entity: term.value, label: term.label ?? term.value, type: null } : {};
}

/** The known answers by the target variable; equal rows, of which SPARQL may return many, are one. */
function knownOf(answers: Answers): Row[] {
  const target = targetOf(answers);
  const rows = new Map<string, Row & { times: number }>();
  for (const one of answers.known) {
    const key = JSON.stringify(one.row);
    const same = rows.get(key);
    if (same) same.times += 1;
    else rows.set(key, { ...one, ...named(one, target), source: "known", times: 1 });
  }
  return [...rows.values()];
}

/** The selected variable that predictions are for, or the first one. */
const targetOf = (answers: Answers) =>
  answers.variables.includes(answers.target) ? answers.target : (answers.variables[0] ?? "answer");

export class AnswerTable extends PageElement {
  static override properties: PropertyDeclarations = {
    answers: { attribute: false },
    query: { type: String },
    mode: { type: String },
    show: { state: true },
    words: { state: true },
    open: { state: true },
    most: { state: true },
  };
  declare answers: Answers | null;
  declare query: string;
  declare mode: string;
  declare show: Show;
  declare words: string;
  declare open: string;
  declare most: number;
  #rows: Row[] = [];

  constructor() {
    super();
    this.answers = null;
    this.query = "";
    this.mode = "";
    this.show = "all";
    this.words = "";
    this.open = "";
    this.most = FEW;
  }

  override willUpdate(changed: Map<string, unknown>): void {
    if (!changed.has("answers")) return;
    this.open = "";
    this.words = "";
    this.show = "all";
    this.most = FEW;
    this.#rows = this.answers ? rowsOf(this.answers) : [];
  }

  override render() {
    const answers = this.answers;
    if (!answers) return nothing;
    const rows = this.#rows;
    const columns = answers.variables.length ? answers.variables : ["answer"];
    const target = targetOf(answers);
    const type = typeOf(rows);
    const wanted = this.words.trim().toLowerCase();
    const shown = rows.filter(
      (row) => (this.show === "all" || row.source === this.show) && (!wanted || textOf(row).includes(wanted)),
    );
    return html`${this.#tools(answers, shown, columns)}
      <div class="table">
        <table class=${columns.length > 1 ? "several" : ""} aria-label="Answers">
          <thead>
            <tr>
              <th class="rank" scope="col"><span class="unseen">Rank</span></th>
              ${columns.map((name) =>
                name !== target
                  ? html`<th class="other" scope="col">${name}</th>`
                  : html`<th class="target" scope="col">${name}${type ? html` <span>(${type})</span>` : nothing}</th>`,
              )}
              <th class="source" scope="col">Source</th>
              ${answers.predicted.length ? html`<th class="confidence" scope="col">${confidenceTitle(answers)}</th>` : nothing}
            </tr>
          </thead>
          <tbody @keydown=${this.#step}>
            ${this.#part(shown, "known", columns, type)}${this.#part(shown, "predicted", columns, type)}
          </tbody>
        </table>
      </div>
      ${shown.length ? nothing : html`<p class="plain">No answer matches the filter.</p>`}`;
  }

  /** The rows of one source; of many known ones only the first. */
  #part(shown: Row[], source: Row["source"], columns: string[], type: string) {
    const rows = shown.filter((row) => row.source === source);
    const crowd = source === "known" && rows.length < shown.length && rows.length > FEW + 2;
    const most = crowd ? this.most : Math.max(this.most, STEP);
    const left = rows.length - most;
    return html`${repeat(
      rows.slice(0, most).map((row) => ({ row, rank: this.#rows.indexOf(row) + 1 })),
      ({ rank }) => rank,
      ({ row, rank }) => this.#row(row, rank, columns, type !== ""),
    )}
    ${left > 0
      ? html`<tr><td class="rank"></td><td colspan=${columns.length + 2}>
          <button class="rest" @click=${() => (this.most = most + STEP)}>Show ${count(Math.min(STEP, left))} more of ${count(rows.length)} ${source}</button>
        </td></tr>`
      : nothing}`;
  }

  #tools(answers: Answers, shown: Row[], columns: string[]) {
    const predicted = answers.predicted.length;
    const counts = { all: this.#rows.length, known: this.#rows.length - predicted, predicted };
    const choice = (show: Show, word: string) => html`<label class="choice">
      <input type="radio" name="show" .checked=${this.show === show} @change=${() => (this.show = show)} />
      <span>${show === "known" ? icons.known() : show === "predicted" ? icons.predicted() : nothing}${word} <b>${count(counts[show])}</b></span>
    </label>`;
    return html`<div class="tools">
      <fieldset class="choices">
        <legend class="unseen">Which answers</legend>
        ${choice("all", "All")}${choice("known", "Known")}${choice("predicted", "Predicted")}
      </fieldset>
      <input class="filter" type="search" placeholder="Filter" aria-label="Filter the answers" .value=${this.words}
        @input=${(event: InputEvent) => (this.words = (event.target as HTMLInputElement).value)} />
      <span class="downloads">Download
        <button class="quiet" @click=${() => save("answers.csv", toCsv(shown, columns), "text/csv")}>CSV</button>
        <button class="quiet" @click=${() => save("answers.json", JSON.stringify({ ...answers, known: shown.filter((row) => row.source === "known"), predicted: shown.filter((row) => row.source === "predicted") }, null, 2), "application/json")}>JSON</button>
      </span>
    </div>`;
  }

  #row(row: Row, rank: number, columns: string[], alike: boolean) {
    const key = `${rank} ${row.entity}`;
    const open = this.open === key;
    const guessed = (this.answers?.predicted.length ?? 0) > 0;
    const target = this.answers ? targetOf(this.answers) : "";
    const others = columns.filter((name) => name !== target);
    const isNamed = row.row[target]?.type === "uri";
    const explained = isNamed && (this.answers?.explanation.nodes.length ?? 0) > 0;
    const toggle = (event: Event) => {
      const onLink = event.target instanceof Element && event.target.closest("a");
      if (!onLink && !String(getSelection())) this.open = open ? "" : key;
    };
    return html`<tr class="answer ${row.source} ${explained ? "opens" : ""}" ?data-open=${open} @click=${explained ? toggle : nothing}>
        <td class="rank">${rank}</td>
        ${columns.map((name) => name !== target
            ? html`<td class="other">${termOf(row, name)}</td>`
            : html`<td>${explained ? head(row, open) : html`<span class="label">${isNamed ? linked(row.entity, row.label) : row.label}</span> `}${expectedOf(row, name)}${row.source === "known" && row.times > 1 ? html`<span class="times" title="${row.times} equal rows">× ${row.times}</span> ` : nothing}${alike || !row.type ? nothing : html`<span class="type">${row.type}</span>`}${asides(row, others)}</td>`)}
        <td class="source"><span class="badge ${row.source}">${row.source === "known" ? icons.known() : icons.predicted()}<span>${row.source}</span></span></td>
        ${guessed ? html`<td class="confidence">${confidenceOf(row)}</td>` : nothing}
      </tr>
      ${open
        ? html`<tr class="opened"><td colspan=${columns.length + 3}><answer-witness query=${this.query} entity=${row.entity} .row=${others.length ? urisOf(row) : null} mode=${this.mode}></answer-witness></td></tr>`
        : nothing}`;
  }

  /** Arrow keys move between answers, Escape closes the explanation. */
  #step(event: KeyboardEvent): void {
    if (event.key === "Escape") this.open = "";
    const by = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    const here = event.target as HTMLElement;
    if (!by || !here.matches("button.label")) return;
    const all = [...this.querySelectorAll<HTMLElement>("button.label")];
    all[all.indexOf(here) + by]?.focus();
    event.preventDefault();
  }
}

/** The common type of all answers, or an empty text. */
const typeOf = (rows: Row[]) => (rows.every((row) => row.type === rows[0]?.type) ? (rows[0]?.type ?? "") : "");

const linked = (iri: string, label: string) => html`<a href=${toEntity(iri)}>${label}</a>`;

function head(row: Row, open: boolean) {
  return html`<button class="label" aria-expanded=${open} title="Why this is an answer">${icons.right()}<span>${row.label}</span></button>`;
}

/** The other variables below the answer, for a narrow screen. */
function asides(row: Row, others: string[]) {
  return others
    .filter((name) => row.row[name])
    .map((name) => html`<span class="aside type">${name}: ${termOf(row, name)}</span>`);
}

/** The text of a row in lower case, for the filter. */
function textOf(row: Row): string {
  const terms = Object.values(row.row).flatMap((term) => [term.label ?? "", term.value]);
  return [row.label, row.type ?? "", row.entity, row.source, ...terms].join("\n").toLowerCase();
}

function termOf(row: Row, name: string) {
  const term = row.row[name];
  if (!term && row.expected?.[name] === undefined) return html`<span class="type">–</span>`;
  const text = term?.type === "uri" ? linked(term.value, term.label ?? term.value) : (term?.label ?? term?.value);
  return html`${text}${term?.confidence === undefined ? nothing : html` <span class="type">predicted, ${percent(term.confidence)}</span>`}${expectedOf(row, name)}`;
}

/** The expected value of an aggregate. */
function expectedOf(row: Row, name: string) {
  const expected = row.expected?.[name];
  if (expected === undefined) return nothing;
  return html` <span class="type" title="With predicted rows counted by their probability">expected ${expected.toFixed(2)}</span> `;
}

/** The IRI of each variable of a row. */
const urisOf = (row: Row): Record<string, string> =>
  Object.fromEntries(Object.entries(row.row).flatMap(([name, term]) => (term.type === "uri" ? [[name, term.value]] : [])));

const confidenceTitle = (answers: Answers) =>
  answers.predicted.length && answers.predicted.every((one) => one.confidence == null) ? "Score" : "Confidence";

/** The confidence as a bar with its number; a known answer has none. */
function confidenceOf(row: Row) {
  if (row.source === "known") return html`<span class="type">in the graph</span>`;
  const share = row.confidence ?? Math.min(1, Math.max(0, row.score));
  const words = row.confidence == null ? score(row.score) : percent(row.confidence);
  return html`<span class="meter">
    <svg width="100%" height="8" aria-hidden="true">${svg`<rect class="track" width="100%" height="8" rx="4"/><rect class="level" width=${`${share * 100}%`} height="8" rx="4"/>`}</svg>
    <span>${words}</span>
  </span>`;
}

customElements.define("answer-table", AnswerTable);
