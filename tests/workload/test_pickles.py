import collections
import datetime
import gzip
import os
import pickle
from collections import defaultdict
from pathlib import Path
from typing import Any

import pytest

from halfgraph.errors import InputError, UnknownName
from halfgraph.graph.folder import Graph
from halfgraph.query.structures import structure_named
from halfgraph.workload.jsonl import Imported, import_workload
from halfgraph.workload.pickles import load_dictionary
from halfgraph.workload.verification import verify
from imported_graphs import made
from query_files import published, some_queries, split_graph, write_lines

OLD = {"1p": "1c", "2p": "2c", "3p": "3c", "2i": "2i", "3i": "3i", "ip": "ic", "pi": "ci", "2u": "2u", "up": "uc"}
SHORTS = list(OLD)[:5] + ["pi", "ip", "2u", "up"]  # the order of some_queries


@pytest.fixture(scope="module")
def graph(tmp_path_factory: pytest.TempPathFactory) -> Graph:
    return split_graph(tmp_path_factory.mktemp("graph"))


def entity(name: str) -> int:
    """Another numbering than the graph's."""
    return 2 * (29 - int(name[1:]))


def relation(name: str) -> int:
    return 2 * int(name[1]) + name.endswith("^-1")


def tuples(query: list[Any]) -> Any:
    """A query as KGReasoning has it."""
    if query == ["u"]:
        return (-1,)
    if isinstance(query[0], str):
        return entity(query[0]), tuple(map(relation, query[1]))
    if len(query) == 2 and isinstance(query[1][0], str) and isinstance(query[1][-1], str):
        return tuples(query[0]), tuple(map(relation, query[1]))
    return tuple(map(tuples, query))


def boxed(query: list[Any], structure: str) -> Any:
    """A query as Query2Box has it."""
    whole = tuples(query)
    if structure in ("1c", "2c", "3c"):
        return (whole,)
    if structure in ("ic", "uc"):
        return (*whole[0][:2], *whole[1])
    return whole[:2] if structure == "2u" else whole


def dump(path: Path, value: Any, protocol: int = 4) -> None:
    path.write_bytes(pickle.dumps(value, protocol))


def names(folder: Path, forward: str = "{}", back: str = "{}^-1", stem: str = "id2") -> None:
    """The files that say what the numbers stand for."""
    dump(folder / f"{stem}ent.pkl", {entity(f"e{number}"): f"e{number}" for number in range(30)})
    ways = ((0, forward), (1, back))
    dump(folder / f"{stem}rel.pkl", {2 * n + flip: way.format(f"r{n}") for n in range(4) for flip, way in ways})


def reasoning(folder: Path, split: str, lines: list[dict[str, Any]], protocol: int = 4) -> None:
    """KGReasoning's files of a split."""
    queries: Any = defaultdict(set)
    easy, hard = defaultdict(set), defaultdict(set)
    for line in lines:
        query = tuples(line["query"])
        queries["structure", len(str(query))].add(query)
        easy[query], hard[query] = ({*map(entity, line[name])} for name in ("easy", "hard"))
    dump(folder / f"{split}-queries.pkl", queries, protocol)
    if split == "train":
        dump(folder / "train-answers.pkl", easy, protocol)
    else:
        dump(folder / f"{split}-easy-answers.pkl", easy, protocol)
        dump(folder / f"{split}-hard-answers.pkl", hard, protocol)


def boxes(folder: Path, split: str, lines: list[tuple[str, dict[str, Any]]], without: str = "") -> None:
    """Query2Box's files of a split; `without`: a structure whose file of all answers is lost."""
    every: Any = defaultdict(dict)
    hard: Any = defaultdict(dict)
    for short, line in lines:
        query = boxed(line["query"], OLD[short])
        hard[OLD[short]][query] = {*map(entity, line["hard"])}
        every[OLD[short]][query] = {*map(entity, line["easy"] + line["hard"])}
    for structure in every:
        if structure != without:
            dump(folder / f"{split}_ans_{structure}.pkl", dict(every[structure]))
        if split != "train":
            dump(folder / f"{split}_ans_{structure}_hard.pkl", dict(hard[structure]))


