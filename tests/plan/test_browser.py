"""The page in a real browser: choose, see the figures change, copy the command, run it."""

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import threading
import tomllib

import pandas as pd
import pytest
from pyarrow import csv

from gridveil import grid
from gridveil.planning.planner import Planner
from gridveil.planning.release_kind import make_kinds
from gridveil.planning.server import Server
from gridveil.privacy.ledger import Ledger
from gridveil.release.verification import verify_bundle
from gridveil.wind.demo import demo_records

sync_api = pytest.importorskip("playwright.sync_api", reason="Playwright is not installed")

PATIENCE = 600_000  # ms: a busy machine may take minutes for what takes a second
sync_api.expect.set_options(timeout=PATIENCE)

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
    opened.set_default_timeout(PATIENCE)
    problems = []
    opened.on("console", lambda message: problems.append(message.text))
    opened.on("pageerror", lambda error: problems.append(str(error)))
    abroad = []
    opened.on(
        "request",
        lambda asked: None if asked.url.startswith((server.url, "data:")) else abroad.append(asked),
    )
    opened.goto(server.url)
    sync_api.expect(opened.locator("#dataset-fault")).to_contain_text("needs a name")
    opened.fill("#dataset", "mine")
    yield opened
    context.close()
    assert problems == []
    assert abroad == []


def mean(page, metric):
    """The figure of a metric when all runs are made."""
    sync_api.expect(page.locator("#status")).to_have_text(re.compile(r"^\d+ runs$"))
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
    sync_api.expect(page.locator("#share-names li")).to_have_count(1)
    before = mean(page, "record")
    assert "epsilon 1)" in page.locator("#words").inner_text()
    page.fill("#epsilon", "5")
    sync_api.expect(page.locator("#words")).to_contain_text("(epsilon 5)")
    after = mean(page, "record")
    assert after < before / 2  # five times less noise
    page.locator("#alpha-power-slider").press("ArrowLeft")
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


def test_the_file_of_the_page_makes_the_release_and_the_statement_holds_it(page, ledger, tmp_path):
    """Plan page, release.toml, release, statement, and back to a file."""
    source = tmp_path / "farm.csv"
    times = pd.date_range("2024-01-01", periods=200, freq="10min")
    demo_records(200, seed=9).to_pandas().assign(when=times).to_csv(source, index=False)
    page.fill("#size", "200")
    page.check("input[name=method][value=laplace]")
    page.fill("#field-file", str(source))
    page.fill("#field-power", "power")
    page.fill("#field-time", "when")
    page.fill("#field-output", str(tmp_path / "out"))
    page.fill("#dataset", "file farm")
    sync_api.expect(page.locator("#command")).to_contain_text("--dataset 'file farm'")
    sync_api.expect(page.locator("#save")).to_be_enabled()
    with page.expect_download() as saved:
        page.click("#save")
    file = tmp_path / saved.value.suggested_filename
    saved.value.save_as(file)
    assert file.name == "release.toml"

    run_command(["gridveil", "release", str(file)])
    assert all(finding.ok for finding in verify_bundle(tmp_path / "out"))
    assert Ledger(ledger).totals("file farm").spent == 1
    request = json.loads((tmp_path / "out" / "release.json").read_text())["request"]
    asked = tomllib.loads(file.read_text())
    owners = {"data", "output", "dataset", "ledger"}
    assert request == {name: value for name, value in asked.items() if name not in owners}
    assert request["time"] == "when"
    assert request["method"] == "laplace"


