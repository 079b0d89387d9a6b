/** The panel of one entity: its literals, and its neighbours as links. */
import { html, nothing, type PropertyDeclarations } from "lit";
import { entity, entityAddress, ApiError } from "./api";
import * as icons from "./icons";
import { toEntity } from "./url-state";
import { PageElement } from "./page-element";
import type { EntityPage, RelatedEntities } from "./types";
import { count, harmless, many } from "./format";

const FIRST = 12;
const MORE = 200;

export class EntityView extends PageElement {
  static override properties: PropertyDeclarations = {
    iri: { type: String },
    found: { state: true },
    fault: { state: true },
  };
  declare iri: string;
  declare found: EntityPage | null;
  declare fault: string;
  #back: Element | null = null;

  constructor() {
    super();
    this.iri = "";
    this.found = null;
    this.fault = "";
  }

  override updated(changed: Map<string, unknown>): void {
    if (!changed.has("iri")) return;
    const dialog = this.querySelector("dialog");
    if (!this.iri) return dialog?.close();
    if (dialog && !dialog.open) {
      this.#back = document.activeElement;
      dialog.showModal();
    }
    void this.#load(FIRST);
  }

  async #load(limit: number): Promise<void> {
    const iri = this.iri;
    if (limit === FIRST) this.found = null;
    this.fault = "";
    try {
      const found = await entity(iri, limit);
      if (iri !== this.iri) return;
      this.found = found;
      await this.updateComplete;
      if (limit === FIRST) this.querySelector<HTMLElement>("h2")?.focus();
    } catch (error) {
      if (!(error instanceof ApiError)) this.say("gone");
      this.fault = error instanceof Error ? error.message : String(error);
    }
  }

  #closed(): void {
    if (this.iri) this.say("close-entity");
    if (this.#back instanceof HTMLElement || this.#back instanceof SVGElement) this.#back.focus();
  }

  override render() {
    return html`<dialog class="panel" aria-label="Entity" @close=${this.#closed} @click=${this.#outside}>
      ${this.iri
        ? html`<div class="inside">
            <button class="quiet only" aria-label="Close" @click=${() => this.querySelector("dialog")?.close()}>${icons.close()}</button>
            ${this.fault ? html`<p class="plain">${icons.warning()} ${this.fault}</p>` : this.found ? this.#page(this.found) : waiting()}
          </div>`
        : nothing}
    </dialog>`;
  }

  #outside(event: MouseEvent): void {
    if (event.target === event.currentTarget) (event.currentTarget as HTMLDialogElement).close();
  }

  #page(found: EntityPage) {
    const more = [...found.out, ...found.in].some((group) => group.count > group.others.length);
    const values = (found.literals).filter((one) => one.value !== found.label); // the label is the title
    return html`<header>
        <h2 tabindex="-1">${found.label}</h2>
        <p class="type">${found.type ? html`${found.type} · ` : nothing}${many(found.degree, "triple")}</p>
        <p class="iri">${harmless(found.entity)}</p>
        <p class="more">
          <button @click=${() => this.say("mention", found.entity)}>Insert into the query</button>
          <a href=${entityAddress(found.entity)} target="_blank">as JSON</a>
        </p>
      </header>
      ${values.length
        ? html`<section><h3>Values</h3><dl>${values.map(
            (one) => html`<div><dt>${local(one.relation)}</dt><dd>${harmless(one.value)}</dd></div>`,
          )}</dl></section>`
        : nothing}
      ${found.out.length ? html`<section><h3>${found.label} → …</h3><dl>${found.out.map((group) => this.#group(group))}</dl></section>` : nothing}
      ${found.in.length ? html`<section><h3>… → ${found.label}</h3><dl>${found.in.map((group) => this.#group(group))}</dl></section>` : nothing}
      ${more ? html`<p class="more"><button @click=${() => this.#load(MORE)}>Show more neighbours</button></p>` : nothing}`;
  }

  #group(group: RelatedEntities) {
    const left = group.count - group.others.length;
    return html`<div>
      <dt>${group.relation.label} <span class="type">${group.count > 1 ? count(group.count) : ""}</span></dt>
      <dd>
        <ul class="others">
          ${group.others.map((one) => html`<li><a href=${toEntity(one.entity)}>${one.label}</a></li>`)}
          ${left > 0 ? html`<li class="type">and ${count(left)} more</li>` : nothing}
        </ul>
      </dd>
    </div>`;
  }
}

/** The last part of an IRI. */
const local = (iri: string) => iri.split(/[/#]/).filter(Boolean).at(-1)?.replaceAll("_", " ") ?? iri;

const waiting = () =>
  html`<div class="waiting" role="status"><span class="unseen">Loading</span><i></i><i></i><i></i><i></i></div>`;

customElements.define("entity-view", EntityView);
