/* The JSON of /api. Generated from the schema by `make types`; do not edit. */

/** One value of a row: an IRI, a literal or a blank node. */
export interface Cell {
  type: "uri" | "literal" | "bnode";
  value: string;
  label: string;
  datatype?: string;
  language?: string;
  confidence?: number;
}

/** An entity, relation or type: its IRI and label. */
export interface NamedEntity {
  entity: string;
  label: string;
}

/** An entity that a variable may stand for. */
export interface LikelyEntity {
  entity: string;
  label: string;
  score: number;
}

/** A known entity or a variable of the query. */
export interface QueryNode {
  id: number;
  role: "anchor" | "variable" | "target";
  name: string;
  entity: string | null;
  type: string | null;
  likely: LikelyEntity[];
}

/** A triple pattern in the direction of the walk to the target; `inverse` if the triples point the other way. */
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

/** The query without a part of it: its text, the number of its answers and the first few of them. */
export interface RelaxedQuery {
  query: string;
  count: number;
  some: NamedEntity[];
}

/** Why a query has no exact answer: its smallest part without an answer. */
export interface EmptyReason {
  part: string[];
  query: string;
  without: RelaxedQuery | null;
}

/** The query as it was understood, and why it has no exact answer. */
export interface Explanation {
  nodes: QueryNode[];
  edges: QueryEdge[];
  empty: EmptyReason | null;
  conditions: string[];
}

/** The answer that a witness explains. */
export interface ExplainedAnswer {
  entity: string;
  label: string;
  type: string | null;
  known: boolean;
  score: number | null;
  confidence?: number;
  against?: string;
}

/** The entity that stands for a variable in a witness. */
export interface VariableBinding {
  variable: string;
  entity: string;
  label: string;
  type: string | null;
}

/** A triple of a witness; the confidence of a missing one is null if the run has no link models. */
export interface WitnessTriple {
  subject: NamedEntity;
  predicate: NamedEntity;
  object: NamedEntity;
  known: boolean;
  confidence: number | null;
  negated: boolean;
}

/** Why an entity is an answer: an entity for each variable, and the triples that this needs. */
export interface Witness {
  answer: ExplainedAnswer;
  witness: VariableBinding[];
  triples: WitnessTriple[];
  notes: string[];
}

/** An exact answer with its row; entity, label and type are those of the row's first value. */
export interface KnownAnswer {
  entity: string;
  label: string;
  type: string | null;
  row: Record<string, Cell>;
  expected?: Record<string, number>;
}

/** A predicted answer with its row; entity, label and type are those of the row's first value.

    The confidence is the probability that it is right, only in the mode links.
     */
export interface PredictedAnswer {
  entity: string;
  label: string;
  type: string | null;
  score: number;
  confidence?: number;
  row: Record<string, Cell>;
  expected?: Record<string, number>;
}

/** The answer to ASK: whether the graph's triples say yes, and the probability of yes. */
export interface Truth {
  known: boolean;
  probability: number;
}

/** A triple of CONSTRUCT or DESCRIBE; a predicted one has a confidence. */
export interface AnswerTriple {
  subject: Cell;
  predicate: Cell;
  object: Cell;
  known: boolean;
  confidence?: number;
}

/** All exact answers, then the predicted ones. */
export interface Answers {
  variables: string[];
  known: KnownAnswer[];
  predicted: PredictedAnswer[];
  explanation: Explanation;
  notes: string[];
  mode: string;
  seconds: number;
  target: string;
  missing_rows?: PredictedAnswer[];
  truth?: Truth;
  triples?: AnswerTriple[];
}

/** What a server allows; a request beyond it is cut or refused. */
export interface Limits {
  time: number;
  rows: number;
  answer: number;
  body: number;
  query: number;
  top: number;
  memory: number;
  workers: number;
  queue: number;
}

/** A name, and what to insert into a query for it; `degree` counts triples, and of a type its entities. */
export interface CompletionItem {
  iri: string;
  label: string;
  type: string | null;
  what: "entity" | "relation" | "type";
  degree: number;
  insert: string;
}

/** Names that start with a text, or nearly so. */
export interface Completions {
  items: CompletionItem[];
}

/** An example query; `missing` if the served triples lack one of its answers. */
export interface Example {
  title: string;
  query: string;
  missing: boolean;
}

/** Example queries. */
export interface ExampleList {
  examples: Example[];
}

/** The neighbours of an entity by one relation: the first few, and their number. */
export interface RelatedEntities {
  relation: NamedEntity;
  others: NamedEntity[];
  count: number;
}

/** A literal of an entity. */
export interface LiteralValue {
  relation: string;
  value: string;
}

/** What the graph knows about an entity. */
export interface EntityPage {
  entity: string;
  label: string;
  type: string;
  degree: number;
  out: RelatedEntities[];
  in: RelatedEntities[];
  literals: LiteralValue[];
}

/** What is served: the graph, the model, its prediction modes (the default first), limits and versions. */
export interface Info {
  graph: Record<string, unknown>;
  model: Record<string, unknown>;
  modes: string[];
  limits: Limits;
  versions: Record<string, string>;
  prefixes: Record<string, string>;
}

/** How many workers are ready to answer, and how many queries wait for one. */
export interface Health {
  status: "ready";
  workers: number;
  waiting: number;
}

/** The server answers requests; /api/health says whether it can answer queries. */
export interface Alive {
  status: "alive";
}

/** What is wrong with a request: where in the query (from 1), names that may have been meant, and what to do. */
export interface Fault {
  message: string;
  line: number | null;
  column: number | null;
  nearest: string[];
  advice: string | null;
}

/** The body of every error. */
export interface ErrorBody {
  error: Fault;
}
