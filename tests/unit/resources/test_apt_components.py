"""Components of the distribution's own archive: both formats of sources, and what is written beside them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hostwright.plan.model import Refusal
from hostwright.resources.packages.components import AptComponents, SourceEntry, source_entries
from tests.unit.support.facts import changes_of

LIST = "/etc/apt/sources.list.d/hostwright-driver.list"
KEY = "/usr/share/keyrings/debian-archive-keyring.gpg"
MORE = AptComponents(LIST, ("contrib", "non-free"))
DEBIAN = "ID=debian\nVERSION_CODENAME=trixie\n"


def source(text: str, path: str = "/etc/apt/sources.list.d/debian.sources") -> str:
    return "".join(f"{path}:{line}\n" for line in (*text.splitlines(), ""))


STANZA = source(
    f"Types: deb deb-src\nURIs: http://debian.example.net/debian/\nSuites: trixie trixie-updates\nComponents: main\n"
    f"# of the image\nSigned-By: {KEY}\n\nTypes: deb\nURIs: https://example.org/tool\nSuites: trixie\nComponents: main"
)


def planned(text: str, **answers: str) -> object:
    found = changes_of(MORE, {"os-release": DEBIAN, "for f in": text, **answers})
    return found[0] if found else None


def test_both_formats_are_read_alike() -> None:
    line = source(f"deb [arch=amd64 signed-by={KEY}] http://a/debian trixie main # of the image", "/etc/apt/x.list")
    assert list(source_entries(line)) == [SourceEntry("/etc/apt/x.list", "http://a/debian", "trixie", ("main",), KEY)]
    entries = list(source_entries(STANZA))
    assert [(entry.suite, entry.components, entry.signed_by) for entry in entries] == [
        ("trixie", ("main",), KEY),
        ("trixie-updates", ("main",), KEY),
        ("trixie", ("main",), ""),
    ]


@pytest.mark.parametrize(
    "text",
    [
        source("deb-src http://a/debian trixie main", "/etc/apt/x.list"),
        source("# deb http://a/debian trixie main", "/etc/apt/x.list"),
        source("deb [", "/etc/apt/x.list"),
        source("Types: deb\nEnabled: no\nURIs: http://a/debian\nSuites: trixie\nComponents: main"),
        source("Types: deb-src\nURIs: http://a/debian\nSuites: trixie\nComponents: main"),
    ],
)
def test_what_apt_does_not_read_is_passed_over(text: str) -> None:
    assert list(source_entries(text)) == []


def test_only_the_distributions_own_archive_gets_components() -> None:
    change = planned(STANZA, stat="", cat="")
    diff = change.diff
    assert f"deb [signed-by={KEY}] http://debian.example.net/debian/ trixie contrib non-free" in diff
    assert f"deb [signed-by={KEY}] http://debian.example.net/debian/ trixie-updates contrib non-free" in diff
    assert "example.org" not in diff


def test_what_the_host_names_itself_is_not_named_again() -> None:
    own = source("deb http://debian.example.net/debian trixie main contrib", "/etc/apt/sources.list")
    diff = planned(own, stat="", cat="").diff
    assert "deb http://debian.example.net/debian trixie non-free" in diff
    assert planned(own.replace("contrib", "contrib non-free")) is None


def test_our_own_list_does_not_count() -> None:
    """Else it would be taken away as soon as it is there."""
    ours = source("deb http://debian.example.net/debian trixie contrib non-free", LIST)
    assert (
        planned(source("deb http://debian.example.net/debian trixie main", "/etc/apt/sources.list") + ours) is not None
    )


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("", "apt's sources have no archive of debian for trixie"),
        (source("deb http://mirror/snapshot trixie main", "/etc/apt/sources.list"), "have no archive of debian"),
        (STANZA.replace(f"Signed-By: {KEY}", "Signed-By: -----BEGIN PGP"), "contains its key as text"),
    ],
)
def test_a_host_without_such_a_source_is_refused(text: str, sentence: str) -> None:
    refusal = planned(text)
    assert isinstance(refusal, Refusal)
    assert refusal.rule == "apt-components"
    assert sentence in refusal.sentence
    assert "contrib non-free" in refusal.sentence


@given(st.text(max_size=300))
def test_any_text_is_read(text: str) -> None:
    for entry in source_entries(text + source(text, "/etc/apt/x.list") + source(text)):
        assert entry.uri
        assert entry.suite
