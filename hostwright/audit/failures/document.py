"""docs/failures, a page for each family of rules: ``python -m hostwright.audit.failures.document`` writes them.

Each rule has a section whose heading is its name in code. ``hostwright doctor --explain`` prints the section of one.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from hostwright.audit.failures.catalogue import PART, catalogue, failures_of
from hostwright.audit.failures.rule import FailureRule, Sign, in_general
from hostwright.audit.fleetaudit import GPU_LAYER
from hostwright.common.command import Command
from hostwright.common.text import markdown
from hostwright.plan.roles.role import Role, discover
from hostwright.plan.roles.site import STANDARD

FOLDER = STANDARD.parents[1] / "docs" / "failures"
READERS = "*For operators with a failure on a host, or a message that they want explained.*"
INTRO = """\
`hostwright doctor` checks the hosts that you name for all known failures of their roles. It reports the cause of each
with the host's own output as evidence. `hostwright audit` checks the whole fleet. When a step of a run fails,
Hostwright searches its output for the messages on these pages, and shows cause and fix with the error.

To find a failure

- by its name: `hostwright doctor --explain NAME` prints its section;
- by a message: type two or three of its rarer words, such as `space left`, into the search field of the site, which
  `make docs` builds. In a checkout, `grep -ri 'space left' docs/failures` does the same;
- by what fails: choose the page of its family.

"""
REST = """\
## How to read a section

Each section says

- what went wrong, and what to do now;
- how the failure is recognised on a host, where it can be. A check that cannot be made (no sudo, a tool that does not
  answer) is reported as not checked, and never as a fault of the host;
- whether it is a failure (work fails, or will soon) or a warning, and whether `hostwright provision` fixes it;
- by which message it is recognised in the output of an installer, apt, pip or another tool: regular expressions of RE2,
  whose time grows with the length of the text and no faster, one a line, each searched for in the whole output, in
  upper and lower case: as it came, and without the prefixes of loggers and with wrapped lines joined. "But not"
  stands before what makes a line another matter. Where several match, the first in the order of the code is used; the
  messages under "Where no other cause is found" say that something failed and not why, and come after all causes;
- the source of this knowledge.

## How far this knowledge reaches

It was measured on 22 November 2026 with 2,825 public texts (`tests/fixtures/failures`). The cause of each was written
down before any rule was run on it. The last two collections were made by people who had not seen the rules. At first
reading, 281 of the 340 failures of the one (82.6 %) were named rightly, 11 (3.2 %) wrongly, and 5 of its 366 harmless
texts were taken for failures; of the 373 failures of the other, 306 (82.0 %) were named rightly and 10 (2.7 %) wrongly.
Then each was divided by lot, and one half was used to mend rules with. Of the 355 failures in the other halves, 307
(86.5 %) are named rightly now, 4 in general and 5 (1.4 %) wrongly; none of their 175 harmless texts is taken for a
failure. The second figures are a little too good: nobody who wrote rules has read these halves, but they were measured
with several times while rules were mended, and it was known which classes of causes the collections have: eight rules
were written for classes that had none. A dozen labels were put right by what their collectors had noted about them
before any rule was run. About a sixth of these failures are whole logs.
`tests/unit/audit/failures/test_figures.py` repeats them.

Of 160 texts of 2024 to 2026 about the stacks of today (144 failures, 16 harmless; cause and next step of each written
down before), rules were mended with one half on 29 November 2026. Of the other half, which was then judged once, 54 of
80 were told rightly (67 %), 9 wrongly (11 %), 7 in part and 10 not at all; nothing harmless was blamed. Of 60
further ones, which nobody who wrote rules has read (55 failures, 5 harmless), 28 were told rightly on the same day
(47 %; 36 where a disputed verdict counts as the milder one), 9 wrongly (1), 12 in part and 8 not at all; 3 harmless
ones were blamed. Of 50 others, read by nobody either (45 failures, 5 harmless), 19 were told rightly once rules had
been mended with these 60 and with a seen half (42 %; 26), 8 wrongly (2), 11 in part and 7 not at all; nothing harmless
was blamed. Rules know what they have met: of a text that is new to them, expect half to be told.

