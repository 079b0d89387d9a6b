"""RDF as it comes: several types or none, labels in several languages, blank nodes, literals, duplicates."""

from pathlib import Path
from typing import Any

from halfgraph.graph.folder import Graph
from imported_graphs import made

EX = "http://example.org/"
PREFIXES = f"""
@prefix : <{EX}> .
@prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> .
@prefix skos: <http://www.w3.org/2004/02/skos/core#> .
@prefix foaf: <http://xmlns.com/foaf/0.1/> .
@prefix owl: <http://www.w3.org/2002/07/owl#> .
@prefix xsd: <http://www.w3.org/2001/XMLSchema#> .
"""
# A few statements of every sort.
WILD = f"""{PREFIXES}
:Person rdfs:subClassOf :Agent . :Agent rdfs:subClassOf owl:Thing . :bornIn rdfs:domain :Person ; rdfs:label "born in" .
:Wien a :City, :Place, owl:NamedIndividual ; rdfs:label "Vienna"@en, "Wien"@de, "Vienne"@fr ; :in :Austria .
:Austria a :Country ; skos:prefLabel "Austria"@en ; rdfs:label "Österreich"@de .
:Schrödinger a :Person, foaf:Person ; :bornIn :Wien ; :died "1961-01-04"^^xsd:date ; foaf:knows [ a :Person ;
    foaf:name "Someone" ; :bornIn :Wien ] ; rdfs:seeAlso <relative> ; :bornIn :Wien ;
    :note "two\\nlines", "a \\"quote\\"" .
:Wien :twin :Wien . :list :holds ( :Wien :Austria ) . :Austria :population 8000000 .
""".encode()


def company(folder: Path, people: int = 60, **choices: Any) -> Graph:
    """A graph that is large enough to train on, in which every sixth employee has no stated type but a guessed one.

    Employees are persons and workers, some managers too; each has a blank node as address, a label in three languages,
    an age, and a note that is stated twice.
    """
    classes = (
        ":Manager rdfs:subClassOf :Employee . :Employee rdfs:subClassOf :Person . :Worker rdfs:subClassOf :Person ."
    )
    lines = [PREFIXES, classes, *(_employee(number, people) for number in range(people))]
    lines += [f':city{k} a :City ; rdfs:label "City {k}"@en, "Stadt {k}"@de ; :in :country{k % 3} .' for k in range(9)]
    lines += [f":country{k} a :Country ; :population {k + 1}000000 ." for k in range(3)]
    return made(folder, "\n".join(lines), "ttl", **choices)


def _employee(number: int, people: int) -> str:
    name, city = f":employee{number}", f":city{number % 9}"
    types = "" if number % 6 == 0 else f"{name} a :Employee, :Worker{', :Manager' * (number % 5 == 0)} .\n"
    labels = f'"Employee {number}"@en, "Angestellte {number}"@de, "Employée {number}"@fr'
    note = f'{name} :note "on site" .\n' * 2
    return (
        f"{types}{note}{name} rdfs:label {labels} ; :age {20 + number % 40} ; :livesIn {city} ;\n"
        f"    :knows :employee{(7 * number + 1) % people} ; :address [ a :Address ; :number {number} ; :in {city} ] ."
    )
