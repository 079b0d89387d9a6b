/** The server, as functions: each gives the JSON of one address or throws a Refusal or Gone. */
import type { Answers, CompletionItem, EntityPage, Example, Fault, Info, Witness } from "./types";

/** What the server says is wrong with a request. */
export class Refusal extends Error {
  constructor(
    readonly fault: Fault,
    readonly status: number,
  ) {
    super(fault.message);
  }
}

/** The server does not answer at all. */
export class Gone extends Error {}

/** How to predict; the empty word leaves it to the run. */
export const MODES = ["", "embedding", "links", "ensemble"] as const;
export type Mode = (typeof MODES)[number];

/** What is asked: the query, how many predictions, with at least which confidence, and how. */
export interface Question {
  query: string;
  top: number;
  least: number;
  mode: Mode;
}

async function json<T>(path: string, init?: RequestInit): Promise<T> {
  let response: Response;
  try {
    response = await fetch(path, { ...init, headers: { accept: "application/json", ...init?.headers } });
  } catch (error) {
    if (error instanceof DOMException && error.name === "AbortError") throw error;
    throw new Gone("The server does not answer.");
  }
  const body: unknown = await response.json().catch(() => null);
  if (!response.ok) throw new Refusal(faultOf(body, response), response.status);
  return body as T;
}

function faultOf(body: unknown, response: Response): Fault {
  const fault = (body as { error?: Partial<Fault> } | null)?.error;
  return {
    message: fault?.message ?? `The server answered ${response.status} ${response.statusText}.`.replace(" .", "."),
    line: fault?.line ?? null,
    column: fault?.column ?? null,
    nearest: fault?.nearest ?? [],
    advice: fault?.advice ?? null,
  };
}

function post<T>(path: string, body: object, signal?: AbortSignal): Promise<T> {
  const headers = { "content-type": "application/json" };
  return json<T>(path, { method: "POST", body: JSON.stringify(body), headers, ...(signal && { signal }) });
}

/** The body of POST /api/ask for a question. */
export function askBody(question: Question): object {
  const { query, top, least, mode } = question;
  return { query, top, ...(least > 0 && { min_confidence: least }), ...(mode && { mode }) };
}

/** The address of the JSON that the answers on the page are drawn from. */
export const askAddress = (question: Question) =>
  `/api/ask?${new URLSearchParams(Object.entries(askBody(question)).map(([name, value]) => [name, String(value)]))}`;

export const ask = (question: Question, signal: AbortSignal) => post<Answers>("/api/ask", askBody(question), signal);

export const explain = (query: string, entity: string, mode: Mode) =>
  post<Witness>("/api/explain", { query, entity, ...(mode && { mode }) });

export const complete = async (text: string, what: string, signal: AbortSignal) =>
  (await json<{ items: CompletionItem[] }>(`/api/complete?${new URLSearchParams({ text, what, limit: "20" })}`, { signal }))
    .items;

export const examples = async () => (await json<{ examples: Example[] }>("/api/examples")).examples;

/** The address of an entity's JSON, which is also what the entity view is drawn from. */
export const entityAddress = (iri: string, limit = 20) =>
  `/api/entity?${new URLSearchParams({ iri, limit: String(limit) })}`;

export const entity = (iri: string, limit: number) => json<EntityPage>(entityAddress(iri, limit));

export const info = () => json<Info>("/api/info");

/** Whether the server is up again. */
export const healthy = () =>
  fetch("/api/health").then(
    (response) => response.ok,
    () => false,
  );
