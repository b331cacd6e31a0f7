"""What ``apt-get update`` printed to people, as they reported it: which of their repositories failed, and for what.

The right answers were written down before the outputs were read by the code; every second one was first read by it when
the code was ready. Each case: ``### SOURCE``, lines ``bad REPOSITORY SUITE = RULE``, ``good REPOSITORY SUITE``,
``proxy ADDRESS``, and the output, shortened.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from hostwright.resources.packages.dpkg import LISTS
from tests.unit.support.known import KNOWN
from tests.unit.support.shell import program, run

FILE = Path(__file__).parents[2] / "fixtures/failures/apt-updates.txt"
#: the repository is reached by another scheme than its source says, and apt's own last message is all that names it
MISSED = {"GobySoft/dccl#80"}


@dataclass
class Case:
    title: str
    bad: dict[str, str] = field(default_factory=dict)
    sources: list[str] = field(default_factory=list)
    proxy: str = ""
    output: str = ""


def read() -> list[Case]:
    cases: list[Case] = []
    for text in re.split(r"^### ", FILE.read_text("utf-8"), flags=re.MULTILINE)[1:]:
        title, *lines = text.split("\n")
        case = Case(title)
        while lines and (match := re.match(r"(bad|good|proxy) (.*?)(?: = (\S+))?$", lines[0])):
            lines.pop(0)
            if match[1] == "proxy":
                case.proxy = match[2]
            else:
                case.sources.append(match[2])
            if match[1] == "bad":
                case.bad[match[2]] = match[3]
        case.output = "\n".join(lines)
        cases.append(case)
    return cases


@pytest.mark.parametrize("case", read(), ids=lambda case: case.title)
def test_the_repositories_that_failed_are_named_with_their_cause(
    case: Case, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("http_proxy", case.proxy)
    entries = (source.split(" ") for source in case.sources)
    rows = ((n, uri, "" if suite == "/" else suite) for n, (uri, suite) in enumerate(entries, 1))
    listed = "".join(f"{uri}/ /etc/apt/x.list:{n} {suite}\n" for n, uri, suite in rows)
    (tmp_path / "sources").write_text(listed)
    (tmp_path / "output").write_text(case.output)
    answer = f'case "$*" in *indextargets*) cat {tmp_path}/sources ;; *) cat {tmp_path}/output ;; esac'
    program(tmp_path / "bin", "apt-get", answer)
    done = run(LISTS + 'fetch_lists\nprintf "%s\\n" "$failed"\n', path=tmp_path / "bin")
    named: dict[str, str] = {}
    for line in filter(None, done.stdout.decode().splitlines()):
        match = re.fullmatch(r"(\S+ \S+) \(/etc/apt/x.list:\d+\): .+", line)
        assert match, line
        failure = KNOWN.classify(f"apt could not fetch {line}")
        named[match[1]] = failure.rule.name if failure else "?"
    assert named.keys() == case.bad.keys()
    assert (named == case.bad) == (case.title not in MISSED)
