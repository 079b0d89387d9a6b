"""The page of a server that needs a token: it asks for it once."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect

from server_process import running
from web.conftest import Visit, visiting

TOKEN = "0123456789abcdef0123"


@pytest.fixture
def guarded(browser: Browser, run_folder: Path, tmp_path: Path) -> Iterator[Visit]:
    (tmp_path / "token").write_text(TOKEN)
    with running(run_folder, "--log", "none", "--token-file", str(tmp_path / "token")) as server:
        yield from visiting(browser.new_context(), server.address)


def test_a_person_signs_in_once_with_the_token(guarded: Visit) -> None:
    page = guarded.page
    page.goto(guarded.address)
    sign_in(page, "wrong")
    page.wait_for_url("**/sign-in")
    sign_in(page, TOKEN)
    expect(page.locator(".begin a").first).to_be_visible(timeout=60_000)
    page.goto(guarded.address)
    expect(page.locator(".begin a").first).to_be_visible(timeout=60_000)


def sign_in(page: Page, token: str) -> None:
    page.get_by_label("Token").fill(token)
    page.get_by_role("button", name="Sign in").click()
