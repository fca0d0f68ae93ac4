"""The page in a real browser: choose, see the figures change, copy the command, run it."""

import os
import re
import shlex
import shutil
import subprocess
import sys
import threading

import pytest
from pyarrow import csv

from gridveil import grid
from gridveil.plan.answers import Planner
from gridveil.plan.kinds import make_kinds
from gridveil.plan.server import Server
from gridveil.privacy.ledger import Ledger
from gridveil.verification import verify_bundle
from gridveil.wind.demo import demo_records

sync_api = pytest.importorskip("playwright.sync_api", reason="Playwright is not installed")

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")
BROWSER = os.environ.get("GRIDVEIL_BROWSER") or next(filter(None, map(shutil.which, NAMES)), None)
ARGUMENTS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]

pytestmark = pytest.mark.skipif(
    BROWSER is None, reason="no Chromium or Chrome is installed (make browser installs one)"
)


@pytest.fixture(scope="module")
def browser():
    with sync_api.sync_playwright() as playwright:
        opened = playwright.chromium.launch(executable_path=BROWSER, args=ARGUMENTS)
        yield opened
        opened.close()


@pytest.fixture(scope="module")
def ledger(tmp_path_factory):
    return tmp_path_factory.mktemp("plan") / "ledger.sqlite"


@pytest.fixture(scope="module")
def server(ledger):
    planner = Planner(make_kinds, ledger)
    made = Server(planner)
    threading.Thread(target=made.serve_forever, daemon=True).start()
    yield made
    made.shutdown()
    made.server_close()
    planner.close()


@pytest.fixture
def page(browser, server):
    context = browser.new_context(permissions=["clipboard-read", "clipboard-write"])
    opened = context.new_page()
    problems = []
    opened.on("console", lambda message: problems.append(message.text))
    opened.on("pageerror", lambda error: problems.append(str(error)))
    abroad = []
    opened.on(
        "request",
        lambda asked: None if asked.url.startswith((server.url, "data:")) else abroad.append(asked),
    )
    opened.goto(server.url)
    yield opened
    context.close()
    assert problems == []
    assert abroad == []


def mean(page, metric):
    """The figure of a metric when all runs are made."""
    sync_api.expect(page.locator("#status")).to_have_text(re.compile(r"^\d+ runs$"), timeout=60_000)
    return float(page.locator(f"#metric-{metric}").inner_text().split()[0])


