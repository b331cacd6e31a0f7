"""Removal of Docker's data directories after its packages, if the directories have no data of users."""

from __future__ import annotations

from dataclasses import dataclass

from hostwright.resources import (
    ABSENT,
    DPKG,
    INSTALLED_BY_US,
    PACKAGES_BEFORE,
    Change,
    Condition,
    Facts,
    Probe,
    Resource,
    Step,
    dpkg_table,
    installed_by_us,
    packages_before,
)
from hostwright.roles import sh, sh_file

DOCKER_DATA, CONTAINERD_DATA = "/var/lib/docker", "/var/lib/containerd"
CONTAINERD_PACKAGES = ("containerd", "containerd.io")

#: paths of the program with which a purge of docker.io deletes /var/lib/docker
_NUKE = ("/usr/share/docker.io/contrib/nuke-graph-directory.sh", f"{DOCKER_DATA}/nuke-graph-directory.sh")

#: daemon's directory → patterns of paths in the directory that contain users' data
_CONTENT = {
    DOCKER_DATA: (
        f"{DOCKER_DATA}/containers/* {DOCKER_DATA}/volumes/*/ {DOCKER_DATA}/image/*/imagedb/content/sha256/* "
        f"{DOCKER_DATA}/plugins/[0-9a-f]*[0-9a-f] {DOCKER_DATA}/swarm/*"
    ),
    CONTAINERD_DATA: (
        f"{CONTAINERD_DATA}/io.containerd.content.v1.content/blobs/*/* "
        f"{CONTAINERD_DATA}/io.containerd.snapshotter.v1.*/snapshots/*"
    ),
}

#: daemon's directory → names of files that the daemon creates in the directory
_MADE = {
    DOCKER_DATA: tuple(
        f"{DOCKER_DATA}/{name}"
        for name in (
            "builder", "buildkit", "containerd", "containers", "engine-id", "fuse-overlayfs", "image", "network",
            "overlay2", "plugins", "rootfs", "runtimes", "swarm", "tmp", "tmp-old", "trust", "vfs", "volumes",
        )
    ),
    CONTAINERD_DATA: (f"{CONTAINERD_DATA}/io.containerd.*", f"{CONTAINERD_DATA}/tmpmounts"),  # noqa: S108 - no such place
}  # fmt: skip

_KEY = "/etc/docker/key.json"  #: file that Docker releases up to 23 create when Docker starts
_TREES = ("/opt/containerd", f"{CONTAINERD_DATA}/opt", "/etc/cni")


def there_before(facts: Facts, *packages: str) -> bool:
    """Return whether one of ``packages`` was installed before Hostwright's first change; true if unknown.

    Requires the probe ``PACKAGES_BEFORE``.
    """
    before = packages_before(facts)
    return before is None or any((row := before.get(name)) and row.present for name in packages)


def there_now(facts: Facts, *packages: str) -> bool:
    """Return whether one of ``packages`` is installed. Requires the probe ``DPKG``."""
    return any((row := dpkg_table(facts).get(name)) and row.present for name in packages)


@dataclass(frozen=True, slots=True)
class DataSpared(Resource):
    """A later purge of the Docker package ``engine`` keeps ``/var/lib/docker``, if Hostwright installed Docker."""

    engine: str

    def probes(self) -> tuple[Probe, ...]:
        return (DPKG, PACKAGES_BEFORE, Probe(sh("[ -x %s ] || [ -e %s ]", *_NUKE), root=True), INSTALLED_BY_US)

    def plan(self, facts: Facts) -> Change | None:
        ours = installed_by_us(facts)
        theirs = there_before(facts, self.engine) or (ours is not None and self.engine not in ours)
        if theirs or not facts[self.probes()[2]].ok:
            return None
        kept = sh("if [ -e %s ]; then chmod a-x -- %s; fi", _NUKE[0], _NUKE[0])
        script = "\n".join([kept, sh("rm -f -- %s", _NUKE[1])])
        have = f"{self.engine} deletes it when it is purged"
        return Change(f"data in {DOCKER_DATA}", have, "not touched by the package", (Step(script),))

    def removal(self) -> tuple[Resource, ...]:
        return ()


@dataclass(frozen=True, slots=True)
class EngineGone(Condition):
    """Condition that ``packages`` are not installed, and were not installed before Hostwright's first change."""

    packages: tuple[str, ...]

    def probes(self) -> tuple[Probe, ...]:
        return (DPKG, PACKAGES_BEFORE)

    def holds(self, facts: Facts) -> bool:
        return not there_now(facts, *self.packages) and not there_before(facts, *self.packages)


@dataclass(frozen=True, slots=True)
class EmptyDataGone(Resource):
    """A container daemon's data directory ``directory`` is removed if it has no user data.

    A directory with an image, container or volume is kept, and so is a link or mount point. The daemon creates the file
    ``key`` and the empty directories ``trees`` at its start.
    """

    directory: str
    key: str = ""
    trees: tuple[str, ...] = ()

    def probes(self) -> tuple[Probe, ...]:
        return (Probe(self._data + sh_file(__file__, "sh/data_probe.sh"), root=True),)

    def plan(self, facts: Facts) -> Change | None:
        answer = facts[self.probes()[0]]
        if not answer.ok:
            return None
        step = Step(self._data + sh_file(__file__, "sh/data_gone.sh"))
        want = f"{ABSENT}: no image, container or volume is in it"
        return Change(f"data in {self.directory}", answer.strip() or "there", want, (step,))

    @property
    def _data(self) -> str:
        return sh_file(
            __file__,
            "sh/data.sh",
            directory=self.directory,
            content=_CONTENT[self.directory],
            made=" ".join(_MADE[self.directory]),
            key=self.key,
            trees=self.trees,
        )

    def removal(self) -> tuple[Resource, ...]:
        return ()


def docker_data() -> EmptyDataGone:
    """Return the state that removes Docker's data directory and key, if the directory has no user data."""
    return EmptyDataGone(DOCKER_DATA, key=_KEY)


def containerd_data() -> EmptyDataGone:
    """Return the state that removes containerd's data directory, if the directory has no user data."""
    return EmptyDataGone(CONTAINERD_DATA, trees=_TREES)