def questions_of(graph: Graph, imported: Imported, split: str) -> set[Any]:
    """The queries of a split with their answers, whatever their order."""
    found = set()
    for structure in imported.workload.structures(split):
        questions = imported.workload.questions(split, structure)
        assert questions.easy is not None
        for row in range(len(questions)):
            hard = () if questions.hard is None else tuple(questions.hard[row].tolist())
            columns = (questions.anchors[row], questions.relations[row], questions.easy[row])
            found.add((structure.short, *(tuple(column.tolist()) for column in columns), hard))
    return found


def of_lines(graph: Graph, folder: Path, lines: list[dict[str, Any]], split: str) -> set[Any]:
    """The same questions imported from JSON lines."""
    return questions_of(
        graph, import_workload(write_lines(folder / "q.jsonl", lines), graph, folder / "lines", split), split
    )


SPELLINGS = [("+{}", "-{}"), ("{}", "{}_reverse"), ("{}", "{}^-1")]


@pytest.mark.parametrize(("forward", "back"), SPELLINGS)
@pytest.mark.parametrize("split", ["valid", "test"])
def test_the_files_of_kgreasoning_hold_what_the_same_lines_hold(
    graph: Graph, tmp_path: Path, split: str, forward: str, back: str
) -> None:
    lines = published(graph, some_queries(20), *({"valid": ("train", "known"), "test": ("known", "whole")}[split]))
    names(tmp_path, forward, back)
    reasoning(tmp_path, split, lines)
    imported = import_workload(tmp_path, graph, tmp_path / "w")
    assert questions_of(graph, imported, split) == of_lines(graph, tmp_path, lines, split)
    verified = verify(graph, imported.workload)
    assert verified.equal == verified.queries > 40


@pytest.mark.parametrize("split", ["valid", "test"])
def test_the_files_of_query2box_hold_what_the_same_lines_hold(graph: Graph, tmp_path: Path, split: str) -> None:
    queries = some_queries(60)
    on = {"valid": ("train", "known"), "test": ("known", "whole")}[split]
    lines = [
        (SHORTS[place % 9], line) for place, query in enumerate(queries) for line in published(graph, [query], *on)
    ]
    kept = [(short, line) for short, line in lines if line["hard"]]
    names(tmp_path, "{}", "{}_reverse", "ind2")
    boxes(tmp_path, split, kept, without="ic")
    imported = import_workload(tmp_path, graph, tmp_path / "w")
    assert questions_of(graph, imported, split) == of_lines(graph, tmp_path, [line for _, line in kept], split)
    one = import_workload(tmp_path / f"{split}_ans_uc_hard.pkl", graph, tmp_path / "one")
    assert one.workload.description["questions"] == {
        split: {"3-chain_union": imported.workload.description["questions"][split]["3-chain_union"]}
    }


def test_a_folder_gives_all_its_splits_or_the_one_asked_for(graph: Graph, tmp_path: Path) -> None:
    names(tmp_path)
    reasoning(tmp_path, "train", published(graph, some_queries(6), "train", "train"))
    reasoning(tmp_path, "valid", published(graph, some_queries(6), "train", "known"))
    reasoning(tmp_path, "test", published(graph, some_queries(6), "known", "whole"))
    every = import_workload(tmp_path, graph, tmp_path / "w")
    assert {split: every.workload.graphs(split) for split in every.conventions} == {
        "train": ("train", "train"),
        "valid": ("train", "known"),
        "test": ("known", "whole"),
    }
    verified = verify(graph, every.workload)
    assert verified.equal == verified.queries
    one = import_workload(tmp_path, graph, tmp_path / "one", "test").workload
    assert list(one.description["questions"]) == ["test"]


