/** Completion from the server: names of entities and relations by label or IRI, and the PREFIX line that they need. */
import type { Completion as Choice, CompletionContext, CompletionResult } from "@codemirror/autocomplete";
import { pickedCompletion } from "@codemirror/autocomplete";
import type { EditorView } from "@codemirror/view";
import { complete } from "./api";
import type { CompletionItem } from "./types";
import { count } from "./format";

/** A partly typed name: `:Cy`, `dbo:te`, `<http://…`, or words such as `Cy Young`. */
const NAME = /(?:<[^<>"{}|^`\\\s]*|[\w-]*:[\w.%-]*)$/;
const WORDS = /(?<![\p{L}\p{N}_:?$<@#"'%.-])[\p{L}\p{N}_][\p{L}\p{N}_'-]*(?: [\p{L}\p{N}_'-]+)*$/u;
const VARIABLE = /[?$][\w]*$/;
const KEYWORDS = "SELECT|DISTINCT|WHERE|FILTER|OPTIONAL|UNION|MINUS|NOT|EXISTS|VALUES|BIND|AS|LIMIT|OFFSET|ORDER|GROUP|BY|PREFIX|BASE|ASC|DESC|HAVING|COUNT|ASK|CONSTRUCT|DESCRIBE";
const LEADING = new RegExp(`^(?:(?:${KEYWORDS}|a)(?: +|$))+`, "i");

/** The partly typed name before the cursor: a SPARQL name, or words after a keyword. */
function typedBefore(context: CompletionContext): { from: number; text: string } | null {
  const name = context.matchBefore(NAME);
  if (name) return name;
  const words = context.matchBefore(WORDS);
  const skipped = words ? (LEADING.exec(words.text)?.[0].length ?? 0) : 0;
  return words && { from: words.from + skipped, text: words.text.slice(skipped) };
}

/** Whether the next name in a triple pattern is a relation: one term stands before it since the pattern began. */
export function wants(before: string): "relation" | "entity" | "any" {
  const body = before
    .replace(/#[^\n<>]*$/gm, "")
    .replace(/<[^>\s]*>/g, "<>")
    .replace(/"(?:[^"\\]|\\.)*"(?:@[\w-]+|\^\^\S+)?/g, '""');
  if (!body.includes("{")) return "any";
  const pattern = body.slice(Math.max(...["{", "}"].map((mark) => body.lastIndexOf(mark))) + 1);
  const [statement = ""] = pattern.split(/\.(?=\s|$)/).slice(-1);
  const parts = statement.split(";");
  const terms = (parts.at(-1) ?? "").replace(/,/g, " ").trim().split(/\s+/).filter(Boolean).length;
  const place = parts.length > 1 ? terms + 1 : terms;
  return place === 0 ? "any" : place === 1 ? "relation" : "entity";
}

/** The text to look up: the local part of a prefixed name, the rest of an IRI, or the words. */
function sought(typed: string): string {
  if (typed.startsWith("<")) return typed.slice(1);
  return typed.slice(typed.indexOf(":") + 1).replaceAll("_", " ");
}

/** The change that adds the PREFIX line of a name, unless the query has it or needs none. */
export function prefixLine(text: string, insert: string, prefixes: Record<string, string>) {
  const found = /^([\w-]*):/.exec(insert);
  if (!found) return null;
  const name = found[1] ?? "";
  const iri = prefixes[name];
  const declared = new RegExp(`(?:\\bPREFIX\\s+|[\\s({;,.^|/!])${name}:`, "i").test(text);
  if (iri === undefined || declared) return null;
  const comments = /^(?:\s*#[^\n]*\n)*/.exec(text)?.[0].length ?? 0;
  return { from: comments, insert: `PREFIX ${name}: <${iri}>\n` };
}

function choice(item: CompletionItem, prefixes: Record<string, string>): Choice {
  const detail = [item.what === "entity" ? item.type : item.what, item.insert, count(item.degree)];
  return {
    label: item.label,
    detail: detail.filter(Boolean).join(" · "),
    apply(view: EditorView, picked: Choice, from: number, to: number) {
      const rest = `${view.state.sliceDoc(0, from)} ${view.state.sliceDoc(to)}`;
      const line = prefixLine(rest, item.insert, prefixes);
      const at = from + item.insert.length + (line?.insert.length ?? 0);
      view.dispatch({
        changes: [...(line ? [line] : []), { from, to, insert: item.insert }],
        selection: { anchor: at },
        annotations: pickedCompletion.of(picked),
        userEvent: "input.complete",
      });
    },
  };
}

/** A completion source; `prefixes` gives the prefixes that the graph knows. */
export function completing(prefixes: () => Record<string, string>) {
  return async (context: CompletionContext): Promise<CompletionResult | null> => {
    if (context.matchBefore(VARIABLE)) return null;
    const typed = typedBefore(context);
    const text = typed?.text ?? "";
    if (!context.explicit && text.length < 2) return null;
    const from = typed?.from ?? context.pos;
    const before = context.state.sliceDoc(0, from);
    if (/#[^\n>]*$/.test(before) || /PREFIX\s*$/i.test(before)) return null;
    const stop = new AbortController();
    context.addEventListener("abort", () => stop.abort());
    try {
      const items = await complete(sought(text), wants(before), stop.signal);
      return { from, filter: false, options: items.map((item) => choice(item, prefixes())) };
    } catch {
      return null; // without completion typing goes on; running the query shows the error
    }
  };
}
