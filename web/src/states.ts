/** What the right side shows when there are no answers to show: first visit, waiting, nothing found, a fault. */
import { html, nothing } from "lit";
import * as icons from "./icons";
import { toEntity, write } from "./url-state";
import { askAddress, type Question } from "./api";
import type { Answers, AnswerTriple, Cell, EmptyReason, Example, Fault, Truth } from "./types";
import { rowsOf } from "./answers";
import { count, many, percent, took } from "./format";

/** The URL of another query with the same options. */
const asks = (question: Question, query: string) => write({ ...question, query, entity: null });

/** The first visit: what this is, and example queries. */
export function first(examples: Example[] | null, question: Question) {
  return html`<section class="first" aria-labelledby="first-title">
    <h2 id="first-title">Ask an incomplete knowledge graph</h2>
    <p>
      Answers from the graph come first, marked ${icons.known()} <b>known</b>. Then come answers that the graph lacks and the
      model predicts, marked ${icons.predicted()} <b>predicted</b>, each with its confidence and an explanation.
    </p>
    ${examples?.length === 0 ? nothing : html`<h3>Examples</h3>`}
    <ul class="begin">
      ${examples
        ? examples.map(
            (one) => html`<li>
              <a href=${asks(question, one.query)}><span>${one.title}</span>${one.missing ? lacking() : nothing}</a>
            </li>`,
          )
        : [1, 2, 3, 4].map(() => html`<li class="waiting"><i></i></li>`)}
    </ul>
  </section>`;
}

/** The mark of an example that needs a triple which the graph lacks. */
export const lacking = () => html`<span class="lacking">${icons.predicted()} a triple is missing</span>`;

/** Placeholder while answers load. */
export const waiting = () => html`<div class="waiting rows" role="status">
  <span class="unseen">Loading answers</span>${[1, 2, 3, 4, 5, 6].map(() => html`<i></i>`)}
</div>`;

/** An error in a query: what, where, and what to do. */
export function faulty(fault: Fault, goTo: () => void, replace: (name: string) => void) {
  const place = fault.line === null ? "" : `Line ${fault.line}${fault.column === null ? "" : `, column ${fault.column}`}`;
  const message = fault.message
    .replace(/^line \d+(, column \d+)?: /i, "")
    .replace(/^--(?=\w)/, "") // of a command-line option
    .replace(/ Did you mean [^?]*\?$/, fault.nearest.length ? "" : "$&");
  return html`<section class="fault" role="alert">
    <h2>${icons.warning()} ${fault.line === null ? "This cannot be answered" : "This query cannot be answered"}</h2>
    <p>${message.charAt(0).toUpperCase() + message.slice(1)}</p>
    ${fault.nearest.length
      ? html`<p class="nearest">Did you mean ${fault.nearest.slice(0, 5).map((name) => html`<button class="code" @click=${() => replace(name)}>${name}</button>`)}?</p>`
      : nothing}
    ${fault.advice && !fault.nearest.length && !message.includes(fault.advice) ? html`<p>${fault.advice}</p>` : nothing}
    ${place ? html`<p><button @click=${goTo}>Go to ${place.toLowerCase()}</button></p>` : nothing}
  </section>`;
}

/** Why a query has no known answer: the part without a match, and the answers without that part. */
export function reason(empty: EmptyReason, question: Question, open: boolean) {
  const { part, without } = empty;
  return html`<details class="empty" ?open=${open}>
    <summary>Why there is no known answer</summary>
    <p>The graph has no match for ${part.length === 1 ? "this pattern" : "these patterns together"}:</p>
    <pre class="code">${part.join("\n")}</pre>
    ${without
      ? html`<p>
          Without ${part.length === 1 ? "it" : "them"} the query has ${many(without.count, "answer")}${without.some.length
            ? html`, such as ${without.some.slice(0, 3).map((one, index) => html`${index ? ", " : ""}<a href=${toEntity(one.entity)}>${one.label}</a>`)}`
            : nothing}.
          </p>
          <p><a class="asks" href=${asks(question, without.query)}>Run the query without ${part.length === 1 ? "it" : "them"}</a></p>`
      : nothing}
  </details>`;
}

/** No answer at all. */
export const nothingFound = () => html`<section class="empty">
  <p>The graph has no answer to this query, and none is predicted.</p>
</section>`;

/** The triples of CONSTRUCT and DESCRIBE, known ones first. */
export const triplesOf = (triples: AnswerTriple[]) => html`<ul class="triples">
  ${triples.map((one) => html`<li class=${one.known ? "known" : "missing"}>
    <span>${part(one.subject)} <em>${one.predicate.label}</em> ${part(one.object)}</span>
    ${one.known
      ? html`<span class="state known">${icons.known()} in the graph</span>`
      : html`<span class="state predicted">${icons.predicted()} predicted${one.confidence === undefined ? "" : `, ${percent(one.confidence)}`}</span>`}
  </li>`)}
</ul>`;

const part = (cell: Cell) => (cell.type === "uri" ? html`<a href=${toEntity(cell.value)}>${cell.label}</a>` : cell.label);

/** The answer to ASK. */
export const truthOf = (truth: Truth) => html`<p class="truth">
  ${truth.known
    ? html`${icons.known()} The triples of the graph say yes.`
    : html`${icons.predicted()} The triples of the graph say no. The probability of yes is <b>${percent(truth.probability)}</b>.`}
</p>`;

/** The number of answers. */
export function summary(answers: Answers): string {
  if (answers.truth) return answers.truth.known ? "Yes" : "No known match";
  if (answers.triples) {
    const known = answers.triples.filter((one) => one.known).length;
    return `${count(known)} known, ${count(answers.triples.length - known)} predicted triples`;
  }
  const predicted = answers.predicted.length;
  const known = rowsOf(answers).length - predicted;
  if (!known && !predicted) return "No answer";
  return [`${known ? count(known) : "None"} known`, ...(predicted ? [`${count(predicted)} predicted`] : [])].join(", ");
}

/** The line above the answers: their number, the time, the mode and the link to the JSON. */
export function head(answers: Answers, question: Question) {
  const mode = answers.predicted.length ? ` · ${answers.mode}` : "";
  return html`<header class="summary">
    <h2>${summary(answers)}</h2>
    <p class="type">
      ${took(answers.seconds)}<span class="mode">${mode}</span> · <a href=${askAddress(question)} target="_blank">as JSON</a>
    </p>
  </header>`;
}

/** The rows behind an aggregate, as answers of their own. */
export function behind(answers: Answers): Answers {
  const predicted = answers.missing_rows ?? [];
  const variables = [...new Set(predicted.flatMap((one) => Object.keys(one.row)))];
  return { ...answers, variables, known: [], predicted, target: variables[0] ?? "", explanation: { nodes: [], edges: [], empty: null, conditions: [] } };
}
