"""Docker with the NVIDIA container toolkit: packages, firewall rules, and device links for GPUs in containers."""

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

#: names of the NVIDIA container toolkit's packages before 2023
OLD_PACKAGES = ("nvidia-docker2", "nvidia-docker", "nvidia-container-runtime", "libnvidia-container0")
OLD_SOURCES = (
    "nvidia.github.io/nvidia-docker",
    "nvidia.github.io/nvidia-container-runtime",
    "nvidia.github.io/libnvidia-container",
)

NAME_SERVERS_SH = sh_file(__file__, "sh/nameservers.sh")
FIREWALL_SH = sh_file(__file__, "sh/firewall.sh")
#: probe that prints the name (``nat``, ``filter``) of each firewall table without Docker's rules
FIREWALL = Probe(f"{FIREWALL_SH}lost_rules", root=True)
#: firewall table → effect of missing Docker rules in the table
_WITHOUT = {
    "nat": "containers cannot reach other hosts, and their published ports may not respond",
    "filter": "packets between containers and other networks are dropped, or let through unchecked",
}
RESTARTS = "restarts Docker, which ends its containers"

#: probe that prints the revision of Docker's snap. This Docker cannot access the driver's libraries
#: (NVIDIA/nvidia-docker#1034, #1243).
SNAP_DOCKER = Probe("test -e /snap/docker/current && readlink /snap/docker/current", shared=True)

ENGINES = ("docker.io", "docker-ce", "moby-engine")  #: alternative packages with a Docker daemon, at most one per host

PROGRAM = "docker-cli"  #: package that contains the command ``docker`` since Debian 13

#: package with a command ``docker`` that runs podman. Podman ignores ``--gpus`` (podman-container-tools/podman#19330).
SHIM = "podman-docker"

#: shell command that validates a daemon.json. With dockerd before 23, the command succeeds without a check.
VALIDATE = "{ ! dockerd --help | grep -q -e --validate || dockerd --validate --config-file=%s; }"


def daemon_settings(default_runtime: bool, cgroup_driver: str, *, cdi: bool = False) -> str:
    """Return the role's settings for Docker's daemon.json, as JSON.

    With ``cdi``, CDI specifications are enabled for Docker 25 to 28.1.
    """
    settings: dict[str, Any] = {"runtimes": {"nvidia": {"args": [], "path": "nvidia-container-runtime"}}}
    if default_runtime:
        settings["default-runtime"] = "nvidia"
    if cgroup_driver:
        settings["exec-opts"] = [f"native.cgroupdriver={cgroup_driver}"]
    if cdi:
        settings["features"] = {"cdi": True}
    return json.dumps(settings)


def former_names_gone(keep: str) -> Iterator[Resource]:
    """Yield states that remove the toolkit's former packages and apt sources, except the source list ``keep``.

    The packages are not purged, because a purge of nvidia-docker2 would delete daemon.json.
    """
    yield DebsAbsent(OLD_PACKAGES, "nvidia-container-toolkit replaces them", purge=False)
    yield SourcesDisabled(OLD_SOURCES, "the toolkit has one source", keep=keep)


def links_at_boot(unit: str) -> Iterator[Resource]:
    """Yield states for the systemd unit ``unit`` that creates ``DeviceLinks`` at boot before Docker starts.

    A link enables the unit, because ``systemctl enable`` would reload systemd. A reload removes GPUs from containers
    without device links.
    """
    path = f"/etc/systemd/system/{LINKS_UNIT}"
    yield File(path, unit)
    yield Link(f"/etc/systemd/system/multi-user.target.wants/{LINKS_UNIT}", path)


@dataclass(frozen=True, slots=True)
class ProgramApart(Condition):
    """Condition that the command ``docker`` is in the separate package docker-cli, as in Debian 13 and later."""

    def probes(self) -> tuple[Probe, ...]:
        return HOST_PROBES

    def holds(self, facts: Facts) -> bool:
        host = read_host(facts)
        return host.distribution == "debian" and numbers(host.version) >= (13,)


