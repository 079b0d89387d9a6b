"""Write a syntax tree as SPARQL text: the only place that does, and all that the store is ever asked.

IRIs are written in full, or by a naming function for people to read.
"""

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from halfgraph.sparql import syntax_tree as tree
from halfgraph.sparql.syntax_tree import RDF_TYPE, XSD, SyntaxNode

_BARE = {  # numbers and truth values that need no quotes
    XSD + "integer": re.compile(r"[0-9]+"),
    XSD + "decimal": re.compile(r"[0-9]*\.[0-9]+"),
    XSD + "double": re.compile(r"([0-9]+(\.[0-9]*)?|\.[0-9]+)[eE][+-]?[0-9]+"),
    XSD + "boolean": re.compile(r"true|false"),
}
_ESCAPES = str.maketrans({"\\": "\\\\", '"': '\\"', "\n": "\\n", "\r": "\\r", "\t": "\\t"})
_SIMPLE = (tree.Variable, tree.Iri, tree.Literal, tree.TripleTerm, tree.Call)  # operands without brackets, unless:
_OPERATORS = ("!", "+", "-", "IN", "NOT IN")


def full(iri: str) -> str:
    """Return an IRI between angle brackets."""
    return f"<{iri}>"


def write(node: SyntaxNode, name: Callable[[str], str] = full) -> str:
    """Return the text of a request or of any part of one; `name` writes its IRIs."""
    return Writer(name).text(node)


@dataclass(frozen=True)
class Writer:
    """Writes nodes, with IRIs as `name` gives them."""

    name: Callable[[str], str]

    def text(self, node: SyntaxNode) -> str:
        return _WRITE[type(node)](self, node)

    def texts(self, nodes: Iterable[SyntaxNode], between: str = " ") -> str:
        return between.join(map(self.text, nodes))

    def query(self, head: str, node: tree.Query) -> str:
        base = [] if node.base is None else [f"BASE {full(node.base)}"]
        where = [] if node.where is None else ["WHERE", self.text(node.where)]
        graphs = [f"{keyword} {self.text(graph)}" for keyword, graph in node.graphs]
        return " ".join([*base, head, *graphs, *where, *self.modifiers(node.modifiers)])

    def modifiers(self, node: tree.Modifiers) -> Iterator[str]:
        if node.group_by:
            plain = (tree.Named, tree.Variable)
            keys = (self.text(key) if isinstance(key, plain) else self.bracketed(key) for key in node.group_by)
            yield f"GROUP BY {' '.join(keys)}"
        if node.having:
            yield f"HAVING {' '.join(map(self.bracketed, node.having))}"
        if node.order_by:
            keys = (f"{'DESC' if descending else 'ASC'}({self.text(key)})" for key, descending in node.order_by)
            yield f"ORDER BY {' '.join(keys)}"
        if node.limit is not None:
            yield f"LIMIT {node.limit}"
        if node.offset is not None:
            yield f"OFFSET {node.offset}"
        if node.values is not None:
            yield self.text(node.values)

    def triple(self, node: tree.Triple) -> str:
        verb = "a" if node.predicate == tree.Iri(RDF_TYPE) else self.text(node.predicate)
        return f"{self.text(node.subject)} {verb} {self.text(node.object)} ."

    def values(self, node: tree.Values) -> str:
        rows = [" ".join("UNDEF" if term is None else self.text(term) for term in row) for row in node.rows]
        if len(node.variables) == 1 and all(len(row) == 1 for row in node.rows):
            return f"VALUES {self.text(node.variables[0])} {{ {' '.join(rows)} }}"
        return f"VALUES ({self.texts(node.variables)}) {{ {' '.join(f'({row})' for row in rows)} }}"

    def literal(self, node: tree.Literal) -> str:
        bare = _BARE.get(node.datatype or "")
        if bare is not None and bare.fullmatch(node.value):
            return node.value
        quoted = f'"{node.value.translate(_ESCAPES)}"'
        if node.language is not None:
            return f"{quoted}@{node.language}"
        return quoted if node.datatype is None else f"{quoted}^^{self.name(node.datatype)}"

    def path(self, node: tree.PathOperation) -> str:
        steps = [self.text(part) if isinstance(part, tree.Iri) else f"({self.text(part)})" for part in node.parts]
        match node.operator:
            case "!":
                return f"!({self.texts(node.parts, '|')})"
            case "^":
                return f"^{steps[0]}"
            case "/" | "|":
                return node.operator.join(steps)
        return f"{steps[0]}{node.operator}"

    def call(self, node: tree.Call) -> str:
        function = node.function if isinstance(node.function, str) else self.text(node.function)
        match function:
            case "!" | "+" | "-":
                return f"{function} {self.operand(node.arguments[0])}"
            case "IN" | "NOT IN":
                return f"{self.operand(node.arguments[0])} {function} ({self.texts(node.arguments[1:], ', ')})"
        arguments = self.texts(node.arguments, ", ") or ("*" if function == "COUNT" else "")
        between = "" if node.separator is None else f" ; SEPARATOR = {self.literal(tree.Literal(node.separator))}"
        return f"{function}({'DISTINCT ' if node.distinct else ''}{arguments}{between})"

    def operand(self, node: tree.Expression) -> str:
        simple = isinstance(node, _SIMPLE) and getattr(node, "function", "") not in _OPERATORS
        return self.text(node) if simple else self.bracketed(node)

    def bracketed(self, node: tree.Expression) -> str:
        return self.text(node) if isinstance(node, tree.Exists) else f"({self.text(node)})"


