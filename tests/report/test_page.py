"""The report: escaped, self-contained, readable by everyone, and true to its statement."""

import re
from fractions import Fraction
from html.parser import HTMLParser
from itertools import pairwise

import pytest
from support.making import FACTS, adjacency, make_account, make_release, spend_some

from gridveil.errors import NotPrivateWarning
from gridveil.privacy.account import study_account
from gridveil.privacy.guarantee_words import certainty, largest_factor, show_certainty
from gridveil.privacy.statement import Facts, make_statement
from gridveil.release.bundle import OWNER_MARK
from gridveil.report.charts import Chart
from gridveil.report.page import (
    Picture,
    Section,
    Snippet,
    Table,
    owner_page,
    report_page,
    table_snippets,
)

HOSTILE = "<script>alert('x')</script>"


def chart():
    made = Chart(HOSTILE, HOSTILE, x_range=(0, 1), y_range=(0, 1))
    made.line([0, 1], [0, 1], "c1")
    return made.svg()


def section():
    pictures = (
        Picture(chart(), HOSTILE, HOSTILE, legend=(("c1", HOSTILE),)),
        Picture(chart(), HOSTILE),
    )
    table = Table(HOSTILE, (HOSTILE, "b"), [(HOSTILE, "1")])
    return Section(HOSTILE, (HOSTILE, "b"), pictures, ((HOSTILE, "1"),), (table,))


@pytest.fixture
def statement(ledger):
    account = make_account(ledger, epsilon=1)
    spend_some(account, Fraction(1, 4))
    spend_some(account, Fraction(3, 4))
    facts = Facts(kind=HOSTILE, method="m", summary=HOSTILE, limitations=[HOSTILE])
    return make_statement(account, facts)


@pytest.fixture(params=["report", "owner"])
def page(request, statement):
    if request.param == "owner":
        return owner_page(statement, [section()], OWNER_MARK)
    return report_page(statement, [f"{HOSTILE}.csv"], [section()], [Snippet(HOSTILE, HOSTILE)])


def test_hostile_names_are_shown_not_run(page):
    assert "<script" not in page
    assert page.count("&lt;script&gt;") >= 6


def test_it_needs_no_network_and_no_script(page):
    assert not re.search(r"https?://|src=|srcset=|@import|url\(|\son\w+=", page)
    assert "default-src 'none'; style-src 'unsafe-inline'\"" in page


class Outline(HTMLParser):
    """What a screen reader and a keyboard go by."""

    def __init__(self, page):
        super().__init__()
        self.tags, self.headings, self.ids, self.links, self.problems = [], [], [], [], []
        self.feed(page)

    def handle_starttag(self, tag, attrs):
        given = dict(attrs)
        self.tags.append(tag)
        if re.fullmatch("h[1-6]", tag):
            self.headings.append(int(tag[1]))
        if "id" in given:
            self.ids.append(given["id"])
        if given.get("href", "").startswith("#"):
            self.links.append(given["href"][1:])
        if tag == "html" and given.get("lang") != "en":
            self.problems.append("no language")
        if tag == "img" and not given.get("alt"):
            self.problems.append("a picture without words")
        if given.get("role") in ("img", "group") and not given.get("aria-label"):
            self.problems.append("a picture or a group without words")
        if tag == "th" and given.get("scope") not in ("row", "col"):
            self.problems.append("a heading of a table without a scope")
        if tag == "svg" and given.get("aria-hidden") != "true":
            self.problems.append("an svg that a screen reader would spell out")


def test_it_is_accessible(page):
    outline = Outline(page)
    assert outline.problems == []
    assert outline.headings[0] == 1
    assert outline.headings.count(1) == 1
    assert all(later <= earlier + 1 for earlier, later in pairwise(outline.headings))
    assert len(set(outline.ids)) == len(outline.ids)
    assert set(outline.links) <= set(outline.ids)
    assert {"main", "header", "figcaption", "caption"} <= set(outline.tags)


def test_the_outline_finds_what_is_wrong():
    assert len(Outline('<html><img src="a"><th>x</th><div role="img"></div><svg>').problems) == 5


