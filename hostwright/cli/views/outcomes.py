"""Plans, and what came of a run that changed hosts, as text or JSON."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from rich.text import Text

from hostwright.cli import console
from hostwright.cli.views.shared import errors_json, print_document, proofs_json, show_errors, show_stand_ins
from hostwright.common.text import printable

if TYPE_CHECKING:
    from hostwright.apply.host.outcome import Outcome
    from hostwright.apply.rollout.recording import RunResults
    from hostwright.apply.rollout.rollback import WayBack
    from hostwright.apply.rollout.rollout import Results
    from hostwright.fleet import Member
    from hostwright.plan.planning import HostPlan


def show_plans(members: Sequence[Member], results: Results[HostPlan], *, as_json: bool) -> None:
    """What differs on hosts from what is desired; hosts that differ alike are shown once."""
    if as_json:
        plans = [plan.to_json() for plan in results.values]
        print_document("plan", {"plans": plans, "errors": errors_json(results.errors)})
        return
    out = console.make_console()
    for shown in console.show_plans(results.values):
        out.print(shown)
    show_errors(results.errors)
    show_stand_ins(members, out)


def show_outcomes(
    verb: str, members: Sequence[Member], ended: RunResults[Outcome], *, proved: bool = False, as_json: bool
) -> None:
    """What came of each host, and where proofs were asked for (``proved``), of those."""
    from hostwright.apply.rollout.applying import AGAIN, THE_SAME

    run, results = ended.run, ended.results
    if as_json:
        print_document("provision", _document(run, results, proved=proved))
        return
    out = console.make_console()
    out.print(console.summary(results.values, results.errors, results.untouched, proved=proved))
    show_errors(results.errors)
    if results.stopped_because:
        sentence = f"{results.stopped_because}. To continue with what is left: {AGAIN.get(verb, THE_SAME)}"
        console.make_console(stderr=True).print(Text(printable(sentence), style="bold red"))
    show_stand_ins(members, out)
    out.print(Text(f"run {run}: `invoke runs.show --run {run}` shows every step", style="dim"))


def _document(run: str, results: Results[Outcome], *, proved: bool) -> dict[str, Any]:
    return {
        "run": run,
        "hosts": [
            {
                "host": outcome.host,
                "result": outcome.word,
                "changed": outcome.changed,
                "reboots": outcome.reboots,
                "plan": outcome.plan.to_json(),
                "left": outcome.left.to_json() if outcome.left else None,
                "roles": [asdict(result) for result in outcome.results],
                **({"proofs": proofs_json(outcome.acceptance)} if proved else {}),
            }
            for outcome in results.values
        ],
        "errors": errors_json(results.errors, proved=proved),
        "untouched": list(results.untouched),
        "stopped_because": results.stopped_because,
    }


def intents(ways: Sequence[WayBack]) -> Iterator[str]:
    """Where hosts go back to, and that the inventory says otherwise: one sentence for all hosts of one kind."""
    kinds = dict.fromkeys((way.back.stack.name, way.now.stack.name, way.back.stack.digest()) for way in ways)
    for back, now, digest in kinds:
        same = [way for way in ways if (way.now.stack.name, way.back.stack.digest()) == (now, digest)]
        names = ", ".join(f"{way.now.name} (verified {way.at})" for way in same)
        yield (
            f"back to {back}: {names}. The inventory still says {now}: audits report that as intent, and the next "
            f"provision goes back to it, unless you change `stack` there"
        )