def test_negations_are_read_and_those_that_stand_alone_set_aside(graph: Graph, tmp_path: Path) -> None:
    names(tmp_path)
    reasoning(tmp_path, "valid", published(graph, some_queries(2), "train", "known"))
    queries = load_dictionary(tmp_path / "valid-queries.pkl")
    usual, de_morgan = ((2, (0,)), (4, (3, -2))), (((2, (0, -2)), (4, (3, -2))), (-2, 1))
    dump(tmp_path / "valid-queries.pkl", {**queries, "2in": {usual, de_morgan}})
    for part in ("easy", "hard"):
        path = tmp_path / f"valid-{part}-answers.pkl"
        dump(path, {**load_dictionary(path), usual: {6 if part == "hard" else 4}, de_morgan: {2}})
    imported = import_workload(tmp_path, graph, tmp_path / "w").workload
    assert imported.description["set_aside"] == {"with a negation that stands alone": 1}
    found = imported.questions("valid", structure_named("2in"))
    assert found.relations.tolist() == [[0, 3]]
    assert [[graph.entities.name(each) for each in row] for row in found.anchors] == [["e28", "e27"]]


def test_a_graph_of_numbers_needs_no_names(tmp_path: Path) -> None:
    graph = made(tmp_path, "0\t0\t1\n1\t1\t0\n1\t2\t2\n2\t3\t1\n")
    names(tmp_path)
    dump(tmp_path / "valid-queries.pkl", {"1p": {(0, (0,))}, "2p": {(0, (0, 2))}})
    dump(tmp_path / "valid-easy-answers.pkl", {(0, (0,)): {1}, (0, (0, 2)): {2}})
    dump(tmp_path / "valid-hard-answers.pkl", {})
    dump(tmp_path / "id2ent.pkl", {0: "/m/a", 1: "/m/b", 2: "/m/c"})
    dump(tmp_path / "id2rel.pkl", {0: "+/x", 1: "-/x", 2: "+/y", 3: "-/y"})
    imported = import_workload(tmp_path, graph, tmp_path / "w").workload
    verified = verify(graph, imported)
    assert verified.equal == verified.queries == 2


@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
def test_plain_data_of_every_protocol_is_read(tmp_path: Path, protocol: int) -> None:
    inner = defaultdict(list, {"b": [1, 2.5, None, True]})
    value = {("a", (1, -2)): {3, 4}, "f": frozenset({5}), "d": inner, "s": defaultdict(set), "i": defaultdict(int)}
    dump(tmp_path / "d.pkl", value, protocol)
    assert load_dictionary(tmp_path / "d.pkl") == value
    (tmp_path / "d.pkl.gz").write_bytes(gzip.compress(pickle.dumps(value, protocol)))
    assert load_dictionary(tmp_path / "d.pkl.gz") == value


class Calls:
    """Pickles as a call of anything."""

    def __init__(self, what: Any, *arguments: Any) -> None:
        self.what, self.arguments = what, arguments

    def __reduce__(self) -> Any:
        return self.what, self.arguments


def wicked(mark: Path) -> dict[str, Any]:
    """Values whose unpickling would make a file, or name something that is no plain data."""
    return {
        "posix.system": Calls(os.system, f"touch {mark}"),
        "builtins.eval": Calls(eval, f"open({str(mark)!r}, 'w')"),
        "builtins.getattr": Calls(getattr, {}, "clear"),
        "_io.open": Calls(open, str(mark), "w"),
        "datetime.date": datetime.date(2020, 1, 1),
        "collections.OrderedDict": collections.OrderedDict(a=1),
        "builtins.bytearray": bytearray(b"x"),
    }


@pytest.mark.parametrize("name", wicked(Path()))
@pytest.mark.parametrize("protocol", [0, 2, 4])
def test_whatever_is_no_plain_data_is_refused_by_name_and_never_run(tmp_path: Path, name: str, protocol: int) -> None:
    mark = tmp_path / "mark"
    dump(tmp_path / "d.pkl", {"a": [wicked(mark)[name]]}, protocol)
    with pytest.raises(InputError) as error:
        load_dictionary(tmp_path / "d.pkl")
    qualified = name if protocol > 2 else name.replace("builtins.", "__builtin__.")
    assert str(error.value).startswith(f"{tmp_path / 'd.pkl'}: holds ")
    assert qualified in str(error.value) or name == "_io.open"
    assert not mark.exists()


