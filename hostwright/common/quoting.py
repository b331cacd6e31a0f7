"""The one place where strings become shell.

Every command that reaches a host is written ``sh("… %s …", value)``: the template is ours, the values are data.
"""

from __future__ import annotations

import shlex


def sh(template: str, *values: object) -> str:
    r"""Return ``template`` with each ``%s`` replaced by the next value, quoted for a POSIX shell.

    ``%%`` stands for a percent sign. A value is anything but a ``Secret``; it is formatted with ``str``.
    Raises ``ValueError`` for a NUL byte (no shell word can hold one) or when the counts differ.

    >>> sh("ln -sfn %s %s", "/usr/local/tool-1.2", "/tmp/a b")
    "ln -sfn /usr/local/tool-1.2 '/tmp/a b'"
    """
    words = []
    for value in values:
        if getattr(value, "is_secret", False):
            raise ValueError("a secret never goes into a command line; send it over standard input")
        text = str(value)
        if "\0" in text:
            raise ValueError(f"a NUL byte cannot be part of a command: {text!r}")
        words.append(shlex.quote(text))
    try:
        return template % tuple(words)
    except TypeError as error:
        raise ValueError(f"{template!r} does not take {len(values)} values") from error


def words(values: list[str] | tuple[str, ...]) -> str:
    """Return the values as quoted shell words with spaces between, for commands that take many arguments."""
    return " ".join(sh("%s", value) for value in values)
