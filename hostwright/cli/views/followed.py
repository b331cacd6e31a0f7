"""Prints the end of each run that the verb ``runs.follow`` has followed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING

from hostwright.cli.console import Hanging, make_console
from hostwright.cli.views.shared import errors_json, print_document, show_errors
from hostwright.common.errors import AS_DESIRED, FAILED
from hostwright.common.text import printable
from hostwright.inventory.patterns import headed

if TYPE_CHECKING:
    from hostwright.apply.rollout.following import Followed
    from hostwright.apply.rollout.rollout import Results

NOBODY = "no run in progress"


def show_followed(results: Results[Followed], *, as_json: bool) -> int:
    """Print how the followed run ended on each host; return the exit status."""
    if as_json:
        followed = [asdict(each) for each in results.values]
        print_document("followed", {"hosts": followed, "errors": errors_json(results.errors)})
    else:
        out = make_console()
        for said, names in _grouped(results.values).items():
            head, below = headed(names)
            out.print(Hanging(printable(f"{head}: {said}")))
            if below and said != NOBODY:
                out.print(Hanging(f"  {below}", style="dim"))
        show_errors(results.errors)
    return FAILED if results.errors or any(each.failed for each in results.values) else AS_DESIRED


def _grouped(hosts: Sequence[Followed]) -> Mapping[str, Sequence[str]]:
    groups: dict[str, list[str]] = {}
    for each in sorted(hosts, key=lambda each: (bool(each.run), bool(each.failed))):
        whose = f"run {each.run} of {each.operator or 'an unidentified operator'}: " if each.run else ""
        how = f"failed in {', '.join(each.failed)}" if each.failed else "ended" if each.run else NOBODY
        groups.setdefault(whose + how, []).append(each.host)
    return groups
