"""Labels that would do harm: the page shows them as text, and they change nothing around them."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, expect

from command_line import FEW
from server_process import running
from web.conftest import Visit, halfgraph, visiting

EX = "http://example.org/"
LABELS = {
    "html": "<img src=x onerror=alert(1)><script>alert(2)</script>",
    "quotes": "\"'><svg onload=alert(3)>",
    "template": "${alert(4)}{{alert(5)}}`",
    "controls": "bell\u0007 escape\u001b[31m null\u0001 delete\u007f",
    "reversed": "invoice\u202egpj.exe",
    "arabic": "مدينة",
    "long": "long " + "x" * 1_000_000,
}
QUERY = f"SELECT ?x {{ ?x <{EX}livesIn> <{EX}city1> }}"


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a server of a graph with harmful labels."""
    folder = tmp_path_factory.mktemp("labels")
    lines = [
        f"<{EX}{name}> <http://www.w3.org/2000/01/rdf-schema#label> {json.dumps(text)} ."
        for name, text in LABELS.items()
    ]
    lines += [
        f"<{EX}{name}> <{EX}livesIn> <{EX}city1> ; <{EX}note> {json.dumps(text)} ." for name, text in LABELS.items()
    ]
    lines += [f"<javascript:alert(6)> <{EX}livesIn> <{EX}city1> .", f"<{EX}html> <{EX}knows> <javascript:alert(6)> ."]
    lines += [f"<{EX}person{n}> <{EX}livesIn> <{EX}city{n % 3}> ." for n in range(30)]
    (folder / "source.ttl").write_text("\n".join(lines), encoding="utf-8")
    halfgraph("import", str(folder / "source.ttl"), "--split", "80/5/15", "--out", str(folder / "graph"))
    halfgraph("train", str(folder / "graph"), "--steps", "5", "--threads", "1", "--out", str(folder / "run"), *FEW)
    with running(Path(folder / "run"), "--log", "none") as server:
        yield server.address


@pytest.fixture
def hostile(browser: Browser, address: str) -> Iterator[Visit]:
    """A visit during which no dialog may open."""
    context = browser.new_context(viewport={"width": 1360, "height": 900})
    visits = visiting(context, address)
    visit = next(visits)
    visit.page.on("dialog", lambda dialog: visit.faults.append(f"dialog {dialog.message}"))
    yield visit
    next(visits, None)


def test_labels_are_shown_as_harmless_text(hostile: Visit) -> None:
    page = hostile.ask(QUERY)
    rows = page.locator("tr.answer.known")
    expect(rows.filter(has_text="<img src=x onerror=alert(1)><script>")).to_have_count(1)
    expect(rows.filter(has_text="\"'><svg onload=alert(3)>")).to_have_count(1)
    text = str(page.evaluate("document.body.innerText"))
    assert not set(text) & set("\u0001\u0007\u001b\u007f\u202e")
    assert len(text) < 100_000
    assert page.locator("img, answer-table script, [onerror], [onload]").count() == 0
    assert page.evaluate("document.documentElement.scrollWidth <= document.documentElement.clientWidth")
    assert page.locator("a[href^='javascript:' i]").count() == 0
    assert page.evaluate("getComputedStyle(document.querySelector('tr.answer td')).unicodeBidi") == "isolate"


@pytest.mark.parametrize("name", ["html", "controls", "long"])
def test_an_entity_with_a_harmful_label_has_a_harmless_page(hostile: Visit, name: str) -> None:
    page = hostile.open(QUERY, entity=f"{EX}{name}")
    expect(page.locator("dialog[open] h2")).to_contain_text(LABELS[name][:4])
    expect(page.locator("dialog[open] dd").first).to_be_visible()
    assert len(page.locator("dialog[open]").inner_text()) < 10_000
    assert page.locator("dialog[open] img, dialog[open] script, a[href^='javascript:' i]").count() == 0
    assert page.evaluate("document.documentElement.scrollWidth <= document.documentElement.clientWidth")
