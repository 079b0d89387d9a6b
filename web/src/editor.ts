/** The editor: CodeMirror in a shadow root, where its styles are constructed sheets that a strict policy allows. */
import { autocompletion, closeBrackets, closeBracketsKeymap, completionKeymap } from "@codemirror/autocomplete";
import { defaultKeymap, history, historyKeymap } from "@codemirror/commands";
import { bracketMatching, indentOnInput, StreamLanguage } from "@codemirror/language";
import { sparql } from "@codemirror/legacy-modes/mode/sparql";
import { type Diagnostic, lintKeymap, setDiagnostics } from "@codemirror/lint";
import { EditorState, Prec } from "@codemirror/state";
import {
  drawSelection,
  EditorView,
  highlightActiveLine,
  highlightActiveLineGutter,
  highlightSpecialChars,
  keymap,
  lineNumbers,
  placeholder,
} from "@codemirror/view";
import { css, LitElement } from "lit";
import { completing } from "./completion";
import { look } from "./editor-theme";
import type { Fault } from "./types";

const TOKEN = /^(?:<[^>\s]*>?|[?$\w-]*:?[\w.%-]*\w|"[^"\n]*"?|[^\s\w])/;

/** The range of a fault: the word at its line and column, or the last character if that is past the end. */
export function stretch(state: EditorState, fault: Fault): { from: number; to: number } | null {
  if (fault.line === null) return null;
  const line = state.doc.line(Math.min(Math.max(fault.line, 1), state.doc.lines));
  const column = Math.min(Math.max((fault.column ?? 1) - 1, 0), line.length);
  const word = TOKEN.exec(line.text.slice(column).replace(/[.;,]+$/, ""))?.[0].length ?? 0;
  if (fault.column === null) return { from: line.from + (line.text.length - line.text.trimStart().length), to: line.to };
  if (word) return { from: line.from + column, to: line.from + column + word };
  const before = state.doc.sliceString(0, line.from + column).trimEnd().length;
  return before ? { from: before - 1, to: before } : { from: 0, to: Math.min(1, state.doc.length) };
}

/**
 * Types over a selection: Chromium would keep the style of the replaced text in a style attribute, which the page's
 * Content-Security-Policy forbids.
 */
const replacing = EditorView.domEventHandlers({
  beforeinput(event, view) {
    const { from, to, empty } = view.state.selection.main;
    if (event.inputType !== "insertText" || !event.data || empty || view.composing) return false;
    const text = event.data;
    const insert = () => view.state.update(view.state.replaceSelection(text), { userEvent: "input.type" });
    if (!view.state.facet(EditorView.inputHandler).some((handle) => handle(view, from, to, text, insert))) view.dispatch(insert());
    event.preventDefault();
    return true;
  },
});

export class QueryEditor extends LitElement {
  static override shadowRootOptions: ShadowRootInit = { mode: "open", delegatesFocus: true };
  static override styles = css`
    :host {
      display: block;
      overflow: hidden;
    }
  `;
  prefixes: Record<string, string> = {};
  #view: EditorView | null = null;
  #text = "";

  get text(): string {
    return this.#view?.state.doc.toString() ?? this.#text;
  }

  /** Replaces the text in one undoable step. */
  set text(text: string) {
    this.#text = text;
    const view = this.#view;
    if (view && view.state.doc.toString() !== text)
      view.dispatch({ changes: { from: 0, to: view.state.doc.length, insert: text }, selection: { anchor: 0 } });
  }

  /** Marks a fault in the text, or removes the mark. */
  mark(fault: Fault | null): void {
    const view = this.#view;
    if (!view) return;
    const place = fault && stretch(view.state, fault);
    const marks: Diagnostic[] = fault && place ? [{ ...place, severity: "error", message: fault.message }] : [];
    view.dispatch(setDiagnostics(view.state, marks));
  }

  /** Replaces the text at a fault by a name. */
  replace(fault: Fault, name: string): void {
    const view = this.#view;
    const place = view && stretch(view.state, fault);
    if (!view || !place) return;
    view.dispatch({ changes: { ...place, insert: name }, selection: { anchor: place.from + name.length } });
    view.focus();
  }

  /** Puts a name at the cursor. */
  insert(name: string): void {
    this.#view?.dispatch(this.#view.state.replaceSelection(name));
    this.#view?.focus();
  }

  /** Puts the cursor at a fault. */
  goTo(fault: Fault): void {
    const view = this.#view;
    const place = view && stretch(view.state, fault);
    if (!view || !place) return;
    view.dispatch({ selection: { anchor: place.from }, scrollIntoView: true });
    view.focus();
  }

  override firstUpdated(): void {
    this.#view = new EditorView({
      state: EditorState.create({ doc: this.#text, extensions: this.#extensions() }),
      root: this.renderRoot as ShadowRoot,
      parent: this.renderRoot,
    });
  }

  #extensions() {
    const run = () => {
      this.dispatchEvent(new CustomEvent("run", { bubbles: true, composed: true }));
      return true;
    };
    return [
      Prec.highest(keymap.of([{ key: "Mod-Enter", run }])),
      look,
      replacing,
      lineNumbers(),
      highlightActiveLine(),
      highlightActiveLineGutter(),
      highlightSpecialChars(),
      history(),
      drawSelection(),
      indentOnInput(),
      bracketMatching(),
      closeBrackets(),
      StreamLanguage.define(sparql),
      autocompletion({ override: [completing(() => this.prefixes)], icons: false, activateOnTypingDelay: 150 }),
      keymap.of([...closeBracketsKeymap, ...defaultKeymap, ...historyKeymap, ...completionKeymap, ...lintKeymap]),
      EditorView.lineWrapping,
      EditorView.contentAttributes.of({ "aria-label": "SPARQL query" }),
      placeholder("SELECT ?answer WHERE { … }"),
      EditorView.updateListener.of((update) => {
        if (!update.docChanged) return;
        this.mark(null);
        this.dispatchEvent(new CustomEvent("typed", { bubbles: true, composed: true }));
      }),
    ];
  }
}

customElements.define("query-editor", QueryEditor);
