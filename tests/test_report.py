"""The report: escaped, self-contained, and true to its statement."""

import re

import pytest
from conftest import FACTS, make_account, make_release, spend_some

from gridveil.privacy.statement import Facts, make_statement
from gridveil.report.page import Section, report_page


@pytest.fixture
def page(ledger):
    account = make_account(ledger, epsilon=1)
    spend_some(account)
    hostile = "<script>alert('x')</script>"
    facts = Facts(kind=hostile, method="m", summary=hostile, limitations=[hostile])
    section = Section(hostile, hostile, "data:image/png;base64,AAAA", hostile, ((hostile, "1"),))
    return report_page(make_statement(account, facts), [f"{hostile}.csv"], [section])


def test_hostile_names_are_shown_not_run(page):
    assert "<script" not in page
    assert page.count("&lt;script&gt;") >= 6


def test_it_needs_no_network_and_no_script(page):
    assert not re.search(r"https?://|//[a-z]|src=(?!\"data:)|@import|url\(", page)


def test_it_says_the_guarantee_and_the_total(ledger):
    account = make_account(ledger, epsilon=1)
    spend_some(account)
    statement = make_statement(account, FACTS)
    page = report_page(statement, ["a.csv"])
    assert "Guarantee holds" in page
    assert "factor of at most 2.72" in page
    assert "pd.read_csv(&#39;a.csv&#39;)" in page
    assert "has spent" in page or "have spent epsilon <strong>1</strong>" in page


def test_a_bundle_has_its_report(ledger, tmp_path):
    placed = make_release(ledger).write(tmp_path / "out")
    assert "Ten made-up numbers" in (placed / "report.html").read_text()
