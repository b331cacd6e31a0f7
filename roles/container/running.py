"""Who is hit when Docker stops: its containers, whether they use a GPU or not."""

from __future__ import annotations

import re
from dataclasses import dataclass

from hostwright.plan.model import Facts, Probe
from hostwright.resources.system.services import Running

DOCKER = "docker.service"

#: First whether a restart spares the containers (``live-restore`` of the daemon that runs), then one line each: its
#: first process, its id, its name. Nothing where Docker does not answer.
CONTAINERS = Probe(
    "timeout 10 docker info --format 'spared {{.LiveRestoreEnabled}}' || exit 0\n"
    "timeout 10 docker ps -q --no-trunc |\n"
    "  xargs -r timeout 10 docker inspect --format '{{.State.Pid}} {{.Id}} {{.Name}}'\n"
    "exit 0",
    root=True,
)
_CONTAINER = re.compile(r"(\d+) ([0-9a-f]{12})[0-9a-f]{52} /(\S+)")


@dataclass(frozen=True, slots=True)
class DockerRuns:
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
        """The containers, in the words with which the driver's role names those on a GPU, and by their names."""
        rows = (_CONTAINER.fullmatch(line) for line in facts[CONTAINERS].text.splitlines()) if self.holds(facts) else ()
        return tuple(f"container {row[2]} (pid {row[1]}) {row[3]}" for row in rows if row)