def test_a_factory_that_is_no_container_is_refused(tmp_path: Path) -> None:
    dump(tmp_path / "d.pkl", defaultdict(Path))
    with pytest.raises(InputError, match="holds pathlib"):
        load_dictionary(tmp_path / "d.pkl")


# A program that calls os.system by hand: c names it, ( is a mark, V a string, t a tuple, R calls.
BROKEN = {
    b"cos\nsystem\n(Vtouch mark\ntR.": "holds os.system",
    b"(Vtouch mark\nios\nsystem\n.": "holds os.system",
    b"Vid\nQ.": "cannot be read as a pickle",
    b"not a pickle": "cannot be read as a pickle",
    pickle.dumps({1: {2}})[:-4]: "cannot be read as a pickle",
    b"\x80\x04\x82\x01.": "cannot be read as a pickle",
    pickle.dumps([1, 2]): "expected a dictionary, found list",
    b"": "the file is empty",
}


@pytest.mark.parametrize("content", BROKEN, ids=list(BROKEN.values()))
def test_broken_pickles_end_in_one_clear_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, content: bytes) -> None:
    monkeypatch.chdir(tmp_path)
    Path("d.pkl").write_bytes(content)
    with pytest.raises(InputError, match=BROKEN[content]):
        load_dictionary(Path("d.pkl"))
    assert list(Path().iterdir()) == [Path("d.pkl")]


def test_a_missing_or_malformed_field_is_reported(graph: Graph, tmp_path: Path) -> None:
    def said(words: str, type_id: type[Exception] = InputError) -> None:
        with pytest.raises(type_id, match=words):
            import_workload(tmp_path, graph, tmp_path / "w")
        assert not (tmp_path / "w").exists()

    said("no query files here. Expected valid-queries.pkl")
    dump(tmp_path / "valid-queries.pkl", {"1p": {(2, (0,))}})
    said(r"no id2ent.pkl here, which names the numbers in the queries")
    names(tmp_path)
    said(r"valid-queries.pkl: needs valid-easy-answers.pkl beside it")
    dump(tmp_path / "valid-easy-answers.pkl", {})
    dump(tmp_path / "valid-hard-answers.pkl", {})
    said("the query has no answers")
    dump(tmp_path / "valid-hard-answers.pkl", {(2, (0,)): {99}})
    said(r"entity 99 has no name in")
    dump(tmp_path / "valid-hard-answers.pkl", {(2, (0,)): "everybody"})
    said(r"expected a set of answers or queries, found \"everybody\"")
    dump(tmp_path / "valid-queries.pkl", {"1p": {(2, 0)}})
    said(r"expected a query of nested tuples of numbers, found \[2, 0\]")
    dump(tmp_path / "valid-queries.pkl", {"1p": {(2, (77,))}})
    said(r"relation 77 has no name in")
    dump(tmp_path / "valid-queries.pkl", {"1p": {(2, (0,))}})
    dump(tmp_path / "valid-hard-answers.pkl", {(2, (0,)): {4}})
    dump(tmp_path / "id2rel.pkl", {0: "+/people/person", 1: "+r0"})
    said(r"no relation \+/people/person in this graph", UnknownName)


def test_a_pickle_that_is_no_query_file_is_refused_by_its_name(graph: Graph, tmp_path: Path) -> None:
    dump(tmp_path / "model.pkl", {})
    with pytest.raises(InputError, match="not the name of a query file"):
        import_workload(tmp_path / "model.pkl", graph, tmp_path / "w")
    dump(tmp_path / "valid_ans_2c.pkl", {})
    names(tmp_path)
    with pytest.raises(InputError, match=r"needs valid_ans_2c_hard.pkl beside it"):
        import_workload(tmp_path / "valid_ans_2c.pkl", graph, tmp_path / "w")


def test_a_pickle_that_crashes_its_reader_is_one_clear_error(tmp_path: Path) -> None:
    nested = b"\x80\x04}" + b")" + b"\x85" * 1_000_000 + b"K\x01s."  # the hash of a tuple is that of its members
    (tmp_path / "a.pkl").write_bytes(nested)
    with pytest.raises(InputError, match=r"a\.pkl: is nested too deeply"):
        load_dictionary(tmp_path / "a.pkl")
