"""Docker with the NVIDIA container toolkit: its packages, and links that keep devices in containers."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any

from hostwright.resources import (
    HOST_PROBES,
    NO_IDENTITY,
    Change,
    Condition,
    Debs,
    DebsAbsent,
    DebsGone,
    Facts,
    File,
    Link,
    PackageMirror,
    Probe,
    Refusal,
    Resource,
    Software,
    SourcesDisabled,
    Step,
    UserGone,
    When,
    dpkg_table,
    read_host,
)
from hostwright.roles import sh_file
from hostwright.standard.roles.container.engines import numbers
from hostwright.standard.roles.container.removal import (
    CONTAINERD_PACKAGES,
    DataSpared,
    EngineGone,
    containerd_data,
    docker_data,
)
from hostwright.standard.roles.container.running import DOCKER, DockerRuns

DAEMON_JSON = "/etc/docker/daemon.json"
LINKS_UNIT = "hostwright-nvidia-dev-char.service"

#: The toolkit's package names before 2023; the last nvidia-docker2 no longer writes daemon.json
#: (GoogleCloudPlatform/gcsfuse#1364).
OLD_PACKAGES = ("nvidia-docker2", "nvidia-docker", "nvidia-container-runtime", "libnvidia-container0")
OLD_SOURCES = (
    "nvidia.github.io/nvidia-docker",
    "nvidia.github.io/nvidia-container-runtime",
    "nvidia.github.io/libnvidia-container",
)

NAME_SERVERS_SH = sh_file(__file__, "sh/nameservers.sh")  #: ``name_servers_lost``
FIREWALL_SH = sh_file(__file__, "sh/firewall.sh")
#: the tables of the host's firewall from which Docker's own rules are gone: ``nat``, ``filter``
FIREWALL = Probe(f"{FIREWALL_SH}lost_rules", root=True)
#: what does not work without those of each
_WITHOUT = {
    "nat": "containers reach nothing outside of this host, and ports that they publish may not answer",
    "filter": "packets between containers and other networks are dropped, or let through unchecked",
}
RESTARTS = "restarts Docker, which ends its containers"

#: Docker as a snap is confined, and sees neither the toolkit's hook nor the driver's libraries
#: (NVIDIA/nvidia-docker#1034, #1243).
SNAP_DOCKER = Probe("test -e /snap/docker/current && readlink /snap/docker/current", shared=True)

#: Packages that bring a Docker daemon; a host has only one of them. The last is Microsoft's.
ENGINES = ("docker.io", "docker-ce", "moby-engine")

PROGRAM = "docker-cli"  #: Debian's package of the command docker, since 13

#: A package whose command ``docker`` is podman's, which passes over ``--gpus`` (podman-container-tools/podman#19330).
SHIM = "podman-docker"

#: dockerd can check a configuration from version 23 on; ours is valid JSON in any case.
VALIDATE = "{ ! dockerd --help | grep -q -e --validate || dockerd --validate --config-file=%s; }"


def daemon_settings(default_runtime: bool, cgroup_driver: str, *, cdi: bool = False) -> str:
    """The required contents of daemon.json, as JSON: what ``nvidia-ctk runtime configure`` writes, our variables, and
    with ``cdi`` what Docker 25 to 28.1 needs to read CDI specifications. Other releases read past that, or do so
    anyway."""
    settings: dict[str, Any] = {"runtimes": {"nvidia": {"args": [], "path": "nvidia-container-runtime"}}}
    if default_runtime:
        settings["default-runtime"] = "nvidia"
    if cgroup_driver:
        settings["exec-opts"] = [f"native.cgroupdriver={cgroup_driver}"]
    if cdi:
        settings["features"] = {"cdi": True}
    return json.dumps(settings)


def former_names_gone(keep: str) -> Iterator[Resource]:
    """Neither packages nor sources of the toolkit under its former names; ``keep`` is its current source list.

    The packages are removed, not purged: nvidia-docker2 owns daemon.json, and a purge would delete it.
    """
    yield DebsAbsent(OLD_PACKAGES, "nvidia-container-toolkit replaces them", purge=False)
    yield SourcesDisabled(OLD_SOURCES, "the toolkit has one source", keep=keep)


def links_at_boot(unit: str) -> Iterator[Resource]:
    """The unit that makes the ``DeviceLinks`` at boot, before Docker starts.

    It is not enabled by ``systemctl enable``, because that reloads systemd, which takes GPUs from containers if the
    links are missing. systemd reads it at the next boot; until then, ``DeviceLinks`` makes the links.
    """
    path = f"/etc/systemd/system/{LINKS_UNIT}"
    yield File(path, unit)
    yield Link(f"/etc/systemd/system/multi-user.target.wants/{LINKS_UNIT}", path)


@dataclass(frozen=True, slots=True)
class ProgramApart(Condition):
    """The condition that the package docker.io brings the daemon alone: since Debian 13 the command ``docker`` is in
    docker-cli, which it only recommends."""

    def probes(self) -> tuple[Probe, ...]:
        return HOST_PROBES

    def holds(self, facts: Facts) -> bool:
        """Whether the host has such a release."""
        host = read_host(facts)
        return host.distribution == "debian" and numbers(host.version) >= (13,)


@dataclass(frozen=True, slots=True)
class DockerEngine(Resource):
    """Docker from these packages, the first of which names the engine. A host with another Docker is refused.

    A provisioning tool must not decide to change the engine under running containers.
    """

    packages: tuple[str, ...]
    #: the packages of the mirror, where they come from there; ``None``: from the sources of the host
    mirror: PackageMirror | None = field(default=None, repr=False, metadata=NO_IDENTITY)

    def probes(self) -> tuple[Probe, ...]:
        return tuple(dict.fromkeys((*self._debs.probes(), SNAP_DOCKER)))

    def plan(self, facts: Facts) -> Change | Refusal | None:
        wanted = self.packages[0].partition("=")[0]
        others = [name for name in ENGINES if name != wanted and (row := dpkg_table(facts).get(name)) and row.present]
        if facts[SNAP_DOCKER].ok:
            return _refused(
                "Docker is installed as a snap, from which containers cannot reach the GPUs: "
                "move its data, remove it (snap remove docker) and provision again",
                have="the snap",
                want=wanted,
            )
        table = dpkg_table(facts)
        present = {name for name in (SHIM, wanted) if (row := table.get(name)) and row.present}
        if SHIM in present and wanted not in present:
            return _refused(
                f"the command docker is podman's here ({SHIM}), and {wanted} would take its place: containers that "
                f"were started with it stay podman's; remove {SHIM} and provision again, or do without this role",
                have=SHIM,
                want=wanted,
            )
        if others:
            return _refused(
                f"Docker comes from {others[0]} here and the stack says {wanted}: set container.docker to {others[0]} "
                f"in the stack, or remove {others[0]} and provision again",
                have=others[0],
                want=wanted,
            )
        return self._debs.plan(facts)

    @property
    def _debs(self) -> Debs:
        """Held where the stack says a version: apt would move it on."""
        return Debs(self.packages, hold=any("=" in word for word in self.packages), mirror=self.mirror)

    def packages_for(self, _facts: Facts | None, /) -> tuple[str, ...]:
        """All of them; none of Docker's own repository."""
        return () if self.packages[0].startswith("docker-ce") else self.packages

    def from_mirror(self, mirror: PackageMirror, /) -> DockerEngine:
        """Taken from the mirror, unless they are of Docker's own repository."""
        return replace(self, mirror=mirror) if self.packages_for(None) else self

    def software(self, facts: Facts) -> tuple[Software, ...]:
        supplier = "Docker" if self.packages[0].startswith("docker-ce") else ""
        return tuple(replace(software, supplier=supplier) for software in Debs(self.packages).software(facts))

    def removal(self) -> tuple[Resource, ...]:
        """The packages, then what can be removed only without them: empty data directories, and the group."""
        names = tuple(word.partition("=")[0] for word in self.packages)
        gone = EngineGone(names[:1])
        return (
            DataSpared(names[0]),
            DebsGone(names, common=True),
            When(gone, docker_data()),
            When(EngineGone((names[0], *CONTAINERD_PACKAGES)), containerd_data()),
            When(gone, UserGone("docker")),
        )


