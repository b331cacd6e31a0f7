"""Command lines of Hostwright that its messages recommend to the operator.

A message contains a command in backticks, as ```invoke VERB --option VALUE```. For the terminal, the console replaces
``invoke`` with the program that the operator called, and adds options that the operator typed.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from dataclasses import dataclass

#: words with which a command in a text begins. The class ``Command`` writes the first word.
PROGRAMS = ("invoke ", "hostwright ")


@dataclass(frozen=True, slots=True, init=False)
class Command:
    """A command line: verb, arguments, options, and the words after ``--`` (``behind``). The value ``True`` stands for
    an option without a value.

    >>> print(Command("power", "cycle", hosts="gpu[01-03]", boot="disk"))
    `invoke power cycle --hosts 'gpu[01-03]' --boot disk`
    >>> Command("rebuild", check=True).line, Command("run", behind=("uname", "-r")).line
    ('invoke rebuild --check', 'invoke run -- uname -r')
    """

    verb: str
    words: tuple[str, ...]
    options: tuple[tuple[str, str | bool], ...]
    behind: tuple[str, ...]

    def __init__(self, verb: str, *words: str, behind: tuple[str, ...] = (), **options: object) -> None:
        """``options`` have Python names (``no_reboot``, ``from_``). Empty and ``False`` options are omitted."""
        given = tuple(
            (name.strip("_").replace("_", "-"), value if value is True else str(value))
            for name, value in options.items()
            if value not in ("", None, False)
        )
        for name, value in (("verb", verb), ("words", words), ("options", given), ("behind", behind)):
            object.__setattr__(self, name, value)

    def also(self, **options: object) -> Command:
        """Return a copy of the command with these options in addition."""
        more = Command(self.verb, *self.words, behind=self.behind, **options)
        object.__setattr__(more, "options", (*self.options, *more.options))
        return more

    def on(self, hosts: str) -> Command:
        """Return a copy of the command with the option ``--hosts`` set to ``hosts``."""
        more = Command(self.verb, *self.words, behind=self.behind)
        object.__setattr__(more, "options", (("hosts", hosts), *self.options))
        return more

    @property
    def line(self) -> str:
        """The command as typed in a shell, without backticks."""
        return f"{PROGRAMS[0]}{self.verb}{''.join(self._rest())}"

    def __str__(self) -> str:
        return f"`{self.line}`"

    def _rest(self) -> Iterator[str]:
        yield from (f" {_quoted(word)}" for word in self.words)
        yield from (
            f" --{name}" if value is True else f" --{name} {_quoted(str(value))}" for name, value in self.options
        )
        if self.behind:
            yield f" -- {shlex.join(self.behind)}"


def _quoted(value: str) -> str:
    """Quote ``value`` for the shell. A field of ``str.format`` such as ``{run}`` remains unquoted."""
    return value if value[:1] == "{" and value[1:-1].isalpha() else shlex.quote(value)
