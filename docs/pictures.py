"""Take the picture of the page for the README: `python docs/pictures.py RUN`, a run of the demo graph (`make demo`).

Needs the built page (`make web`) and Debian's Chromium.
"""

import subprocess
import sys
from pathlib import Path
from urllib.parse import urlencode

from PIL import Image
from playwright.sync_api import sync_playwright

CHROMIUM = "/usr/bin/chromium"
PICTURE = Path(__file__).parent / "page.png"
WARM_UP = 4  # first answers of a worker process are slow
COLOURS = 128
EXPLAINED = "Boog Powell"
QUERY = """SELECT ?player WHERE {
  ?player :played_for :Baltimore_Orioles_1966 .
  ?player :won_award :Most_Valuable_Player .
}"""


def take_picture(address: str) -> None:
    """Ask the query on the page, open the explanation of one answer and write the picture."""
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        page = browser.new_page(viewport={"width": 1240, "height": 800}, device_scale_factor=1.5)
        page.goto(f"{address}/#{urlencode({'query': QUERY})}")
        row = page.get_by_role("button", name=EXPLAINED).first
        for _ in range(WARM_UP):
            row.wait_for(timeout=120_000)
            page.reload()
        row.click(timeout=120_000)
        page.wait_for_selector("text=is missing")
        page.wait_for_timeout(1_000)  # animations
        page.screenshot(path=PICTURE)
        browser.close()
    Image.open(PICTURE).convert("RGB").quantize(COLOURS, dither=Image.Dither.NONE).save(PICTURE, optimize=True)


def main(run: str) -> None:
    """Serve the run on a free port for as long as the picture takes."""
    command = ["halfgraph", "serve", run, "--view", "train", "--log", "none", "--port", "0"]
    server = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    try:
        assert server.stdout is not None
        line = next(line for line in server.stdout if "http://" in line)
        take_picture("http://" + line.split("http://")[1].split()[0].rstrip("/"))
    finally:
        server.terminate()
        server.wait(30)


if __name__ == "__main__":
    main(sys.argv[1])
