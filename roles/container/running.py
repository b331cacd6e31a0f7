"""Who is hit when Docker stops or the host reboots: its containers, whether they use a GPU or not."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from hostwright.resources import Answer, Condition, Facts, Pass, PassPart, Probe, Running
from hostwright.roles import Match, Pattern, sh_file, whole

DOCKER = "docker.service"
#: Docker's command for the host's own daemon. ``-H`` wins over root's context or DOCKER_HOST.
LOCAL_DOCKER = "docker -H unix:///var/run/docker.sock"


class ContainersPass(Pass):
    """Whether any container runs: each has a process of its engine's beside it. Where none has, nobody is asked more.

    Such a process is containerd's shim, of Docker before 18.09 its own, or conmon of podman, which may answer in the
    place of Docker.
    """

    fails_with = 2  #: a process ended meanwhile

    def script(self, asked: Sequence[str]) -> str:  # noqa: ARG002 - the same for all
        """See ``plan.model.Pass``. It also reads such a name: a ``grep`` that has not found that does not work."""
        return "grep -lsE '^(containerd-shim|docker-containe|conmon)' /proc/[0-9]*/comm - <<'END'\nconmon\nEND"

    def differing(self, _word: str, /) -> str:
        """What ends the name of a file that is named."""
        return "/comm"

    def found(self, asked: Sequence[str], text: str) -> Mapping[str, str]:
        """That there is none."""
        if text != "(standard input)\n":
            raise ValueError("not what grep prints")
        return dict.fromkeys(asked, "none")


#: of a probe that has an empty answer where no container runs
_OF_CONTAINERS = PassPart(ContainersPass(), ("running",), lambda _: Answer(0, ""))

#: First whether a restart spares the containers (``live-restore`` of the daemon that runs), and whether Docker starts
#: at boot; then one line each: its first process, its id, its name, its restart policy; ``unlisted`` where Docker did
#: not name them in time (one that has just ended is no longer known: status 1). Nothing where no Docker answers, and
#: nothing where no container runs: curl learns that from Docker in a fifth of the time that its command takes, and
#: whatever else curl says, the command is asked.
CONTAINERS = Probe(
    "all=$(curl -q -s -f -m 3 --noproxy '*' --unix-socket /var/run/docker.sock http://docker/containers/json)"
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
#: counts what the programs of containers have started (``children``)
CHILDREN_SH = sh_file(__file__, "sh/children.sh")
#: of each container, by its first process
CHILDREN = Probe(
    f"{CHILDREN_SH}[ ! -e /var/run/docker.sock ] || children_of_all",
    root=True,
    cap_bytes=256 * 1024,
    part=_OF_CONTAINERS,
)
UNLISTED = "containers that Docker did not name in time"  #: who they are is not known, and nobody may be taken for idle
_CONTAINER = Pattern(r"([0-9]{1,10}) ([0-9a-f]{12})[0-9a-f]{52} /(\S+)(?: ([a-z-]*))?")
#: Docker starts these again when it starts. ``on-failure`` depends on how the host went down (moby/moby#47846), and
#: nothing starts a container again where Docker itself waits for somebody who calls it.
_COMES_BACK = {"always", "unless-stopped"}


def ended_by_reboot(facts: Facts) -> tuple[tuple[str, str], ...]:
    """The running containers, each with what starts it again after a reboot; empty where nothing does."""
    lines = facts[CONTAINERS].text.splitlines()
    again = "Docker starts it again (restart policy %s)"
    boots = "boots" in lines
    rows = (_CONTAINER.fullmatch(line) for line in lines)
    if "unlisted" in lines or facts[CONTAINERS].truncated:
        return ((UNLISTED, ""),)
    return tuple((_named(row), again % row[4] if boots and row[4] in _COMES_BACK else "") for row in rows if row)


def named_by_docker(facts: Facts) -> dict[str, str]:
    """The containers by the words with which the driver's role names those on a GPU, each with its name."""
    rows = (_CONTAINER.fullmatch(line) for line in facts[CONTAINERS].text.splitlines())
    return {_on_gpu(row): _named(row) for row in rows if row}


def first_process(name: str) -> str:
    """The first process of a container that is named as here, as ``children_of`` counts by it."""
    return name.partition("(pid ")[2].partition(")")[0]


def technical_name(name: str) -> str:
    """How the names of a container begin, whoever gives them: ``container 9cd078cb21bc``."""
    return " ".join(name.split(" ", 2)[:2])


def children_of(facts: Facts) -> dict[str, int]:
    """How many processes the program of each container has started, by the container's first process."""
    rows = (line.split() for line in facts[CHILDREN].text.splitlines())
    return {row[1]: whole(row[2]) or 0 for row in rows if len(row) == 3 and row[0] == "children"}


def processes(number: int) -> str:
    """So many processes, in words."""
    return f"{number} process{'es' if number > 1 else ''}"


def _named(row: Match) -> str:
    """A container in the words with which the driver's role names those on a GPU, and by its name."""
    return f"{_on_gpu(row)} {row[3]}"


def _on_gpu(row: Match) -> str:
    return f"container {row[2]} (pid {row[1]})"


@dataclass(frozen=True, slots=True)
class DockerRuns(Condition):
    """The condition that Docker runs, and that its containers end when it stops; they are its users.

    With ``restarts`` it is only restarted, which ends no container where ``live-restore`` is set. Another version of
    its packages ends them also then (docker/compose#5865, moby/moby#33688).
    """

    restarts: bool

    def probes(self) -> tuple[Probe, ...]:
        return (*Running(DOCKER).probes(), CONTAINERS)

    def holds(self, facts: Facts) -> bool:
        """Whether it is so."""
        spared = self.restarts and facts[CONTAINERS].text.startswith("spared true\n")
        return Running(DOCKER).holds(facts) and not spared

    def users(self, facts: Facts) -> tuple[str, ...]:
        """The containers."""
        return tuple(name for name, _ in ended_by_reboot(facts)) if self.holds(facts) else ()
