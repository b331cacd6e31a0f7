"""``invoke trust``: accept the new key of a reinstalled host once somebody has confirmed it."""

from __future__ import annotations

import sys

from hostwright.cli.exits import shown
from hostwright.cli.opening import open_fleet, targets_of
from hostwright.cli.views.reaching.keys import show_keys, tell
from hostwright.common.errors import AS_DESIRED, FAILED, InputError
from hostwright.common.request import Request
from hostwright.common.text import printable
from hostwright.rebuild.install.sources import read_fingerprint
from hostwright.rebuild.newkeys import KeyResults, Told


def trust(request: Request, *, fingerprint: str = "", forget: bool = False) -> int:
    """``invoke trust``: the old keys of hosts out, the new ones in; or only the old ones out (``--forget``)."""
    wanted = read_fingerprint(fingerprint.strip()) if fingerprint else ""
    fleet = open_fleet(request)
    targets = targets_of(fleet, request, outside=True)
    if wanted and forget:
        raise InputError("--forget takes no fingerprint: give either --fingerprint or --forget", "--forget")

    def settled(told: Told) -> None:
        if not request.json:
            tell(told)

    def work() -> KeyResults:
        if forget:
            return fleet.forget(targets, tell=settled)
        ask = _ask if sys.stdin.isatty() and sys.stderr.isatty() else None
        return fleet.trust(targets, fingerprint=wanted, ask=ask, tell=settled)

    results = shown(work, lambda results: show_keys(results, as_json=request.json))
    return FAILED if results.errors else AS_DESIRED


def _ask(question: str) -> str:
    print(printable(question), end="", file=sys.stderr, flush=True)
    return sys.stdin.readline(80)
