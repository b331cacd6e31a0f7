"""Case: newly installed hosts are provisioned with the whole stack."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from benchmarks.cases.case import Cost, Table, Wanted
from benchmarks.figures.goals import Goal
from benchmarks.figures.statistics import Figures
from benchmarks.measuring.command import Command, Done
from benchmarks.measuring.machine import own_program
from benchmarks.measuring.measure import HOST_CPU
from benchmarks.peers import tools
from benchmarks.peers.files import TENSORFLOW, StackFiles
from benchmarks.peers.tools import ANSIBLE, HERE, PYINFRA, Tools
from benchmarks.places.hosts import Hosts
from benchmarks.places.places import Places
from lab.config import Machine
from lab.machine import console

NAME = "provision"
TITLE = "First provision of 1 and 4 hosts, files at hand"
ABOUT = """\
Lab hosts that were installed a moment before get the whole stack. The vendor's files and a wheelhouse are on the
controller, and Debian's packages come from its archive. The contenders are `hostwright provision`, the same steps as a
shell script by hand (`benchmarks/peers/script/provision.sh`), a playbook and a pyinfra deploy. Files for the script go
through `tar` and `ssh` before it. Afterwards `hostwright plan` must find nothing to change but its own
records, and cuDNN's files and the packages of the environment must be those of a host that Hostwright provisioned.
Two rounds of one host, and one of four; each other tool is measured at one of these only, Ansible on one host, since
it takes long."""
BOUND_S = 1500.0
TABLE = Table(extra={HOST_CPU: "CPU of the hosts, s"})
SIZES = (1, 4)
OURS, SCRIPT = "hostwright provision", "shell script over ssh"
COSTS = (
    Cost(OURS, 1, 42, rounds=2), Cost(SCRIPT, 1, 58, rounds=2), Cost(ANSIBLE, 1, 95, rounds=1),
    Cost(OURS, 4, 145, rounds=1), Cost(SCRIPT, 4, 135, rounds=1), Cost(PYINFRA, 4, 188, rounds=1),
)  # fmt: skip
REST_S = 130.0  #: estimated seconds of the unmeasured steps, with 10 s per command to boot and check hosts


@dataclass(frozen=True, slots=True)
class Scenario:
    """A stack to provision, the shell script that does the same, and the check of the hosts' final state."""

    files: StackFiles
    script: str  #: file name of the shell script in ``benchmarks/peers/script``
    #: name of a role → difference that a plan may show after another tool provisioned the host
    records: Mapping[str, str]
    same: str  #: shell script that prints the state of a host. All hosts with the stack have the same state.


SCENARIO = Scenario(
    TENSORFLOW,
    "provision.sh",
    {"driver": "files not recorded", "cudnn": "no record of its files", "tensorflow": "a directory"},
    """\
cd /usr/local/cuda-11.2/targets/x86_64-linux
sha256sum lib/libcudnn*.so.8.1.0 include/cudnn*.h
/opt/tensorflow-2.9/bin/pip list --format=freeze --disable-pip-version-check | grep -v -e ^pip= -e ^setuptools= -e ^pkg
""",
)


@dataclass(frozen=True, slots=True)
class Ready:
    """The hosts, and the files that the measured tools use."""

    scenario: Scenario
    hosts: Hosts
    names: tuple[str, ...]
    variables: dict[str, str]
    same: str  #: output of ``Scenario.same`` on a provisioned host
    folder: Path
    sizes: tuple[int, ...]

    def tools(self, size: int) -> Tools:
        """Return the commands of other tools for the first ``size`` hosts."""
        folder = self.folder / str(size)
        folder.mkdir(exist_ok=True)
        return tools.of(self.hosts, self.names[:size], self.variables, folder)


@contextmanager
def setup(places: Places, wanted: Wanted) -> Iterator[Ready]:
    """Create newly installed hosts, and the files that all measured tools use."""
    with prepared(SCENARIO, places, NAME, wanted.of(SIZES)) as ready:
        yield ready


@contextmanager
def prepared(scenario: Scenario, places: Places, case: str, sizes: tuple[int, ...]) -> Iterator[Ready]:
    """Create newly installed hosts for ``scenario``, and the files that all measured tools use."""
    hosts, folder, kind = places.hosts(), places.folder(case), scenario.files.kind
    hosts.supply(kind)
    (green,) = hosts.clones(1, kind)
    variables = scenario.files.lay_out(hosts, green, places.folder("at-hand"))
    same = console(hosts.machines([green])[0], "sh", "-c", scenario.same)
    hosts.remove([green])
    names = hosts.bare(max(sizes), kind)
    yield Ready(scenario, hosts, names, variables, same, folder, sizes)
    hosts.remove(names)


def check(ready: Ready) -> str:
    """Return an empty text: each command's own check verifies the hosts' final state."""
    return ""


def facts(ready: Ready) -> dict[str, str]:
    """Return which parts of the stack are small stand-ins for the vendor's software."""
    return {
        "stack": "the lab's small profile: the driver and the large math libraries are stand-ins, TensorFlow is real"
    }


