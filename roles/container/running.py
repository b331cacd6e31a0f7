"""Running containers, which end when Docker stops or the host reboots, with or without a GPU."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from hostwright.resources import Answer, Condition, Facts, Pass, PassPart, Probe, Running
from hostwright.roles import Match, Pattern, sh_file, whole

DOCKER = "docker.service"
LOCAL_DOCKER = "docker -H unix:///var/run/docker.sock"  #: Docker command for the host's own daemon
#: ``curl`` command for the local daemon's API. Docker's own command needs four times the processor time.
LOCAL_API = "curl -q -s -f -m 3 --noproxy '*' --unix-socket /var/run/docker.sock http://docker"


class ContainersPass(Pass):
    """Fast check for processes of container engines. Each running container has such a process.

    The process is containerd's shim (before Docker 18.09 Docker's own) or podman's conmon. Without such a process, the
    other probes for containers need not run.
    """

    fails_with = 2

    def script(self, asked: Sequence[str]) -> str:  # noqa: ARG002 - the same for all
        """Return the command that searches for processes of container engines.

        Standard input contains a process name, to test that ``grep`` works.
        """
        return "grep -lsE '^(containerd-shim|docker-containe|conmon)' /proc/[0-9]*/comm - <<'END'\nconmon\nEND"

    def differing(self, _word: str, /) -> str:
        return "/comm"

    def found(self, asked: Sequence[str], text: str) -> Mapping[str, str]:
        """Return the results of probes on a host without running containers.

        Raises ``ValueError`` if ``text`` lists a process, or is unexpected.
        """
        if text != "(standard input)\n":
            raise ValueError("grep printed unexpected output")
        return dict.fromkeys(asked, "none")


#: shared answer for probes whose output is empty if no container runs
_OF_CONTAINERS = PassPart(ContainersPass(), ("running",), lambda _: Answer(0, ""))

#: probe that prints the settings ``spared`` and ``boots``, and one line per running container. The line ``unlisted``
#: means that Docker did not respond in time.
CONTAINERS = Probe(
    f"all=$({LOCAL_API}/containers/json)"
    ' && [ "$all" = "[]" ] && exit 0\n'
    "export DOCKER_HOST=unix:///var/run/docker.sock\n"
    "ids=$(timeout 10 docker ps -q --no-trunc) || { [ $? -ne 124 ] || echo unlisted; exit 0; }\n"
    '[ -n "$ids" ] || exit 0\n'
    "timeout 10 docker info --format 'spared {{.LiveRestoreEnabled}}' || echo unlisted\n"
    "! systemctl -q is-enabled docker.service || echo boots\n"
    "timeout 10 docker inspect --format '{{.State.Pid}} {{.Id}} {{.Name}} {{.HostConfig.RestartPolicy.Name}}' $ids"
    " || [ $? -eq 1 ] || echo unlisted\n"
    "exit 0",
    root=True,
    part=_OF_CONTAINERS,
)
#: shell function ``children_of_all`` that counts the child processes of containers
CHILDREN_SH = sh_file(__file__, "sh/children.sh")
#: probe that prints each container's first process and the number of child processes
CHILDREN = Probe(
    f"{CHILDREN_SH}[ ! -e /var/run/docker.sock ] || children_of_all",
    root=True,
    cap_bytes=256 * 1024,
    part=_OF_CONTAINERS,
)
#: description of containers with unknown users. These containers do not count as idle.
UNLISTED = "containers that Docker did not name in time"
_CONTAINER = Pattern(r"([0-9]{1,10}) ([0-9a-f]{12})[0-9a-f]{52} /(\S+)(?: ([a-z-]*))?")
#: restart policies of containers that Docker starts again at its own start (moby/moby#47846)
_COMES_BACK = {"always", "unless-stopped"}


def ended_by_reboot(facts: Facts) -> tuple[tuple[str, str], ...]:
    """Return running containers, each with the mechanism of its restart after a reboot (empty: no restart)."""
    lines = facts[CONTAINERS].text.splitlines()
    again = "Docker starts it again (restart policy %s)"
    boots = "boots" in lines
    rows = (_CONTAINER.fullmatch(line) for line in lines)
    if "unlisted" in lines or facts[CONTAINERS].truncated:
        return ((UNLISTED, ""),)
    return tuple((_named(row), again % row[4] if boots and row[4] in _COMES_BACK else "") for row in rows if row)


def named_by_docker(facts: Facts) -> dict[str, str]:
    """Return a container's description in the role ``driver`` → description with the container's name."""
    rows = (_CONTAINER.fullmatch(line) for line in facts[CONTAINERS].text.splitlines())
    return {_on_gpu(row): _named(row) for row in rows if row}


def first_process(name: str) -> str:
    """Return the process ID in a container's description ``name``."""
    return name.partition("(pid ")[2].partition(")")[0]


def technical_name(name: str) -> str:
    """Return the common start ``container 9cd078cb21bc`` of a container's descriptions."""
    return " ".join(name.split(" ", 2)[:2])


def children_of(facts: Facts) -> dict[str, int]:
    """Return process ID of a container's first process → number of child processes."""
    rows = (line.split() for line in facts[CHILDREN].text.splitlines())
    return {row[1]: whole(row[2]) or 0 for row in rows if len(row) == 3 and row[0] == "children"}


def processes(number: int) -> str:
    """Return a number of processes as text, such as ``2 processes``."""
    return f"{number} process{'es' if number > 1 else ''}"


def _named(row: Match) -> str:
    return f"{_on_gpu(row)} {row[3]}"


def _on_gpu(row: Match) -> str:
    return f"container {row[2]} (pid {row[1]})"


@dataclass(frozen=True, slots=True)
class DockerRuns(Condition):
    """Condition that Docker runs. ``users`` returns the containers that end when Docker stops.

    With ``restarts``, Docker is only restarted. A restart ends no container if ``live-restore`` is set and Docker's
    version stays the same (docker/compose#5865, moby/moby#33688).
    """

    restarts: bool

    def probes(self) -> tuple[Probe, ...]:
        return (*Running(DOCKER).probes(), CONTAINERS)

    def holds(self, facts: Facts) -> bool:
        spared = self.restarts and facts[CONTAINERS].text.startswith("spared true\n")
        return Running(DOCKER).holds(facts) and not spared

    def users(self, facts: Facts) -> tuple[str, ...]:
        return tuple(name for name, _ in ended_by_reboot(facts)) if self.holds(facts) else ()
