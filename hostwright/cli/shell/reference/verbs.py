"""Generator of the reference page for verbs: description, examples and options, as in ``hostwright --help``."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from invoke import Argument, Collection, Task
from invoke.parser import ParserContext

from hostwright.cli.shell.helping import by_purpose, sentence, split
from hostwright.common.text import markdown

DOCUMENT = "docs/reference/verbs.md"
_SHARED = "Options that verbs share"
_MANY = 3  #: minimum number of verbs that share an option for describing the option only once

INTRO = """\
# Verbs and options

*For everybody who types a command, and needs its exact options.*

In a [site](../operators/sites.md), `invoke` has the same verbs and options as `hostwright`. Hosts are named with
`--hosts`; `hostwright` also takes them after the verb (`hostwright plan gpu01 gpu02`). See
[Selections](../operators/inventory.md#selections) for ways to name hosts,
[Exit statuses](../operators/failing.md#exit-statuses) for the meaning of exit statuses, and
[Settings](../settings.md#defaults-of-options) for options that a site can set once. `hostwright --help VERB` shows the
same as this page. The verbs of the lab, which only a checkout has, are in [The lab](../lab.md).

This page is written by `python -m hostwright.cli.shell.reference` from the verbs themselves.
"""


@dataclass(frozen=True, slots=True)
class _Verb:
    name: str
    task: Task[Any]
    context: ParserContext

    @property
    def options(self) -> list[tuple[str, str]]:
        return [(_written(one), one.help or "") for one in _arguments(self.context) if one.name not in self.words]

    @property
    def words(self) -> list[str]:
        return [one.name for one in self.context.positional_args if one.name]


def document(verbs: Collection) -> str:
    """Return the reference page for ``verbs``, as Markdown. Afterwards the verbs lack help texts: Invoke
    removes them.
    """
    contexts = {name: context for context in verbs.to_contexts() for name in (context.name, *context.aliases) if name}
    groups = {
        title: [_Verb(name, task, contexts[name]) for name, task in tasks] for title, tasks in by_purpose(verbs).items()
    }
    counted = Counter(option for group in groups.values() for verb in group for option in verb.options)
    shared: dict[str, str] = {}
    for (option, meaning), times in counted.most_common():
        if times >= _MANY:
            shared.setdefault(option, meaning)
    return "\n".join(_parts(groups, dict(sorted(shared.items()))))


def _parts(groups: Mapping[str, Sequence[_Verb]], shared: Mapping[str, str]) -> Iterator[str]:
    yield INTRO
    for title, verbs in groups.items():
        yield f"## {title}\n"
        rows = (f"| [`{verb.name}`](#{_anchor(verb.name)}) | {_cell(sentence(verb.task))} |" for verb in verbs)
        yield "\n".join(["| verb | what it does |", "|---|---|", *rows]) + "\n"
        yield from (_section(verb, shared) for verb in verbs)
    yield f"## {_SHARED}\n"
    yield _table(shared.items()) + "\n"


def _section(verb: _Verb, shared: Mapping[str, str]) -> str:
    text, examples = split(verb.task)
    parts = [f"### `{verb.name}`", markdown(text)]
    if examples:
        parts.append("\n".join(["```text", *examples, "```"]))
    words = [(name.upper(), verb.context.args[name].help or "") for name in verb.words]
    own = [(option, meaning) for option, meaning in verb.options if shared.get(option) != meaning]
    if words or own:
        parts.append(_table([*words, *own]))
    if names := [option for option, meaning in verb.options if shared.get(option) == meaning]:
        also = "Also " if words or own else "Options: "
        listed = ", ".join(f"`{name}`" for name in names)
        parts.append(f"{also}{listed} ([what they mean](#{_anchor(_SHARED)})).")
    return "\n\n".join(parts) + "\n"


def _arguments(context: ParserContext) -> list[Argument]:
    return sorted({id(one): one for one in context.args.values()}.values(), key=lambda one: one.name or "")


def _written(argument: Argument) -> str:
    value = " VALUE" if argument.takes_value else ""
    return f"--{(argument.name or '').strip('_').replace('_', '-')}{value}"


def _anchor(heading: str) -> str:
    return heading.lower().replace(".", "").replace(" ", "-")


def _table(rows: Any) -> str:
    lines = (f"| `{name}` | {_cell(meaning)} |" for name, meaning in rows)
    return "\n".join(["| option | meaning |", "|---|---|", *lines])


def _cell(text: str) -> str:
    return markdown(text.replace("`", "``")).replace("|", r"\|")
