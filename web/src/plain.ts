/** An element of the page that draws into itself, so that one stylesheet serves the whole page. */
import { LitElement } from "lit";

export class Plain extends LitElement {
  protected override createRenderRoot(): HTMLElement {
    this.replaceChildren();
    return this;
  }

  /** Tells the elements around this one that something is wanted. */
  protected say<T>(name: string, detail?: T): void {
    this.dispatchEvent(new CustomEvent(name, { detail, bubbles: true, composed: true }));
  }
}
