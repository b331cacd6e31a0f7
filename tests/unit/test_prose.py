"""The prose linter of ``make lint`` finds each kind of sentence, and fails only where a count rises; the page of all
messages is what the code says."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.prose import __main__ as linter
from tests.prose.messages import PAGE, messages, page

PLANTED = {
    "AnotherAn": "Use another an address for the mirror.",
    "Homely": "The package stays on the host.",
    "IsNo": "The path is no link.",
    "ItsContraction": "Its not the driver of the stack.",
    "Long": " ".join(["word"] * 40) + ".",
    "Metaphor": "A witness reports the errand.",
    "Perception": "The host is not asked for it.",
    "RepeatedWords": "The host sends the the record.",
    "StartsWithClause": "What differs is printed first.",
    "ThatThan": "This host is newer that the other.",
    "ThereIs": "On the host there is a package.",
}
MODULE = """
LIMIT = 5

class Busy(HostError):
    def __init__(self, host):
        super().__init__(f"{host}: another run is at work")

class HostError(OSError): ...

def _unfit(sentence) -> Refusal | None:
    return None

def _broken(host, how) -> HostError:
    return HostError(host, f"the disk {how}")

def f(ctx, name, sizes):
    raise Busy(name)
    raise ValueError(f"found {ctx.size} in {', '.join(sizes)}" if sizes else "no sizes are there: run " + f"{name!r}")
    raise InputError(f"at most {LIMIT} hosts: run {Command('plan')}", ctx.name)
    raise _broken(name, "does not answer")
    sentence = f"{name} is full"
    raise ValueError(sentence)
    Misfit("a rule", "two versions differ", "a source")
    return _unfit("a file is missing"), other("a text of something else"), self._refuse(one or "two words", "no-word")
"""
HARMLESS = "The module MODULE reports what it reads. There it is."


@pytest.fixture(autouse=True)
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder in the place of the project."""
    for name, value in {"PROJECT": tmp_path, "BASELINE": tmp_path / "baseline.json"}.items():
        monkeypatch.setattr(linter, name, value)
    return tmp_path


def test_each_rule_finds_its_sentence(project: Path) -> None:
    path = project / "page.md"
    path.write_text("\n\n".join(["# Title", *PLANTED.values(), HARMLESS]) + "\n")
    found = linter.check([path])
    assert {(one.rule, one.line) for one in found} == {(rule, 3 + 2 * n) for n, rule in enumerate(PLANTED)}
    text = next(str(one) for one in found if one.rule == "ThereIs")
    assert text.startswith("page.md:23: ThereIs: begin with the subject")
    assert text.endswith(f"\n    {PLANTED['ThereIs']}")
    assert set(PLANTED) == {*linter.HARPERS, *(rule.stem for rule in linter.RULES)}


@pytest.mark.parametrize("rule", linter.RULES, ids=lambda path: path.stem)
def test_rules_pass_their_own_tests(rule: Path) -> None:
    done = subprocess.run([Path(sys.executable).with_name("harper"), "test", rule], check=False, capture_output=True)
    assert done.returncode == 0, done.stderr


def test_a_lower_count_passes_and_a_higher_one_fails() -> None:
    before = {"a.md": {"Long": 2, "IsNo": 1}}
    assert linter.risen({"a.md": {"Long": 1}}, before) == []
    assert linter.risen({"a.md": {"Long": 4, "IsNo": 1}, "b.md": {"IsNo": 1}}, before) == [
        ("a.md", "Long", 2),
        ("b.md", "IsNo", 1),
    ]
    assert linter.lowered({"a.md": {"Long": 1, "ThereIs": 9}}, before) == {"a.md": {"Long": 1}}
    assert linter.lowered({"a.md": {"Long": 3, "IsNo": 1}}, before) == before


def test_the_lint_names_what_is_new(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    page, baseline = project / "page.md", project / "baseline.json"
    page.write_text("# Title\n\nThe package stays.\n")
    baseline.write_text(json.dumps({"page.md": {"Homely": 2}}))
    assert (linter.main([]), capsys.readouterr().out) == (0, "")
    assert linter.main(["--lower"]) == 0
    for words in (["init", "-q"], ["add", "."], ["-c", "user.name=x", "-c", "user.email=x@x", "commit", "-qm", "x"]):
        subprocess.run(["git", *words], cwd=project, check=True)
    page.write_text("# Title\n\nThe package stays.\n\nThe file goes.\n")
    assert linter.main([]) == 1
    first, sentence, last = capsys.readouterr().out.splitlines()
    assert first.startswith("page.md:5: Homely: ")
    assert sentence.strip() == "The file goes."
    assert last == "page.md has 1 more of Homely than tests/prose/baseline.json allows: rewrite what is new"


def test_messages_are_the_texts_of_what_carries_one_to_an_operator() -> None:
    assert messages({"a.py": MODULE, "b.py": "print('a text of something else')"}) == {
        "a.py": [
            "{host}: another run is at work",
            "found {size} in {sizes}",
            "no sizes are there: run {name}",
            "{ctx}: at most 5 hosts: run ``plan``",
            "{host}: the disk does not answer",
            "{name} is full",
            "two versions differ",
            "a file is missing",
            "two words",
        ]
    }


def test_the_page_of_messages_is_what_the_code_says() -> None:
    assert PAGE.read_text("utf-8") == page(), "run python -m tests.prose.messages"
