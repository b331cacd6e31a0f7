"""Becoming root: programs sent over standard input, with sudo if the login user is not root.

A password is never in an argument, in the environment, in a file or in a log: the shell's builtin ``printf`` writes it
into sudo's standard input. (A here-document would do too, but bash may write those to a file.)
"""

from __future__ import annotations

import re
from pathlib import PurePosixPath
from typing import Protocol

from hostwright.common.errors import BecomeError, InputError
from hostwright.common.quoting import sh, sh_file
from hostwright.common.secret import Secret

BECOME_FAILED_STATUS = 77  #: exit status of a wrapped program whose root part did not start
_ASK = "--ask-become-pass"
_ANSWER_BYTES = 300  #: of sudo's own message, shown to the operator
#: Where programs are looked for, on both sides of sudo: never first, and as root never at all, where the login user's
#: own PATH says, which may begin with directories of theirs.
PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
#: Only such a sudo is given a password.
SUDO_PLACES = ("/usr/bin/sudo", "/bin/sudo", "/usr/local/bin/sudo", "/usr/sbin/sudo")
#: find's tests of a sudo that only root could have put there.
SUDO_TRUSTED = "-type f -uid 0 ! -perm /022"

#: Under a NOPASSWD rule, sudo does not read the password; its line is then still in the input, and must not be run as a
#: command. So the root side drops lines up to this one. It reads byte by byte, as POSIX demands of ``read``.
_BEGIN = "hostwright-begin"
_DROP = f"while IFS= read -r l; do case $l in {_BEGIN}) break;; esac; done; "

#: Of the environment root keeps the proxies, whatever sudo lets through: variables such as PYTHONPATH, BASH_ENV or
#: TMPDIR make programs run or write what somebody else chose.
_LOWER = tuple(f"{name}_proxy" for name in ("http", "https", "ftp", "all", "no"))
PROXIES = (*_LOWER, *(name.upper() for name in _LOWER))
_KEPT = "".join(f' ${{{name}+"{name}=${name}"}}' for name in PROXIES)

#: sudo's messages in the C locale, and what they mean for the operator.
_REASONS = (
    (
        "no trusted sudo at",
        "the sudo that the inventory names (hostwright_sudo) cannot be trusted with a password there: it must be a "
        "file, and it and each directory above it must belong to root and be writable by nobody else, without links",
    ),
    (
        "no null device",
        "/dev/null is not the device there, or not for everybody, and most programs fail: as root, rm -f /dev/null and"
        " mknod -m 666 /dev/null c 1 3, or reboot",
    ),
    ("no sudo", "sudo is not installed there: install it, or log in as root"),
    (
        "no trusted sudo",
        f"no sudo there can be trusted with a password: it must be one of {', '.join(SUDO_PLACES)}, belong to root and "
        "be writable by nobody else; put it right, or log in as root",
    ),
    ("printf is not built in", "its /bin/sh has no builtin printf, which is needed to hand a password over unseen"),
    (
        "not in the sudoers|not allowed to|may not run sudo",
        "sudo does not let the login user become root: allow it in /etc/sudoers.d, or log in as root",
    ),
    ("must have a tty", "its sudo wants a terminal: remove 'requiretty' from its sudoers"),
    (
        "password is required|terminal is required|no tty present",
        f"sudo wants the login user's password: run again with {_ASK}, or give NOPASSWD in /etc/sudoers.d",
    ),
    (
        "try again|incorrect password|no password was provided",
        f"sudo refuses the password: run again with {_ASK} and the login user's password on that host",
    ),
)


class _Answered(Protocol):
    @property
    def status(self) -> int: ...
    @property
    def stderr(self) -> bytes: ...


def wrap(user_program: str, root_program: str, *, password: Secret | None, sudo: str | None = None) -> bytes:
    """One program text for the standard input of ``/bin/sh``: the first part as the login user, the second as root.

    Both are POSIX sh and get an empty standard input. The exit status is the root part's (the user part's if there is
    no root part), or ``BECOME_FAILED_STATUS``: pass the output to ``check_become``. ``sudo`` is the path of one that is
    elsewhere than usual. Raises ``InputError`` for a
    password that does not fit on one line.
    """
    text = f"LC_ALL=C; PATH={PATH}:${{PATH:-/bin}}; export LC_ALL PATH\n(\n:\n{user_program}\n) </dev/null\n"
    if root_program:
        text += sh_file(
            __file__,
            "become.sh",
            program=f"{{\n:\n{root_program}\n}} </dev/null",
            start=f"{_DROP}exec {_clean()} /bin/sh",
            clean=_clean(),
            find_sudo=_find_sudo(sudo),
            named="" if sudo is None else sudo,
            search=PATH,
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
            raise BecomeError(host, sentence, lead=_ASK if _ASK in sentence else "")
    raise BecomeError(host, f"sudo failed: {answer or '(no error output)'}")


def root_command(
    script: str, *arguments: object, password: Secret | None, sudo: str | None = None
) -> tuple[str, bytes]:
    """A command that runs ``script`` as root with ``arguments`` as ``$1``…, and the bytes that must begin its standard
    input; the script reads what follows them. For streams: ``wrap`` needs the standard input for itself.

    Use ``wrap`` first to find out whether sudo lets us: sudo would take data for more attempts at a password.
    """
    flags = "-n" if password is None else "-k -S -p ''"
    become = (
        f'LC_ALL=C; PATH={PATH}; export LC_ALL PATH; [ -z "${{BASH_VERSION-}}" ] || unset -f id find; '
        '[ "$(id -u)" != 0 ] || exec /bin/sh -c "$@"; '
        f'{_find_sudo(sudo)}; [ -n "$sudo" ] || exit {BECOME_FAILED_STATUS}; exec "$sudo" {flags} /bin/sh -c "$@"'
    )
    program = f"{_DROP}exec {_clean()} /bin/sh -c {sh('%s', script)} " + '"$0" "$@"'
    words = "".join(sh(" %s", argument) for argument in ("/bin/sh", program, "hostwright", *arguments))
    opening = f"{_BEGIN}\n" if password is None else f"{_line(password)}\n{_BEGIN}\n"
    return sh("/bin/sh -c %s", become) + words, opening.encode("utf-8", "surrogateescape")


def _find_sudo(named: str | None) -> str:
    """Commands that set ``$sudo`` to the first place with a sudo to be trusted; it stays empty where there is none.

    One that somebody ``named`` may lie anywhere: then each directory above it counts, and no part may be a link.
    """
    places = " ".join(SUDO_PLACES)
    if named is None or named in SUDO_PLACES:
        return f"sudo=$(find -L {named or places} -maxdepth 0 {SUDO_TRUSTED} -print -quit 2>/dev/null)"
    above = [str(path) for path in PurePosixPath(named).parents]
    kind = SUDO_TRUSTED.replace("-type f", f"\\( -type d ! -path {named} -o -type f -path {named} \\)")
    found = f"$(find {' '.join([named, *above])} -maxdepth 0 {kind} -printf x 2>/dev/null)"
    return f'sudo=; if [ "{found}" = {"x" * (len(above) + 1)} ]; then sudo={named}; fi'


def _clean() -> str:
    """The command before which root's shells begin with an environment of their own."""
    return f"/usr/bin/env -i LC_ALL=C PATH={PATH} HOME=/root USER=root LOGNAME=root{_KEPT}"


def _line(password: Secret) -> str:
    text = password.reveal()
    if "\n" in text or "\0" in text:
        raise InputError("the sudo password contains a line break or a NUL byte; sudo cannot read such a password")
    return text
