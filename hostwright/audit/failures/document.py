"""Write the pages in docs/failures: ``python -m hostwright.audit.failures.document``.

Each page documents one family of failure rules, with a section for each rule. ``hostwright doctor --explain`` prints
one section.
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

Each section states

- what went wrong, and what to do now;
- how the failure is recognised on a host, if possible. A check that cannot be made (no sudo, a tool that does not
  respond) is reported as not checked, and never as a fault of the host;
- whether it is a failure (work fails, or will soon) or a warning, and whether `hostwright provision` fixes it;
- the messages of installers, apt, pip and other tools by which it is recognised, as RE2 regular expressions, one a
  line. RE2's time grows linearly with the length of the text. Each expression is searched for in the whole output,
  ignoring case: in the original output, and in the output without prefixes of loggers and with wrapped lines joined.
  A line that an expression under "But not" matches is ignored. If several rules match, the first in the order of the
  code is used. Messages under "Where no other cause is found" report that something failed but not why; they are tried
  after all causes;
- the source of this knowledge.

## How far this knowledge reaches

It was measured on 22 November 2026 with 2,825 public texts (`tests/fixtures/failures`). The cause of each text was
written down before any rule was run on it. The authors of the last two collections had not read the rules. On the first
run, 281 of the 340 failures of one collection (82.6 %) were identified correctly and 11 (3.2 %) wrongly; 5 of its 366
harmless texts were taken for failures. Of the 373 failures of the other collection, 306 (82.0 %) were identified
correctly and 10 (2.7 %) wrongly.

Then each collection was split at random, and one half was used to improve rules. Of the 355 failures in the other
halves, 307 (86.5 %) are identified correctly now, 4 only in general, and 5 (1.4 %) wrongly. None of their 175 harmless
texts is taken for a failure. These second figures are slightly too good, for two reasons. Nobody who wrote rules has
read these halves, but they were measured several times while rules were improved. The classes of causes in the
collections were known: eight rules were written for classes without a rule. A dozen labels were corrected by notes that
the collectors had written before any rule was run. About a sixth of these failures are whole logs.
`tests/unit/audit/failures/test_figures.py` repeats the measurement.

A second measurement used 160 texts from 2024 to 2026 about current stacks: 144 failures and 16 harmless texts. The
cause and the next step of each were written down before. On 29 November 2026, rules were improved with one half, and
the other half was judged once. Of its 80 failures and harmless texts, 54 were identified correctly (67 %), 9 wrongly
(11 %), 7 in part and 10 not at all; no harmless text was taken for a failure.

Two further samples were read by nobody who wrote rules. Of the first, with 55 failures and 5 harmless texts, 28 were
identified correctly on the same day (47 %; 36 if a disputed verdict counts as the milder one), 9 wrongly (1), 12 in
part and 8 not at all; 3 harmless texts were taken for failures. Then rules were improved with this sample
and with one of the earlier halves. Of the second, with 45 failures and 5 harmless texts, 19 were identified correctly
(42 %; 26), 8 wrongly (2), 11 in part and 7 not at all; no harmless text was taken for a failure. Expect that rules
identify about half of the texts that are new to them.

`python -m hostwright.audit.failures.document` writes these pages from the rules of the roles (`roles/*/failures`).
"""

#: names of commands that stay lowercase at the beginning of a sentence
TOOLS = frozenset({"apt", "dpkg", "ldconfig", "lspci", "pip", "systemctl", "systemd"})
OF_CARDS = "Failures of cards: their memory, links, slots and power, and cards that are missing."

_ISSUE = re.compile(r"(?P<repository>[\w.-]+/[\w.-]+)#(?P<first>\d+)(?P<more>(?:, #\d+)*)")


@dataclass(frozen=True, slots=True)
class Family:
    """The failure rules on one page: all rules of a role, all rules about GPUs, or a family from a role's
    ``FAMILIES``.
    """

    name: str
    summary: str
    rules: tuple[FailureRule, ...]


def families(roles: tuple[Role, ...]) -> list[Family]:
    """Return the families of the failure rules of these ``roles``, sorted by name."""
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
    """Return the pages about the failure rules of all roles, as file name → Markdown."""
    found = families(discover())
    commands = catalogue(discover()).commands
    return {"index.md": index(found)} | {f"{one.name}.md": page(one, commands) for one in found}


def index(found: Iterable[Family]) -> str:
    """Return the index page as Markdown, with a link to the page of each family."""
    rows = (f"| [{one.name}]({one.name}.md) | {len(one.rules)} | {markdown(one.summary)} |" for one in found)
    table = "\n".join(["## Families\n", "| family | failures | about |", "| --- | --- | --- |", *rows])
    return "\n".join(["# Known failures\n", f"{READERS}\n", INTRO + table + "\n", REST])


def page(family: Family, commands: frozenset[str] = frozenset()) -> str:
    """Return the page of one family as Markdown.

    ``commands`` are command names that stay lowercase at the beginning of a sentence.
    """
    return _Page(TOOLS | commands).text(family)


def section(rule: FailureRule, commands: frozenset[str] = frozenset()) -> str:
    """Return the section about one failure rule as Markdown. For ``commands``, see ``page``."""
    return _Page(TOOLS | commands).section(rule)


def main() -> None:
    """Write the pages into docs/failures of the checkout that contains this module."""
    for path in FOLDER.glob("*.md"):
        path.unlink()
    for name, text in documents().items():
        (FOLDER / name).write_text(text, "utf-8")


@dataclass(frozen=True, slots=True)
class _Page:
    commands: frozenset[str]

    def text(self, family: Family) -> str:
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
        lines = (f"- [{rule.name}](#{rule.name}): {self._sentence(rule.cause)}" for rule in rules)
        return "\n".join([f"**[{title}](#{title.lower().replace(' ', '-')})**\n", *lines]) + "\n"

    def section(self, rule: FailureRule) -> str:
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
        text = in_general(text).rstrip(".")
        word = re.match(r"[a-z]+\b(?![-./_(])", text)
        capital = text[:1].upper() + text[1:] if word and word[0] not in self.commands else text
        return f"{markdown(capital)}."


def how_seen(sign: Sign) -> str:
    """Return the description of ``sign`` for the documentation: the first paragraph of the docstring of
    ``sign.seen``.
    """
    first = (inspect.getdoc(sign.seen) or "").partition("\n\n")[0]
    return " ".join(first.split())


def _weight(sign: Sign) -> str:
    weight = "It is a failure" if sign.grave else "It is a warning"
    return f"{weight}; {Command('provision')} {'fixes' if sign.provision else 'does not fix'} it."


def alternatives(pattern: str) -> list[str]:
    """Split the regular expression ``pattern`` into alternatives, at each ``|`` outside parentheses."""
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