def colours(page):
    """The colour variables of light and of dark pages."""
    light, dark = re.findall(r":root \{(.*?)\}", page, re.DOTALL)
    return [dict(re.findall(r"--([\w-]+): (#\w{6})", block)) for block in (light, dark)]


def luminance(colour):
    parts = [int(colour[place : place + 2], 16) / 255 for place in (1, 3, 5)]
    linear = [p / 12.92 if p <= 0.04045 else ((p + 0.055) / 1.055) ** 2.4 for p in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(one, other):
    high, low = sorted((luminance(one), luminance(other)), reverse=True)
    return (high + 0.05) / (low + 0.05)


def test_text_has_contrast_in_light_and_dark(page):
    assert contrast("#777777", "#ffffff") == pytest.approx(4.48, abs=0.01)  # a known pair
    for variables in colours(page):
        for text in ("ink", "soft", "accent", "good", "fair", "bad"):
            for ground in ("paper", "panel"):
                assert contrast(variables[text], variables[ground]) >= 4.5, (text, ground)
        for text, ground in (
            ("good", "good-panel"),
            ("fair", "fair-panel"),
            ("bad", "bad-panel"),
            ("paper", "bad"),
        ):
            assert contrast(variables[text], variables[ground]) >= 4.5
        for line in ("c0", "c1", "c2", "c3", "c4"):
            assert contrast(variables[line], variables["paper"]) >= 3


def test_it_says_that_gaps_are_public(statement):
    assert "how many entries there are, and which are missing" in report_page(statement, [])


def test_it_says_the_guarantee_and_the_total(statement):
    page = report_page(statement, ["a.csv"], loading=table_snippets(["a.csv"]))
    assert '<p class="badge steps"><b>Steps only</b> Protects steps of up to 0.1 MW of one' in page
    assert "may be published" not in page
    assert "factor of at most 2.72" in page
    assert "pd.read_csv(&#39;a.csv&#39;)" in page
    assert "have spent epsilon <strong>1</strong>" in page
    assert "width: 25.0%" in page
    assert "power 25 percent, power 75 percent" in page


def test_a_study_is_marked_as_no_release():
    with pytest.warns(NotPrivateWarning):
        account = study_account(1, adjacency=[adjacency()], seed=1)
    spend_some(account)
    page = report_page(make_statement(account, FACTS), ["a.csv"])
    assert "No guarantee: do not publish" in page
    assert "Protects steps" not in page
    assert "do not hold for this data" in page


def test_the_owners_page_says_what_it_is_and_why(statement):
    page = owner_page(statement, [], OWNER_MARK)
    assert page.count(OWNER_MARK) >= 3
    assert "Steps only</b> Protects steps of up to 0.1 MW of one entry of power: epsilon 1" in page
    assert "Why it must not decide what is published" in page


def test_a_bundle_has_its_report(ledger, tmp_path):
    placed = make_release(ledger).write(tmp_path / "out")
    assert "Ten made-up numbers" in (placed / "report.html").read_text()


@pytest.mark.parametrize(
    ("epsilon", "sure", "times"),
    [("0.01", "50.3%", "1.02"), ("1", "73.2%", "2.72"), ("7", "99.91%", "1,100")],
)
def test_epsilon_in_words(epsilon, sure, times):
    assert show_certainty(certainty(Fraction(epsilon))) == sure
    assert largest_factor(Fraction(epsilon)) == times


def test_a_huge_epsilon_is_no_error():
    assert show_certainty(certainty(Fraction(10**6))) == "over 99.99%"
    assert largest_factor(Fraction(10**6)) == "over a million"


def test_a_picture_is_inline_or_embedded():
    with pytest.raises(ValueError, match="inline <svg>"):
        Picture("https://example.org/a.png", "A picture.")


def test_tables_are_loaded_with_pandas_and_other_files_not():
    tools = [one.code.split(".")[-1] for one in table_snippets(["a.parquet", "b.m", "c.csv"])]
    assert [one.tool for one in table_snippets(["a.parquet", "b.m"])] == ["pandas"]
    assert len(tools) == 2
