from hypothesis import given
from hypothesis import strategies as st

from halfgraph.graph.vocabulary import Texts, Vocabulary, local_name

names = st.lists(st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=8), unique=True, max_size=30)


@given(names)
def test_packed_texts_come_back_as_they_were(texts: list[str]) -> None:
    packed = Texts.of(texts)
    assert list(packed) == texts == [packed[i] for i in range(len(packed))]


@given(names)
def test_every_name_is_found_by_its_id_and_back(texts: list[str]) -> None:
    words = Vocabulary.of(texts)
    assert [words.find(text) for text in texts] == list(range(len(texts)))
    assert [words.name(i) for i in range(len(words))] == texts


@given(names, st.text(st.characters(exclude_categories=["Cs"]), max_size=8))
def test_a_name_that_is_not_there_is_not_found(texts: list[str], other: str) -> None:
    assert (other in Vocabulary.of(texts)) == (other in texts)


def test_names_with_the_same_hash_are_distinguished() -> None:
    words = Vocabulary.of(["plumless", "buckeroo"])  # the same crc32
    assert words.hashes[0] == words.hashes[1]
    assert [words.find("plumless"), words.find("buckeroo"), words.find("other")] == [0, 1, None]


def test_a_name_of_broken_unicode_is_just_not_there() -> None:
    assert Vocabulary.of(["caf\xe9"]).find("caf\udce9") is None


def test_a_label_is_shown_and_else_the_last_part_of_the_name() -> None:
    words = Vocabulary.of(["http://a.org/Q1", "http://a.org/Some_City"], ["Vienna", ""])
    assert [words.label(0), words.label(1)] == ["Vienna", "Some_City"]


def test_the_nearest_names_are_those_a_person_meant() -> None:
    words = Vocabulary.of(["dbo:almaMater", "dbo:birthPlace", "dbo:city"], ["", "place of birth", ""])
    assert [words.name(i) for i in words.nearest("dbo:almaMatter")] == ["dbo:almaMater"]
    assert [words.name(i) for i in words.nearest("place_of_brith")] == ["dbo:birthPlace"]
    assert words.nearest("zzzzzz") == []


def test_the_local_name_is_what_follows_the_last_mark() -> None:
    expected = {
        "http://a.org/b#c": "c",
        "http://a.org/b/c": "c",
        "http://a.org/b/": "b",
        "urn:isbn:12": "12",
        "plain": "plain",
        "/m/027rn": "027rn",
        "#": "#",
        "a:": "a:",
    }
    assert {name: local_name(name) for name in expected} == expected
