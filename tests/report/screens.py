"""Take the pictures in ``docs/images``: both reports and the page of ``gridveil plan``.

Run it as ``make screens``; it needs Chromium, and takes a minute.
"""

from __future__ import annotations

import io
import tempfile
import threading
from pathlib import Path
from typing import TYPE_CHECKING

from PIL import Image
from typer.testing import CliRunner

from gridveil.cli.commands import app
from gridveil.planning.planner import Planner
from gridveil.planning.release_kind import make_kinds
from gridveil.planning.server import Server

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

IMAGES = Path(__file__).parents[2] / "docs" / "images"
LARGEST = 200_000  # bytes
WIDE, PHONE, PAPER = (1200, 1500), (390, 1400), (794, 1123)
LOOKS = {
    "": (WIDE, False),
    "-phone": (PHONE, False),
    "-dark": (WIDE, True),
    "-printed": (PAPER, False),
}


def main() -> None:
    from plan.test_browser import ARGUMENTS, BROWSER
    from playwright.sync_api import sync_playwright

    IMAGES.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as name, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=BROWSER, args=ARGUMENTS)
        folder = Path(name)
        run("demo", "-o", folder / "demo")
        real = folder / "demo" / "turbine.csv"
        owner = folder / "owner.html"
        run("wind", "evaluate", folder / "demo" / "wind", "--against", real, "--report", owner)
        reports(browser, folder / "demo", owner)
        plans(browser, folder / "demo" / "ledger.sqlite")
        browser.close()


def run(*words: object) -> None:
    result = CliRunner().invoke(app, [str(word) for word in words])
    assert result.exit_code == 0, result.output


def reports(browser: Browser, demo: Path, owner: Path) -> None:
    pages = {kind: demo / kind / "report.html" for kind in ("wind", "grid")} | {"owner": owner}
    for name, (size, dark) in LOOKS.items():
        for kind, path in pages.items():
            take(browser, f"report-{kind}{name}", f"file://{path}", size, dark=dark)


def take(browser: Browser, name: str, address: str, size: tuple[int, int], *, dark: bool) -> None:
    page = open_page(browser, address, size, dark=dark)
    if size == PAPER:
        page.emulate_media(media="print")
        page.add_style_tag(content="body { padding: 16mm 15mm; }")  # the sheet's margins
    save(page, name)


def plans(browser: Browser, ledger: Path) -> None:
    planner = Planner(make_kinds, ledger)
    server = Server(planner)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    for name, kind, size, dark in (
        ("plan-wind", "wind", (1360, 1500), False),
        ("plan-grid", "grid", (1360, 1500), False),
        ("plan-dark", "wind", (1360, 1500), True),
        ("plan-phone", "wind", PHONE, False),
    ):
        page = open_page(browser, server.url, size, dark=dark)
        page.check(f"input[name=kind][value={kind}]")
        page.fill("#dataset", "demo turbine" if kind == "wind" else "demo grid")
        if kind == "grid":  # two parameters at once
            page.check("#private-load")
            page.fill("#range-capacity", "50:1000")
            page.fill("#range-load", "0:500")
            page.locator("#command", has_text="--parameter capacity,load").wait_for()
        # Until every epsilon of the chart is there: the chart of this kind, not of the one before.
        command = page.locator("#command", has_text=f"gridveil {kind} release")
        command.wait_for(timeout=300_000)
        ready = "() => document.querySelectorAll('#sweep .dots').length >= 7"
        page.wait_for_function(ready, timeout=300_000)
        page.locator("h1").click()
        page.evaluate("() => window.scrollTo(0, 0)")
        save(page, name)
    server.shutdown()
    server.server_close()
    planner.close()


def open_page(browser: Browser, address: str, size: tuple[int, int], *, dark: bool) -> Page:
    context = browser.new_context(
        viewport={"width": size[0], "height": size[1]},
        color_scheme="dark" if dark else "light",
        device_scale_factor=2 if size == PHONE else 1,
    )
    page = context.new_page()
    page.goto(address)
    return page


def save(page: Page, name: str) -> None:
    """Keep what is in the window, with as many colours as fit into the size."""
    shot = Image.open(io.BytesIO(page.screenshot())).convert("RGB")
    page.context.close()
    for colours in (None, 256, 128, 64):
        stream = io.BytesIO()
        fewer = shot if colours is None else shot.quantize(colours, Image.Quantize.MAXCOVERAGE)
        fewer.save(stream, "PNG", optimize=True)
        if stream.tell() < LARGEST:
            break
    (IMAGES / f"{name}.png").write_bytes(stream.getvalue())
    print(f"{name}.png: {stream.tell() // 1000} kB, {colours or 'all'} colours")


if __name__ == "__main__":
    main()
