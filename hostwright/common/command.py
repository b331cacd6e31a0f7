"""Commands of Hostwright that a text advises, as values.

A text has a command between backticks, as ```invoke VERB --option VALUE```: so it stands in journals and in what
``--json`` prints. The console shows it with the program that was called, and with what else the operator typed
(``hostwright.cli.shell.advice``).
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from dataclasses import dataclass

PROGRAMS = ("invoke ", "hostwright ")  #: how a command in a text begins; ours begin with the first


@dataclass(frozen=True, slots=True, init=False)
class Command:
    """A call of a verb: bare words, options (``True``: one without a value), and the words behind ``--``.

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
        """Options are named as in Python (``no_reboot``, ``from_``); one that is empty or ``False`` is left out."""
        given = tuple(
            (name.strip("_").replace("_", "-"), value if value is True else str(value))
            for name, value in options.items()
            if value not in ("", None, False)
        )
        for name, value in (("verb", verb), ("words", words), ("options", given), ("behind", behind)):
            object.__setattr__(self, name, value)

    def also(self, **options: object) -> Command:
        """The same command with more options."""
        more = Command(self.verb, *self.words, behind=self.behind, **options)
        object.__setattr__(more, "options", (*self.options, *more.options))
        return more

    def on(self, hosts: str) -> Command:
        """The same command for these hosts."""
        more = Command(self.verb, *self.words, behind=self.behind)
        object.__setattr__(more, "options", (("hosts", hosts), *self.options))
        return more

    @property
    def line(self) -> str:
        """The command as it is typed."""
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
    """A value for the shell; the name of a field that ``str.format`` fills in later, such as ``{run}``, as it is."""
    return value if value[:1] == "{" and value[1:-1].isalpha() else shlex.quote(value)
