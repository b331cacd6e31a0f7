"""Rejects hosts without ``--hosts`` in a call of ``invoke``, because ``invoke`` would interpret them as tasks."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from invoke import Collection, Exit

from hostwright.cli.shell.completion import names
from hostwright.cli.shell.words import with_hosts

_MODULE = ("invoke", "__main__.py")  #: last two parts of the program's path in a call of `python -m invoke`
#: options of Invoke that print information instead of calling a verb
_SHOWN = {"--complete", "--help", "-h", "--list", "-l"}


def of_invoke(argv: Sequence[str]) -> bool:
    """Return whether ``argv`` calls the program ``invoke`` itself.

    >>> of_invoke(["/usr/bin/invoke", "plan"]), of_invoke(["/usr/bin/hostwright", "plan"])
    (True, False)
    """
    return bool(argv) and (Path(argv[0]).name in ("invoke", "inv") or Path(argv[0]).parts[-2:] == _MODULE)


def refuse_bare_hosts(words: Sequence[str], verbs: Collection) -> None:
    """Raise Invoke's ``Exit`` with status 2 and the correct command for a call such as ``invoke plan gpu01``."""
    if _SHOWN & set(words) or not any(map(_is_host, words[1:])):
        return
    contexts = {name: each for each in verbs.to_contexts() for name in (each.name or "", *each.aliases)}
    if sentence := with_hosts(words, contexts, _is_host):
        raise Exit(sentence, code=2)


def _is_host(word: str) -> bool:
    """Return whether ``word`` certainly means hosts: a pattern or a known name. Other words may be tasks of
    the site.
    """
    from hostwright.common.errors import InputError

    if word == "all" or word[:1] in ("@", "~", "!") or any(sign in word for sign in "[,"):
        return True
    try:
        known = names.known()
    # this check prints no errors; the called verb reports a missing or damaged site
    except (InputError, ModuleNotFoundError):
        return False
    return word in known.hosts or word in known.groups
