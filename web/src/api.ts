/** The server's API: each function returns the JSON of one path, or throws ApiError or Unreachable. */
import { harmless } from "./format";
import type { Answers, CompletionItem, EntityPage, Example, Fault, Info, Witness } from "./types";

/** An error that the server reports. */
export class ApiError extends Error {
  constructor(
    readonly fault: Fault,
    readonly status: number,
  ) {
    super(fault.message);
  }
}

/** The server does not answer. */
export class Unreachable extends Error {}

/** A query with its options; an empty mode is the run's default. */
export interface Question {
  query: string;
  top: number;
  minConfidence: number;
  mode: string;
  fill: boolean; // whether empty OPTIONAL cells get their most likely value
}

async function json<T>(path: string, init?: RequestInit): Promise<T> {
  let response: Response;
  try {
    response = await fetch(path, { ...init, headers: { accept: "application/json", ...init?.headers } });
  } catch (error) {
    if (error instanceof DOMException && error.name === "AbortError") throw error;
    throw new Unreachable("The server does not answer.");
  }
  const body: unknown = await response.text().then(parse).catch(() => null);
  if (!response.ok) throw new ApiError(faultOf(body, response), response.status);
  return body as T;
}

/** Parses JSON, with labels and types that can be shown. */
const parse = (text: string): unknown =>
  JSON.parse(text, (key, value: unknown) => ((key === "label" || key === "type") && typeof value === "string" ? harmless(value) : value));

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
  const { query, top, minConfidence, mode, fill } = question;
  return { query, top, ...(minConfidence > 0 && { min_confidence: minConfidence }), ...(mode && { mode }), ...(fill && { fill }) };
}

/** The path of the JSON behind the answers. */
export const askAddress = (question: Question) =>
  `/api/ask?${new URLSearchParams(Object.entries(askBody(question)).map(([name, value]) => [name, String(value)]))}`;

export const ask = (question: Question, signal: AbortSignal) => post<Answers>("/api/ask", askBody(question), signal);

export const explain = (query: string, entity: string, row: Record<string, string> | null, mode: string) =>
  post<Witness>("/api/explain", { query, ...(row ? { row } : { entity }), ...(mode && { mode }) });

export const complete = async (text: string, what: string, signal: AbortSignal) =>
  (await json<{ items: CompletionItem[] }>(`/api/complete?${new URLSearchParams({ text, what, limit: "20" })}`, { signal }))
    .items;

export const examples = async () => (await json<{ examples: Example[] }>("/api/examples")).examples;

/** The path of the JSON behind the entity view. */
export const entityAddress = (iri: string, limit = 20) =>
  `/api/entity?${new URLSearchParams({ iri, limit: String(limit) })}`;

export const entity = (iri: string, limit: number) => json<EntityPage>(entityAddress(iri, limit));

export const info = () => json<Info>("/api/info");

/** Whether the server answers again. */
export const healthy = () =>
  fetch("/api/health").then(
    (response) => response.ok,
    () => false,
  );