def test_steps_are_amounts_shares_or_by_class(page):
    page.check("input[name=kind][value=grid]")
    page.check("input[name=method][value=laplace]")
    page.fill("#size", "20")
    expect = sync_api.expect
    expect(page.locator("#size-rows tr")).to_have_count(3)
    page.select_option("#steps-capacity", "share")
    expect(page.locator("#alpha-capacity")).to_have_value("20%")
    expect(page.locator("#command")).to_contain_text("--alpha 20% ")
    page.locator("#alpha-capacity-slider").press("ArrowLeft")
    expect(page.locator("#command")).to_contain_text("--alpha 15% ")
    expect(page.locator("#size-rows")).to_contain_text("14%")
    page.fill("#alpha-capacity", "230kV:60,others:15")  # the list follows what is typed
    expect(page.locator("#steps-capacity")).to_have_value("class")
    expect(page.locator("#alpha-capacity-slider")).to_be_hidden()
    expect(page.locator("#command")).to_contain_text("--alpha 230kV:60,others:15 ")
    page.fill("#alpha-capacity", "999kV:60,others:15")
    expect(page.locator("#alpha-capacity-fault")).to_contain_text("is in that class")
    expect(page.locator("#sizes")).to_be_hidden()
    page.select_option("#steps-capacity", "amount")
    expect(page.locator("#alpha-capacity")).to_have_value("30")
    expect(page.locator("#alpha-capacity-slider")).to_be_visible()
    expect(page.locator("#command")).to_contain_text("--alpha 30 ")


def test_a_network_has_its_own_settings(page):
    page.check("input[name=kind][value=grid]")
    page.uncheck("#private-capacity")
    page.check("#private-cost")
    page.check("input[name=method][value=laplace]")
    page.fill("#size", "20")
    sync_api.expect(page.locator("#alpha-cost + span")).to_have_text("$/MWh")
    sync_api.expect(page.locator("#command")).to_contain_text("--parameter cost --alpha 1 ")
    sync_api.expect(page.locator("#metric-value-cost")).to_contain_text("to")
    assert mean(page, "value-cost") == pytest.approx(1.0, abs=0.3)  # the mean of |Lap(1)|, clipped
    page.check("input[name=kind][value=wind]")
    sync_api.expect(page.locator("#command")).to_contain_text("gridveil wind release")


def test_the_command_for_a_network_makes_a_release_that_works(page, ledger, tmp_path):
    case = tmp_path / "south.m"
    grid.cases.rts96(variant="paper").write(case)
    page.route("**/api/plan", lambda route: None)  # another test may have had these runs made
    page.check("input[name=kind][value=grid]")
    sync_api.expect(page.locator("#pictures")).to_contain_text("being made")
    sync_api.expect(page.locator("#pictures figure")).to_have_count(0)  # of the kind before
    page.unroute("**/api/plan")
    page.check("input[name=method][value=laplace]")
    page.fill("#size", "20")
    page.fill("#range-capacity", "50:1000")
    sync_api.expect(page.locator("#words")).to_contain_text("epsilon is 32")
    before = mean(page, "value-capacity")
    page.fill("#alpha-capacity", "10")
    sync_api.expect(page.locator("#words")).to_contain_text("by up to 10 MW")
    assert mean(page, "value-capacity") < before
    page.check("#private-load")
    page.fill("#alpha-load", "5")
    sync_api.expect(page.locator("#words")).to_contain_text("entries of load by up to 5 MW")
    command = "--parameter capacity,load --alpha capacity=10,load=5 --epsilon 1"
    sync_api.expect(page.locator("#command")).to_contain_text(command)
    assert mean(page, "value-load") > 0
    sync_api.expect(page.locator("#pictures figure")).to_have_count(2)
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


def no_figures(page):
    """Nothing of an earlier choice is on the page, and nothing can be copied."""
    sync_api.expect(page.locator("#copy")).to_be_disabled()
    sync_api.expect(page.locator("#command")).to_have_text(re.compile("^Mend the fields"))
    for place in ("#metrics dd", "#pictures figure", "#words p", "#changes tr", "#share-names li"):
        sync_api.expect(page.locator(place)).to_have_count(0)
    for place in ("#budget", "#sweep-figure", "#strength"):
        sync_api.expect(page.locator(place)).to_be_hidden()
    sync_api.expect(page.locator("#status")).to_have_text("")


def all_figures(page):
    sync_api.expect(page.locator(".fault:visible")).to_have_count(0)
    sync_api.expect(page.locator("#copy")).to_be_enabled()
    sync_api.expect(page.locator("#words p")).to_have_count(2)
    sync_api.expect(page.locator("#metrics dd").first).to_contain_text("to")
    sync_api.expect(page.locator("#budget")).to_be_visible()


