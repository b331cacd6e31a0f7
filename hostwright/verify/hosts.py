"""Many hosts verified side by side, as one recorded run."""

from __future__ import annotations

from hostwright.apply.events import Explained, HostEnded
from hostwright.apply.host.outcome import AS_DESIRED, FAILED
from hostwright.apply.rollout.connections import Connections
from hostwright.apply.rollout.options import RunOptions
from hostwright.apply.rollout.recording import Audience, Recording, RunResults, recorded
from hostwright.apply.rollout.rollout import Results, on_each, result_of
from hostwright.plan.member import Members, Roster
from hostwright.verify.checking import Checks
from hostwright.verify.verdict import Verdict


def verify(roster: Roster, members: Members, connections: Connections, audience: Audience) -> RunResults[Verdict]:
    """Look at each host, whose plan must be empty, and carry out the checks of its layers."""
    by_name = members.by_name
    options = RunOptions.of(roster, members).recorded()
    roles = dict.fromkeys(role for member in members for role in member.roles)
    with (
        recorded("verify", roster, members, connections, audience=audience, options=options) as recording,
        Checks(roster, roles) as checks,
    ):

        def verified(name: str) -> Verdict:
            member = by_name[name]
            host_plan = connections.plan(member, recording.emit)
            verdict = Verdict(host_plan, checks.of(member, connections.password(member)))
            for check in verdict.failed_checks:
                what = f"{check.role}: {check.sentence.splitlines()[0]}"
                recording.emit(Explained(name, what, check.why, (check.finding,) if check.finding else ()))
            return verdict

        results = on_each(tuple(by_name), verified, stop=connections.close)
        _record(recording, results)
        good = not results.errors and all(verdict.passed for verdict in results.values)
        status = AS_DESIRED if good else FAILED
        recording.journal.end(status)
    return RunResults(recording.run.id, results, status)


def _record(recording: Recording, results: Results[Verdict]) -> None:
    """What became of each host, for the journal: a host that does not pass has failed."""
    for verdict in results.values:
        unchecked = (f"{role} (not checked)" for role in verdict.unchecked_roles)
        failed = ", ".join([*verdict.failed_roles, *unchecked])
        recording.emit(
            HostEnded(verdict.host, "as desired") if verdict.passed else HostEnded(verdict.host, "failed", failed)
        )
    for error in results.errors:
        recording.emit(HostEnded(error.host, result_of(error), error.sentence))
