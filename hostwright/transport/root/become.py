"""Becoming root: programs sent over standard input, with sudo if the login user is not root.

A password is never in an argument, in the environment, in a file or in a log: the shell's builtin ``printf`` writes it
into sudo's standard input. (A here-document would do too, but bash may write those to a file.)
"""

from __future__ import annotations

import re
from typing import Protocol

from hostwright.common.errors import BecomeError, InputError
from hostwright.common.quoting import sh, sh_file
from hostwright.common.secret import Secret

BECOME_FAILED_STATUS = 77  #: exit status of a wrapped program whose root part did not start
_ANSWER_BYTES = 300  #: of sudo's own message, shown to the operator
#: On both sides of sudo, which clears the environment and may have a ``secure_path`` without ``sbin``.
_ENVIRONMENT = (
    "LC_ALL=C; PATH=${PATH:-/bin}:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin; export LC_ALL PATH\n"
)

#: Under a NOPASSWD rule, sudo does not read the password; its line is then still in the input, and must not be run as a
#: command. So the root side drops lines up to this one. It reads byte by byte, as POSIX demands of ``read``.
_BEGIN = "hostwright-begin"
_DROP = f"while IFS= read -r l; do case $l in {_BEGIN}) break;; esac; done; "

#: sudo's messages in the C locale, and what they mean for the operator.
_REASONS = (
    ("no sudo", "sudo is not installed there: install it, or log in as root"),
    ("printf is not built in", "its /bin/sh has no builtin printf, which is needed to hand a password over unseen"),
    (
        "not in the sudoers|not allowed to|may not run sudo",
        "sudo does not let the login user become root: allow it in /etc/sudoers.d, or log in as root",
    ),
    ("must have a tty", "its sudo wants a terminal: remove 'requiretty' from its sudoers"),
    (
        "password is required|terminal is required|no tty present",
        "sudo wants the login user's password: run again with --ask-become-pass, or give NOPASSWD in /etc/sudoers.d",
    ),
    (
        "try again|incorrect password|no password was provided",
        "sudo refuses the password: run again with --ask-become-pass and the login user's password on that host",
    ),
)


class _Answered(Protocol):
    @property
    def status(self) -> int: ...
    @property
    def stderr(self) -> bytes: ...


def wrap(user_program: str, root_program: str, *, password: Secret | None) -> bytes:
    """One program text for the standard input of ``/bin/sh``: the first part as the login user, the second as root.

    Both are POSIX sh and get an empty standard input. The exit status is the root part's (the user part's if there is
    no root part), or ``BECOME_FAILED_STATUS``: pass the output to ``check_become``. Raises ``InputError`` for a
    password that does not fit on one line.
    """
    text = _ENVIRONMENT + f"(\n:\n{user_program}\n) </dev/null\n"
    if root_program:
        text += sh_file(
            __file__,
            "become.sh",
            program=f"{{\n:\n{root_program}\n}} </dev/null",
            start=_DROP + _ENVIRONMENT + "exec /bin/sh",
            use_password="" if password is None else "yes",
            password="" if password is None else _line(password),
        )
    return text.encode("utf-8", "surrogateescape")


def check_become(host: str, output: _Answered) -> None:
    """Raise ``BecomeError`` if the root part of a wrapped program did not start."""
    if output.status != BECOME_FAILED_STATUS:
        return
    match = re.search(rb"^hostwright-become (.*)$", output.stderr, re.MULTILINE)
    if not match:
        return
    text = match[1][:_ANSWER_BYTES].decode("utf-8", "replace")
    answer = "".join(character for character in text if character.isprintable()).strip()
    for pattern, sentence in _REASONS:
        if re.search(pattern, answer):
            raise BecomeError(host, sentence)
    raise BecomeError(host, f"sudo failed: {answer or '(no error output)'}")


def root_command(script: str, *arguments: object, password: Secret | None) -> tuple[str, bytes]:
    """A command that runs ``script`` as root with ``arguments`` as ``$1``…, and the bytes that must begin its standard
    input; the script reads what follows them. For streams: ``wrap`` needs the standard input for itself.

    Use ``wrap`` first to find out whether sudo lets us: sudo would take data for more attempts at a password.
    """
    sudo = "sudo -n" if password is None else "sudo -k -S -p ''"
    become = f'if [ "$(id -u)" = 0 ]; then exec /bin/sh -c "$@"; else exec {sudo} /bin/sh -c "$@"; fi'
    program = _DROP + _ENVIRONMENT + script
    words = "".join(sh(" %s", argument) for argument in ("/bin/sh", program, "hostwright", *arguments))
    opening = f"{_BEGIN}\n" if password is None else f"{_line(password)}\n{_BEGIN}\n"
    return sh("/bin/sh -c %s", f"{_ENVIRONMENT.strip()}; {become}") + words, opening.encode("utf-8", "surrogateescape")


def _line(password: Secret) -> str:
    text = password.reveal()
    if "\n" in text or "\0" in text:
        raise InputError("the sudo password contains a line break or a NUL byte; sudo cannot read such a password")
    return text