def _refused(sentence: str, *, have: str, want: str) -> Refusal:
    return Refusal("Docker", have, want, "docker-engine", sentence)


@dataclass(frozen=True, slots=True)
class FirewallRules(Resource):
    """Docker's own rules are in the host's firewall, where it keeps them with iptables.

    Docker sets them when it starts, and does not notice that somebody flushes them (moby/moby#12294). Only a restart
    brings them back. One that would end containers is refused alone, so that what can be set without it is.
    """

    force: bool = field(default=False, metadata=NO_IDENTITY)  #: whether it may end containers

    def probes(self) -> tuple[Probe, ...]:
        return (FIREWALL, *DockerRuns(restarts=True).probes())

    def plan(self, facts: Facts) -> Change | Refusal | None:
        lost = without(facts[FIREWALL].text)
        if not lost:
            return None
        what, have, want = "Docker's firewall rules", "; ".join(lost), "set by Docker's start"
        ended = self.users(facts)
        if ended and not self.force:
            sentence = (
                f"somebody flushed Docker's own rules from the host's firewall ({have}), and only a restart of Docker "
                f"brings them back, which ends {', '.join(ended)}: wait until nobody works there, then use --force "
                '(with "live-restore": true in daemon.json a restart ends no container)'
            )
            return Refusal(what, have, want, "docker-firewall", sentence, alone=True)
        script = f'{FIREWALL_SH}[ -z "$(lost_rules)" ] || systemctl restart {DOCKER}'
        return Change(what, have, want, (Step(script),), disturbs=RESTARTS if ended else "")

    def users(self, facts: Facts) -> tuple[str, ...]:
        """The containers that a restart ends."""
        return DockerRuns(restarts=True).users(facts)

    def removal(self) -> tuple[Resource, ...]:
        return ()


def without(lost: str) -> tuple[str, ...]:
    """What does not work, for what ``FIREWALL`` found.

    >>> without("nat\\n")
    ('none in nat: containers reach nothing outside of this host, and ports that they publish may not answer',)
    """
    return tuple(f"none in {table}: {effect}" for table, effect in _WITHOUT.items() if table in lost.split())