def commands(ready: Ready) -> Sequence[Command]:
    """Return the commands of all measured tools for all numbers of hosts."""
    return [from_bare(ready, size, command) for size in ready.sizes for command in at(ready, size)]


def at(ready: Ready, size: int) -> list[Command]:
    """Return the commands of all measured tools for ``size`` hosts."""
    peers = ready.tools(size)
    return [
        *ours_and_script(ready, peers),
        peers.pyinfra(changes=True),
        peers.ansible(HERE / "ansible/site.yml", changes=True),
    ]


def ours_and_script(ready: Ready, peers: Tools) -> list[Command]:
    """Return the commands of Hostwright and of the shell script for the hosts of ``peers``."""
    hosts = ("--hosts", ",".join(peers.names))
    words = (own_program("hostwright"), "provision", "--inventory", str(ready.hosts.inventory), *hosts)
    ours = replace(peers.base, contender=OURS, words=words, env=ready.hosts.environment)
    return [ours, script(ready, peers)]


def script(ready: Ready, peers: Tools) -> Command:
    """Return a command that sends the files over one ssh connection, then runs a shell script over another."""
    bring = 'tar -C "$3" -chf - . | ssh -F "$1" "$2" "rm -rf /tmp/stack; mkdir /tmp/stack; tar -C /tmp/stack -xf -"'
    do = 'ssh -F "$1" "$2" "cd /tmp/stack && sudo sh -s" <"$4"'
    program = HERE / "script" / ready.scenario.script
    return peers.each(SCRIPT, f"{bring} && {do}", ready.variables["files"], str(program))


def from_bare(ready: Ready, size: int, command: Command) -> Command:
    """Extend ``command``: create newly installed hosts before it, and check the whole stack after it."""
    names = ready.names[:size]

    def before() -> None:
        ready.hosts.bare(size, ready.scenario.files.kind)

    def check(done: Done) -> str:
        return command.check(done) or lacking(ready, names, own=command.contender == OURS)

    groups = tuple(one.cgroup for one in ready.hosts.machines(names))
    return replace(command, before=before, check=check, hosts=groups)


def lacking(ready: Ready, names: Sequence[str], *, own: bool) -> str:
    """Return an error text about parts of the stack that a tool did not install on the hosts ``names``; else empty.

    ``own``: Hostwright provisioned the hosts, so its own records must be complete too.
    """
    document = ready.hosts.look("plan", "--hosts", ",".join(names), "--json")
    if sentence := remaining(document, {} if own else ready.scenario.records):
        return sentence
    different = [one.name for one in ready.hosts.machines(names) if not _same(one, ready)]
    return f"libraries or the environment are others on {', '.join(different)}" if different else ""


def _same(machine: Machine, ready: Ready) -> bool:
    return console(machine, "sh", "-c", ready.scenario.same) == ready.same


def remaining(document: str, records: Mapping[str, str]) -> str:
    """Return the changes in ``document``, a plan as JSON, that ``records`` does not allow per role; else empty."""
    found = json.loads(document)
    wrong = [str(error) for error in found["errors"]]
    changes = [(plan, role, change) for plan in found["plans"] for role in plan["roles"] for change in role["changes"]]
    wrong += [
        f"{plan['host']}: {role['role']}: {change['what']}: {change.get('have')}"
        for plan, role, change in changes
        if change.get("have") != records.get(role["role"])
    ]
    return "; ".join(wrong)[:1000]


def to_fastest(found: Figures) -> float:
    """Return Hostwright's wall time on four hosts, divided by that of the fastest other tool."""
    walls = [found.median(tool, 4, "wall_s") for tool in (PYINFRA, ANSIBLE) if found.values(tool, 4, "wall_s")]
    return found.median(OURS, 4, "wall_s") / min(walls, default=found.median(PYINFRA, 4, "wall_s"))


def to_script(size: int, what: str) -> Callable[[Figures], float]:
    """Return a function that divides Hostwright's figure ``what`` by the shell script's, with ``size`` hosts."""
    return lambda found: found.ratio(OURS, SCRIPT, size, what)


def goals_of_one_host() -> Sequence[Goal]:
    """Return the goals for Hostwright on one host, relative to the shell script."""
    return (
        Goal("1 host: wall / of the shell script", 0.5, to_script(1, "wall_s"), "×"),
        Goal("1 host: processor time of the host / under the shell script", 0.8, to_script(1, HOST_CPU), "×"),
    )


def goals() -> Sequence[Goal]:
    """Return the goals for Hostwright, relative to the shell script and to the fastest other tool."""
    return (
        *goals_of_one_host(),
        Goal("4 hosts: wall / of the shell script", 0.8, to_script(4, "wall_s"), "×"),
        Goal("4 hosts: wall / of the fastest tool", 0.5, to_fastest, "×"),
    )


PLOTTED = (OURS, SCRIPT, PYINFRA, ANSIBLE)
