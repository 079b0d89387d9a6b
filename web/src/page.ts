/** The page: its URL holds the question, the server answers, and the elements show the answers. */
import { html, nothing, type PropertyDeclarations } from "lit";
import "./about";
import type { AboutDialog } from "./about";
import "./answers";
import * as api from "./api";
import "./drop-menu";
import "./editor";
import type { QueryEditor } from "./editor";
import "./entity-view";
import * as icons from "./icons";
import * as urlState from "./url-state";
import { PageElement } from "./page-element";
import "./query-drawing";
import { copy } from "./download";
import * as states from "./states";
import * as theme from "./theme";
import type { Answers, Example, Fault, Info } from "./types";
import { count } from "./format";

type Doing = "nothing" | "asking" | "answered" | "refused";
const MAC = navigator.platform.startsWith("Mac");
const RETRY = 2000; // milliseconds between two checks for a server that does not answer
const SHOWN = 2500; // milliseconds for a short message

export class HalfgraphPage extends PageElement {
  static override properties: PropertyDeclarations = Object.fromEntries(
    ["at", "doing", "answers", "asked", "fault", "gone", "examples", "info", "message", "theme"].map((name) => [name, { state: true }]),
  );
  declare at: urlState.UrlState;
  declare doing: Doing;
  declare answers: Answers | null;
  declare asked: api.Question | null;
  declare fault: Fault | null;
  declare gone: boolean;
  declare examples: Example[] | null;
  declare info: Info | null;
  declare message: string;
  declare theme: theme.Theme;
  #stop = new AbortController();

  constructor() {
    super();
    this.at = urlState.read();
    this.doing = "nothing";
    this.answers = null;
    this.asked = null;
    this.fault = null;
    this.gone = false;
    this.examples = null;
    this.info = null;
    this.message = "";
    this.theme = theme.chosen();
  }

  override connectedCallback(): void {
    super.connectedCallback();
    addEventListener("hashchange", () => this.#arrive());
    addEventListener("keydown", (event) => {
      if (event.key === "Enter" && (event.ctrlKey || event.metaKey) && !event.defaultPrevented) this.#run();
    });
    this.addEventListener("gone", () => this.#lost());
  }

  override firstUpdated(): void {
    void this.#load();
    this.#arrive();
  }

  get #editor(): QueryEditor {
    return this.querySelector("query-editor") as QueryEditor;
  }

  /** Loads graph, model and examples; puts the first example into an empty editor. */
  async #load(): Promise<void> {
    try {
      this.info = await api.info();
      this.#editor.prefixes = this.info.prefixes;
      this.examples = await api.examples();
      if (!this.#editor.text) this.#editor.text = this.examples[0]?.query ?? "";
    } catch (error) {
      if (error instanceof api.ApiError) this.#tell(error.message);
      else this.#lost();
    }
  }

  /** Follows the URL. */
  #arrive(): void {
    const before = this.asked;
    this.at = urlState.read();
    const { query, top, minConfidence, mode, fill } = this.at;
    if (!query) {
      if (!this.at.entity) this.#forget();
      return;
    }
    if (this.#editor.text !== query && (!before || before.query !== query)) this.#editor.text = query;
    const same = before?.query === query && before.top === top && before.minConfidence === minConfidence && before.mode === mode && before.fill === fill;
    if (!same) void this.#ask({ query, top, minConfidence, mode, fill });
  }

  #forget(): void {
    this.#stop.abort();
    this.doing = "nothing";
    this.answers = this.asked = this.fault = null;
  }

