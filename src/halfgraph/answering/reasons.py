"""Why nothing is predicted, and why an entity is no answer, in words that the exact answers do not contradict."""

from halfgraph.answering.store_rows import GraphStore
from halfgraph.errors import SparqlError, UnknownName
from halfgraph.sparql.syntax_tree import RDF_TYPE, Ask, Call, Filter, Group, Iri, Triple, UnionPattern, Variable

_S, _P, _O = Variable("s"), Variable("p"), Variable("o")
_LITERAL = Filter(Call("ISLITERAL", (_O,)))


def why_not_predicted(error: SparqlError | UnknownName, store: GraphStore, *, has_rows: bool) -> str:
    """Return why a query is answered exactly only; raise the error of a name that the store does not know either."""
    if not isinstance(error, UnknownName):
        return str(error)
    for patterns, reason in _reasons(error):
        if store.holds(Ask(Group(patterns))):
            return reason
    if has_rows:
        return str(error)
    raise error


def _reasons(error: UnknownName) -> list[tuple[tuple[Triple | Filter | UnionPattern, ...], str]]:
    """What the store may know of a name that is not in the graph, as patterns, and what follows from it."""
    name, iri = error.name, Iri(error.iri)
    match error.what:
        case "relation":
            return [
                ((Triple(_S, iri, _O), _LITERAL), f"{name} leads to literals, which are not predicted"),
                ((Triple(_S, iri, _O),), f"{name} was set aside by the import, so nothing is predicted by it"),
            ]
        case "type":
            reason = f"predictions know one type of each entity, and {name} is none of these types"
            return [((Triple(_S, Iri(RDF_TYPE), iri),), reason)]
    ends = UnionPattern((Group((Triple(iri, _P, _O),)), Group((Triple(_S, _P, iri),))))
    return [((ends,), f"{name} has no triple that predictions are made from")]
