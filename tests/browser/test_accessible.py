"""All pages that Hostwright makes, judged by axe's rules for people who see little, use a keyboard, or are read to.

The rules are those of axe-core for the levels A and AA of the Web Content Accessibility Guidelines 2.1, and its own of
good practice. What it cannot decide itself does not count.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from axe_core_python.selenium import Axe

from hostwright.audit.reports.html.html import render_html
from hostwright.prove.reports import html as proofs
from tests.browser.conftest import DESKTOP, PHONE, Browser
from tests.browser.fleets import ages, fleet, trend
from tests.places import PROJECT
from tests.unit.audit.reports import test_report_run
from tests.unit.prove.test_prove_reports import mixed
from tests.unit.test_docs_site import build_site

RULES = {"runOnly": ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "best-practice"]}
#: of Material for MkDocs, which writes what is around our pages: the box of its search has no name, what scrolls in it
#: and in blocks of code takes no focus, and the buttons that copy are landmarks of one name
THEME = {"aria-dialog-name", "focus-order-semantics", "label", "landmark-unique", "scrollable-region-focusable"}
#: pages of the site that lead to all kinds of what Markdown makes: tables, code, lists, pictures, long tables
PAGES = ("index", "start/from-ansible", "operators/provision", "performance", "reference/verbs", "changes")


def audit() -> str:
    found = fleet(24)
    return render_html(found, trend(24), ages(found))


REPORTS: dict[str, Callable[[], str]] = {
    "audit": audit,
    "run": lambda: test_report_run.page(*test_report_run.HOSTS),
    "proofs": lambda: proofs.render_html(mixed()),
}


def broken(browser: Browser) -> dict[str, list[str]]:
    """The rules that the page breaks, each with the places."""
    found: dict[str, Any] = Axe().run(browser.driver, options=RULES)
    assert len(found["passes"]) > 10, "the rules were asked"
    return {rule["id"]: [node["html"][:200] for node in rule["nodes"]] for rule in found["violations"]}


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
@pytest.mark.parametrize("size", [DESKTOP, PHONE], ids=["desktop", "phone"])
@pytest.mark.parametrize("report", REPORTS)
def test_a_report_keeps_the_rules(browser: Browser, tmp_path: Path, report: str, size: tuple[int, int], dark: bool):
    file = tmp_path / "page.html"
    file.write_text(REPORTS[report](), "utf-8")
    browser.resize(size, dark=dark)
    browser.open(file)
    assert broken(browser) == {}
    if report == "audit":
        browser.one("#matrix .open").click()
        assert broken(browser) == {}, "with a host's panel"


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The documentation, as ``make docs`` builds it."""
    place = tmp_path_factory.mktemp("site")
    build_site(PROJECT, place)
    return place


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
@pytest.mark.parametrize("page", PAGES)
def test_a_page_of_the_documentation_keeps_the_rules(browser: Browser, site: Path, page: str, dark: bool):
    browser.resize(DESKTOP, dark=dark)
    browser.open(site / f"{page}.html")
    browser.js("localStorage.clear()")  # it keeps what was chosen once
    browser.open(site / f"{page}.html")
    assert browser.js("return document.body.dataset.mdColorScheme") == ("slate" if dark else "default")
    assert {rule: places for rule, places in broken(browser).items() if rule not in THEME} == {}


def test_a_rule_that_is_broken_is_found(browser: Browser, tmp_path: Path):
    file = tmp_path / "page.html"
    file.write_text(audit().replace("<html lang=", "<html data-was="), "utf-8")
    browser.open(file)
    assert "html-has-lang" in broken(browser)
