"""Completes verbs, options and values of options in a shell. This module imports nothing slow.

``hostwright --complete-words WORD…`` prints the candidates for the last word, one per line. If there are no candidates,
the shell offers files. A shell that does not split words calls ``--complete-line LINE`` with the line up to the cursor.
Invoke's own option ``--complete`` is unchanged.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from importlib.resources import files
from itertools import pairwise

from invoke.parser import Argument, ParserContext

from hostwright.cli.shell.suggestions import CORE
from hostwright.cli.shell.words import bare_option, names_of, option_of
from hostwright.common.places import OF_A_RUN, RUN_SETS, runs_dir, state_root
from hostwright.common.request import OPTIONS

#: shell → file name of its completion script
SHELLS = {"bash": "complete.sh", "zsh": "complete.zsh", "fish": "complete.fish"}
#: options with which a shell's completion script calls Hostwright
ASKED, ASKED_OF_LINE = "--complete-words", "--complete-line"
_RUNS = 30  #: maximum number of runs that completion offers, latest runs first
_SIGNS = "!&"  #: characters that may precede a term in ``--hosts``
#: option → possible values, where ``Option`` does not declare the values
_CHOICES: Mapping[str, tuple[str, ...]] = {
    "from": ("repair", "relayer", "reinstall"),
    "boot": ("network", "media", "disk"),
    "order": ("on", "off", "cycle", "status"),
    "shell": tuple(SHELLS),
}
#: values of ``--hosts`` that need no inventory
SETS = (
    "all",
    *(f"@{name}" for name in RUN_SETS),
    *("@drifted", "@failing", "@unread"),
)
_LISTS = ("hosts", "roles", "proofs")  #: options whose value is a comma-separated list


def asked(arguments: Sequence[str]) -> list[str] | None:
    """Return the words that a shell wants to complete; ``None`` if ``arguments`` do not request completions."""
    if arguments[:1] == [ASKED]:
        return [*arguments[1:]]
    return words_of(*arguments[1:2])[1:] if arguments[:1] == [ASKED_OF_LINE] else None


def words_of(line: str = "") -> list[str]:
    """Split ``line`` into words as a shell does. The last quote may be unclosed.

    >>> words_of("hostwright plan --var 'note=two words' gp"), words_of('hostwright --hosts "gpu01, '), words_of("a ")
    (['hostwright', 'plan', '--var', 'note=two words', 'gp'], ['hostwright', '--hosts', 'gpu01, '], ['a', ''])
    """
    for closing in ("", "'", '"'):
        with suppress(ValueError):
            words = shlex.split(line + closing)
            return [*words, ""] if line[-1:].isspace() and not closing else words
    return line.split()


def candidates(words: Sequence[str], verbs: Mapping[str, ParserContext], core: ParserContext) -> list[str]:
    """Return the completions of the last of ``words``. ``core`` has Invoke's own options."""
    *before, last = words or [""]
    verb, option, free = _state(before, verbs, core)
    if option is not None and not (option.optional and last.startswith("-")):
        return _values(option.name or "", last, before)
    if last.startswith("-"):
        name, sign, value = last.partition("=")
        if sign and (known := option_of(name, verb, core)):
            return [f"{name}={found}" for found in _values(known.name or "", value, before)]
        flags = verb.flag_names() if verb else tuple(f"--{each}" for each in CORE)
        return _beginning(last, (flag for flag in (*flags, "--help") if flag.startswith("--")))
    if verb is None:
        return _beginning(last, sorted(set(names_of(verbs))))
    wanted = free or bare_option(verb)
    return _values(wanted.name or "", last, before) if wanted else []


def script(shell: str) -> str:
    """Return the completion script for ``shell``."""
    return (files(__package__) / "shells" / SHELLS[shell]).read_text("utf-8")


def _state(
    before: Sequence[str], verbs: Mapping[str, ParserContext], core: ParserContext
) -> tuple[ParserContext | None, Argument | None, Argument | None]:
    verb: ParserContext | None = None
    waiting: Argument | None = None
    needed: list[Argument] = []
    for word in before:
        if waiting is not None and not (waiting.optional and word.startswith("-")):
            waiting = None
        elif word.startswith("-"):
            option = option_of(word, verb, core)
            own = option is not None and (not option.optional or (verb is not None and word in verb.flags))
            waiting = option if option and option.takes_value and own else None
        elif needed:
            needed.pop(0)
        elif word in verbs:
            verb = verbs[word]
            needed = [each for each in verb.positional_args if each.value is None]
    return verb, waiting, needed[0] if needed else None


def _values(option: str, last: str, before: Sequence[str]) -> list[str]:
    done, comma, part = last.rpartition(",") if option in _LISTS else ("", "", last)
    sign = part[:1] if part[:1] in {"hosts": _SIGNS, "roles": "!"}.get(option, "") else ""
    taken = set(done.split(","))
    if option == "hosts" and (of_run := OF_A_RUN.fullmatch(f"{part.lstrip(_SIGNS)}0")):
        found = [f"@{of_run['set']}:{run}" for run in _latest_runs()]
    else:
        found = [each for each in _named(option, before) if each not in taken]
    return [f"{done}{comma}{sign}{each}" for each in _beginning(part.removeprefix(sign), found)]


def _named(option: str, before: Sequence[str]) -> Iterable[str]:
    from hostwright.cli.shell.completion import names

    if option in {"hosts", "host"}:
        known = names.known(_inventories(before))
        groups = [f"@{group}" for group in known.groups] if option == "hosts" else []
        return (*known.hosts, *groups, *(SETS if option == "hosts" else ()))
    if option in {"run", "resume"}:
        return (*(["last"] if option == "run" else []), *_latest_runs())
    if option in {"roles", "stack", "to"}:
        return names.roles() if option == "roles" else names.stacks()
    field = OPTIONS.get(option.replace("-", "_"))
    return field.choices if field else _CHOICES.get(option, ())


def _inventories(before: Sequence[str]) -> list[str]:
    parted = ((*word.partition("="), after) for word, after in pairwise((*before, "")))
    given = [value if sign else after for option, sign, value, after in parted if option == "--inventory"]
    return [place for place in given if place]


def _latest_runs() -> list[str]:
    try:
        return sorted((path.name for path in runs_dir(state_root()).iterdir() if path.is_dir()), reverse=True)[:_RUNS]
    except OSError:
        return []


def _beginning(start: str, found: Iterable[str]) -> list[str]:
    return [each for each in dict.fromkeys(found) if each.startswith(start)]
