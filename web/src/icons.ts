/** Icons in the colour of the text beside them. */
import { svg, html, type TemplateResult } from "lit";

const icon = (inside: unknown, name = "") =>
  html`<svg class="icon ${name}" viewBox="0 0 16 16" width="16" height="16" aria-hidden="true">${inside}</svg>`;

/** A full disc: known. */
export const known = (): TemplateResult => icon(svg`<circle cx="8" cy="8" r="5.25" class="full"/>`, "known");
/** A dashed ring: predicted. */
export const predicted = (): TemplateResult =>
  icon(svg`<circle cx="8" cy="8" r="5.25" stroke-dasharray="2.4 1.72"/>`, "predicted");
export const play = (): TemplateResult => icon(svg`<path class="full" d="M5 3.5v9l7-4.5z"/>`);
export const down = (): TemplateResult => icon(svg`<path d="M4.5 6.5 8 10l3.5-3.5"/>`);
export const right = (): TemplateResult => icon(svg`<path d="M6.5 4.5 10 8l-3.5 3.5"/>`, "turn");
export const close = (): TemplateResult => icon(svg`<path d="m4 4 8 8m0-8-8 8"/>`);
export const warning = (): TemplateResult => icon(svg`<path d="M8 2.5 14 13H2zM8 6.5v3m0 1.6v.4"/>`);
export const sun = (): TemplateResult =>
  icon(svg`<circle cx="8" cy="8" r="2.75"/><path d="M8 1.5v1.6m0 9.8v1.6M1.5 8h1.6m9.8 0h1.6M3.4 3.4l1.1 1.1m7 7 1.1 1.1m0-9.2-1.1 1.1m-7 7-1.1 1.1"/>`);
export const moon = (): TemplateResult => icon(svg`<path d="M13 9.6A5.5 5.5 0 1 1 6.4 3a4.4 4.4 0 0 0 6.6 6.6z"/>`);
export const mark = (): TemplateResult =>
  html`<svg class="mark" viewBox="0 0 32 32" width="26" height="26" aria-hidden="true">
    <path d="M10 12v8M14 9l8 5" />
    <path d="m14 23 8-5" class="gap" />
    <circle cx="10" cy="7" r="4" class="full" />
    <circle cx="10" cy="25" r="4" class="full" />
    <circle cx="26" cy="16" r="4" class="gap ring" />
  </svg>`;
