/** A button that opens a menu: arrow keys, Home and End move, Escape and a click elsewhere close it. */
import { html, nothing, type PropertyDeclarations, type TemplateResult } from "lit";
import * as icons from "./icons";
import { PageElement } from "./page-element";

export interface Choice {
  label: TemplateResult | string;
  href?: string;
  run?: () => void;
}

export class DropMenu extends PageElement {
  static override properties: PropertyDeclarations = {
    label: { type: String },
    choices: { attribute: false },
    open: { state: true },
  };
  declare label: string;
  declare choices: Choice[];
  declare open: boolean;
  #away = (event: Event) => {
    if (!event.composedPath().includes(this)) this.open = false;
  };

  constructor() {
    super();
    this.label = "";
    this.choices = [];
    this.open = false;
  }

  override connectedCallback(): void {
    super.connectedCallback();
    addEventListener("pointerdown", this.#away);
    addEventListener("focusin", this.#away);
  }

  override disconnectedCallback(): void {
    super.disconnectedCallback();
    removeEventListener("pointerdown", this.#away);
    removeEventListener("focusin", this.#away);
  }

  override render() {
    return html`<button class="quiet opener" aria-haspopup="menu" aria-expanded=${this.open} ?disabled=${!this.choices.length}
        @click=${this.#toggle} @keydown=${this.#opening}>${this.label} ${icons.down()}</button>
      ${this.open
        ? html`<div class="menu" role="menu" aria-label=${this.label} @keydown=${this.#moving}>${this.choices.map((choice) => this.#item(choice))}</div>`
        : nothing}`;
  }

  #item(choice: Choice) {
    const pick = () => {
      this.#close();
      choice.run?.();
    };
    return choice.href
      ? html`<a role="menuitem" tabindex="-1" href=${choice.href} target="_blank" @click=${pick}>${choice.label}</a>`
      : html`<button role="menuitem" tabindex="-1" @click=${pick}>${choice.label}</button>`;
  }

  get #items(): HTMLElement[] {
    return [...this.querySelectorAll<HTMLElement>("[role=menuitem]")];
  }

  async #toggle(): Promise<void> {
    this.open = !this.open;
    await this.updateComplete;
    this.#items[0]?.focus();
  }

  #close(): void {
    this.open = false;
    this.querySelector<HTMLElement>(".opener")?.focus();
  }

  #opening(event: KeyboardEvent): void {
    if (event.key !== "ArrowDown" || this.open) return;
    event.preventDefault();
    void this.#toggle();
  }

  #moving(event: KeyboardEvent): void {
    const items = this.#items;
    const here = items.indexOf(document.activeElement as HTMLElement);
    const to: Record<string, number> = {
      ArrowDown: (here + 1) % items.length,
      ArrowUp: (here - 1 + items.length) % items.length,
      Home: 0,
      End: items.length - 1,
    };
    const next = to[event.key];
    if (event.key === "Escape") this.#close();
    else if (event.key === "Tab") this.open = false;
    else if (next !== undefined) items[next]?.focus();
    else return;
    if (event.key !== "Tab") event.preventDefault();
  }
}

customElements.define("drop-menu", DropMenu);
