"""Finds the valid name that a user probably meant when a name is misspelt."""

from __future__ import annotations

import difflib
from collections.abc import Iterable

SIMILAR = 0.6  #: minimum similarity of a suggested name (the default of difflib)


def nearest(name: str, candidates: Iterable[str], similar: float = SIMILAR) -> str | None:
    """Return the candidate that is most similar to ``name``; ``None`` if none is similar enough.

    >>> nearest("prefx", ["prefix", "version"])
    'prefix'
    """
    folded = {candidate.casefold(): candidate for candidate in candidates}
    matches = difflib.get_close_matches(name.casefold(), folded, n=1, cutoff=similar)
    return folded[matches[0]] if matches else None


def suggestion(name: str, candidates: Iterable[str], shown: int = 12) -> str:
    """Return the end of a message about the unknown ``name``: the most similar candidate, or ``shown`` candidates.

    >>> suggestion("prefx", ["prefix"])
    "did you mean 'prefix'?"
    """
    names = list(dict.fromkeys(candidates))
    similar = nearest(name, names)
    if similar:
        return f"did you mean {similar!r}?"
    if not names:
        return "none is defined"
    more = f" and {len(names) - shown} more" if len(names) > shown else ""
    return f"valid: {', '.join(names[:shown])}{more}"
