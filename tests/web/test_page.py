"""The page in a real browser: what a person does with it, and what it must never do."""

import csv
import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from web.conftest import ROOT, Visit

PREFIX = "PREFIX : <http://baseball.example/>\n"
LEFT = PREFIX + "SELECT ?player { ?player :throws :Left_hand ; :won_award :Cy_Young_Award }"
CHAIN = PREFIX + "SELECT ?player { ?player :played_for ?team . ?team :season_of :Los_Angeles_Dodgers }"
EITHER = PREFIX + (
    "SELECT ?p { { ?p :won_award :Cy_Young_Award } UNION { ?p :won_award :Most_Valuable_Player }"
    " FILTER NOT EXISTS { ?p :throws :Left_hand } }"
)
NONE = PREFIX + "SELECT ?p { ?p :won_award :Cy_Young_Award ; :throws :Left_hand ; :plays_position :Catcher }"
AXE = ROOT / "web" / "node_modules" / "axe-core" / "axe.min.js"
MOST_BYTES = 250_000


def in_editor(page: Page) -> str:
    """The text of the editor."""
    return str(page.evaluate("document.querySelector('query-editor').text"))


def serious(page: Page) -> list[str]:
    """Serious and critical findings of axe, with their elements."""
    page.evaluate(AXE.read_text())
    page.wait_for_timeout(300)  # what moves has arrived: half-faded text has no contrast
    found: list[dict[str, Any]] = page.evaluate("axe.run(document, {resultTypes: ['violations']})")["violations"]
    grave = [one for one in found if one["impact"] in ("serious", "critical")]
    return [f"{one['id']}: {one['nodes'][0]['html'][:200]} {one['nodes'][0]['failureSummary']}" for one in grave]


