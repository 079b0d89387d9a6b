/** An element without a shadow root, so that one stylesheet serves the whole page. */
import { LitElement } from "lit";

export class PageElement extends LitElement {
  protected override createRenderRoot(): HTMLElement {
    this.replaceChildren();
    return this;
  }

  /** Dispatches an event to the elements around this one. */
  protected say<T>(name: string, detail?: T): void {
    this.dispatchEvent(new CustomEvent(name, { detail, bubbles: true, composed: true }));
  }
}
