"""Passes that check many paths with one ``stat``, and the content of many files with one ``sha256sum``."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import NamedTuple

from hostwright.common.quoting import words
from hostwright.plan.model import Answer, Pass, PassPart

_ROOT = "/"  #: exists on every host: without a row for it, ``stat`` did not work
_LINES = 4  #: lines of output per path
_NO = Answer(1, "")
_YES = Answer(0, "")


class AtPath(NamedTuple):
    """The file, directory or link at a path; links are not followed."""

    path: str
    kind: str  #: file type as ``stat`` prints it: ``regular file``, ``symbolic link``
    shown: str  #: kind, mode and owner: ``regular file|644|root:root``
    size: str  #: bytes
    named: str  #: quoted name, for a link with its target: ``'/a' -> '/b'``

    @property
    def target(self) -> str | None:
        """Target of a link; ``None`` if the printed name has characters that ``stat`` quotes."""
        begin = f"'{self.path}' -> '"
        inner = self.named[len(begin) : -1] if self.named.startswith(begin) and self.named.endswith("'") else "'"
        return inner if inner.isprintable() and not set(inner) & set("'\\") else None


class StatPass(Pass):
    """Pass that runs ``stat`` on the paths; links are not followed."""

    fails_with = 1  #: exit status if a path does not exist

    def script(self, asked: Sequence[str]) -> str:
        return "stat -c '%n\n%F|%a|%U:%G\n%s\n%N' -- " + words((*asked, _ROOT))

    def found(self, asked: Sequence[str], text: str) -> Mapping[str, str]:
        """Lines of ``stat`` for each existing path."""
        lines = text.splitlines()
        rows = {lines[at]: "\n".join(lines[at : at + _LINES]) for at in range(0, len(lines), _LINES)}
        if _ROOT not in rows or len(lines) % _LINES or not rows.keys() <= {*asked, _ROOT}:
            raise ValueError("stat printed unexpected output")
        return rows


class SumPass(Pass):
    """Pass that compares files with their SHA-256; a word is ``SHA256:PATH``."""

    fails_with = 1  #: exit status if a sum differs

    def script(self, asked: Sequence[str]) -> str:
        rows = (f"{digest}  {path}" for digest, _, path in (word.partition(":") for word in asked))
        return "\n".join(["sha256sum -c <<'END'", *rows, "END"])

    def differing(self, word: str, /) -> str:
        """Output of ``sha256sum`` for a file that differs or cannot be read."""
        return f"{word.partition(':')[2]}: FAILED"

    def found(self, asked: Sequence[str], text: str) -> Mapping[str, str]:
        """``OK`` for each file whose sum matches."""
        answers = dict(line.rpartition(": ")[::2] for line in text.splitlines())
        return {word: "OK" for word in asked if answers.get(word.partition(":")[2]) == "OK"}


STATS, SUMS = StatPass(), SumPass()


def seen(paths: Sequence[str], read: Callable[[Sequence[AtPath | None]], Answer | None]) -> PassPart:
    """Pass part for paths; ``read`` receives an ``AtPath`` for each, or ``None`` for a path that does not exist."""

    def answer(found: Mapping[str, str]) -> Answer | None:
        return read([_found(found[path]) if path in found else None for path in paths])

    return PassPart(STATS, tuple(paths), answer)


def _found(lines: str) -> AtPath:
    path, shown, size, named = lines.split("\n")
    return AtPath(path, shown.partition("|")[0], shown, size, named)


def shown(path: str) -> PassPart:
    """Kind, mode and owner, as ``stat -c '%F|%a|%U:%G'`` prints them."""
    return seen([path], lambda found: Answer(0, f"{found[0].shown}\n") if found[0] else _NO)


def there(path: str) -> PassPart:
    """Whether anything is at the path, like ``test -e PATH || test -L PATH``."""
    return seen([path], lambda found: _YES if found[0] else _NO)


def leads(path: str) -> PassPart:
    """Target of a link, or the kind of any other file, as ``paths.instead_probe`` prints them."""

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
    """Whether a directory is at the path (``test -d PATH``). No answer for a link, which ``test`` would follow."""
    return _unless_linked(path, lambda found: found.kind == "directory")


def filled(path: str) -> PassPart:
    """Whether a non-empty file is at the path (``test -s PATH``). No answer for a link, which ``test`` would follow."""
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
    """Whether ``path`` is a link and nothing is at ``other``, like ``[ -L PATH ] && [ ! -e OTHER ]``."""

    def read(found: Sequence[AtPath | None]) -> Answer | None:
        link, beside = found
        if link is None or link.kind != "symbolic link":
            return _NO
        if beside is not None and beside.kind == "symbolic link":
            return None
        return _YES if beside is None else _NO

    return seen([path, other], read)


def holds(path: str, text: str) -> PassPart | None:
    """Whether a file has exactly this text, which is then the answer.

    Returns ``None`` if the text is empty or cannot be hashed.
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
    """Whether a file has this SHA-256; the answer is the output of ``sha256sum < PATH``."""
    return PassPart(SUMS, (f"{digest}:{path}",), lambda found: Answer(0, f"{digest}  -\n") if found else None)
