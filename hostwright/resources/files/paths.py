"""Probes, short texts for plans, and the script that writes a file: shared by all states of files and links."""

from __future__ import annotations

import difflib
from pathlib import PurePosixPath

from hostwright.common.quoting import sh
from hostwright.plan.model import PROBE_CAP_BYTES, Probe
from hostwright.resources.files import passes

ABSENT = "absent"
ASIDE_NAME = "%s.before-hostwright.TIME"  #: new name, in plans, of a file that a wanted link replaces
TOO_LARGE = "too-large-to-read"  #: name of the rule that refuses a host with a file too large for a probe


def few(items: list[str], most: int = 3) -> str:
    """The first ``most`` items in one line, followed by the number of further items."""
    return "; ".join(items[:most]) + (f" and {len(items) - most} more" if len(items) > most else "")


#: shell command that renames a file or directory at ``%s``, the path of a wanted link
MOVED_ASIDE = (
    "if [ -e %s ] && [ ! -L %s ]; then mv -T -- %s %s.before-hostwright.$(date +%%Y-%%m-%%dT%%H-%%M-%%S).$$; fi"
)
#: output of ``instead_probe`` for a path that is not a link → word for the plan
INSTEAD = {"/directory": "directory", "/file": "file"}


COMPILED_REMOVED = "find %s -name __pycache__ -prune -exec rm -rf -- {} +"


def instead_probe(path: str) -> Probe:
    """Probe that prints a link's target, ``/directory`` or ``/file``; it fails if nothing is at ``path``."""
    script = (
        "if [ -L %s ]; then readlink -- %s; elif [ -d %s ]; then echo /directory; elif [ -e %s ]; then echo /file\n"
    )
    return Probe(sh(script + "else exit 1; fi", *[path] * 4), part=passes.leads(path))


def moved_aside(what: str, path: str) -> str:
    """Warning that ``what`` is moved aside, because a link is wanted at ``path``."""
    return f"{what} is moved to {ASIDE_NAME % path}, and is moved back on removal"


def stat_probe(path: str) -> Probe:
    """Probe that prints type, mode and owner (``regular file|644|root:root``); it fails if nothing is at ``path``."""
    return Probe(sh("stat -c '%%F|%%a|%%U:%%G' -- %s", path), root=True, part=passes.shown(path))


def there_probe(path: str) -> Probe:
    """Probe that succeeds if anything is at ``path``, even a link without an existing target."""
    return Probe(sh("test -e %s || test -L %s", path, path), root=True, part=passes.there(path))


def content_probe(path: str, wanted: str = "") -> Probe:
    """Probe that prints the file at ``path``, up to a limit well above the size of the expected content ``wanted``."""
    cap_bytes = max(PROBE_CAP_BYTES, 2 * len(wanted.encode()))
    return Probe(sh("cat -- %s", path), root=True, cap_bytes=cap_bytes, part=passes.holds(path, wanted))


def unified(path: str, have: str, want: str, wanted_by: str = "stack") -> str:
    """Unified diff from ``have``, the file's text on the host, to ``want`` with the label ``wanted_by``."""
    lines = difflib.unified_diff(
        have.splitlines(keepends=True), want.splitlines(keepends=True), f"{path} (host)", f"{path} ({wanted_by})", n=2
    )
    return "".join(line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n" for line in lines)


#: shell commands that limit a new file's permissions and owner to those of the present file
_STRICTER = (
    """mode=777; if [ -f %s ] && [ "$(stat -Lc %%u -- %s)" = "$(id -u)" ]; then """
    """chown --reference=%s -- %s; mode=$(stat -Lc %%a -- %s); fi; """
    """chmod "$(printf %%o "$((0$mode & 0%s))")" %s"""
)


def write_script(
    path: str, content: str, *, mode: str, owner: str, check: str, backup: bool, stricter: bool = False
) -> str:
    """Commands that write ``content`` to ``path`` atomically. In the command ``check``, ``%s`` stands for the new file.

    With ``stricter``, a file that belongs to root keeps its owner and group, and gets no further permissions.
    """
    pure = PurePosixPath(path)
    new = str(pure.parent / f".{pure.name}.hostwright-new")
    lines = [
        sh("mkdir -p -- %s", pure.parent),
        sh("(trap %s EXIT", sh("rm -f -- %s", new)),
        sh("umask 077; printf '%%s' %s > %s", content, new),
        sh("chown %s %s", owner, new),
        sh(_STRICTER, path, path, path, new, path, mode, new) if stricter else sh("chmod %s %s", mode, new),
    ]
    if check:
        lines.append(sh(check, new) + " || exit 1")
    if backup:
        lines.append(sh("if [ -e %s ]; then cp -p -- %s %s; fi", path, path, f"{path}.hostwright-backup"))
    return "\n".join([*lines, sh("sync -- %s", new), sh("mv -fT -- %s %s)", new, path)])