@dataclass(frozen=True, slots=True)
class DockerEngine(Resource):
    """Docker is installed from ``packages``, beginning with the daemon's package. A host with another Docker is
    refused.

    A provisioning tool must not replace the engine of running containers.
    """

    packages: tuple[str, ...]
    #: mirror with the packages; ``None``: the host's apt sources
    mirror: PackageMirror | None = field(default=None, repr=False, metadata=NO_IDENTITY)

    def probes(self) -> tuple[Probe, ...]:
        return tuple(dict.fromkeys((*self._debs.probes(), SNAP_DOCKER)))

    def plan(self, facts: Facts) -> Change | Refusal | None:
        wanted = self.packages[0].partition("=")[0]
        others = [name for name in ENGINES if name != wanted and (row := dpkg_table(facts).get(name)) and row.present]
        if facts[SNAP_DOCKER].ok:
            return _refused(
                "Docker is installed as a snap, whose containers cannot use GPUs; back up its data, remove the "
                "snap (`snap remove docker`), and provision again",
                have="the snap",
                want=wanted,
            )
        table = dpkg_table(facts)
        present = {name for name in (SHIM, wanted) if (row := table.get(name)) and row.present}
        if SHIM in present and wanted not in present:
            return _refused(
                f"the package {SHIM} provides the command `docker`, and {wanted} would replace it. Running "
                f"containers would stay in podman; remove {SHIM} and provision again, or remove the role "
                "'container' from the host's hostwright_roles",
                have=SHIM,
                want=wanted,
            )
        if others:
            return _refused(
                f"this host has Docker from {others[0]}, but the stack requires {wanted}; set container.docker to "
                f"{others[0]} in the stack, or remove {others[0]} and provision again",
                have=others[0],
                want=wanted,
            )
        return self._debs.plan(facts)

    @property
    def _debs(self) -> Debs:
        return Debs(self.packages, hold=any("=" in word for word in self.packages), mirror=self.mirror)

    def packages_for(self, _facts: Facts | None, /) -> tuple[str, ...]:
        """Return ``packages``; empty if the packages come from Docker's own repository."""
        return () if self.packages[0].startswith("docker-ce") else self.packages

    def from_mirror(self, mirror: PackageMirror, /) -> DockerEngine:
        return replace(self, mirror=mirror) if self.packages_for(None) else self

    def software(self, facts: Facts) -> tuple[Software, ...]:
        supplier = "Docker" if self.packages[0].startswith("docker-ce") else ""
        return tuple(replace(software, supplier=supplier) for software in Debs(self.packages).software(facts))

    def removal(self) -> tuple[Resource, ...]:
        """Return states that remove Docker's packages, empty data directories, and the group ``docker``."""
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
    """The host's firewall contains Docker's rules, if Docker uses iptables.

    Docker sets its rules only at its start (moby/moby#12294), so missing rules need a restart. A restart that would end
    containers is refused, unless ``force`` is set.
    """

    force: bool = field(default=False, metadata=NO_IDENTITY)  #: whether a restart of Docker may end running containers

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
                f"Docker's rules are missing from the host's firewall ({have}). Only a restart of Docker restores "
                f"them, and the restart would end {', '.join(ended)}; wait until nobody uses these containers, then "
                'pass --force (with "live-restore": true in daemon.json, a restart keeps containers running)'
            )
            return Refusal(what, have, want, "docker-firewall", sentence, alone=True)
        script = f'{FIREWALL_SH}[ -z "$(lost_rules)" ] || systemctl restart {DOCKER}'
        return Change(what, have, want, (Step(script),), disturbs=RESTARTS if ended else "")

    def users(self, facts: Facts) -> tuple[str, ...]:
        return DockerRuns(restarts=True).users(facts)

    def removal(self) -> tuple[Resource, ...]:
        return ()


def without(lost: str) -> tuple[str, ...]:
    """Return the effects of missing firewall rules. ``lost``: output of ``FIREWALL``, with one table per line.

    >>> without("nat\\n")
    ('none in nat: containers cannot reach other hosts, and their published ports may not respond',)
    """
    return tuple(f"none in {table}: {effect}" for table, effect in _WITHOUT.items() if table in lost.split())
