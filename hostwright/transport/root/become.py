"""Runs programs as root, with sudo if the login user is not root. The programs are sent over standard input.

A password never appears in an argument, an environment variable, a file or a log: the shell's builtin ``printf`` writes
the password to sudo's standard input.
"""

from __future__ import annotations

import re
from pathlib import PurePosixPath
from typing import Protocol

from hostwright.common.errors import BecomeError, InputError
from hostwright.common.quoting import sh, sh_file
from hostwright.common.secret import Secret

BECOME_FAILED_STATUS = 77  #: exit status of a program from ``wrap`` whose root part did not start
_ASK = "--ask-become-pass"
_ANSWER_BYTES = 300  #: maximum number of bytes that an error quotes from sudo's message
#: PATH for root, and the first part of the login user's PATH
PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
#: default paths of a sudo that may receive a password
SUDO_PLACES = ("/usr/bin/sudo", "/bin/sudo", "/usr/local/bin/sudo", "/usr/sbin/sudo")
#: ``find`` arguments that match a file only if root alone can have installed and can change it
SUDO_TRUSTED = "-type f -uid 0 ! -perm /022"

#: line between the password and root's program; root's shell drops all lines up to this line
_BEGIN = "hostwright-begin"
_DROP = f"while IFS= read -r l; do case $l in {_BEGIN}) break;; esac; done; "

#: names of environment variables that root keeps; other variables (PYTHONPATH) could make root run a user's code
_LOWER = tuple(f"{name}_proxy" for name in ("http", "https", "ftp", "all", "no"))
PROXIES = (*_LOWER, *(name.upper() for name in _LOWER))
_KEPT = "".join(f' ${{{name}+"{name}=${name}"}}' for name in PROXIES)

#: patterns for sudo's messages in the C locale, each with the error text for the operator
_REASONS = (
    (
        "no trusted sudo at",
        "the sudo of hostwright_sudo in the inventory is not safe for a password: it must be a file without links in "
        "its path; the file and each directory above it must belong to root and be writable only by root",
    ),
    (
        "no null device",
        "/dev/null is not a device with mode 666, so most programs fail: as root, run rm -f /dev/null and"
        " mknod -m 666 /dev/null c 1 3, or reboot",
    ),
    ("no sudo", "sudo is not installed: install it, or log in as root"),
    (
        "no trusted sudo",
        f"no sudo on the host is safe for a password: it must be one of {', '.join(SUDO_PLACES)}, belong to root and "
        "be writable only by root; correct its owner or mode, or log in as root",
    ),
    ("printf is not built in", "its /bin/sh has no builtin printf, so a password would appear in the process list"),
    (
        "not in the sudoers|not allowed to|may not run sudo",
        "sudo does not allow the login user to become root: add a rule in /etc/sudoers.d, or log in as root",
    ),
    ("must have a tty", "sudo requires a terminal: remove 'requiretty' from /etc/sudoers"),
    (
        "password is required|terminal is required|no tty present",
        f"sudo requires the login user's password: run again with {_ASK}, or set NOPASSWD in /etc/sudoers.d",
    ),
    (
        "try again|incorrect password|no password was provided",
        f"sudo rejected the password: run again with {_ASK} and the login user's password on that host",
    ),
)


class _Answered(Protocol):
    @property
    def status(self) -> int: ...
    @property
    def stderr(self) -> bytes: ...


def wrap(user_program: str, root_program: str, *, password: Secret | None, sudo: str | None = None) -> bytes:
    """Return a program for ``/bin/sh`` that runs ``user_program`` as the login user, then ``root_program`` as root.

    Both programs are POSIX sh and have an empty standard input. The exit status is that of the last program that is not
    empty, or ``BECOME_FAILED_STATUS``; pass the output to ``check_become``. ``sudo`` is a path of sudo outside
    ``SUDO_PLACES``. Raises ``InputError`` for a password with a line break or NUL byte.
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
    """Raise ``BecomeError`` if ``output`` shows that the root part of a program from ``wrap`` did not start."""
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
    """Return a command that runs ``script`` as root, and the bytes to send first on the command's standard input.

    ``arguments`` are ``$1``… of the script. The script can read further data from standard input. First run a program
    from ``wrap`` to check that sudo works: otherwise sudo would read the data as passwords.
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
    """Return shell commands that set ``$sudo`` to the path of the first trusted sudo, or to an empty text.

    If ``named`` is not one of ``SUDO_PLACES``, the commands also check the parent directories of ``named``, and reject
    symbolic links.
    """
    places = " ".join(SUDO_PLACES)
    if named is None or named in SUDO_PLACES:
        return f"sudo=$(find -L {named or places} -maxdepth 0 {SUDO_TRUSTED} -print -quit 2>/dev/null)"
    above = [str(path) for path in PurePosixPath(named).parents]
    kind = SUDO_TRUSTED.replace("-type f", f"\\( -type d ! -path {named} -o -type f -path {named} \\)")
    found = f"$(find {' '.join([named, *above])} -maxdepth 0 {kind} -printf x 2>/dev/null)"
    return f'sudo=; if [ "{found}" = {"x" * (len(above) + 1)} ]; then sudo={named}; fi'


def _clean() -> str:
    return f"/usr/bin/env -i LC_ALL=C PATH={PATH} HOME=/root USER=root LOGNAME=root{_KEPT}"


def _line(password: Secret) -> str:
    text = password.reveal()
    if "\n" in text or "\0" in text:
        raise InputError(
            "the sudo password contains a line break or a NUL byte, which sudo cannot read; change the password"
        )
    return text
