"""Builds the request that continues an earlier run (``invoke provision --resume``)."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from pydantic import TypeAdapter, ValidationError

from hostwright.apply.journal.selecting import to_resume
from hostwright.common.errors import InputError
from hostwright.common.places import state_root
from hostwright.common.request import OPTIONS, Request
from hostwright.plan.targets import Roster


def resume(request: Request, roster: Roster, run: str = "") -> tuple[str, Request]:
    """Return the ID of the provision run to continue (``resumable``), and the request that continues this run.

    The request is for the unfinished hosts of that run. The options of that run replace the defaults in ``request``.
    Raises ``InputError`` if ``request`` names hosts, or if the run cannot be continued.
    """
    if request.hosts:
        raise InputError(
            "cannot be combined with --hosts, because the resumed run defines the hosts; remove one of them", "--resume"
        )
    last = to_resume(state_root(), roster.path, run)
    gone = [host for host in last.hosts if host not in roster.inventory.hosts]
    if gone:
        raise InputError(f"{', '.join(gone)} of the run {last.run} are no longer in the inventory", "--resume")
    recorded = [name for name, each in OPTIONS.items() if each.recorded and name != "hosts"]
    left_out = [name for name in recorded if not getattr(request, name)]
    missing = [name for name in last.masked if name in left_out]
    if missing:
        raise InputError(
            f"the run {last.run} was given secrets with --{missing[0].replace('_', '-')}, which are not recorded; "
            "pass the option again",
            "--resume",
        )
    try:
        former = TypeAdapter(Request).validate_python(
            {name: last.options[name] for name in recorded if name in last.options}
        )
    except (ValidationError, InputError) as error:
        raise InputError(
            f"the record of the run {last.run} is damaged; provision without --resume", "--resume"
        ) from error
    taken: dict[str, Any] = {name: getattr(former, name) for name in left_out}
    return last.run, replace(request, **taken, hosts=",".join(last.hosts))
