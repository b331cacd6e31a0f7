"""Files that people put into Hostwright's directories: a plan names them, and a change keeps them."""

from __future__ import annotations

from collections.abc import Sequence

from hostwright.common.quoting import sh_file
from hostwright.resources.files.paths import few

ASIDE = "/opt/hostwright/set-aside"  #: on the filesystem of the venvs, with one subdirectory per day; never cleaned up

NAMED = 8  #: paths that a plan names

#: ``keep_aside PATH [NEW]``: keep the file at PATH, which is about to be replaced by ``NEW``
KEEP_ASIDE = sh_file(__file__, "sh/keep_aside.sh", aside=ASIDE)

#: ``oldest_back PATH``: move the oldest ``PATH.before-hostwright.*`` back to ``PATH`` if ``PATH`` is free
OLDEST_BACK = sh_file(__file__, "sh/oldest_back.sh")


def kept_aside(what: str, paths: Sequence[str]) -> tuple[str, ...]:
    """Warning for a plan that replaces or removes files of ``what``: people have replaced these paths by their own."""
    if not paths:
        return ()
    return (
        f"files of {what} that were replaced by others: the replacements are kept in {ASIDE}/DATE: "
        f"{few([*paths], NAMED)}",
    )


def stays(tree: str, paths: Sequence[str]) -> tuple[str, ...]:
    """Warning for a plan that removes Hostwright's files below ``tree`` and leaves other files there."""
    return (
        (f"files below {tree} that Hostwright did not write are left there: {few([*paths], NAMED)}",) if paths else ()
    )