def overflow(page: Page) -> int:
    """By how many pixels the page is wider than the screen."""
    return int(page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth"))


def test_a_first_visit_finds_a_query_and_six_questions_most_of_which_lack_a_triple(visit: Visit) -> None:
    page = visit.open()
    expect(page.locator(".begin a")).to_have_count(6, timeout=60_000)  # the first look compiles kernels
    assert page.locator(".begin .lacking").count() >= 4
    assert "SELECT" in in_editor(page)
    visit.shoot("first")


def test_an_example_has_predicted_rows_and_a_query_known_rows_before_them(visit: Visit) -> None:
    page = visit.open()
    page.get_by_role("button", name="Examples").click()
    page.get_by_role("menuitem").first.click()
    expect(page.locator("tr.answer.predicted").first).to_be_visible()
    visit.shoot("example")
    visit.ask(LEFT)
    types = page.locator("tr.answer .badge").all_inner_texts()
    assert {"known", "predicted"} == {type_id.strip() for type_id in types}
    assert types == sorted(types)  # known before predicted
    expect(page.locator("tr.predicted .meter").first).to_have_text(re.compile(r"\d %"))


def test_the_query_is_drawn_with_its_anchors_target_and_attention(visit: Visit) -> None:
    page = visit.ask(LEFT)
    drawing = page.locator("query-drawing")
    expect(drawing.locator("a.dot.anchor")).to_have_count(2)
    expect(drawing.locator(".dot.target")).to_contain_text("?player")
    shares = [float(text.rstrip(" %")) for text in drawing.locator(".name .number").all_text_contents()]
    assert sum(shares) == pytest.approx(100, abs=1)
    widths = [float(str(path.get_attribute("stroke-width"))) for path in drawing.locator(".line path").all()]
    assert shares[widths.index(max(widths))] == max(shares)  # shares are rounded, widths are not


def test_the_drawing_has_the_conditions_of_the_query_and_no_type_that_it_does_not_state(visit: Visit) -> None:
    condition = "FILTER(?player != :Sandy_Koufax)"
    drawing = visit.ask(LEFT.replace(" }", f" {condition} }}")).locator("query-drawing")
    expect(drawing.locator(".condition")).to_have_text([condition])
    expect(drawing.locator(".dot.target")).to_have_text("?player")
    typed = visit.ask(LEFT.replace("{ ", "{ ?player a :person . ")).locator("query-drawing")
    expect(typed.locator(".dot.target")).to_contain_text("person")


def test_each_selected_variable_is_a_column_in_the_order_of_the_select(visit: Visit) -> None:
    page = visit.ask(PREFIX + "SELECT ?player ?team { ?player :won_award :Cy_Young_Award ; :played_for ?team }")
    heads = page.locator("answer-table th").all_inner_texts()
    assert [head.split()[0].lower() for head in heads[1:3]] == ["player", "team"]
    first = page.locator("tr.predicted").first.locator("td")
    expect(first.nth(1).locator("button.label")).to_be_visible()
    expect(first.nth(2).locator("a")).to_be_visible()


def test_what_must_not_hold_and_alternatives_are_marked_by_word_and_line(visit: Visit) -> None:
    drawing = visit.ask(EITHER).locator("query-drawing")
    expect(drawing.locator(".name.negated")).to_have_text("not throws")
    expect(drawing.locator(".name.alternative")).to_have_text(["or won award"] * 2)
    dashes = [
        drawing.locator(f".line.{look} path").first.evaluate("one => getComputedStyle(one).strokeDasharray")
        for look in ("negated", "alternative")
    ]
    assert len({*dashes, "none"}) == 3
    expect(drawing.locator(".legend")).to_contain_text("excluded")
    visit.shoot("not-and-or")


def test_the_prediction_mode_is_chosen_and_in_the_link(visit: Visit) -> None:
    page = visit.ask(LEFT)
    modes = page.get_by_label("Mode").locator("option").all_inner_texts()
    assert modes == ["default", *page.request.get(f"{visit.address}/api/info").json()["modes"]]
    page.get_by_label("Mode").select_option("embedding")
    expect(page.locator(".summary .mode")).to_contain_text("embedding")
    assert "mode=embedding" in page.url


def test_a_link_with_the_earlier_names_of_options_still_works(visit: Visit) -> None:
    page = visit.open(LEFT)
    page.wait_for_selector(".summary")
    address = page.url
    page.goto(address + "&mode=scored&least=0.25")
    expect(page.get_by_label("Mode")).to_have_value("links")
    expect(page.get_by_label("Confidence")).to_have_value("0.25")
    expect(page.locator(".summary")).to_be_visible()
    page.goto(address + "&mode=vector&least=0.25")  # this mode has no confidence
    expect(page.get_by_label("Mode")).to_have_value("embedding")
    expect(page.get_by_label("Confidence")).to_have_value("0")
    expect(page.locator(".summary")).to_be_visible()


def test_a_click_on_an_answer_shows_its_witness_drawn_and_listed(visit: Visit) -> None:
    page = visit.ask(LEFT)
    page.locator("tr.known").first.click()
    witness = page.locator("answer-witness")
    expect(witness.locator(".triples li.known")).to_have_count(2)
    expect(witness.locator(".line.solid")).to_have_count(2)
    visit.shoot("witness-known", whole=True)
    page.locator("tr.predicted").first.click()
    expect(witness.locator(".triples li.missing").first).to_contain_text("missing")
    assert witness.locator(".line.missing").count() == witness.locator(".triples li.missing").count()
    assert (
        witness.locator(".line.missing path").first.evaluate("one => getComputedStyle(one).strokeDasharray") != "none"
    )
    visit.shoot("witness-predicted", whole=True)


def test_a_syntax_error_is_underlined_where_it_is_and_goes_when_the_text_changes(visit: Visit) -> None:
    page = visit.open(PREFIX + "SELECT ?p {\n  ?p :throws :Left_hand ;; ?? }")
    expect(page.get_by_role("alert")).to_contain_text("cannot be answered")
    expect(page.locator("query-editor .cm-lintRange-error, query-editor .cm-lintPoint-error").first).to_be_visible()
    visit.shoot("error")
    page.get_by_role("button", name="Go to line 3").click()
    page.keyboard.type(" ")
    expect(page.locator("query-editor .cm-lintRange-error")).to_have_count(0)


def test_an_unknown_name_is_marked_and_the_nearest_ones_are_offered(visit: Visit) -> None:
    page = visit.open(PREFIX + "SELECT ?p { ?p :won_awards :Cy_Young_Award }")
    marked = page.locator("query-editor .cm-lintRange-error")
    expect(marked).to_have_text(":won_awards")
    expect(page.get_by_text("Did you mean")).to_have_count(1)
    page.locator(".nearest button").first.click()
    assert ":won_award " in in_editor(page)
    page.keyboard.press("Control+Enter")
    expect(page.locator("tr.answer.known").first).to_be_visible()


def test_a_name_is_completed_by_its_label_with_the_prefix_line_it_needs(visit: Visit) -> None:
    page = visit.open()
    page.wait_for_selector(".begin a")
    page.locator("query-editor .cm-content").click()
    page.keyboard.press("Control+a")
    page.keyboard.type("SELECT ?p { ?p ?r Cy Yo")
    page.keyboard.press("Control+Space")
    choice = page.locator("query-editor .cm-tooltip-autocomplete li").first
    expect(choice).to_contain_text("Cy Young")
    visit.shoot("completion")
    page.wait_for_timeout(200)  # the editor takes no choice at once, so that typing on is safe
    page.keyboard.press("Enter")
    assert in_editor(page).startswith(PREFIX)
    assert "?r :Cy_Young" in in_editor(page)


def test_a_link_restores_the_query_with_its_options_and_the_way_back(visit: Visit) -> None:
    page = visit.ask(LEFT)
    page.locator("select").first.select_option("5")
    expect(page.locator("tr.predicted")).to_have_count(5)
    shown = page.locator("tr.answer button.label").all_inner_texts()
    link = page.url
    page.reload()
    page.wait_for_selector(".summary")
    assert (in_editor(page), page.locator("tr.answer button.label").all_inner_texts()) == (LEFT, shown)
    assert page.url == link
    page.go_back()
    expect(page.locator("tr.predicted")).to_have_count(10)


def test_copied_link_curl_and_python_ask_the_same(visit: Visit) -> None:
    page = visit.ask(LEFT)
    page.get_by_role("button", name="more of").click()
    known = page.locator("tr.known button.label").all_inner_texts()
    assert len(known) > 12

    def copied(what: str) -> str:
        page.get_by_role("button", name="Share").click()
        page.get_by_role("menuitem", name=what).click()
        expect(page.locator(".message")).to_contain_text("copied")
        return str(page.evaluate("navigator.clipboard.readText()"))

    assert copied("Copy link") == page.url
    said = subprocess.run(copied("Copy as curl"), shell=True, capture_output=True, check=True).stdout
    assert [one["label"] for one in json.loads(said)["known"]] == known
    lines = subprocess.run([sys.executable, "-c", copied("Copy as Python")], capture_output=True, text=True, check=True)
    assert [line.removeprefix("known ") for line in lines.stdout.splitlines() if line.startswith("known")] == known


def test_answers_have_their_json_twin(visit: Visit) -> None:
    page = visit.ask(LEFT)
    twin = str(page.locator(".summary").get_by_role("link", name="as JSON").get_attribute("href"))
    found = page.request.get(visit.address + twin).json()
    assert page.locator("tr.predicted button.label").all_inner_texts() == [one["label"] for one in found["predicted"]]


def test_answers_are_filtered_and_downloaded(visit: Visit, tmp_path: Path) -> None:
    page = visit.ask(LEFT)
    every = page.locator("tr.answer").count()
    page.locator(".choice", has_text="Predicted").click()
    expect(page.locator("tr.answer.known")).to_have_count(0)
    page.locator(".choice", has_text="All").click()
    expect(page.locator("tr.answer")).to_have_count(every)
    page.get_by_label("Filter the answers").fill("zito")
    expect(page.locator("tr.answer button.label")).to_have_text("Barry Zito")
    with page.expect_download() as waiting:
        page.get_by_role("button", name="CSV").click()
    waiting.value.save_as(tmp_path / "answers.csv")
    (row,) = csv.DictReader((tmp_path / "answers.csv").read_text().splitlines())
    assert (row["player"], row["_source"]) == ("http://baseball.example/Barry_Zito", "known")
    with page.expect_download() as waiting:
        page.get_by_role("button", name="JSON").click()
    waiting.value.save_as(tmp_path / "answers.json")
    assert [one["label"] for one in json.loads((tmp_path / "answers.json").read_text())["known"]] == ["Barry Zito"]


def test_an_empty_query_says_which_part_fails_and_leads_to_the_query_without_it(visit: Visit) -> None:
    page = visit.ask(NONE)
    reason = page.locator("details.empty")
    if reason.get_attribute("open") is None:
        reason.locator("summary").click()
    expect(reason).to_contain_text("The graph has no match for")
    expect(reason.locator("pre")).to_contain_text("Catcher")
    visit.shoot("empty")
    reason.get_by_role("link", name="Run the query without").click()
    expect(page.locator("tr.answer.known").first).to_be_visible()
    assert in_editor(page) != NONE


def test_an_entity_shows_its_neighbours_and_leads_on_and_back(visit: Visit) -> None:
    page = visit.ask(LEFT)
    page.locator("query-drawing a.dot.anchor", has_text="Cy Young Award").click()
    panel = page.locator("entity-view dialog")
    expect(panel.locator("h2")).to_have_text("Cy Young Award")
    visit.shoot("entity")
    name = panel.locator(".others a").first.inner_text()
    panel.locator(".others a").first.click()
    expect(panel.locator("h2")).to_have_text(name)
    twin = str(panel.get_by_role("link", name="as JSON").get_attribute("href"))
    assert page.request.get(visit.address + twin).json()["label"] == name
    page.go_back()
    expect(panel.locator("h2")).to_have_text("Cy Young Award")
    page.keyboard.press("Escape")
    expect(panel).not_to_be_visible()
    expect(page.locator("tr.answer").first).to_be_visible()


def test_all_of_it_works_from_the_keyboard(visit: Visit) -> None:
    page = visit.open()
    page.wait_for_selector(".begin a")
    page.get_by_role("button", name="Examples").focus()
    for key in ("Enter", "ArrowDown", "ArrowUp", "Enter"):
        page.keyboard.press(key)
    page.wait_for_selector("tr.answer")
    for _ in range(40):
        page.keyboard.press("Tab")
        if page.evaluate("document.activeElement.matches('button.label')"):
            break
    assert page.evaluate("getComputedStyle(document.activeElement).outlineStyle") == "solid"
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    expect(page.locator("tr.answer").nth(1).locator("button.label")).to_have_attribute("aria-expanded", "true")
    expect(page.locator("answer-witness .triples li").first).to_be_visible()


@pytest.mark.parametrize("query", ["", LEFT, CHAIN, NONE, "SELECT ?p {"])
def test_a_narrow_screen_never_scrolls_sideways(phone: Visit, query: str) -> None:
    page = phone.open(query)
    page.wait_for_selector(".begin a, .summary, .fault")
    if query == LEFT:
        page.locator("tr.predicted button.label").first.click()
        page.wait_for_selector(".triples")
        phone.shoot("phone", whole=True)
    assert overflow(page) == 0


def test_the_page_is_dark_where_the_system_is_and_light_by_choice(night: Visit) -> None:
    page = night.ask(LEFT)
    paper = "getComputedStyle(document.documentElement).backgroundColor.match(/\\d+/g).map(Number)"
    assert max(page.evaluate(paper)) < 60
    page.locator("tr.predicted button.label").first.click()
    page.wait_for_selector(".triples")
    night.shoot("dark", whole=True)
    assert serious(page) == []
    page.get_by_role("button", name="Light colours").click()
    assert min(page.evaluate(paper)) > 200
    page.reload()
    assert min(page.evaluate(paper)) > 200


@pytest.mark.parametrize("query", ["", LEFT, NONE, "SELECT ?p {"])
def test_axe_finds_nothing_serious(visit: Visit, query: str) -> None:
    page = visit.open(query)
    page.wait_for_selector(".begin a, .summary, .fault")
    if query == LEFT:
        page.locator("tr.predicted button.label").first.click()
        page.wait_for_selector(".triples")
    assert serious(page) == []


def test_axe_finds_nothing_serious_in_panels_and_menus(visit: Visit) -> None:
    page = visit.open(LEFT, entity="http://baseball.example/Cy_Young_Award")
    page.wait_for_selector("entity-view h2")
    assert serious(page) == []
    page.keyboard.press("Escape")
    page.get_by_role("button", name="About").click()
    expect(page.locator("about-dialog")).to_contain_text("entities")
    visit.shoot("about")
    assert serious(page) == []
    page.keyboard.press("Escape")
    page.get_by_role("button", name="Examples").click()
    visit.shoot("examples")
    assert serious(page) == []


def test_an_unreachable_server_is_reported_and_the_query_repeated_when_it_is_back(visit: Visit) -> None:
    page = visit.open()
    page.wait_for_selector(".begin a")
    page.route("**/api/**", lambda route: route.abort())
    page.locator("query-editor .cm-content").click()
    page.keyboard.press("Control+Enter")
    expect(page.locator(".gone")).to_contain_text("does not answer")
    visit.shoot("gone")
    page.unroute("**/api/**")
    expect(page.locator("tr.answer").first).to_be_visible(timeout=15_000)
    expect(page.locator(".gone")).to_have_count(0)
    visit.faults[:] = [fault for fault in visit.faults if "net::ERR_FAILED" not in fault]


def test_the_page_is_small_quick_and_does_not_jump(visit: Visit) -> None:
    visit.page.add_init_script(
        "window.jumps = 0; new PerformanceObserver(list => { for (const one of list.getEntries())"
        " window.jumps += one.value; }).observe({type: 'layout-shift', buffered: true});"
    )
    page = visit.ask(LEFT)
    paints = []
    for _ in range(3):  # other work makes a machine slower only
        page.reload()
        page.wait_for_selector(".summary")
        paints.append(page.evaluate("performance.getEntriesByName('first-contentful-paint')[0].startTime"))
    assert min(paints) < 1000
    assert page.evaluate("window.jumps") < 0.1
    fresh = visit.page.context.browser.new_context() if visit.page.context.browser else None
    assert fresh
    first = fresh.new_page()
    first.goto(visit.address)
    first.wait_for_selector(".begin a")
    sizes = first.evaluate(
        "[...performance.getEntriesByType('resource'), performance.getEntriesByType('navigation')[0]]"
        ".filter(one => !one.name.includes('/api/')).map(one => one.transferSize)"
    )
    fresh.close()
    assert len(sizes) >= 5
    assert 50_000 < sum(sizes) < MOST_BYTES
