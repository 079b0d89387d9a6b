/** The JSON of the server's /api, as docs/http.md describes it. */

export interface Named {
  entity: string;
  label: string;
  type?: string | null;
}

export interface Term {
  type: "uri" | "literal" | "bnode";
  value: string;
  label?: string;
}

export interface Known extends Named {
  row: Record<string, Term>;
}

export interface Predicted extends Named {
  score: number;
  confidence?: number | null;
}

export interface QueryNode {
  id: number;
  role: "anchor" | "variable" | "target";
  name: string;
  entity: string | null;
  type: string | null;
  likely: { entity: string; label: string; score: number }[];
}

export interface QueryEdge {
  from: number;
  to: number;
  relation: string;
  label: string;
  inverse: boolean;
  attention: number | null;
  heads: number[] | null;
  negated: boolean;
  alternative: boolean;
}

export interface Empty {
  part: string[];
  query: string;
  without: { query: string; count: number; some: { entity: string; label: string }[] } | null;
}

export interface Answers {
  variables: string[];
  known: Known[];
  predicted: Predicted[];
  explanation: { nodes: QueryNode[]; edges: QueryEdge[]; empty: Empty | null };
  notes: string[];
  mode: string;
  seconds: number;
  target: string; // the variable that predicted answers are of
}

export interface WitnessTriple {
  subject: Named;
  predicate: Named;
  object: Named;
  known: boolean;
  confidence?: number | null;
  negated: boolean;
}

export interface Witness {
  answer: Named & { known: boolean; score: number | null; confidence?: number | null };
  witness: (Named & { variable: string })[];
  triples: WitnessTriple[];
  notes: string[];
}

export interface Completion {
  iri: string;
  label: string;
  type: string | null;
  what: "entity" | "relation";
  degree: number;
  insert: string;
}

export interface Example {
  title: string;
  query: string;
  missing: boolean;
}

export interface Neighbours {
  relation: Named;
  others: Named[];
  count: number;
}

export interface EntityPage extends Named {
  degree: number;
  out: Neighbours[];
  in: Neighbours[];
  literals?: { relation: Named | string; value: string }[];
}

export interface Info {
  graph: Record<string, unknown>;
  model: Record<string, unknown>;
  limits: Record<string, unknown>;
  versions: Record<string, unknown>;
  prefixes: Record<string, string>;
}

export interface Fault {
  message: string;
  line: number | null;
  column: number | null;
  nearest: string[];
  advice: string | null;
}