def _words(*words: str) -> str:
    return " ".join(filter(None, words))


_WRITE: dict[type[SyntaxNode], Callable[[Writer, Any], str]] = {
    tree.Select: lambda w, node: w.query(_words("SELECT", node.duplicates, w.texts(node.projection) or "*"), node),
    tree.Ask: lambda w, node: w.query("ASK", node),
    tree.Construct: lambda w, node: w.query(
        "CONSTRUCT" if node.template is None else f"CONSTRUCT {{ {w.texts(node.template)} }}", node
    ),
    tree.Describe: lambda w, node: w.query(f"DESCRIBE {w.texts(node.subjects) or '*'}", node),
    tree.Update: lambda _, node: node.text,
    tree.Named: lambda w, node: f"({w.text(node.expression)} AS {w.text(node.variable)})",
    tree.Group: lambda w, node: _words("{", w.texts(node.elements), "}"),
    tree.Triple: Writer.triple,
    tree.UnionPattern: lambda w, node: w.texts(node.groups, " UNION "),
    tree.Clause: lambda w, node: _words(
        node.keyword, "SILENT" if node.silent else "", w.text(node.name) if node.name else "", w.text(node.group)
    ),
    tree.Filter: lambda w, node: f"FILTER {w.bracketed(node.constraint)}",
    tree.Bind: lambda w, node: f"BIND({w.text(node.expression)} AS {w.text(node.variable)})",
    tree.Values: Writer.values,
    tree.Variable: lambda _, node: f"?{node.name}",
    tree.Iri: lambda w, node: w.name(node.value),
    tree.BlankNode: lambda _, node: f"_:{node.label}",
    tree.Literal: Writer.literal,
    tree.TripleTerm: lambda w, node: f"<<( {w.texts([node.subject, node.predicate, node.object])} )>>",
    tree.PathOperation: Writer.path,
    tree.Operation: lambda w, node: (
        w.operand(node.first) + "".join(f" {sign} {w.operand(operand)}" for sign, operand in node.rest)
    ),
    tree.Call: Writer.call,
    tree.Exists: lambda w, node: f"{'NOT ' if node.negated else ''}EXISTS {w.text(node.group)}",
}
