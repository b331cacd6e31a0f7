"""Docker taken away: its packages, and of its data only what nobody put there. The data's commands are really run."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hostwright.plan.model import Answer, Change, Facts, Resource
from hostwright.resources.conditions import When
from hostwright.resources.originals import PACKAGES_BEFORE
from hostwright.resources.packages.debs_gone import DebsGone
from hostwright.resources.packages.packaged import PackagedPrograms
from hostwright.resources.system.services_gone import UserGone
from hostwright.standard.roles.container.engine import DockerEngine
from hostwright.standard.roles.container.removal import (
    DataSpared,
    EmptyDataGone,
    EngineGone,
    containerd_data,
    docker_data,
)
from hostwright.standard.roles.driver.states.device_files import DeviceLinks
from tests.unit.support.facts import changes_of, facts_for
from tests.unit.support.shell import ask, run

ENGINE = DockerEngine(("docker.io=20.10.5", "containerd"))
THERE, ELSE = "docker.io\t20.10.5\tii \n", "bash\t5.1\tii \n"
NUKE = "usr/share/docker.io/contrib/nuke-graph-directory.sh"

#: what the daemons make when they start, and what their users bring about
BARE = ("image/overlay2/repositories.json", "network/files/local-kv.db", "volumes/metadata.db", "containers/",
        "plugins/storage/", "plugins/tmp/", "swarm/", "overlay2/l/", "buildkit/cache.db", "engine-id")  # fmt: skip
BARE_CONTAINERD = (
    "opt/bin/", "io.containerd.metadata.v1.bolt/meta.db", "io.containerd.content.v1.content/ingest/", "tmpmounts/",
    "io.containerd.snapshotter.v1.overlayfs/metadata.db",
)  # fmt: skip


def put(folder: Path, names: tuple[str, ...]) -> Path:
    for name in names:
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.mkdir() if name.endswith("/") else path.write_text("")
    return folder


class Host:
    def __init__(self, root: Path):
        self.root = root
        self.docker = put(root / "var/lib/docker", BARE)
        self.containerd = put(root / "var/lib/containerd", BARE_CONTAINERD)
        put(root, ("etc/docker/key.json", "opt/containerd/bin/", "opt/containerd/lib/", "etc/cni/net.d/", "opt/site"))

    def script(self, text: str) -> str:
        return re.sub(r"(?<=[\s'=])/(usr|var|etc|opt)/", rf"{self.root}/\1/", text)

    def plan(self, resource: Resource) -> Change | None:
        probes = resource.probes()
        return resource.plan(Facts({probe: Answer(*ask(self.script(probe.script))) for probe in probes}))

    def remove(self, *resources: Resource) -> None:
        for one in resources:
            change = self.plan(one)
            for step in change.steps if change else ():
                done = run(self.script(step.script))
                assert done.returncode == 0, done.stderr
            assert self.plan(one) is None

    def files(self) -> set[str]:
        return {str(path.relative_to(self.root)) for path in self.root.rglob("*")}


@pytest.fixture
def host(tmp_path: Path) -> Host:
    return Host(tmp_path)


def test_what_the_daemons_made_by_themselves_goes(host: Host) -> None:
    host.remove(docker_data(), containerd_data())
    assert host.files() == {"etc", "opt", "opt/site", "var", "var/lib"}


@pytest.mark.parametrize(
    ("resource", "content"),
    [
        (docker_data(), "var/lib/docker/containers/3f2a1b2c/config.v2.json"),
        (docker_data(), "var/lib/docker/volumes/theirs/_data/file"),
        (docker_data(), "var/lib/docker/image/overlay2/imagedb/content/sha256/abc"),
        (docker_data(), "var/lib/docker/plugins/0123abcd/config.json"),
        (docker_data(), "var/lib/docker/swarm/docker-state.json"),
        (containerd_data(), "var/lib/containerd/io.containerd.content.v1.content/blobs/sha256/abc"),
        (containerd_data(), "var/lib/containerd/io.containerd.snapshotter.v1.overlayfs/snapshots/1/fs/file"),
    ],
)
def test_containers_of_others_stay_and_are_not_mentioned(host: Host, resource: EmptyDataGone, content: str) -> None:
    made = host.plan(resource)
    put(host.root, (content,))
    before = host.files()
    assert host.plan(resource) is None
    assert made is not None
    assert run(host.script(made.steps[0].script)).returncode == 0  # it came after the look
    assert host.files() == before


def test_a_file_of_somebody_in_the_directory_stays_alone(host: Host) -> None:
    put(host.root, ("var/lib/docker/lost+found/",))
    host.remove(docker_data())
    assert {path for path in host.files() if path.startswith("var/lib/docker/")} == {"var/lib/docker/lost+found"}


def test_a_link_to_another_disk_is_left_alone(host: Host) -> None:
    host.docker.rename(host.root / "disk")
    host.docker.symlink_to(host.root / "disk")
    assert host.plan(docker_data()) is None


def test_a_daemons_directory_with_a_file_in_it_stays(host: Host) -> None:
    put(host.root, ("opt/containerd/bin/plugin", "etc/docker/daemon.json"))
    host.remove(docker_data(), containerd_data())
    assert {"opt/containerd/bin/plugin", "etc/docker/daemon.json"} < host.files()
    assert "etc/docker/key.json" not in host.files()


def test_debians_package_is_kept_from_deleting_the_data_on_its_purge(host: Host) -> None:
    script = put(host.root, (NUKE, "var/lib/docker/nuke-graph-directory.sh")) / NUKE
    script.chmod(0o755)
    (change,) = changes_of(DataSpared("docker.io"), {"dpkg-query": THERE, "origin/packages": ELSE, "nuke": ""})
    assert run(host.script(change.steps[0].script)).returncode == 0
    assert script.stat().st_mode & 0o111 == 0  # its prerm copies it only when it can be executed
    assert not (host.docker / "nuke-graph-directory.sh").exists()
    assert ask(host.script(DataSpared("docker.io").probes()[2].script))[0] == 1


def test_data_of_a_docker_installed_by_others_is_ignored() -> None:
    replies = {"dpkg-query": THERE, "origin/packages": ELSE, "nuke": "", "origin/installed": "make\n"}
    assert changes_of(DataSpared("docker.io"), replies) == ()
    assert changes_of(DataSpared("docker.io"), {**replies, "origin/installed": "docker.io\n"})


@pytest.mark.parametrize("before", [THERE, Answer(1, "")])
def test_docker_of_others_or_unknown_origin_stays(before: str | Answer) -> None:
    replies = {"dpkg-query": ELSE, "origin/packages": before, "nuke": "", "var/lib/docker": "/var/lib/docker\n"}
    docker = [one for one in ENGINE.removal() if not isinstance(one, UserGone)]
    assert changes_of(docker, {**replies, "getent": "group\n"}) == ()


def test_data_and_group_wait_until_the_package_is_gone() -> None:
    replies: dict[str, str | Answer] = {
        "origin/packages": ELSE,
        'eval "holds': "/var/lib/docker\n",
        "getent": "group\n",
        "s/^/user /": "user root\ngroup root\n",
    }
    later = [one for one in ENGINE.removal() if isinstance(one, When)]
    assert changes_of(later, {**replies, "dpkg-query": THERE}) == ()
    gone = changes_of(later, {**replies, "dpkg-query": ELSE})
    assert [change.what for change in gone] == ["data in /var/lib/docker", "data in /var/lib/containerd", "user docker"]


def test_containerds_data_stays_where_containerd_was_there_before() -> None:
    condition = EngineGone(("docker.io", "containerd"))
    facts = {"origin/packages": ELSE + "containerd\t1.4\tii \n", "dpkg-query": ELSE}
    assert not condition.holds(facts_for(When(condition, docker_data()), facts))
    assert condition.holds(facts_for(When(condition, docker_data()), {**facts, "origin/packages": ELSE}))


def test_docker_is_removed_only_if_we_installed_it() -> None:
    (packages,) = (one for one in ENGINE.removal() if isinstance(one, DebsGone))
    assert packages == DebsGone(("docker.io", "containerd"), common=True)
    assert isinstance(ENGINE.removal()[0], DataSpared), "before the purge"


def test_what_belongs_to_packages_or_to_this_boot_needs_no_removal() -> None:
    assert PackagedPrograms(("docker.io",)).removal() == DeviceLinks().removal() == ()
    assert PACKAGES_BEFORE in EngineGone(("docker.io",)).probes()


@given(st.text(max_size=80))
def test_what_is_run_does_not_depend_on_what_a_host_answers(text: str) -> None:
    scripts = {
        step.script for said in (text, "x") for one in changes_of(docker_data(), {"holds": said}) for step in one.steps
    }
    assert len(scripts) == 1