`python -m hostwright.audit.failures.document` writes these pages from the rules of the roles (`roles/*/failures`).
"""

#: commands that keep their lower case at the beginning of a sentence; roles name theirs (``COMMANDS``)
TOOLS = frozenset({"apt", "dpkg", "ldconfig", "lspci", "pip", "systemctl", "systemd"})
OF_CARDS = "Failures of cards: their memory, links, slots and power, and cards that are missing."

_ISSUE = re.compile(r"(?P<repository>[\w.-]+/[\w.-]+)#(?P<first>\d+)(?P<more>(?:, #\d+)*)")


@dataclass(frozen=True, slots=True)
class Family:
    """The rules of one page: a role's, those about cards, or those that a role has under a name in ``FAMILIES``."""

    name: str
    summary: str
    rules: tuple[FailureRule, ...]


def families(roles: tuple[Role, ...]) -> list[Family]:
    """The families of these roles' rules by name; within one, the rules in the order of the catalogue."""
    summaries, owners, named = {GPU_LAYER: OF_CARDS}, dict[str, str](), dict[str, str]()
    for role in roles:
        owners |= {rule.name: role.name for rule in failures_of(role)}
        for part in role.parts(PART):
            summaries[role.name] = (inspect.getdoc(part) or "").partition("\n")[0]
            for name, (summary, rules) in getattr(part, "FAMILIES", {}).items():
                summaries[name] = summary
                named |= {rule.name: name for rule in rules}
    members: dict[str, list[FailureRule]] = {}
    for rule in catalogue(roles).rules:
        family = named.get(rule.name) or (rule.sign.layer if rule.sign else owners[rule.name])
        members.setdefault(family, []).append(rule)
    return [Family(name, summaries[name], tuple(rules)) for name, rules in sorted(members.items())]


def documents() -> dict[str, str]:
    """The pages of all roles' rules, by the names of their files."""
    found = families(discover())
    commands = catalogue(discover()).commands
    return {"index.md": index(found)} | {f"{one.name}.md": page(one, commands) for one in found}


def index(found: Iterable[Family]) -> str:
    """The page that leads to the families' pages."""
    rows = (f"| [{one.name}]({one.name}.md) | {len(one.rules)} | {markdown(one.summary)} |" for one in found)
    table = "\n".join(["## Families\n", "| family | failures | about |", "| --- | --- | --- |", *rows])
    return "\n".join(["# Known failures\n", f"{READERS}\n", INTRO + table + "\n", REST])


def page(family: Family, commands: frozenset[str] = frozenset()) -> str:
    """The page of one family, as Markdown. ``commands`` are further words that keep their lower case."""
    return _Page(TOOLS | commands).text(family)


def section(rule: FailureRule, commands: frozenset[str] = frozenset()) -> str:
    """The part of the page that describes one rule, as Markdown."""
    return _Page(TOOLS | commands).section(rule)


def main() -> None:
    """Write the pages, in the checkout that this code is of."""
    for path in FOLDER.glob("*.md"):
        path.unlink()
    for name, text in documents().items():
        (FOLDER / name).write_text(text, "utf-8")


