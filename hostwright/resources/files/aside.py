"""What people have in directories of ours: before it goes it is named, and kept."""

from __future__ import annotations

from collections.abc import Sequence

from hostwright.common.quoting import sh_file
from hostwright.resources.files.paths import few

ASIDE = "/opt/hostwright/set-aside"  #: on the filesystem of the venvs; a directory a day, nothing in it ever goes

NAMED = 8  #: of their paths, in a plan

#: ``keep_aside PATH [NEW]``: what lies in the place of a file of ours, before ``NEW`` replaces it
KEEP_ASIDE = sh_file(__file__, "sh/keep_aside.sh", aside=ASIDE)

#: ``oldest_back PATH``: moves the oldest ``PATH.before-hostwright.*`` back to ``PATH`` if that is free
OLDEST_BACK = sh_file(__file__, "sh/oldest_back.sh")


def kept_aside(what: str, paths: Sequence[str]) -> tuple[str, ...]:
    """The sentence for a plan that replaces or removes files of ``what`` in whose places something else is by now."""
    if not paths:
        return ()
    return (f"what people put in the place of files of {what} is kept in {ASIDE}/DATE: {few([*paths], NAMED)}",)


def stays(tree: str, paths: Sequence[str]) -> tuple[str, ...]:
    """The sentence for a plan that removes what we put below ``tree``, where people put something as well."""
    return (f"what people put below {tree} stays there: {few([*paths], NAMED)}",) if paths else ()
