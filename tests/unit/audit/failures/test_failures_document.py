"""Tests that docs/failures matches the rules, and that ``doctor --explain`` prints the section of each rule."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hostwright.audit.failures import document as page_of
from hostwright.audit.failures.document import FOLDER, Family, alternatives, documents, families, how_seen, index
from hostwright.audit.failures.rule import FailureRule, Sign
from hostwright.cli.tasks.look import doctor
from hostwright.common.errors import InputError
from hostwright.common.request import Request
from hostwright.plan.roles.role import discover
from tests.unit.support.documents import anchors
from tests.unit.support.known import KNOWN, RULES, SIGNED

if TYPE_CHECKING:
    from hostwright.audit.judging.context import AuditContext


def seen(ctx: AuditContext) -> Iterator[str]:
    """The file ``/etc/x`` is
    there.

    More of it.
    """
    yield ctx.stack.name


RULE = FailureRule(
    "some-rule",
    r"one [|] (two|three)\|four|five",
    "a <cause>",
    "Remove libnvidia-* and /dev/nvidia*",
    "a/b#1, #2; c(1)",
)
SIGN = Sign("cuda", seen, grave=False, provision=True)
SIGNED_RULE = FailureRule("other-rule", "", "another cause", "Mend it", "c(1)", sign=SIGN)


def section(text: str, name: str) -> str:
    """The section of one rule in a page."""
    return text.partition(f"\n### `{name}`\n")[2].partition("\n##")[0]


def page(*rules: FailureRule) -> str:
    return page_of.page(Family("some", "Failures of something.", rules))


def test_the_committed_pages_are_what_the_rules_say() -> None:
    committed = {path.name: path.read_text("utf-8") for path in FOLDER.glob("*.md")}
    assert committed == documents(), "run python -m hostwright.audit.failures.document"


def test_each_rule_is_in_one_family_which_the_index_names() -> None:
    found = families(discover())
    assert sorted(rule.name for one in found for rule in one.rules) == sorted(rule.name for rule in RULES)
    where = {rule.name: one.name for one in found for rule in one.rules}
    names = ("apt-lock", "no-space", "xid-fatal", "module-not-loaded", "nccl-imex")
    assert [where[name] for name in names] == ["apt", "base", "gpu", "driver", "nccl"]
    assert all(
        one.summary.startswith("Failures ") and f"| [{one.name}]({one.name}.md) |" in index(found) for one in found
    )


def test_each_rules_command_prints_its_section(capsys: pytest.CaptureFixture[str]) -> None:
    pages = "".join(documents().values())
    for rule in RULES:
        verb, option, name = rule.link.removeprefix("hostwright ").split()
        assert (verb, option) == ("doctor", "--explain")
        assert doctor(Request(), explain=name) == 0
        assert capsys.readouterr().out.strip() == page_of.section(rule, KNOWN.commands).strip()
        assert page_of.section(rule, KNOWN.commands) in pages


def test_an_unknown_name_is_an_error_with_the_nearest_one() -> None:
    with pytest.raises(InputError, match=r"'nospace' is not the name of a known problem; did you mean 'no-space'\?"):
        doctor(Request(), explain="nospace")


def test_no_two_headings_of_a_page_have_one_anchor() -> None:
    for name, text in documents().items():
        headings = re.findall(r"^#+ (.+)$", re.sub(r"^```.*?^```$", "", text, flags=re.M | re.S), re.MULTILINE)
        assert len(headings) == len(anchors(f"docs/failures/{name}"))
    assert len({rule.name for rule in RULES}) == len(RULES)


def test_names_are_their_own_anchors() -> None:
    assert all(re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", rule.name) for rule in RULES)


def test_every_sign_says_how_it_is_seen() -> None:
    assert [rule.name for rule in SIGNED if not (rule.sign and how_seen(rule.sign).endswith("."))] == []


def test_everything_that_is_known_is_said() -> None:
    text = page(RULE, SIGNED_RULE)
    found = section(text, "some-rule")
    assert "A \\<cause\\>.\n" in found
    assert "**What to do:** Remove libnvidia-\\* and /dev/nvidia\\*.\n" in found
    assert "[a/b#1](https://github.com/a/b/issues/1), [#2](https://github.com/a/b/issues/2); c(1)" in found
    assert "```text\none [|] (two|three)\\|four\nfive\n```" in found
    assert "On a host" not in found
    assert section(text, "other-rule").split("\n\n")[1:-1] == [
        "**What to do:** Mend it.",
        "**On a host:** The file `/etc/x` is there. It is a warning; `invoke provision` fixes it.",
    ]


def test_what_is_recognised_on_a_host_comes_first() -> None:
    text = page(RULE, SIGNED_RULE)
    assert re.findall(r"^##+ (.+)$", text, re.MULTILINE) == ["On a host", "`other-rule`", "By a message", "`some-rule`"]
    assert text.startswith("# Known failures: some\n")
    assert "- [other-rule](#other-rule): Another cause.\n" in text
    assert "## On a host" not in page(RULE)


def test_a_command_keeps_its_small_letter() -> None:
    for cause in ("dpkg was killed", "nvidia-smi is silent", "/etc/x is empty"):
        text = page(FailureRule("rule", "x", cause, "Mend it", "c(1)"))
        assert section(text, "rule").strip().startswith(f"{cause}.")


@given(st.text(alphabet="ab|()[]\\", max_size=12))
def test_alternatives_are_the_whole_pattern(pattern: str) -> None:
    assert "|".join(alternatives(pattern)) == pattern
