/** The editor's colours, from the page's own custom properties so that light and dark follow. */
import { HighlightStyle, syntaxHighlighting } from "@codemirror/language";
import { EditorView } from "@codemirror/view";
import { tags } from "@lezer/highlight";

const colours = HighlightStyle.define([
  { tag: tags.keyword, color: "var(--code-keyword)", fontWeight: "600" },
  { tag: [tags.standard(tags.variableName), tags.operator], color: "var(--code-keyword)" },
  { tag: tags.local(tags.variableName), color: "var(--code-variable)" },
  { tag: tags.atom, color: "var(--code-name)" },
  { tag: [tags.string, tags.meta], color: "var(--code-string)" },
  { tag: tags.comment, color: "var(--code-comment)", fontStyle: "italic" },
  { tag: tags.bracket, color: "var(--soft)" },
]);

const frame = EditorView.theme({
  "&": { color: "var(--ink)", backgroundColor: "transparent", fontSize: "14px", height: "100%" },
  "&.cm-focused": { outline: "none" },
  ".cm-scroller": { fontFamily: "var(--mono)", lineHeight: "1.6", overflow: "auto" },
  ".cm-content": { padding: "12px 0", caretColor: "var(--ink)" },
  ".cm-line": { padding: "0 14px 0 8px" },
  ".cm-gutters": { backgroundColor: "transparent", color: "var(--soft)", border: "none", paddingLeft: "6px" },
  ".cm-activeLine": { backgroundColor: "color-mix(in srgb, var(--sunk) 60%, transparent)" },
  ".cm-activeLineGutter": { backgroundColor: "transparent", color: "var(--ink)" },
  ".cm-cursor": { borderLeftColor: "var(--ink)", borderLeftWidth: "2px" },
  "&.cm-focused > .cm-scroller > .cm-selectionLayer .cm-selectionBackground, .cm-selectionBackground": {
    backgroundColor: "color-mix(in srgb, var(--accent) 24%, transparent)",
  },
  "&.cm-focused .cm-matchingBracket": {
    backgroundColor: "var(--tint)",
    outline: "1px solid var(--accent)",
  },
  ".cm-lintRange-error": {
    backgroundImage: "none",
    textDecoration: "underline wavy var(--wrong) 1.5px",
    textUnderlineOffset: "4px",
    textDecorationSkipInk: "none",
    backgroundColor: "var(--wrong-tint)",
  },
  ".cm-lintPoint:after": { borderBottomColor: "var(--wrong)" },
  ".cm-tooltip": {
    backgroundColor: "var(--card)",
    color: "var(--ink)",
    border: "1px solid var(--line)",
    borderRadius: "8px",
    boxShadow: "var(--float)",
    overflow: "hidden",
  },
  ".cm-diagnostic": { padding: "8px 12px", maxWidth: "40ch" },
  ".cm-diagnostic-error": { borderLeft: "3px solid var(--wrong)" },
  ".cm-tooltip.cm-tooltip-autocomplete > ul": {
    fontFamily: "var(--sans)",
    fontSize: "14px",
    maxHeight: "16em",
    maxWidth: "min(30rem, 92vw)",
  },
  ".cm-tooltip-autocomplete ul li": {
    display: "flex",
    alignItems: "baseline",
    gap: "10px",
    padding: "5px 12px !important",
    lineHeight: "1.4",
  },
  ".cm-tooltip-autocomplete ul li[aria-selected]": {
    backgroundColor: "var(--accent)",
    color: "var(--on-accent)",
  },
  ".cm-tooltip-autocomplete ul li[aria-selected] .cm-completionDetail": { color: "inherit" },
  ".cm-completionLabel": { flex: "1 1 auto", overflow: "hidden", textOverflow: "ellipsis" },
  ".cm-completionDetail": { fontStyle: "normal", color: "var(--soft)", margin: "0", fontSize: "12.5px" },
  ".cm-completionMatchedText": { textDecoration: "none", fontWeight: "600" },
  ".cm-placeholder": { color: "var(--soft)" },
});

export const look = [frame, syntaxHighlighting(colours)];
