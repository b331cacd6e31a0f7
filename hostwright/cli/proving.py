"""Steps that the verbs ``verify`` and ``prove`` share: run the proofs of layers, and print the results."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from hostwright.cli import console
from hostwright.cli.exits import shown
from hostwright.cli.opening import ask_password
from hostwright.cli.views.progress import run_view
from hostwright.cli.views.shared import print_document, show_led, show_next
from hostwright.cli.views.verdicts import conclude, show_verdicts
from hostwright.common.command import Command
from hostwright.common.errors import led, worst
from hostwright.common.request import Request

if TYPE_CHECKING:
    from hostwright.fleet import Fleet, RunResults, Targets
    from hostwright.prove.model import Level
    from hostwright.prove.proving import Proved
    from hostwright.verify.verdict import Verdict


def verify_and_prove(fleet: Fleet, targets: Targets, request: Request, level: Level) -> int:
    """Verify the hosts of ``targets``, then run proofs of ``level`` in a second run. Return the worse exit status."""
    from hostwright.prove.proving import ProveOptions, check_names
    from hostwright.prove.reports.document import document
    from hostwright.prove.reports.table import show_proofs

    options = ProveOptions(level)
    check_names(targets, options)  # a misspelt proof is reported before any slow connection
    password, view = ask_password(request), run_view(request)
    began_s, verified_s = time.monotonic(), 0.0

    def show_first(ended: RunResults[Verdict]) -> None:
        nonlocal verified_s
        verified_s = time.monotonic() - began_s
        if not request.json:
            show_verdicts(
                targets, ended.results, details=request.details, then_proofs=True, took_s=verified_s, as_json=False
            )

    def show(proved: Proved) -> None:
        if request.json:
            show_verdicts(targets, ended.results, proofs=document(proved.fleet), as_json=True)
        else:
            out = console.make_console()
            out.print()
            out.print(console.with_sums(show_proofs(proved.fleet, details=len(targets) == 1, columns=out.width)))
            conclude(targets, ended.results, "checks of ", unproved=_failed(proved), took_s=verified_s)

    ended = shown(lambda: fleet.verify(targets, password=password, view=view), show_first)
    proved = shown(lambda: fleet.prove(targets, options, password=password, view=view), show)
    return worst([ended.status, proved.status])


def show_proved(proved: Proved, targets: Targets, request: Request, *, quiet: bool) -> None:
    """Print the results of proofs and the next commands. With ``quiet``, print no table, because a report uses the
    output.
    """
    from hostwright.prove.reports.document import document
    from hostwright.prove.reports.table import show_proofs

    if request.json:
        print_document("prove", document(proved.fleet))
    elif not quiet:
        out, every = console.make_console(), request.details or len(targets) == 1
        out.print(console.with_sums(show_proofs(proved.fleet, details=every, columns=out.width)))
        if failed := _failed(proved):
            show_next(out, Command("doctor"), failed, targets)
        leads = {host.host: led(host.lead, Command("prove")) for host in proved.fleet.hosts if host.status == "unread"}
        for then in dict.fromkeys(filter(None, leads.values())):
            show_led(out, then, [host for host in leads if leads[host] == then], targets)


def _failed(proved: Proved) -> list[str]:
    return [host.host for host in proved.fleet.hosts if host.status == "failed"]


def names_in(text: str) -> tuple[str, ...]:
    """Split ``text``, the value of ``--proofs``, into names."""
    return tuple(dict.fromkeys(name for name in (part.strip() for part in text.split(",")) if name))


def rendered(name: str, proved: Proved) -> str:
    """Return the results of proofs as the report ``name``: ``html``, else Prometheus metrics."""
    if name == "html":
        from hostwright.prove.reports.html import render_html

        return render_html(proved.fleet, proved.past)
    from hostwright.prove.reports.prometheus import render_prometheus

    return render_prometheus(proved.fleet)
