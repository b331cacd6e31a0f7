"""Adds the options of this call (site, inventory and hosts) to recommended commands.

The console (``hostwright.cli.console``) passes every text that it prints through ``insertions``.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping, Set
from contextvars import ContextVar
from dataclasses import dataclass, field
from functools import cache
from inspect import signature
from itertools import takewhile
from typing import Any

from invoke import Collection

from hostwright.common.command import PROGRAMS, Command
from hostwright.common.quoting import sh
from hostwright.common.request import OPTIONS, Request

MOST_CHARACTERS = 100  #: maximum length in characters of a command in backticks in a message
#: options with which a recommended command already selects hosts
_OF_ITS_OWN = {"hosts", "host", "resume"}


@dataclass(frozen=True, slots=True)
class Call:
    """A call of Hostwright: the program, the value of ``--site``, and the request."""

    program: str = "invoke"
    site: str = ""
    request: Request = field(default_factory=Request)
    stack: str = ""  #: name of the stack that the call installs in place of the inventory's stack


CALL: ContextVar[Call] = ContextVar("CALL")


def current() -> Call:
    """Return the call that this process handles; an empty ``Call`` before a verb is called."""
    return CALL.get(Call())


def shown(command: Command) -> str:
    """Return ``command`` as the operator must type it, with the program, site and options of this call."""
    return _completed(_Found.read(command.line))


def insertions(text: str) -> Iterator[tuple[int, int, str]]:
    """Yield the replacements that add this call's options to commands in ``text``: start, end, and new text."""
    for found in _found(text):
        yield found.start, found.start + len(found.line), _completed(found)


def completed(text: str) -> str:
    """Return ``text`` with the options of this call added to all commands in backticks."""
    for start, end, words in reversed([*insertions(text)]):
        text = text[:start] + words + text[end:]
    return text


def whole_commands(text: str) -> tuple[str, ...]:
    """Return the commands in ``text`` with this call's options, except commands that could contain text from a host."""
    short = (each for each in _found(text) if len(each.line) <= MOST_CHARACTERS)
    return tuple(_completed(each) for each in short if not any(" " in word for word in each.words))


def of_host(text: str, host: str) -> str:
    """Return ``text`` with its commands limited to ``host``, unless a command already selects hosts.

    >>> of_host("gpu01: no facts are stored: run `invoke audit`", "gpu01")
    'gpu01: no facts are stored: run `invoke audit --hosts gpu01`'
    """
    for found in reversed([*_found(text)]):
        if {"hosts", "inventory"} <= options_of(found.verb) and not found.named & _OF_ITS_OWN:
            end = found.start + len(found.line)
            text = text[:end] + sh(" --hosts %s", host) + text[end:]
    return text


@dataclass(frozen=True, slots=True)
class _Found:
    start: int
    line: str
    words: tuple[str, ...]

    @classmethod
    def read(cls, line: str, start: int = 0) -> _Found:
        try:
            return cls(start, line, tuple(shlex.split(line)[1:]))
        except ValueError:
            return cls(start, line, ())

    @property
    def verb(self) -> str:
        return self.words[0] if self.words else ""

    @property
    def named(self) -> Set[str]:
        ours = takewhile(lambda word: word != "--", self.words)
        return {word[2:].partition("=")[0] for word in ours if word.startswith("--")}


def _found(text: str) -> Iterator[_Found]:
    end = 0
    while (start := text.find("`", end) + 1) > 0:
        end = start
        if text.startswith(PROGRAMS, start) and (close := text.find("`", start)) > 0:
            found, end = _Found.read(text[start:close], start), close + 1
            # text in backticks may also be prose, or the call of a verb that does not exist
            if options_of(found.verb):
                yield found


def _completed(found: _Found) -> str:
    call = current()
    _, _, rest = found.line.partition(" ")
    head, dashes, behind = rest.partition(" -- ")
    program = call.program + (sh(" --site %s", call.site) if call.site else "")
    return f"{program} {head}{''.join(_missing(options_of(found.verb), found.named))}{dashes}{behind}"


def _missing(options: Set[str], named: Set[str]) -> Iterator[str]:
    call = current()
    for name, value in (_repeated(call.request) | ({"stack": call.stack} if call.stack else {})).items():
        one = name == "hosts" and "hosts" not in options and _is_one_host(str(value))
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


def _is_one_host(pattern: str) -> bool:
    return pattern != "all" and pattern.translate({ord(sign): "x" for sign in "-._"}).isalnum()


def _repeated(request: Request) -> dict[str, str | bool | tuple[str, ...]]:
    called: dict[str, Any] = {name: getattr(request, name) for name, each in OPTIONS.items() if each.repeated}
    if request.var:
        from hostwright.inventory.draft import named_like_a_secret

        pairs = dict(pair.partition("=")[::2] for pair in request.var)
        # some verbs have an option --stack instead of variables
        called["stack"] = pairs.get("hostwright_stack") or pairs.get("stack")
        called["var"] = tuple(pair for pair in request.var if not named_like_a_secret(pair.partition("=")[0]))
    kept = {name: tuple(filter(None, value)) if isinstance(value, tuple) else value for name, value in called.items()}
    return {name.replace("_", "-"): value for name, value in kept.items() if value}


def options_of(verb: str) -> Set[str]:
    """Return the names of the options of ``verb``, plus an empty name; the empty set for an unknown verb."""
    return _verbs().get(verb, frozenset())


_known: list[Collection] = []


def know(verbs: Collection) -> None:
    """Register the verbs of this call, so that options are added to commands with these verbs."""
    _known[:] = [verbs]
    _verbs.cache_clear()


@cache
def _verbs() -> Mapping[str, Set[str]]:
    found = {}
    for verbs in _known:
        for name in verbs.task_names:
            named = signature(verbs[name].body).parameters
            found[name] = {"", *(each.strip("_").replace("_", "-") for each in named)}
        for name, group in verbs.collections.items():
            if group.default:
                found[name] = found[f"{name}.{group.default}"]
    return found
