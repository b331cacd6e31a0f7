"""Quotes values for shell commands. Only this module inserts values into shell code."""

from __future__ import annotations

import re
import shlex
from functools import cache
from pathlib import Path

#: pattern of the declaration of a variable in a shell file. With ``?`` instead of ``:?``, the value may be empty.
_DECLARED = re.compile(r'^: "\$\{([a-z_]+)(:?)\?\}"\n', re.MULTILINE)


def sh(template: str, *values: object) -> str:
    r"""Return ``template`` with each ``%s`` replaced by the next of ``values``, quoted for a POSIX shell.

    ``%%`` becomes a percent sign. Values are converted with ``str``. Raises ``ValueError`` for a ``Secret``, a NUL
    byte, or a wrong number of values.

    >>> sh("ln -sfn %s %s", "/usr/local/tool-1.2", "/tmp/a b")
    "ln -sfn /usr/local/tool-1.2 '/tmp/a b'"
    """
    words = []
    for value in values:
        if getattr(value, "is_secret", False):
            raise ValueError("a secret must not be part of a command line; send it over standard input")
        text = str(value)
        if "\0" in text:
            raise ValueError(f"a NUL byte cannot be part of a command: {text!r}")
        words.append(shlex.quote(text))
    try:
        return template % tuple(words)
    except TypeError as error:
        raise ValueError(f"{template!r} does not have {len(values)} placeholders") from error


def words(values: list[str] | tuple[str, ...]) -> str:
    """Return ``values`` as quoted shell words with blanks between them."""
    return " ".join(sh("%s", value) for value in values)


def sh_file(module: str, file: str, /, **values: object) -> str:
    """Return the text of the shell file ``file`` next to a module, preceded by assignments of ``values``.

    ``module`` is the module's ``__file__``. The shell file declares each value with ``: "${path:?}"``, or with ``:
    "${mark?}"`` if the value may be empty. A tuple or list becomes one value of quoted shell words, for use with ``eval
    "set -- $names"``.

    Raises ``ValueError`` if the values differ from the declarations, or if a required value is empty.

    In the example, ``synchronised.sh`` has two lines: ``: "${unit:?}"`` and the command.

    >>> print(sh_file(clock, "synchronised.sh", unit="chrony.service"), end="")
    unit=chrony.service
    systemctl is-active --quiet -- "$unit"
    """
    text = _read(str(Path(module).parent / file))
    declared = {name: bool(full) for name, full in _DECLARED.findall(text)}
    if declared.keys() != values.keys():
        raise ValueError(f"{file} needs the values {sorted(declared)}, but got {sorted(values)}")
    lists = {name: words(tuple(value)) if isinstance(value, tuple | list) else value for name, value in values.items()}
    empty = [name for name, full in declared.items() if full and not str(lists[name])]
    if empty:
        raise ValueError(f"{file}: the value {', '.join(empty)} must not be empty")
    assignments = "".join(f"{name}={sh('%s', value)}\n" for name, value in lists.items())
    return assignments + _DECLARED.sub("", text)


@cache
def _read(path: str) -> str:
    lines = Path(path).read_text("utf-8").splitlines(keepends=True)
    head = next((number for number, line in enumerate(lines) if not line.startswith("#")), len(lines))
    return "".join(lines[head:])
