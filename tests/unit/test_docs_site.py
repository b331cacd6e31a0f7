"""The documentation site: no link is broken, every page is found, and no other host is asked."""

from __future__ import annotations

import json
import logging
import re
import shlex
import shutil
from collections import Counter
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
from invoke import Collection, Program
from markdown_it import MarkdownIt
from mkdocs.commands.build import build
from mkdocs.config import load_config
from mkdocs.exceptions import Abort

from hostwright.cli.program import STANDARD
from hostwright.cli.shell.words import WordsParser
from tests.places import PROJECT
from tests.unit.support.checkout import ABSENT
from tests.unit.support.documents import blocks, text_of

PAGES = sorted(path.relative_to(PROJECT) for path in PROJECT.glob("docs/**/*.md"))
#: what GitHub and the site must see alike in a page; links out of docs/ are others on the site
PARTS = ("h1", "h2", "h3", "ol", "ul", "li", "table", "tr", "pre", "img")
FETCHES = {"link": "href", "script": "src", "img": "src", "iframe": "src", "source": "src", "object": "data"}
PROMPT = "$ hostwright "


class Seen(HTMLParser):
    """The elements of a page's own text, and what the whole page fetches."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.parts: Counter[str] = Counter()
        self.fetched: list[str] = []
        self._own = "<article" not in text
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self._own |= tag == "article"
        if self._own and tag in PARTS:
            self.parts[tag] += 1
        if tag in FETCHES and (address := dict(attrs).get(FETCHES[tag])):
            self.fetched.append(address)

    def handle_endtag(self, tag: str) -> None:
        self._own &= tag != "article"


def build_site(sources: Path, site: Path, *, strict: bool = True) -> None:
    """As ``make docs`` does. Raises ``Abort`` for a link or a page that is not in order."""
    log = logging.getLogger("mkdocs")
    before = log.handlers[:]
    try:
        build(load_config(str(sources / "mkdocs.yml"), strict=strict, site_dir=str(site)))
    finally:
        log.handlers[:] = before


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    folder: Path = tmp_path_factory.mktemp("site")
    build_site(PROJECT, folder, strict=not ABSENT)  # the pages of roles that are not here are linked to
    yield folder


@pytest.fixture
def sources(tmp_path: Path) -> Path:
    """A copy of what the site is built from, to break something in."""
    for name in ("mkdocs.yml", "CONTRIBUTING.md", "CHANGELOG.md"):
        shutil.copy2(PROJECT / name, tmp_path)
    shutil.copytree(PROJECT / "docs", tmp_path / "docs")
    return tmp_path


def test_each_page_reads_on_the_site_as_on_github(site: Path) -> None:
    for path in PAGES:
        here = Seen((site / path.relative_to("docs").with_suffix(".html")).read_text("utf-8"))
        there = Seen(MarkdownIt("commonmark").enable("table").render(text_of(str(path))))
        assert here.parts == there.parts, path


def test_no_page_fetches_anything_from_another_host(site: Path) -> None:
    pages = sorted(site.rglob("*.html"))
    assert len(pages) > len(PAGES), "changes and contributing are pages, too"
    fetched = {address for page in pages for address in Seen(page.read_text("utf-8")).fetched}
    assert any(address.endswith(".css") for address in fetched)
    assert {address for address in fetched if re.match(r"\w+:|//", address)} == set()
    styles = "".join(path.read_text("utf-8") for path in site.rglob("*.css"))
    assert not re.search(r"@import|url\(['\"]?(https?:)?//", styles)


def test_each_page_says_first_whom_it_is_for() -> None:
    for path in (*PAGES, "CONTRIBUTING.md", "CHANGELOG.md"):
        title, reader, *_ = text_of(str(path)).split("\n\n")
        assert re.fullmatch(r"# \S.*", title), path
        assert re.fullmatch(r"\*For [^*]+\.\*", reader), path


def broken_link(sources: Path) -> None:
    (sources / "docs/ci.md").open("a").write("\n[x](nosuch.md)\n")


def broken_anchor(sources: Path) -> None:
    (sources / "docs/ci.md").open("a").write("\n[x](settings.md#nosuch)\n")


def page_without_a_place(sources: Path) -> None:
    (sources / "docs/lost.md").write_text("# Lost\n")


def place_without_a_page(sources: Path) -> None:
    (sources / "docs/ci.md").unlink()


@pytest.mark.parametrize("breaks", [broken_link, broken_anchor, page_without_a_place, place_without_a_page])
def test_what_is_not_in_order_is_refused(breaks: Any, sources: Path, tmp_path: Path) -> None:
    breaks(sources)
    with pytest.raises(Abort, match="strict mode"):
        build_site(sources, tmp_path / "site")


def test_links_out_of_the_documents_lead_to_pages_or_name_files(site: Path) -> None:
    assert '<a href="changes.html">' in (site / "upgrading.html").read_text("utf-8")
    assert '<a href="contributing.html#testing">' in (site / "tests.html").read_text("utf-8")
    assert "(<code>tests/fixtures/site</code>)" in (site / "roles.html").read_text("utf-8")
    assert 'href="start/when-not.html"' in (site / "changes.html").read_text("utf-8")


def test_the_search_ranks_known_failures_first(site: Path) -> None:
    entries = json.loads((site / "search" / "search_index.json").read_text("utf-8"))["docs"]
    ranks = {one["location"]: one.get("boost", 1) for one in entries}
    assert (ranks["failures/base.html#no-space"], ranks["settings.html#notifications"]) == (2, 1)


def transcripts() -> list[str]:
    """The commands of the first pages, whose output is shown and which no test runs."""
    found = [block for path in PAGES if "start" in path.parts for block in blocks(str(path))]
    lines = [line for block in found if block.language == "shell-session" for line in block.text.splitlines()]
    return [line.removeprefix(PROMPT) for line in lines if line.startswith(PROMPT)]


def test_the_commands_of_the_first_hour_parse() -> None:
    parser = WordsParser(contexts=Collection(*STANDARD).to_contexts(), initial=Program().initial_context)
    for words in set(transcripts()):
        assert len(parser.parse_argv(shlex.split(words))) == 2, words
