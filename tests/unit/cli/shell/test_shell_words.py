"""Typed words, and the words for Invoke's parser: hosts without ``--hosts``, and mistakes."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

import pytest
from invoke import Collection, Program
from invoke.exceptions import ParseError
from invoke.parser import Parser, ParserContext

from hostwright.cli.program import STANDARD
from hostwright.cli.shell import words
from hostwright.cli.shell.words import WordsParser, with_hosts

VERBS = Collection(*STANDARD).to_contexts()


def parsed(line: str) -> list[ParserContext]:
    """Return the verbs of a line with their options, without Invoke's own options."""
    return list(WordsParser(contexts=VERBS, initial=Program().initial_context).parse_argv(line.split()))[1:]


def refused(line: str) -> str:
    with pytest.raises(ParseError) as refusal:
        parsed(line)
    sentence = str(refusal.value)
    for command in re.findall(r"`hostwright ([^`]+)`", sentence):  # works as printed
        assert "…" in command or "--help" in command or len(parsed(command)) == 1, command
    return sentence


@pytest.mark.parametrize(
    ("line", "hosts"),
    [
        ("plan gpu01", "gpu01"),
        ("plan gpu01 gpu02", "gpu01,gpu02"),
        ("plan gpu01,gpu02 @rack3 !gpu05 ~dgx.*", "gpu01,gpu02,@rack3,!gpu05,~dgx.*"),
        ("plan --json gpu01 --out x gpu02", "gpu01,gpu02"),
        ("plan --hosts gpu01", "gpu01"),
        ("plan --hosts=gpu01,gpu02 --json", "gpu01,gpu02"),
        ("audit gpu01", "gpu01"),
        ("hosts gpu01", "gpu01"),
        ("hosts", "all"),
        ("plan --out hosts gpu01", "gpu01"),  # the value of an option is not a verb
        ("power status gpu01 gpu02", "gpu01,gpu02"),
        ("power --order status gpu01", "gpu01"),
    ],
)
def test_hosts_stand_with_their_option_or_without_it(line: str, hosts: str) -> None:
    (verb,) = parsed(line)
    assert verb.args["hosts"].value == hosts


def test_a_run_stands_without_its_option() -> None:
    assert parsed("runs.show 20261124 --hosts gpu01")[0].args["run"].value == "20261124"
    assert parsed("runs.show 20261124 --hosts gpu01")[0].args["hosts"].value == "gpu01"


def test_several_verbs_have_hosts_of_their_own() -> None:
    plan, verify = parsed("plan gpu01 verify gpu02 gpu03 --json")
    assert (plan.name, plan.args["hosts"].value, plan.args["json"].value) == ("plan", "gpu01", False)
    assert (verify.name, verify.args["hosts"].value, verify.args["json"].value) == ("verify", "gpu02,gpu03", True)


