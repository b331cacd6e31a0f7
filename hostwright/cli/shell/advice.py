"""Commands that sentences advise, made to work as printed: with the program, the site, the inventory and the selection
of this call.

Whatever room a sentence comes from, it names a command as ``invoke VERB --option …``, and knows nothing of the call.
The console (``hostwright.cli.console``) passes every text through ``insertions``.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Set
from dataclasses import dataclass
from functools import cache
from inspect import Parameter, signature
from typing import Any

from invoke import Collection

from hostwright.cli.arguments import current
from hostwright.common.quoting import sh
from hostwright.common.request import OPTIONS, Request

_COMMAND = re.compile(r"(?<![\w./-])(?:invoke|hostwright) (?P<verb>[a-z]+(?:\.[a-z]+)?)(?![\w.]*[\w-])")
_OPTION = re.compile(r" --(?P<name>[a-z]+(?:-[a-z]+)*)")
#: of an option or a verb: quoted, or a word, which ends before the punctuation of the sentence
_VALUE = re.compile(r"[ =](?:'[^']*'|[^\s`']*[^\s`'.,;:)])")
_WORD = re.compile(r" [a-z]+")
_SENTENCE = re.compile(r"'[^']* [^']*'")
MOST_CHARACTERS = 100  #: of a command that a sentence advises, as the sentence has it
_ONE_HOST = re.compile(r"[\w.-]+")
#: options that say of themselves which hosts or files the verb is about
_OF_ITS_OWN = {"hosts", "host", "resume"}


def insertions(text: str) -> Iterator[tuple[int, int, str]]:
    """What is to be put into a text, from its beginning: from where, to where, and what comes there."""
    for command in _commands(text):
        call = current()
        program = call.program + (sh(" --site %s", call.site) if call.site else "")
        yield command.start, command.verb - 1, program
        if more := "".join(_missing(command.options, command.named)):
            yield command.end, command.end, more


def completed(text: str) -> str:
    """The text with every command in it made whole."""
    for start, end, words in reversed([*insertions(text)]):
        text = text[:start] + words + text[end:]
    return text


def whole_commands(text: str) -> tuple[str, ...]:
    """The commands in a text as ``completed`` has them, but for those that could hold a sentence of somebody else."""
    found = [text[command.start : command.end] for command in _commands(text)]
    return tuple(completed(each) for each in found if len(each) <= MOST_CHARACTERS and not _SENTENCE.search(each))


def of_host(text: str, host: str) -> str:
    """A sentence about one host: commands in it that name no hosts are about this one, and not about all of the call.

    >>> of_host("gpu01: no facts are stored: run `invoke audit`", "gpu01")
    'gpu01: no facts are stored: run `invoke audit --hosts gpu01`'
    """
    for command in reversed([*_commands(text)]):
        if {"hosts", "inventory"} <= command.options.keys() and not command.named & _OF_ITS_OWN:
            text = text[: command.end] + sh(" --hosts %s", host) + text[command.end :]
    return text


@dataclass(frozen=True, slots=True)
class _Command:
    """A command in a text: where it and its verb begin, where it ends, the verb's options, and those that it names."""

    start: int
    verb: int
    end: int
    options: Mapping[str, bool]
    named: Set[str]


def _commands(text: str) -> Iterator[_Command]:
    for found in _COMMAND.finditer(text):
        options = _verbs().get(found["verb"])
        if options is not None:  # else prose, or the verb of somebody else's program
            yield _Command(found.start(), found.start("verb"), *_read(text, found.end(), options))


def _read(text: str, end: int, options: Mapping[str, bool]) -> tuple[int, Mapping[str, bool], Set[str]]:
    """Where a command ends whose verb ends at ``end``, the verb's options, and those of them that it names."""
    named: set[str] = set()
    if options.get("") and (word := _WORD.match(text, end)):
        end = word.end()
    while found := _OPTION.match(text, end):
        named.add(found["name"])
        end = found.end()
        if options.get(found["name"], True) and (value := _VALUE.match(text, end)):
            end = value.end()
    return end, options, named


def _missing(options: Mapping[str, bool], named: Set[str]) -> Iterator[str]:
    """The options of this call that a command wants and does not name."""
    for name, value in _repeated(current().request).items():
        one = name == "hosts" and "hosts" not in options and _ONE_HOST.fullmatch(str(value)) and value != "all"
        option = "host" if one else name
        if option not in options or option in named:
            continue
        if option in _OF_ITS_OWN and ("inventory" not in options or _OF_ITS_OWN & named):
            continue
        if isinstance(value, bool):
            yield f" --{option}"
            continue
        for each in (value,) if isinstance(value, str) else value:
            yield sh(f" --{option} %s", each)


def _repeated(request: Request) -> dict[str, str | bool | tuple[str, ...]]:
    """The options of a request that commands repeat. A variable that is named like a secret is not shown."""
    called: dict[str, Any] = {name: getattr(request, name) for name, each in OPTIONS.items() if each.repeated}
    if request.var:
        from hostwright.inventory.draft import named_like_a_secret

        pairs = dict(pair.partition("=")[::2] for pair in request.var)
        called["stack"] = pairs.get("hostwright_stack") or pairs.get("stack")  # for verbs that take it as an option
        called["var"] = tuple(pair for pair in request.var if not named_like_a_secret(pair.partition("=")[0]))
    kept = {name: tuple(filter(None, value)) if isinstance(value, tuple) else value for name, value in called.items()}
    return {name.replace("_", "-"): value for name, value in kept.items() if value}


_known: list[Collection] = []


def know(verbs: Collection) -> None:
    """The verbs that sentences may advise; of others, nothing is completed."""
    _known[:] = [verbs]
    _verbs.cache_clear()


@cache
def _verbs() -> dict[str, dict[str, bool]]:
    """The options of every verb, each with whether it takes a value; ``""`` stands for one that has no name."""
    found = {}
    for verbs in _known:
        for name in verbs.task_names:
            parameters = [*signature(verbs[name].body).parameters.values()][1:]
            found[name] = {
                each.name.strip("_").replace("_", "-"): not isinstance(each.default, bool) for each in parameters
            }
            if any(each.default is Parameter.empty for each in parameters):
                found[name][""] = True
        for name, group in verbs.collections.items():
            if group.default:
                found[name] = found[f"{name}.{group.default}"]
    return found
