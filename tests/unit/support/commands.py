"""Finds commands in texts, and parses them with the real program."""

from __future__ import annotations

import re
import shlex
from functools import cache
from typing import Any

from invoke import Collection
from invoke.parser import Parser, ParserContext

from hostwright.cli.program import STANDARD, Hostwright

_FLAGS = "force|yes|check|list|ask-become-pass|ask-vault-password"
_TEXT = re.compile(
    r"(?<![\w./-])(?:invoke|hostwright)(?: --site (?:'[^']*'|\S+))? (?P<verb>[a-z]+(?:\.[a-z]+)?)\b(?![.\w]*[\w-])"
    r"(?: (?:on|off|cycle|status)\b)?"
    rf"(?: --(?:(?:{_FLAGS})(?![\w-])|[a-z-]+(?:[ =](?:'[^']*'|(?!--)[^\s`']*[^\s`'.,;:)]))?))*"
)


def commands_in(text: str) -> list[str]:
    """The Hostwright commands in a text, as a reader would copy them."""
    return [found[0] for found in _TEXT.finditer(text) if found["verb"] in _verbs()]


@cache
def _verbs() -> frozenset[str]:
    return frozenset((*program().namespace.task_names, *program().namespace.collections)) - {"init"}  # needs no hosts


@cache
def program() -> Hostwright:
    """The program with its commands."""
    made = Hostwright(namespace=Collection(*STANDARD), name="Hostwright", binary="hostwright")
    made.create_config()
    made.argv = ["hostwright"]
    return made


def parsed(command: str) -> tuple[str, dict[str, Any], str]:
    """The task of a command, its options, and the site. Raises the program's error for an invalid command."""
    word, *words = shlex.split(command)
    assert word in {"invoke", "hostwright"}, command
    made = program()
    core = Parser(initial=made.initial_context, ignore_unknown=True).parse_argv(words)
    contexts = Parser(contexts=made.namespace.to_contexts()).parse_argv(core.unparsed)
    assert len(contexts) == 1 and contexts[0].name, f"{command}: not one verb"
    given = {name: each.value for name, each in contexts[0].args.items() if each.got_value}
    return contexts[0].name, given, core[0].args["site"].value or ""


@cache
def check(command: str) -> None:
    """Raise the program's error for an invalid command. Valid commands are cached, because parsing takes 15 ms."""
    parsed(command)


def contexts() -> list[ParserContext]:
    """The parser's context of each task."""
    return program().namespace.to_contexts()


def options_of(verb: str) -> set[str]:
    """The names of a task's options."""
    return {name for context in contexts() if context.name == verb for name in context.args}
