"""What all resources of paths share: questions, how their answers are shown, and how a file is written."""

from __future__ import annotations

import difflib
from pathlib import PurePosixPath

from hostwright.common.quoting import sh
from hostwright.plan.model import PROBE_CAP_BYTES, Probe
from hostwright.resources.files import passes

ABSENT = "absent"
ASIDE_NAME = "%s.before-hostwright.TIME"  #: where what is in the place of a link is moved to, as plans name it
TOO_LARGE = "too-large-to-read"  #: the rule that refuses a host for a file longer than the answer to a probe


def few(items: list[str], most: int = 3) -> str:
    """The items in a line; of many, the first ones and how many more there are."""
    return "; ".join(items[:most]) + (f" and {len(items) - most} more" if len(items) > most else "")


#: Commands that move what is in the place of a link aside, with its path for each ``%s``.
MOVED_ASIDE = (
    "if [ -e %s ] && [ ! -L %s ]; then mv -T -- %s %s.before-hostwright.$(date +%%Y-%%m-%%dT%%H-%%M-%%S).$$; fi"
)
#: what ``instead_probe`` prints of what is no link, and its name in a plan; no link leads to such a path
INSTEAD = {"/directory": "directory", "/file": "file"}


#: A command that removes what Python compiled below a directory, with its path for ``%s``.
COMPILED_REMOVED = "find %s -name __pycache__ -prune -exec rm -rf -- {} +"


def instead_probe(path: str) -> Probe:
    """Where a link leads, or a key of ``INSTEAD``; it fails where there is nothing."""
    script = (
        "if [ -L %s ]; then readlink -- %s; elif [ -d %s ]; then echo /directory; elif [ -e %s ]; then echo /file\n"
    )
    return Probe(sh(script + "else exit 1; fi", *[path] * 4), part=passes.leads(path))


def moved_aside(what: str, path: str) -> str:
    """The sentence for the plan of a link in whose place something else is."""
    return f"{what} is moved aside to {ASIDE_NAME % path}, and comes back on removal"


def stat_probe(path: str) -> Probe:
    """Kind, mode and owner of a path (``regular file|644|root:root``), or nothing where there is none."""
    return Probe(sh("stat -c '%%F|%%a|%%U:%%G' -- %s", path), root=True, part=passes.shown(path))


def there_probe(path: str) -> Probe:
    """Whether anything is at a path, a link that leads nowhere too."""
    return Probe(sh("test -e %s || test -L %s", path, path), root=True, part=passes.there(path))


def content_probe(path: str, wanted: str = "") -> Probe:
    """The bytes of a file, capped well above the size that it should have; ``wanted`` is what it should hold."""
    cap_bytes = max(PROBE_CAP_BYTES, 2 * len(wanted.encode()))
    return Probe(sh("cat -- %s", path), root=True, cap_bytes=cap_bytes, part=passes.holds(path, wanted))


def unified(path: str, have: str, want: str, wanted_by: str = "stack") -> str:
    """A unified diff of a file's text as it is and as ``wanted_by`` has it."""
    lines = difflib.unified_diff(
        have.splitlines(keepends=True), want.splitlines(keepends=True), f"{path} (host)", f"{path} ({wanted_by})", n=2
    )
    return "".join(line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n" for line in lines)


#: of a path (three times), the new file, the path, a mode, and the new file
_STRICTER = (
    """mode=777; if [ -f %s ] && [ "$(stat -Lc %%u -- %s)" = "$(id -u)" ]; then """
    """chown --reference=%s -- %s; mode=$(stat -Lc %%a -- %s); fi; """
    """chmod "$(printf %%o "$((0$mode & 0%s))")" %s"""
)


def write_script(
    path: str, content: str, *, mode: str, owner: str, check: str, backup: bool, stricter: bool = False
) -> str:
    """The commands that put ``content`` at ``path`` atomically; ``check`` holds ``%s`` for the new file's name.

    ``stricter``: a file of root's that is there keeps its group, and is not opened to those whom its mode keeps out.
    A write that fails leaves no new file behind.
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
