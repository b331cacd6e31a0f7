"""``make bench``: measure cases, store their figures, and write ``docs/performance.md``.

    python -m benchmarks list
    python -m benchmarks run [--cases plan,copy] [--hosts 1,10] [--rounds 3] [--without ansible]
                             [--force] [--keep]
    python -m benchmarks page

A run of all cases with their default numbers of hosts is stored in ``docs/performance``, and the page is written again.
With ``--keep`` any other run is stored too, and replaces only the figures of its own cases. Otherwise the figures are
only printed.
"""

from __future__ import annotations

import argparse
import os
import signal
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from benchmarks.cases.all import CASES, named
from benchmarks.cases.case import Case, Wanted, costed, estimate_s
from benchmarks.figures import record as recorded
from benchmarks.figures.record import CaseRecord, Conditions
from benchmarks.measuring.calibration import calibration_s
from benchmarks.measuring.command import PROJECT, Command
from benchmarks.measuring.machine import conditions, too_loaded
from benchmarks.measuring.measure import measure
from benchmarks.measuring.rounds import alternate
from benchmarks.page import tables
from benchmarks.page.document import FIGURES
from benchmarks.page.write import write
from benchmarks.peers.venvs import versions
from benchmarks.places.places import Places, places
from hostwright.common.errors import HostwrightError
from lab.image import ensure_programs

LAST = PROJECT / "build/benchmarks/figures.json"
PLACES_S = 180.0  #: estimated seconds to create the lab and to provision the first host
ROUNDS = 3
SHOWN = 300  #: maximum number of characters of an error text in ``docs/performance.md``
#: name of a program that the benchmark runs on this machine → Debian package of the program
PACKAGES = {
    "nginx": "nginx-light",
    "rsync": "rsync",
    "curl": "curl",
    "tc": "iproute2",
    "xargs": "findutils",
    "sshd": "openssh-server",
}


def main(argv: Sequence[str]) -> int:
    """Run the command line ``argv``; return 1 if a measured tool failed, 2 if the command cannot start, else 0."""
    given = _parser().parse_args(argv)
    # sys.exit lets Python remove the lab before this process ends
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    try:
        status: int = given.command(given)
    except (HostwrightError, ValueError) as error:
        print(f"bench: {error}", file=sys.stderr)
        return 2
    return status


def show(_: argparse.Namespace) -> int:
    """List the cases and their durations."""
    wanted = Wanted(rounds=ROUNDS)
    for case in CASES:
        print(f"{case.NAME:14} {estimate_s(case, wanted) / 60:5.1f} min  {case.TITLE}")
    print(f"{'all':14} {all_s(CASES, wanted) / 60:5.1f} min  with {PLACES_S / 60:.0f} min for the lab")
    return 0


def page(_: argparse.Namespace) -> int:
    """Write ``docs/performance.md`` and its charts again, from the stored figures."""
    write(CASES, recorded.read(FIGURES))
    return 0


def run(given: argparse.Namespace) -> int:
    """Measure the requested cases, then print or store their figures."""
    cases, wanted = named(given.cases), Wanted(_numbers(given.hosts), given.rounds)
    if os.geteuid() != 0:
        raise ValueError("the lab and the counting of processor time need root: `make bench` uses sudo")
    refusal = too_loaded(os.getloadavg()[0], os.cpu_count() or 1)
    if refusal and not given.force:
        raise ValueError(refusal)
    tell(f"{len(cases)} cases, about {all_s(cases, wanted) / 60:.0f} minutes on two quiet cores")
    ensure_programs(PACKAGES)
    now = conditions(versions())
    whole = given.keep or not (given.cases or given.without or wanted.sizes)
    target = FIGURES if whole else LAST
    failed = False
    with places(tell) as place:
        for case in cases:
            found = _measured(case, place, wanted, now, given.without)
            failed = failed or bool(found.failed) or not found.samples
            _print(case, found)
            recorded.write(target, {**recorded.read(target), case.NAME: found})
    if whole:
        write(CASES, recorded.read(FIGURES))
    print(f"figures: {target.relative_to(PROJECT)}")
    return int(failed)


