"""Case: one of a hundred hosts accepts connections but sends nothing."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from benchmarks.cases.case import Cost, Table, Wanted
from benchmarks.figures.goals import Goal
from benchmarks.measuring.command import Command, Done
from benchmarks.measuring.machine import own_program
from benchmarks.peers.tools import HERE
from benchmarks.peers.venvs import environment
from benchmarks.places.places import Places
from benchmarks.places.replay import REAL_PORT, Replaying

NAME = "hung"
TITLE = "One hung host in 100"
ABOUT = """\
Loopback hosts, 10 at a time (`--batch 10`, `forks = 10`), two seconds of work each: `hostwright run` and
Ansible's module `raw`. The first host accepts connections and never says a word; both give it up after 15 s. Each
host writes down when its work has ended, and the figure is when the last of the other 99 did. One round."""
BOUND_S = 300.0
TABLE = Table(traffic=False, memory=False, extra={"others_s": "the others done, s"})
OURS, THEIRS = "hostwright run", "Ansible raw"
NONE, ONE = "none hangs", "one hangs"
SIZE, AT_ONCE, WORK_S, PATIENCE_S = 100, 10, 2, 15
#: estimated total seconds of a tool with and without the hung host, for 3 s of work per host
COSTS = (Cost(OURS, SIZE, 45, rounds=1), Cost(THEIRS, SIZE, 53, rounds=1))
REST_S = 13.0


@dataclass(frozen=True, slots=True)
class Ready:
    """Hosts of the case, and the file to which each host appends its end time."""

    place: Replaying
    size: int
    ends: Path
    environment: dict[str, str]
    folder: Path


@contextmanager
def setup(places: Places, wanted: Wanted) -> Iterator[Ready]:
    """Create the file to which hosts append their end times."""
    place, folder = places.replaying(), places.folder(NAME)
    ends = folder / "ends"
    ends.touch()
    ends.chmod(0o666)  # the loopback hosts run as another user and write to this file
    yield Ready(place, max(wanted.sizes, default=SIZE), ends, places.hosts().environment, folder)


def check(ready: Ready) -> str:
    """Return an empty text, because each command counts the hosts that finished."""
    return ""


def facts(ready: Ready) -> dict[str, str]:
    """Return a description of the host that accepts connections but sends nothing."""
    return {"hung host": "a port whose connections the kernel takes and nobody answers, as of a stopped sshd"}


def commands(ready: Ready) -> Sequence[Command]:
    """Return the commands of Hostwright and Ansible, each with and without a hung host."""
    return [
        with_ends(ready, make(ready, hung), hung)
        for hung in (False, True)
        for make in (of_ours, of_ansible)
    ]  # fmt: skip


def work(ready: Ready) -> str:
    """Return the shell command that waits, and then appends the host's end time to a file."""
    return f"sleep {WORK_S}; date +%s.%N >>{ready.ends}"


def of_ours(ready: Ready, hung: bool) -> Command:
    """Return the ``hostwright run`` command; with ``hung``, one of the hosts is hung."""
    inventory = ready.place.inventory(f"hung-{hung}", ready.size, REAL_PORT, hung=int(hung))
    words = (own_program("hostwright"), "run", "--inventory", str(inventory), "--hosts", "all", "--batch", str(AT_ONCE))
    return Command(OURS, ready.size, (*words, "--", work(ready)), env=ready.environment)


def of_ansible(ready: Ready, hung: bool) -> Command:
    """Return the command that runs Ansible's module ``raw``; with ``hung``, one of the hosts is hung."""
    inventory = ready.place.ini(ready.folder / f"hosts-{hung}.ini", ready.size, REAL_PORT, hung=int(hung))
    env = {
        "ANSIBLE_CONFIG": str(HERE / "ansible/ansible.cfg"),
        "ANSIBLE_HOME": str(ready.folder / "ansible"),
        "ANSIBLE_TIMEOUT": str(PATIENCE_S),
        "ANSIBLE_SSH_ARGS": f"-F {ready.place.ssh_config(REAL_PORT)} -o ControlMaster=auto -o ControlPersist=60s",
    }
    words = (str(environment("ansible") / "ansible"), "-i", str(inventory), "all", "-f", str(AT_ONCE), "-m", "raw")
    return Command(THEIRS, ready.size, (*words, "-a", work(ready)), env=env, cwd=ready.folder)


def with_ends(ready: Ready, command: Command, hung: bool) -> Command:
    """Extend ``command`` with a check of the number of finished hosts, and with the seconds until all have finished."""
    began: list[float] = []

    def before() -> None:
        os.truncate(ready.ends, 0)
        began[:] = [time.time()]

    def counted(_: Done) -> Mapping[str, float]:
        return {"others_s": last(ready.ends.read_text()) - began[0]}

    return replace(
        command, variant=ONE if hung else NONE, netns=ready.place.netns, before=before, counted=counted,
        check=ended(ready, ready.size - hung),
    )  # fmt: skip


def last(text: str) -> float:
    """Return the latest of the times in ``text``, which has one time per line."""
    return max(float(line) for line in text.split())


def ended(ready: Ready, count: int) -> Callable[[Done], str]:
    """Return a check that exactly ``count`` hosts have written an end time."""

    def check(done: Done) -> str:
        found = len(ready.ends.read_text().split())
        return "" if found == count else f"{found} of {count} hosts did their work: {done.last}"

    return check


def goals() -> Sequence[Goal]:
    """Return the goal for Hostwright's additional time with a hung host."""
    return (
        Goal("the other 99 hosts done, one hung / none hung", 1.05,
             lambda found: found.median(OURS, SIZE, "others_s", ONE) / found.median(OURS, SIZE, "others_s", NONE), "×"),
    )  # fmt: skip


PLOTTED = (OURS, THEIRS)