WRONG_CHOICES = (
    ("alpha-capacity", "10 MW", "must be a positive number of MW, and '10 MW' is not"),
    ("alpha-capacity", "", "must be a positive number of MW"),
    ("alpha-capacity", "1e9", "more than the whole range"),
    ("epsilon", "-1", "must be a positive number"),
    ("epsilon", "1001", "protects nothing"),
    ("range-capacity", "wide", "where numbers are needed"),
    ("range-capacity", "0:500", "range of capacities starts at 0"),
    ("size", "7", "between 20 and 1,000"),
)
WRONG_TEXTS = (
    ("field-file", "", "The command needs this"),
    ("field-output", " ", "The command needs this"),
    ("field-capacity", "big", "not a positive number"),
    ("field-power", "wind_speed", "can't be public and private"),
    ("dataset", "x" * 300, "1 to 200 printable characters"),
)


def test_a_mistake_leaves_no_figure_and_no_command_until_it_is_mended(page):
    page.check("input[name=kind][value=grid]")
    page.check("input[name=method][value=laplace]")
    page.fill("#size", "20")
    all_figures(page)
    for field, bad, words in WRONG_CHOICES:
        good = page.locator(f"#{field}").input_value()
        page.fill(f"#{field}", bad)
        sync_api.expect(page.locator(f"#{field}-fault")).to_contain_text(words)
        sync_api.expect(page.locator(f"#{field}")).to_have_attribute("aria-invalid", "true")
        no_figures(page)
        page.fill(f"#{field}", good)
        all_figures(page)
        sync_api.expect(page.locator(f"#{field}")).to_have_attribute("aria-invalid", "false")


def test_a_bad_text_leaves_no_command_and_no_budget(page):
    all_figures(page)
    for field, bad, words in WRONG_TEXTS:
        good = page.locator(f"#{field}").input_value()
        page.fill(f"#{field}", bad)
        sync_api.expect(page.locator(f"#{field}-fault")).to_contain_text(words)
        sync_api.expect(page.locator("#copy")).to_be_disabled()
        sync_api.expect(page.locator("#command")).to_have_text(re.compile("^Mend the fields"))
        sync_api.expect(page.locator("#budget")).to_be_hidden()
        page.fill(f"#{field}", good)
        all_figures(page)


def test_nothing_private_is_no_release(page):
    page.check("input[name=kind][value=grid]")
    page.uncheck("#private-capacity")
    sync_api.expect(page.locator("#parameters-fault")).to_contain_text("Nothing is private")
    no_figures(page)


def test_the_command_can_not_be_copied_before_it_is_answered(page):
    all_figures(page)
    page.route("**/api/plan", lambda route: None)  # an answer that never comes
    page.fill("#epsilon", "2")
    assert page.locator("#copy").is_disabled()


def test_the_slider_follows_what_was_understood(page):
    page.fill("#epsilon", "1/2")
    sync_api.expect(page.locator("#words")).to_contain_text("(epsilon 0.5)")
    assert page.locator("#epsilon-slider").input_value() == "2"
    page.fill("#alpha-power", "10%")
    sync_api.expect(page.locator("#words")).to_contain_text("by up to 0.1 of capacity")
    assert page.locator("#alpha-power-slider").input_value() == "3"


def test_it_fits_a_phone_and_the_keyboard_reaches_everything(page):
    page.set_viewport_size({"width": 360, "height": 740})
    sync_api.expect(page.locator("#pictures svg")).to_be_visible()
    assert page.evaluate("() => document.documentElement.scrollWidth") <= 360
    # Until the command is there, the keyboard passes the button that copies it.
    sync_api.expect(page.locator("#copy")).to_be_enabled()
    reached = set()
    for _ in range(40):
        page.keyboard.press("Tab")
        reached.add(page.evaluate("() => document.activeElement.id"))
    alphas = {"alpha-power", "alpha-power-slider"}
    assert alphas | {"epsilon", "epsilon-slider", "size", "dataset", "copy"} <= reached


def test_a_server_that_is_gone_is_told(page):
    sync_api.expect(page.locator("#copy")).to_be_enabled()
    page.route("**/api/plan", lambda route: route.fulfill(body="another program on this port"))
    page.fill("#epsilon", "3")
    told = "gridveil plan does not answer any more"
    sync_api.expect(page.locator("#problem")).to_contain_text(told)
