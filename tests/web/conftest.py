"""A server of a small run of the demo graph, and Chromium."""

import os
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from urllib.error import URLError
from urllib.parse import urlencode
from urllib.request import urlopen

import pytest
from playwright.sync_api import Browser, BrowserContext, ConsoleMessage, Page, expect, sync_playwright

from small_runs import SMALL_LINKS

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
ROOT = Path(__file__).resolve().parents[2]
HALFGRAPH = Path(sys.executable).parent / "halfgraph"
STEPS = 25
PATIENCE = 120  # seconds for the server to come up


def halfgraph(*words: str) -> None:
    """Run a command that must succeed."""
    script = f"{SMALL_LINKS}; from halfgraph.cli import main; main()"
    done = subprocess.run([sys.executable, "-c", script, *words], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def free_port() -> int:
    """A port that nobody listens on."""
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])


@pytest.fixture(scope="session")
def run_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run of some steps on the demo graph."""
    folder = tmp_path_factory.mktemp("demo")
    halfgraph("import", "demo", "--split", "90/1/9", "--out", str(folder / "graph"))
    halfgraph("train", str(folder / "graph"), "--steps", str(STEPS), "--threads", "1", "--out", str(folder / "run"))
    return folder / "run"


@pytest.fixture(scope="module")
def address(run_folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a server that serves the run."""
    port, log = free_port(), tmp_path_factory.mktemp("log") / "server.txt"
    with log.open("w") as output:
        command = [str(HALFGRAPH), "serve", str(run_folder), "--view", "train", "--log", "none", "--port", str(port)]
        server = subprocess.Popen(command, stdout=output, stderr=output, env=os.environ | {"OMP_NUM_THREADS": "1"})
    try:
        wait_for(f"http://127.0.0.1:{port}", server, log)
        yield f"http://127.0.0.1:{port}"
    finally:
        server.terminate()
        server.wait(30)


def wait_for(address: str, server: subprocess.Popen[bytes], log: Path) -> None:
    """Wait until the server answers."""
    until = time.monotonic() + PATIENCE
    while time.monotonic() < until:
        assert server.poll() is None, log.read_text()
        try:
            with urlopen(f"{address}/api/health") as answer:
                assert answer.status == 200
                return
        except URLError:
            time.sleep(0.2)
    raise AssertionError(f"the server did not answer within {PATIENCE} s:\n{log.read_text()}")


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """Chromium without a window, if it is installed; its event loop must be over before other modules run theirs."""
    if CHROMIUM is None:
        pytest.skip("there is no Chromium: apt-get install chromium")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield browser
        browser.close()


@dataclass
class Visit:
    """A visit to the page, with its requests and errors."""

    page: Page
    address: str
    requests: list[str] = field(default_factory=list)
    faults: list[str] = field(default_factory=list)

    def watch(self) -> "Visit":
        """Record the requests and errors of the page."""
        self.page.set_default_timeout(15_000)
        expect.set_options(timeout=15_000)  # the first answer of a worker compiles kernels
        self.page.on("request", lambda request: self.requests.append(request.url))
        self.page.on("pageerror", lambda error: self.faults.append(str(error)))
        self.page.on("console", self.heard)
        return self

    def heard(self, message: ConsoleMessage) -> None:
        """Record errors and warnings; a 4xx response that a test provokes is not one."""
        if message.type in ("error", "warning") and "the server responded with a status of 4" not in message.text:
            self.faults.append(message.text)

    def open(self, query: str = "", **more: str) -> Page:
        """The page, at the link of a query; without one as on a first visit."""
        self.page.goto("about:blank")
        place = {"query": query, **more} if query else more
        self.page.goto(f"{self.address}/#{urlencode(place)}" if place else f"{self.address}/")
        return self.page

    def ask(self, query: str) -> Page:
        """The page with the answers of a query."""
        self.open(query)
        self.page.wait_for_selector(".summary")
        return self.page

    def shoot(self, name: str, *, whole: bool = False) -> None:
        """Take a screenshot for the artefacts of CI."""
        folder = ROOT / "build" / "screenshots"
        folder.mkdir(parents=True, exist_ok=True)
        self.page.wait_for_timeout(250)  # animations have ended
        self.page.screenshot(path=folder / f"{name}.png", full_page=whole)


def visiting(context: BrowserContext, address: str) -> Iterator[Visit]:
    """A visit that fails at its end when anything went to another host or was wrong on the console."""
    visit = Visit(context.new_page(), address).watch()
    yield visit
    context.close()
    assert [url for url in visit.requests if not url.startswith((address, "about:", "blob:", "data:"))] == []
    assert visit.faults == []


@pytest.fixture
def visit(browser: Browser, address: str) -> Iterator[Visit]:
    """A visit on a wide, light screen."""
    context = browser.new_context(
        viewport={"width": 1360, "height": 900}, color_scheme="light", permissions=["clipboard-read", "clipboard-write"]
    )
    yield from visiting(context, address)


@pytest.fixture
def phone(browser: Browser, address: str) -> Iterator[Visit]:
    """A visit on a narrow screen."""
    context = browser.new_context(viewport={"width": 360, "height": 740}, has_touch=True, color_scheme="light")
    yield from visiting(context, address)


@pytest.fixture
def night(browser: Browser, address: str) -> Iterator[Visit]:
    """A visit on a system that is set to dark."""
    context = browser.new_context(viewport={"width": 1360, "height": 900}, color_scheme="dark")
    yield from visiting(context, address)
