/** The state of the page in its URL: the query, its options and the entity on view. */
import { askBody, type Question } from "./api";

export interface UrlState extends Question {
  entity: string | null;
}

export const TOP = 10;
const RENAMED: Record<string, string> = { vector: "embedding", scored: "links", both: "links" }; // in older links

/** The state in a URL; by default an empty query. */
export function read(hash = location.hash): UrlState {
  const given = new URLSearchParams(hash.slice(1));
  const top = Number(given.get("top"));
  const minConfidence = Number(given.get("min_confidence") ?? given.get("least"));
  const named = given.get("mode") ?? "";
  const mode = RENAMED[named] ?? named;
  return {
    query: given.get("query") ?? "",
    top: top >= 1 && top <= 1000 ? Math.floor(top) : TOP,
    minConfidence: minConfidence > 0 && minConfidence <= 1 && ["", "links"].includes(mode) ? minConfidence : 0, // others have none
    mode,
    fill: given.has("fill"),
    entity: given.get("entity"),
  };
}

/** The URL of a state, without the defaults. */
export function write(state: UrlState): string {
  const given = new URLSearchParams();
  if (state.query) given.set("query", state.query);
  if (state.top !== TOP) given.set("top", String(state.top));
  if (state.minConfidence) given.set("min_confidence", String(state.minConfidence));
  if (state.mode) given.set("mode", state.mode);
  if (state.fill) given.set("fill", "1");
  if (state.entity) given.set("entity", state.entity);
  return `#${given}`;
}

/** The URL that shows an entity beside the current state. */
export const toEntity = (iri: string) => write({ ...read(), entity: iri });

/** The full URL of a question, for sharing. */
export function link(question: Question): string {
  return location.origin + location.pathname + write({ ...question, entity: null });
}

/** The curl command of a question. */
export function asCurl(question: Question): string {
  const body = JSON.stringify(askBody(question), null, 1).replaceAll("'", "'\\''");
  return `curl ${location.origin}/api/ask -H 'Content-Type: application/json' -d '${body}'\n`;
}

/** The Python code of a question, with the standard library alone. */
export function asPython(question: Question): string {
  const { query, ...rest } = askBody(question) as { query: string };
  const options = Object.entries(rest).map(([name, value]) => `, ${JSON.stringify(name)}: ${value === true ? "True" : JSON.stringify(value)}`);
  const text = query.replaceAll("\\", "\\\\").replaceAll('"""', '\\"\\"\\"');
  return `import json
from urllib.request import Request, urlopen

query = """${text.endsWith('"') ? `${text}\n` : text}"""
body = json.dumps({"query": query${options.join("")}}).encode()
request = Request("${location.origin}/api/ask", body, {"Content-Type": "application/json"})
answers = json.load(urlopen(request))
for answer in answers["known"]:
    print("known", answer["label"])
for answer in answers["predicted"]:
    print("predicted", answer["label"], answer.get("confidence"))
`;
}