def run_command(words):
    run = "from gridveil.cli.main import run; run()"
    done = subprocess.run(
        [sys.executable, "-c", run, *words[1:]], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr


def test_choose_see_copy_and_run(page, ledger, tmp_path):
    source = tmp_path / "north farm.csv"
    csv.write_csv(demo_records(200, seed=9), source)
    page.fill("#size", "200")
    page.check("input[name=method][value=laplace]")
    sync_api.expect(page.locator("#share-names li")).to_have_count(1, timeout=60_000)
    before = mean(page, "record")
    assert "epsilon 1)" in page.locator("#words").inner_text()
    page.fill("#epsilon", "5")
    sync_api.expect(page.locator("#words")).to_contain_text("(epsilon 5)")
    after = mean(page, "record")
    assert after < before / 2  # five times less noise
    page.locator("#alpha-slider").press("ArrowLeft")
    sync_api.expect(page.locator("#words")).to_contain_text("by up to 0.1 of capacity")
    assert mean(page, "record") < after

    page.fill("#field-file", str(source))
    page.fill("#field-speed", "wind_speed")
    page.fill("#field-power", "power")
    page.fill("#field-output", str(tmp_path / "out"))
    page.fill("#dataset", "north farm")
    sync_api.expect(page.locator("#command")).to_contain_text("--dataset 'north farm'")
    page.click("#copy")
    sync_api.expect(page.locator("#copied")).to_contain_text("Copied.")
    words = shlex.split(page.evaluate("() => navigator.clipboard.readText()"))
    assert words[:2] == ["gridveil", "wind"]

    run_command(words)
    assert all(finding.ok for finding in verify_bundle(tmp_path / "out"))
    assert Ledger(ledger).totals("north farm").spent == 5
    page.fill("#epsilon", "2")
    sync_api.expect(page.locator("#budget")).to_contain_text("has spent 5 so far")


def test_a_network_has_its_own_settings(page):
    page.check("input[name=kind][value=grid]")
    page.select_option("#parameter", "cost")
    page.check("input[name=method][value=laplace]")
    page.fill("#size", "20")
    sync_api.expect(page.locator("#alpha-unit")).to_have_text("$/MWh")
    sync_api.expect(page.locator("#command")).to_contain_text("--parameter cost --alpha 1 ")
    assert mean(page, "value") == pytest.approx(1.0, abs=0.3)  # the mean of |Lap(1)|, clipped
    page.check("input[name=kind][value=wind]")
    sync_api.expect(page.locator("#command")).to_contain_text("gridveil wind release")


def test_the_command_for_a_network_makes_a_release_that_works(page, ledger, tmp_path):
    case = tmp_path / "south.m"
    grid.cases.rts96(variant="paper").write(case)
    page.check("input[name=kind][value=grid]")
    sync_api.expect(page.locator("#picture")).to_contain_text("being made")
    sync_api.expect(page.locator("#legend li")).to_have_count(0)  # nothing of the kind before
    page.check("input[name=method][value=laplace]")
    page.fill("#size", "20")
    page.fill("#field-range", "50:1000")
    sync_api.expect(page.locator("#words")).to_contain_text("epsilon is 32")
    before = mean(page, "value")
    page.fill("#alpha", "10")
    sync_api.expect(page.locator("#words")).to_contain_text("by up to 10 MW")
    assert mean(page, "value") < before
    page.fill("#field-file", str(case))
    page.fill("#field-output", str(tmp_path / "out"))
    page.fill("#dataset", "south grid")
    sync_api.expect(page.locator("#command")).to_contain_text("--dataset 'south grid'")
    page.click("#copy")
    sync_api.expect(page.locator("#copied")).to_contain_text("Copied.")
    words = shlex.split(page.evaluate("() => navigator.clipboard.readText()"))
    run_command(words)
    assert all(finding.ok for finding in verify_bundle(tmp_path / "out"))
    assert Ledger(ledger).totals("south grid").spent == 1


def test_a_mistake_is_told_and_gives_no_command(page):
    page.fill("#alpha", "0")
    sync_api.expect(page.locator("#problem")).to_contain_text("alpha must be a positive number")
    assert page.locator("#copy").is_disabled()
    page.fill("#alpha", "15")
    sync_api.expect(page.locator("#problem")).to_be_hidden()
    sync_api.expect(page.locator("#copy")).to_be_enabled()
    page.fill("#field-capacity", "big")
    sync_api.expect(page.locator("#command")).to_contain_text("no positive number")
    assert page.locator("#copy").is_disabled()


def test_it_fits_a_phone_and_the_keyboard_reaches_everything(page):
    page.set_viewport_size({"width": 360, "height": 740})
    sync_api.expect(page.locator("#picture svg")).to_be_visible(timeout=60_000)
    assert page.evaluate("() => document.documentElement.scrollWidth") <= 360
    reached = set()
    for _ in range(40):
        page.keyboard.press("Tab")
        reached.add(page.evaluate("() => document.activeElement.id"))
    wanted = {"alpha", "alpha-slider", "epsilon", "epsilon-slider", "size", "dataset", "copy"}
    assert wanted <= reached


def test_a_server_that_is_gone_is_told(page):
    sync_api.expect(page.locator("#copy")).to_be_enabled(timeout=60_000)
    page.route("**/api/plan", lambda route: route.fulfill(body="another program on this port"))
    page.fill("#epsilon", "3")
    told = "gridveil plan does not answer any more"
    sync_api.expect(page.locator("#problem")).to_contain_text(told)
