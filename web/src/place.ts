/** The place in the address: a link restores the query, its options and the entity that is looked at. */
import { askBody, MODES, type Question } from "./api";

export interface Place extends Question {
  entity: string | null;
}

export const TOP = 10;

/** The place that the address names; an empty query where it names none. */
export function read(hash = location.hash): Place {
  const found = new URLSearchParams(hash.slice(1));
  const top = Number(found.get("top"));
  const least = Number(found.get("least"));
  return {
    query: found.get("query") ?? "",
    top: top >= 1 && top <= 1000 ? Math.floor(top) : TOP,
    least: least > 0 && least <= 1 ? least : 0,
    mode: MODES.find((mode) => mode === found.get("mode")) ?? "",
    entity: found.get("entity"),
  };
}

/** The address of a place, without what it leaves to the default. */
export function write(place: Place): string {
  const found = new URLSearchParams();
  if (place.query) found.set("query", place.query);
  if (place.top !== TOP) found.set("top", String(place.top));
  if (place.least) found.set("least", String(place.least));
  if (place.mode) found.set("mode", place.mode);
  if (place.entity) found.set("entity", place.entity);
  return `#${found}`;
}

/** The address of an entity, seen from the place where the page is now. */
export const toEntity = (iri: string) => write({ ...read(), entity: iri });

/** The whole address of a question, to be sent to somebody. */
export function link(question: Question): string {
  return location.origin + location.pathname + write({ ...question, entity: null });
}

/** A question for a terminal. */
export function asCurl(question: Question): string {
  const body = JSON.stringify(askBody(question), null, 1).replaceAll("'", "'\\''");
  return `curl ${location.origin}/api/ask -H 'Content-Type: application/json' -d '${body}'\n`;
}

/** A question for Python, with nothing but what Python brings. */
export function asPython(question: Question): string {
  const { query, ...rest } = askBody(question) as { query: string };
  const options = Object.entries(rest).map(([name, value]) => `, ${JSON.stringify(name)}: ${JSON.stringify(value)}`);
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
