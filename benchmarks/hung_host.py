"""How much one host that hangs delays the others of a rollout: 20 hosts, a window of 5, with and without it.

    .venv/bin/python -m benchmarks.hung_host

The hosts are simulated: the work of one is to wait. Only the rollout is measured. Time is scaled: work of 0.5 s stands
for a host that is provisioned in 2 minutes, so that a host is named silent, and its slot lent, after 33 ms in place of
8 s. The rollout's own look at silent hosts, every 0.1 s, is not scaled and weighs more here than it does in a real run.
Nor is the hung host: it fails at its own timeout of 30 s, long after all others are done. The base is a run over the
other 19 hosts alone. With ``--hosts 21`` the last round has no slack, so that all of the delay is seen. The goal is
less than 5 %.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Collection
from dataclasses import dataclass

from hostwright.apply import events
from hostwright.apply.rollout.limits import Limits
from hostwright.apply.rollout.rollout import roll_out
from hostwright.apply.rollout.silence import NAMED_AFTER_S, Silence
from hostwright.common.errors import Unreachable

REAL_WORK_S = 120.0  #: what ``--work-s`` stands for; a longer one makes the wait before a slot is lent matter less


@dataclass(frozen=True)
class Measured:
    """Seconds since the run's begin: the others done, the hung host named, the hung host failed."""

    others_s: float
    named_s: float = 0.0
    failed_s: float = 0.0


def measure(options: argparse.Namespace, *, batch: int, hung: bool, lend: bool) -> Measured:
    """One rollout; the host that hangs is the first, so that it holds its slot through all of it."""
    names = [f"gpu{number:02}" for number in range(1, options.hosts)]
    begun_s = time.perf_counter()
    at_s: dict[str, float] = {}

    def note(event: events.Event) -> None:
        if isinstance(event, events.Silent):
            at_s.setdefault("named", time.perf_counter() - begun_s)

    with Silence(note, after_s=options.work_s * NAMED_AFTER_S / REAL_WORK_S, again_s=options.timeout_s) as silence:

        def work(name: str) -> str:
            silence(events.Waiting(name, "a connection"))
            if name == "hung":
                time.sleep(options.timeout_s)  # the host that hangs
                raise Unreachable(name, "the host hangs")
            silence(events.RoleStarted(name, "all of it", 1))
            time.sleep(options.work_s)  # a host's work
            at_s[name] = time.perf_counter() - begun_s
            return name

        def nobody() -> Collection[str]:
            return ()

        results = roll_out(
            ["hung", *names] if hung else names,
            work,
            limits=Limits(canary=0, batch=batch, max_fail=options.hosts),
            emit=silence,
            stop=lambda: None,
            gently=lambda: None,
            silent=silence.hosts if lend else nobody,
        )
    assert len(results.values) == len(names)  # noqa: S101 - a benchmark of a run that failed would be a lie
    return Measured(max(at_s[name] for name in names), at_s.get("named", 0.0), time.perf_counter() - begun_s)


def main() -> None:
    """Measure and print one line a case."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--hosts", type=int, default=20)
    parser.add_argument("--batch", type=int, nargs="+", default=[5, 2])
    parser.add_argument("--work-s", type=float, default=0.5)
    parser.add_argument("--timeout-s", type=float, default=30.0)
    options = parser.parse_args()
    for batch in options.batch:
        base = measure(options, batch=batch, hung=False, lend=True)
        print(f"batch {batch}: {options.hosts - 1} hosts done after {base.others_s:.3f} s when none hangs")
        for lend in (True, False):
            found = measure(options, batch=batch, hung=True, lend=lend)
            delay = found.others_s / base.others_s - 1
            print(
                f"batch {batch}: {options.hosts - 1} hosts done after {found.others_s:.3f} s ({delay:+.1%}) when one "
                f"hangs and its slot is {'lent' if lend else 'held'}; it was named after {found.named_s * 1000:.0f} ms "
                f"and failed after {found.failed_s:.1f} s"
            )


if __name__ == "__main__":
    main()