  /** Runs the query in the editor: the URL changes and the page follows it. */
  #run(): void {
    const query = this.#editor.text;
    if (!query.trim()) return;
    const { top, minConfidence, mode, fill } = this.at;
    const question = { query, top, minConfidence, mode, fill };
    const address = urlState.write({ ...question, entity: null });
    if (location.hash === address) void this.#ask(question);
    else {
      this.asked = null;
      location.hash = address;
    }
  }

  async #ask(question: api.Question): Promise<void> {
    this.#stop.abort();
    const stop = (this.#stop = new AbortController());
    this.asked = question;
    this.doing = "asking";
    this.#editor.mark(null);
    try {
      const answers = await api.ask(question, stop.signal);
      if (stop.signal.aborted) return;
      [this.answers, this.fault, this.doing] = [answers, null, "answered"];
      document.title = `${states.summary(answers)} · halfgraph`;
    } catch (error) {
      if (stop.signal.aborted) return;
      this.#refused(error);
    }
  }

  #refused(error: unknown): void {
    this.answers = null;
    this.doing = "nothing";
    if (error instanceof api.ApiError) {
      [this.fault, this.doing] = [error.fault, "refused"];
      this.#editor.mark(error.fault);
    } else this.#lost();
  }

  /** Reports that the server does not answer, and checks until it does. */
  #lost(): void {
    if (this.gone) return;
    this.gone = true;
    const timer = setInterval(async () => {
      if (!(await api.healthy())) return;
      clearInterval(timer);
      this.gone = false;
      if (!this.info) void this.#load();
      if (this.asked && this.doing !== "answered") void this.#ask(this.asked);
    }, RETRY);
  }

  #tell(message: string): void {
    this.message = message;
    setTimeout(() => message === this.message && (this.message = ""), SHOWN);
  }

  async #copy(text: string, what: string): Promise<void> {
    this.#tell((await copy(text)) ? `${what} copied` : "The browser does not allow copying");
  }

  #option(change: Partial<urlState.UrlState>): void {
    this.at = { ...this.at, ...change };
    if (this.asked) this.#run();
  }

  override render() {
    return html`<a class="skip" href="#answers" @click=${this.#skip}>Skip to the answers</a>
      ${this.#top()} ${this.gone ? html`<p class="gone" role="alert">${icons.warning()} The server does not answer. This page continues when it is back.</p>` : nothing}
      <main class="columns" @run=${this.#run} @mention=${(event: CustomEvent<string>) => this.#mention(event.detail)}>
        <section class="ask" aria-label="Query">${this.#asking()}</section>
        <section class="answers" id="answers" aria-label="Answers" aria-busy=${this.doing === "asking"} tabindex="-1">${this.#shown()}</section>
        <entity-view iri=${this.at.entity ?? ""} @close-entity=${() => (location.hash = urlState.write({ ...this.at, entity: null }))}></entity-view>
      </main>
      <about-dialog .info=${this.info}></about-dialog>
      <p class="unseen" role="status">${this.#spoken()}</p>
      <p class="message" role="status" ?data-shown=${this.message !== ""}>${this.message}</p>`;
  }

  #top() {
    const graph = this.info?.graph ?? {};
    const facts = { entities: "entities", relations: "relations", served_triples: "triples" };
    const given = Object.entries(facts).filter(([name]) => typeof graph[name] === "number");
    const dark = theme.isDark(this.theme);
    const turn = () => theme.choose((this.theme = dark ? "light" : "dark"));
    return html`<header class="top">
      <h1 class="name"><a href="#">${icons.mark()}halfgraph</a></h1>
      <p class="facts-line">${given.map(([name, word]) => html`<span><b>${count(Number(graph[name]))}</b> ${word}</span>`)}</p>
      <nav aria-label="Page">
        <button class="quiet" @click=${() => this.querySelector<AboutDialog>("about-dialog")?.show()}>About</button>
        <button class="quiet only" aria-label=${dark ? "Light colours" : "Dark colours"} @click=${turn}>${dark ? icons.sun() : icons.moon()}</button>
      </nav>
    </header>`;
  }

  #asking() {
    const examples = (this.examples ?? []).map((one) => ({
      label: html`<span>${one.title}</span>${one.missing ? states.lacking() : nothing}`,
      run: () => {
        this.#editor.text = one.query;
        this.#run();
      },
    }));
    return html`<div class="card">
        <div class="bar">
          <drop-menu label="Examples" .choices=${examples}></drop-menu>
          <drop-menu label="Share" .choices=${this.#sharing()}></drop-menu>
          <button class="run" @click=${this.#run}>${icons.play()} Ask <kbd>${MAC ? "⌘" : "Ctrl"} ⏎</kbd></button>
        </div>
        <query-editor @typed=${() => this.fault && this.requestUpdate()}></query-editor>
        <div class="bar options">
          <label>Predictions ${this.#select("top", [5, 10, 25, 100], String)}</label>
          <label>Confidence ${this.#select("minConfidence", [0, 0.1, 0.25, 0.5, 0.9], (share) => (share ? `≥ ${share * 100} %` : "any"))}</label>
          <label>Mode ${this.#select("mode", ["", ...(this.info?.modes ?? [])], (mode) => mode || "default")}</label>
          <label title="Give empty OPTIONAL cells their most likely value">Fill <input type="checkbox" .checked=${this.at.fill} @change=${(event: Event) => this.#option({ fill: (event.target as HTMLInputElement).checked })} /></label>
        </div>
      </div>
      ${this.#drawn()}`;
  }

  /** A select of one option; a value from a link is added to the choices. */
  #select<Name extends "top" | "minConfidence" | "mode">(name: Name, values: urlState.UrlState[Name][], word: (value: urlState.UrlState[Name]) => string) {
    const now = this.at[name];
    const all = values.includes(now) ? values : [...values, now].sort((a, b) => Number(a) - Number(b));
    return html`<select @change=${(event: Event) => this.#option({ [name]: all[(event.target as HTMLSelectElement).selectedIndex] })}>
      ${all.map((value) => html`<option value=${value} ?selected=${value === now}>${word(value)}</option>`)}
    </select>`;
  }

  #sharing() {
    const question = () => ({ ...this.at, query: this.#editor.text });
    return [
      { label: "Copy link", run: () => void this.#copy(urlState.link(question()), "Link") },
      { label: "Copy as curl", run: () => void this.#copy(urlState.asCurl(question()), "curl command") },
      { label: "Copy as Python", run: () => void this.#copy(urlState.asPython(question()), "Python") },
    ];
  }

  #drawn() {
    const { nodes = [], edges = [], conditions = [] } = this.answers?.explanation ?? {};
    if (!nodes.length) return nothing;
    return html`<section class="drawn" aria-labelledby="drawn-title">
      <h2 id="drawn-title">Query graph</h2>
      <query-drawing .nodes=${nodes} .edges=${edges} .conditions=${conditions}></query-drawing>
    </section>`;
  }

  #shown() {
    const question = this.asked ?? this.at;
    if (this.doing === "asking" && !this.answers) return states.waiting();
    if (this.fault && this.doing === "refused") {
      const fault = this.fault;
      return states.faulty(fault, () => this.#editor.goTo(fault), (name) => this.#editor.replace(fault, name));
    }
    const answers = this.answers;
    if (!answers) return states.first(this.examples, question);
    const { empty } = answers.explanation;
    const any = answers.known.length + answers.predicted.length;
    return html`${states.head(answers, question)}
      ${answers.notes.map((note) => html`<p class="note">${note}</p>`)}
      ${answers.truth ? states.truthOf(answers.truth) : nothing}
      ${answers.triples ? states.triplesOf(answers.triples) : nothing}
      ${empty ? states.reason(empty, question, !any) : any || answers.truth || answers.triples ? nothing : states.nothingFound()}
      ${any ? html`<answer-table .answers=${answers} query=${question.query} mode=${question.mode}></answer-table>` : nothing}
      ${answers.missing_rows?.length
        ? html`<h3>Most likely missing rows</h3>
            <answer-table .answers=${states.behind(answers)} query=${question.query} mode=${question.mode}></answer-table>`
        : nothing}`;
  }

  /** What a screen reader announces. */
  #spoken(): string {
    if (this.doing === "asking") return "Loading answers";
    return this.doing === "answered" && this.answers ? states.summary(this.answers) : "";
  }

  /** Inserts an entity at the cursor of the editor. */
  #mention(iri: string): void {
    location.hash = urlState.write({ ...this.at, entity: null });
    this.#editor.insert(`<${iri}>`);
  }

  #skip(event: Event): void {
    event.preventDefault();
    this.querySelector<HTMLElement>("#answers")?.focus();
  }
}

customElements.define("halfgraph-page", HalfgraphPage);
