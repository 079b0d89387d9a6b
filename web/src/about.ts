/** The dialog about the graph, the model and the server, from /api/info. */
import { html, nothing, type PropertyDeclarations, type TemplateResult } from "lit";
import * as icons from "./icons";
import { PageElement } from "./page-element";
import type { Info } from "./types";
import { count } from "./format";

const MANY = 6;
const DIGITS = 6; // of numbers with a fraction

/** A value of the JSON as text. */
function value(one: unknown): TemplateResult | string {
  if (typeof one === "number") return Number.isInteger(one) ? count(one) : String(Number(one.toPrecision(DIGITS)));
  if (one === null || one === undefined) return "–";
  if (Array.isArray(one)) return one.map((item) => (typeof item === "object" ? JSON.stringify(item) : String(item))).join(", ");
  if (typeof one === "object") return folded(one as Record<string, unknown>);
  const text = String(one);
  return text.includes("\n") ? html`<details><summary>Show</summary><pre tabindex="0">${text}</pre></details>` : text;
}

/** Facts, folded if there are many. */
function folded(all: Record<string, unknown>): TemplateResult {
  const size = Object.keys(all).length;
  return size > MANY ? html`<details><summary>Show all ${size}</summary>${facts(all)}</details>` : facts(all);
}

function facts(all: Record<string, unknown>): TemplateResult {
  const entries = Object.entries(all).filter(([, one]) => one !== null && one !== "");
  return html`<dl class="facts">
    ${entries.map(([name, one]) => html`<div><dt>${name.replaceAll("_", " ")}</dt><dd>${value(one)}</dd></div>`)}
  </dl>`;
}

export class AboutDialog extends PageElement {
  static override properties: PropertyDeclarations = { info: { attribute: false } };
  declare info: Info | null;

  constructor() {
    super();
    this.info = null;
  }

  show(): void {
    this.querySelector("dialog")?.showModal();
  }

  override render() {
    const close = () => this.querySelector("dialog")?.close();
    const part = (title: string, all: Record<string, unknown>) => html`<section><h3>${title}</h3>${facts(all)}</section>`;
    return html`<dialog class="panel" aria-labelledby="about-title" @click=${(event: MouseEvent) => event.target === event.currentTarget && close()}>
      <div class="inside">
        <button class="quiet only" aria-label="Close" @click=${close}>${icons.close()}</button>
        <header>
          <h2 id="about-title">About this graph</h2>
          <p class="more"><a href="/api/info" target="_blank">as JSON</a> <a href="licences.txt" target="_blank">licences</a></p>
        </header>
        ${this.info
          ? html`${part("Graph", this.info.graph)}${part("Model", this.info.model)}${part("Limits", { ...this.info.limits })}${part("Versions", this.info.versions)}`
          : nothing}
        <section>
          <h3>Keys</h3>
          <dl class="facts">
            ${[
              ["Ctrl Enter", "ask"],
              ["Ctrl Space", "complete a name"],
              ["↓ ↑", "from answer to answer"],
              ["Enter", "open an answer's reason"],
              ["Esc", "close"],
            ].map(([key, use]) => html`<div><dt><kbd>${key}</kbd></dt><dd>${use}</dd></div>`)}
          </dl>
        </section>
      </div>
    </dialog>`;
  }
}

customElements.define("about-dialog", AboutDialog);
