"""Combined probes: one ``stat`` for many paths, and one ``sha256sum`` for the contents of many files."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import NamedTuple

from hostwright.common.quoting import words
from hostwright.plan.model import Answer, Pass, PassPart

_ROOT = "/"  #: path that exists on every host. If ``stat`` does not print this path, ``stat`` failed.
_LINES = 4  #: number of lines that ``stat`` prints for each path
_NO = Answer(1, "")
_YES = Answer(0, "")


class AtPath(NamedTuple):
    """The file, directory or link at a path; links are not followed."""

    path: str
    kind: str  #: file type in the words of ``stat``, such as ``regular file``
    shown: str  #: type, mode and owner of the file, such as ``regular file|644|root:root``
    size: str  #: size of the file in bytes
    named: str  #: quoted path; for a link, path and target: ``'/a' -> '/b'``

    @property
    def target(self) -> str | None:
        """Target of a link; ``None`` if ``stat`` quotes characters of the target."""
        begin = f"'{self.path}' -> '"
        inner = self.named[len(begin) : -1] if self.named.startswith(begin) and self.named.endswith("'") else "'"
        return inner if inner.isprintable() and not set(inner) & set("'\\") else None


class StatPass(Pass):
    """Combined probe for many paths: runs ``stat`` once, without following links."""

    fails_with = 1

    def script(self, asked: Sequence[str]) -> str:
        return "stat -c '%n\n%F|%a|%U:%G\n%s\n%N' -- " + words((*asked, _ROOT))

    def found(self, asked: Sequence[str], text: str) -> Mapping[str, str]:
        lines = text.splitlines()
        rows = {lines[at]: "\n".join(lines[at : at + _LINES]) for at in range(0, len(lines), _LINES)}
        if _ROOT not in rows or len(lines) % _LINES or not rows.keys() <= {*asked, _ROOT}:
            raise ValueError("stat printed unexpected output")
        return rows


class SumPass(Pass):
    """Combined probe for many files: runs ``sha256sum`` once, with arguments ``SHA256:PATH``."""

    fails_with = 1

    def script(self, asked: Sequence[str]) -> str:
        rows = (f"{digest}  {path}" for digest, _, path in (word.partition(":") for word in asked))
        return "\n".join(["sha256sum -c <<'END'", *rows, "END"])

    def differing(self, word: str, /) -> str:
        return f"{word.partition(':')[2]}: FAILED"

    def found(self, asked: Sequence[str], text: str) -> Mapping[str, str]:
        answers = dict(line.rpartition(": ")[::2] for line in text.splitlines())
        return {word: "OK" for word in asked if answers.get(word.partition(":")[2]) == "OK"}


STATS, SUMS = StatPass(), SumPass()


def seen(paths: Sequence[str], read: Callable[[Sequence[AtPath | None]], Answer | None]) -> PassPart:
    """Part of the combined probe ``STATS`` for ``paths``.

    ``read`` receives an ``AtPath`` for each path; ``None`` for a missing path.
    """

    def answer(found: Mapping[str, str]) -> Answer | None:
        return read([_found(found[path]) if path in found else None for path in paths])

    return PassPart(STATS, tuple(paths), answer)


def _found(lines: str) -> AtPath:
    path, shown, size, named = lines.split("\n")
    return AtPath(path, shown.partition("|")[0], shown, size, named)


def shown(path: str) -> PassPart:
    """Part of the combined probe ``STATS`` that answers with type, mode and owner, as from ``stat -c
    '%F|%a|%U:%G'``.
    """
    return seen([path], lambda found: Answer(0, f"{found[0].shown}\n") if found[0] else _NO)


def there(path: str) -> PassPart:
    """Part of the combined probe ``STATS`` that succeeds if ``path`` exists, like ``test -e PATH || test -L PATH``."""
    return seen([path], lambda found: _YES if found[0] else _NO)


def leads(path: str) -> PassPart:
    """Part of the combined probe ``STATS`` that answers with a link's target or another file's type."""

    def read(found: Sequence[AtPath | None]) -> Answer | None:
        match found[0]:
            case None:
                return _NO
            case AtPath(kind="symbolic link", target=target):
                return None if target is None else Answer(0, f"{target}\n")
            case AtPath(kind="directory"):
                return Answer(0, "/directory\n")
        return Answer(0, "/file\n")

    return seen([path], read)


def directory(path: str) -> PassPart:
    """Part of the combined probe ``STATS`` that succeeds if ``path`` is a directory.

    For a link, the probe must run on its own.
    """
    return _unless_linked(path, lambda found: found.kind == "directory")


def filled(path: str) -> PassPart:
    """Part of the combined probe ``STATS`` that succeeds if ``path`` is a non-empty file.

    For a link, the probe must run on its own.
    """
    return _unless_linked(path, lambda found: found.size != "0")


def _unless_linked(path: str, test: Callable[[AtPath], bool]) -> PassPart:
    def read(found: Sequence[AtPath | None]) -> Answer | None:
        match found[0]:
            case None:
                return _NO
            case AtPath(kind="symbolic link"):
                return None
            case other:
                return _YES if test(other) else _NO

    return seen([path], read)


def link_without(path: str, other: str) -> PassPart:
    """Part of the combined probe ``STATS`` that succeeds if ``path`` is a link and nothing is at ``other``."""

    def read(found: Sequence[AtPath | None]) -> Answer | None:
        link, beside = found
        if link is None or link.kind != "symbolic link":
            return _NO
        if beside is not None and beside.kind == "symbolic link":
            return None
        return _YES if beside is None else _NO

    return seen([path, other], read)


def holds(path: str, text: str) -> PassPart | None:
    """Part of the combined probe ``SUMS`` that checks whether the file at ``path`` has exactly this ``text``.

    ``None`` if the text is empty or cannot be hashed.
    """
    if not text or "\0" in text:
        return None
    try:
        digest = _digest(text)
    except UnicodeEncodeError:
        return None
    return PassPart(SUMS, (f"{digest}:{path}",), lambda found: Answer(0, text) if found else None)


@lru_cache(maxsize=256)
def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def has_sum(path: str, digest: str) -> PassPart:
    """Part of the combined probe ``SUMS`` that answers like ``sha256sum < PATH`` if ``digest`` is the file's
    SHA-256.
    """
    return PassPart(SUMS, (f"{digest}:{path}",), lambda found: Answer(0, f"{digest}  -\n") if found else None)