def all_s(cases: Sequence[Case], wanted: Wanted) -> float:
    """Estimate the seconds to measure ``cases``, including the creation of the lab."""
    return PLACES_S + sum(estimate_s(case, wanted) for case in cases)


def _measured(case: Case, place: Places, wanted: Wanted, now: Conditions, without: str) -> CaseRecord:
    """Store an error of ``case`` in the record instead of raising the error, so that the other cases are measured."""
    tell(f"{case.NAME}: {case.TITLE}, about {estimate_s(case, wanted) / 60:.0f} min")
    began_s, load = time.monotonic(), os.getloadavg()[0]
    unit_s = calibration_s()
    try:
        with case.setup(place, wanted) as ready:
            if wrong := case.check(ready):
                raise ValueError(wrong)
            chosen = left(costed(case.COSTS, case.commands(ready)), without)
            found = alternate(chosen, wanted.rounds, case.BOUND_S, measure, tell)
            if wrong := case.check(ready):
                raise ValueError(wrong)
            facts = {**case.facts(ready), "load before this case": f"{load:.2f}"}
    except (HostwrightError, ValueError, OSError) as error:
        tell(f"  {error}")
        return CaseRecord(now, wanted.rounds, time.monotonic() - began_s, (), {}, {"all": shown(str(error), place)})
    took_s = time.monotonic() - began_s
    failed = {name: shown(why, place) for name, why in found.failed.items()}
    return CaseRecord(now, wanted.rounds, took_s, tuple(found.samples), facts, failed, found.cut, unit_s)


def left(commands: Sequence[Command], without: str) -> list[Command]:
    """Return ``commands`` without the tools that the comma-separated list ``without`` names.

    A tool is left out if its name contains a word of the list.
    """
    words = [word.strip().lower() for word in without.split(",") if word.strip()]
    return [command for command in commands if not any(word in command.contender.lower() for word in words)]


def shown(why: str, place: Places) -> str:
    """Shorten the error text ``why`` to one line without paths of this machine."""
    for path, name in ((place.work, "WORK"), (PROJECT, "."), (Path.home(), "~")):
        why = why.replace(str(path), name)
    line = " ".join(why.split())
    return line if len(line) <= SHOWN else f"{line[: SHOWN // 3]} … {line[-2 * SHOWN // 3 :]}"


def _print(case: Case, found: CaseRecord) -> None:
    print(f"\n{case.TITLE}\n\n{tables.samples(case.TABLE, found.figures)}\n")
    print(f"{tables.goals(tables.verdicts(case, found.figures))}\n", flush=True)
    for name, why in found.failed.items():
        print(f"not measured: {name}: {why}", flush=True)


def tell(sentence: str) -> None:
    """Print the time of day and ``sentence``, a message about the benchmark's progress."""
    print(f"{time.strftime('%H:%M:%S')}  {sentence}", flush=True)


def _numbers(text: str) -> tuple[int, ...]:
    return tuple(sorted({int(number) for number in text.split(",") if number.strip()}))


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="bench", description=sys.modules[__name__].__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)  # fmt: skip
    verbs = parser.add_subparsers(required=True, metavar="VERB")
    verbs.add_parser("list", help=show.__doc__).set_defaults(command=show)
    verbs.add_parser("page", help=page.__doc__).set_defaults(command=page)
    running = verbs.add_parser("run", help=run.__doc__)
    running.set_defaults(command=run)
    running.add_argument("--cases", default="", help="names, separated by commas (default: all)")
    running.add_argument("--hosts", default="", help="numbers of hosts, separated by commas (default: each case's own)")
    running.add_argument("--rounds", type=int, default=ROUNDS, help="default: %(default)s")
    running.add_argument("--without", default="", help="leave out contenders with one of these words: ansible,scp")
    running.add_argument("--force", action="store_true", help="also on a machine that is loaded")
    running.add_argument("--keep", action="store_true", help="in docs/performance, also if these are not all cases")
    return parser


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
