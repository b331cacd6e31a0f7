"""Files that people put into Hostwright's directories: a plan names them, and a change keeps them."""

from __future__ import annotations

from collections.abc import Sequence

from hostwright.common.quoting import sh_file
from hostwright.resources.files.paths import few

#: directory on the host for copies of other people's replaced files; Hostwright never deletes these copies
ASIDE = "/opt/hostwright/set-aside"

NAMED = 8  #: maximum number of paths that a warning names

#: shell function ``keep_aside PATH [NEW]`` that copies PATH below ``ASIDE``, unless PATH equals NEW
KEEP_ASIDE = sh_file(__file__, "sh/keep_aside.sh", aside=ASIDE)

#: shell function ``oldest_back PATH`` that renames the oldest ``PATH.before-hostwright.*`` to a free PATH
OLDEST_BACK = sh_file(__file__, "sh/oldest_back.sh")


def kept_aside(what: str, paths: Sequence[str]) -> tuple[str, ...]:
    """Warning that a plan replaces or removes the changed files ``paths`` of ``what``, and keeps copies."""
    if not paths:
        return ()
    return (
        f"files of {what} that were replaced by others: the replacements are kept in {ASIDE}/DATE: "
        f"{few([*paths], NAMED)}",
    )


def stays(tree: str, paths: Sequence[str]) -> tuple[str, ...]:
    """Warning that a plan removes Hostwright's files below ``tree``, and keeps the other files there, ``paths``."""
    return (
        (f"files below {tree} that Hostwright did not write are left there: {few([*paths], NAMED)}",) if paths else ()
    )