@dataclass(frozen=True, slots=True)
class _Page:
    commands: frozenset[str]

    def text(self, family: Family) -> str:
        """The whole page: first what is recognised on a host, then what is known by its message alone."""
        groups = {
            "On a host": [rule for rule in family.rules if rule.sign],
            "By a message": [rule for rule in family.rules if not rule.sign],
        }
        lead = f"{markdown(family.summary)} [How to read a section](index.md#how-to-read-a-section)\n"
        parts = [f"# Known failures: {family.name}\n", f"{READERS}\n", lead]
        parts += [self._contents(title, rules) for title, rules in groups.items() if rules]
        for title, rules in groups.items():
            if rules:
                parts += [f"## {title}\n", *(self.section(rule) for rule in rules)]
        return "\n".join(parts)

    def _contents(self, title: str, rules: Iterable[FailureRule]) -> str:
        """A group's part of the table of contents."""
        lines = (f"- [{rule.name}](#{rule.name}): {self._sentence(rule.cause)}" for rule in rules)
        return "\n".join([f"**[{title}](#{title.lower().replace(' ', '-')})**\n", *lines]) + "\n"

    def section(self, rule: FailureRule) -> str:
        """One rule: its heading, and a paragraph for each thing that is known about it."""
        return "\n\n".join([f"### `{rule.name}`", *self._paragraphs(rule)]) + "\n"

    def _paragraphs(self, rule: FailureRule) -> Iterator[str]:
        yield self._sentence(rule.cause)
        yield f"**What to do:** {self._sentence(rule.cure)}"
        for variant in rule.variants:
            sentences = (self._sentence(text) for text in (variant.cause, variant.cure) if text)
            yield "\n".join(["Where the evidence has", "", "```text", *alternatives(variant.pattern), "```"])
            yield " ".join(sentences)
        if rule.sign:
            yield f"**On a host:** {self._sentence(how_seen(rule.sign))} {_weight(rule.sign)}"
        if rule.pattern:
            repeated = " A step that fails with it is retried automatically." if rule.transient else ""
            yield f"**In an output:**{repeated}"
            yield "\n".join(["```text", *alternatives(rule.pattern), "```"])
        if rule.closing:
            lines = ["Where no other cause is found", "", "```text", *alternatives(rule.closing), "```"]
            yield "\n".join(lines)
        if rule.unless:
            yield "\n".join(["But not in lines with", "", "```text", *alternatives(rule.unless), "```"])
        yield f"**Source:** {_sources(rule.source)}"

    def _sentence(self, text: str) -> str:
        """A sentence in Markdown: with a full stop and, where it does not begin with a command, a capital letter."""
        text = in_general(text).rstrip(".")
        word = re.match(r"[a-z]+\b(?![-./_(])", text)
        capital = text[:1].upper() + text[1:] if word and word[0] not in self.commands else text
        return f"{markdown(capital)}."


def how_seen(sign: Sign) -> str:
    """The sentence of a sign: the first paragraph of its function's docstring; empty where it has none."""
    first = (inspect.getdoc(sign.seen) or "").partition("\n\n")[0]
    return " ".join(first.split())


def _weight(sign: Sign) -> str:
    weight = "It is a failure" if sign.grave else "It is a warning"
    return f"{weight}; {Command('provision')} {'fixes' if sign.provision else 'does not fix'} it."


def alternatives(pattern: str) -> list[str]:
    """The top-level alternatives of a regular expression."""
    parts, depth, bracket, start = [], 0, False, 0
    for match in re.finditer(r"\\.|[\[\]()|]", pattern, re.DOTALL):
        character = match[0]
        if bracket:
            bracket = character != "]"
        elif character == "[":
            bracket = True
        elif character in "()":
            depth += 1 if character == "(" else -1
        elif character == "|" and depth == 0:
            parts.append(pattern[start : match.start()])
            start = match.end()
    return [*parts, pattern[start:]]


def _sources(text: str) -> str:
    """The source of a rule, with issues on GitHub (``owner/name#1, #2``) as links."""
    parts, end = [], 0
    for match in _ISSUE.finditer(text):
        numbers = [match["first"], *re.findall(r"\d+", match["more"])]
        address = f"https://github.com/{match['repository']}/issues/"
        names = [f"{match['repository']}#{numbers[0]}", *(f"#{number}" for number in numbers[1:])]
        links = (f"[{name}]({address}{number})" for name, number in zip(names, numbers, strict=True))
        parts += [markdown(text[end : match.start()]), ", ".join(links)]
        end = match.end()
    return "".join([*parts, markdown(text[end:])])


if __name__ == "__main__":
    main()