@pytest.mark.parametrize(
    ("line", "sentence"),
    [
        ("provison", "unknown verb 'provison'; did you mean 'provision'?"),
        ("plna gpu01", "unknown verb 'plna'; did you mean 'plan'?"),
        ("histroy", "unknown verb 'histroy'; did you mean 'audit.history'?"),
        ("runs.shwo", "unknown verb 'runs.shwo'; did you mean 'runs.show'?"),
        ("runs show", "unknown verb 'runs show'; did you mean 'runs.show'?"),
        ("audit history", "unknown verb 'audit history'; did you mean 'audit.history'?"),
        ("xyzzy", "unknown verb 'xyzzy'; `hostwright --help` lists all verbs"),
        ("plan --host gpu01", "plan has no option --host; did you mean --hosts?"),
        ("plan gpu01 --jsno", "plan has no option --jsno; did you mean --json?"),
        ("runs --json=yes --limits 3", "runs has no option --limits; did you mean --limit?"),
        ("audit --batch 3", "audit has no option --batch (provision, remove, rebuild, rollback have it)"),
        ("plan --xyzzy", "plan has no option --xyzzy; `hostwright --help plan` lists its options"),
        ("--hosts gpu01 plan", "--hosts must follow its verb, as in `hostwright plan --hosts …`"),
        ("--sit x plan", "unknown option --sit; did you mean --site?"),
        ("plan --hosts", "--hosts needs a value"),
        ("plan gpu01 --hosts gpu02", "plan: --hosts and gpu01 are both given; use only one of them"),
        ("plan --hosts gpu02, gpu01", "plan: --hosts takes a single word; write --hosts gpu02,gpu01"),
        ("plan --hosts=gpu02 gpu01 gpu03", "plan: --hosts takes a single word; write --hosts gpu02,gpu01,gpu03"),
        (
            "plan –hosts gpu01",
            "–hosts begins with a typographic dash; did you mean --hosts?",
        ),
        ("plan “gpu01”", "“gpu01” has typographic quotes, which a shell does not interpret; did you mean 'gpu01'?"),
        (
            "plan gpu01 gpu02 -- uptime -p",
            "plan takes no words after '--'; use run or ssh instead: `invoke run --hosts gpu01,gpu02 -- uptime -p`",
        ),
        ("power", "power needs ORDER; `hostwright --help power` explains it"),
        ("init", "init needs DIRECTORY"),
        ("mirror gpu01", "mirror takes no 'gpu01'; see `hostwright --help mirror`"),
        ("mirror provison", "mirror takes no 'provison'; did you mean the verb 'provision'?"),
        ("runs.show 20261124 20261125", "runs.show takes a single run, found '20261124' and '20261125'"),
    ],
)
def test_a_mistake_says_what_may_have_been_meant(line: str, sentence: str) -> None:
    assert refused(line).startswith(sentence)


@pytest.mark.parametrize("line", ["power --help", "plan gpu01 -h", "audit --help --json"])
def test_help_may_follow_its_verb_also_where_something_is_missing(line: str) -> None:
    (core,) = WordsParser(contexts=VERBS, initial=Program().initial_context).parse_argv(line.split())
    assert core.args["help"].value == line.split(maxsplit=1)[0]


@pytest.mark.parametrize(
    ("line", "command"),
    [
        ("plan gpu01 gpu02", "invoke plan --hosts gpu01,gpu02"),
        ("plan gpu01, gpu02 --json", "invoke plan --hosts gpu01,gpu02 --json"),
        ("plan --json all", "invoke plan --json --hosts all"),
        ("plan --roles base @rack3", "invoke plan --roles base --hosts @rack3"),
        ("power cycle gpu01", "invoke power cycle --hosts gpu01"),
        ("hosts verify gpu01", "invoke hosts verify --hosts gpu01"),
        ("plan --hosts gpu01", ""),
        ("plan --hosts gpu01 gpu", ""),
        ("run --hosts gpu01 -- cat gpu02", ""),
        ("gpu01", ""),
    ],
)
def test_hosts_behind_invoke_are_answered_with_the_command(line: str, command: str) -> None:
    contexts = {name: each for each in VERBS for name in (each.name or "", *each.aliases)}
    said = with_hosts(
        line.split(), contexts, lambda word: word[:1] == "@" or word.strip(",") in ("gpu01", "gpu02", "all")
    )
    assert said.startswith(f"`invoke` takes hosts only with --hosts: `{command}`") if command else said == ""


@pytest.mark.parametrize(
    ("line", "verbs"),
    [
        ("", []),
        ("plan gpu01", ["plan"]),
        ("audit gpu01", ["audit.fleet"]),
        ("hosts plan gpu01 plan gpu02", ["hosts", "plan"]),
        ("plan --help", []),
    ],
)
def test_invoke_is_given_only_the_verbs_that_are_named(
    monkeypatch: pytest.MonkeyPatch, line: str, verbs: list[str]
) -> None:
    given = []

    def of_invoke(contexts: Iterable[ParserContext], *more: Any) -> Parser:
        given.extend(chosen := list(contexts))
        return Parser(chosen, *more)

    monkeypatch.setattr(words, "Parser", of_invoke)
    parsed(line)
    assert [context.name for context in given] == verbs, "it copies all of them for each call"
