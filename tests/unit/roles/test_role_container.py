"""The role container: changes for each state of a host, and known pitfalls of Docker with GPUs."""

from __future__ import annotations

import json
import re

import pytest

from hostwright.plan.model import Answer, Change, Refusal
from hostwright.plan.roles.role import RoleContext
from hostwright.resources.files.files import File
from hostwright.resources.packages.dpkg import HOLD
from hostwright.standard.roles.container import Container, container
from hostwright.standard.roles.container.cdi import REFRESH_PATH
from hostwright.standard.roles.container.engine import ENGINES, LINKS_UNIT, DockerEngine
from hostwright.standard.roles.container.section import ContainerSection
from tests.unit.support.facts import changes_of
from tests.unit.support.keys import RING, with_our_key
from tests.unit.support.stacks import load_stack, with_values

STACK = with_our_key(load_stack("tensorflow-2.9"))
STACK = STACK.model_copy(  # as after `invoke mirror`: all files have checksums
    update={"artifacts": {name: one.model_copy(update={"sha256": "a" * 64}) for name, one in STACK.artifacts.items()}}
)
RESOURCES = container.resources(Container(), RoleContext(STACK))
TOOLKIT = STACK.section(ContainerSection).toolkit
LIST = TOOLKIT.repository.list_file
REGULAR = "regular file|644|root:root\n"
RUNTIMES = {"runtimes": {"nvidia": {"args": [], "path": "nvidia-container-runtime"}}}
DPKG = "docker.io\t20.10.5\tii \n" + "".join(f"{name}\t{TOOLKIT.version}\thi \n" for name in TOOLKIT.packages)
UNIT_TEXT = next(one.content for one in RESOURCES if isinstance(one, File) and one.path.endswith(LINKS_UNIT))
GREEN: dict[str, str | Answer] = {
    "dpkg-query": DPKG,
    "grep -HsF": Answer(1, ""),
    "/snap/docker": Answer(1, ""),
    "dearmor": RING,
    "os-release": "ID=debian\nVERSION_CODENAME=bullseye\n",
    "stat -c '%F": REGULAR,
    f"cat -- {LIST}": f"deb [signed-by={TOOLKIT.repository.keyring}] {TOOLKIT.repository.uri} /\n",
    "/var/lib/dpkg/info/$name": "",
    "/dev/nvidia*": "device nvidia0\ndevice nvidiactl\nlink ../nvidia0\nlink /dev/nvidiactl\n",
    "cat -- /etc/systemd": UNIT_TEXT,
    "readlink -- /etc/systemd": f"/etc/systemd/system/{LINKS_UNIT}\n",
    "cat -- /etc/docker": json.dumps(RUNTIMES),
    "config.toml": "legacy\n",
    "cdi_refreshed": "",
    REFRESH_PATH: "LoadState=loaded\nActiveState=active\nUnitFileState=enabled\n",
    "systemctl show": "LoadState=loaded\nActiveState=active\nUnitFileState=enabled\n",
    "busctl": "",
    "lost_rules": "",
}
SETTINGS, SERVICE, RESTART = "file /etc/docker/daemon.json", "service docker.service", "restart of docker.service"


def plan(differs: dict[str, str | Answer] | None = None, variables: Container | None = None) -> dict[str, Change]:
    """Return the changes by subject, on a host that is as desired except for some answers."""
    resources = container.resources(variables, RoleContext(STACK)) if variables else RESOURCES
    return {change.what: change for change in changes_of(resources, {**GREEN, **(differs or {})})}


def script(change: Change) -> str:
    return "\n".join(step.script for step in change.steps)


def packages_line(changes: dict[str, Change]) -> Change:
    return next(change for what, change in changes.items() if what.startswith("packages nvidia-container-toolkit"))


def written(change: Change) -> dict[str, object]:
    """Return the JSON at the end of a merged file's diff."""
    added = [line[1:] for line in change.diff.splitlines() if line[:1] in {"+", " "} and not line.startswith("+++")]
    result: dict[str, object] = json.loads("\n".join(added))
    return result


def test_a_provisioned_host_plans_nothing() -> None:
    assert plan() == {}


def test_a_bare_host_gets_everything_and_docker_is_restarted_last() -> None:
    changes = plan(
        {key: Answer(1, "") for key in GREEN} | {"dpkg-query": "bash\t5\tii \n", "os-release": "ID=debian\n"}
    )
    assert list(changes)[-3:] == [SETTINGS, SERVICE, RESTART]
    assert not any(isinstance(change, Refusal) for change in changes.values())


def test_all_four_packages_are_at_one_version_and_held() -> None:
    newer = DPKG.replace(f"libnvidia-container1\t{TOOLKIT.version}", "libnvidia-container1\t1.21.0-1")
    text = script(packages_line(plan({"dpkg-query": newer})))
    assert f"libnvidia-container1={TOOLKIT.version}" in text
    assert "--allow-downgrades" in text
    assert f"{HOLD}{' '.join(TOOLKIT.packages)}" in text
    assert len(TOOLKIT.packages) == 4


def test_a_lost_hold_does_not_restart_docker() -> None:
    changes = plan({"dpkg-query": DPKG.replace("\thi ", "\tii ", 1)})
    assert list(changes) == [packages_line(changes).what]


def test_new_toolkit_restarts_docker() -> None:
    changes = plan({"dpkg-query": DPKG.replace(f"{TOOLKIT.version}\thi", "1.16.0-1\thi")})
    assert list(changes) == [packages_line(changes).what, RESTART]


def test_nvidia_docker2_goes_and_its_daemon_json_stays() -> None:
    changes = plan({"dpkg-query": DPKG + "nvidia-docker2\t2.11.0-1\tii \n"})
    (change,) = changes.values()
    assert " remove nvidia-docker2" in script(change)
    assert "purge" not in script(change), "daemon.json is a configuration file of nvidia-docker2"


def test_the_former_repositories_are_not_read() -> None:
    line = "/etc/apt/sources.list.d/nvidia-docker.list:deb https://nvidia.github.io/nvidia-docker/ubuntu20.04/amd64 /\n"
    (change,) = plan({"grep -HsF": line}).values()
    assert "nvidia-docker.list" in script(change)


def test_todays_repository_is_no_former_one() -> None:
    line = f"{LIST}:deb https://nvidia.github.io/libnvidia-container/stable/deb/amd64 /\n"
    assert plan({"grep -HsF": line}) == {}


def test_the_key_is_checked_and_apt_key_is_not_used() -> None:
    changes = plan({"dearmor": Answer(1, ""), f"cat -- {LIST}": "deb http://x /\n"})
    text = "\n".join(script(change) for change in changes.values())
    assert TOOLKIT.repository.fingerprint in text
    assert f"signed-by={TOOLKIT.repository.keyring}" in text
    assert "apt-key" not in text


def test_daemon_json_is_merged_and_never_overwritten() -> None:
    theirs = {"log-driver": "journald", "runtimes": {"kata": {"path": "kata"}}, "data-root": "/data"}
    changes = plan({"cat -- /etc/docker": json.dumps(theirs)})
    assert list(changes) == [SETTINGS, RESTART]
    merged = json.loads(script(changes[SETTINGS]).split("printf '%s' '")[1].split("' > ")[0])
    assert merged == {**theirs, "runtimes": {**theirs["runtimes"], **RUNTIMES["runtimes"]}}


def test_daemon_json_is_validated_and_backed_up_before_it_is_replaced() -> None:
    text = script(plan({"cat -- /etc/docker": "{}"})[SETTINGS])
    check, backup, replace = (text.index(part) for part in ("dockerd --validate", "hostwright-backup", "mv -fT"))
    assert check < replace
    assert backup < replace


def test_a_broken_daemon_json_is_replaced_and_docker_started_again() -> None:
    changes = plan(
        {"cat -- /etc/docker": '{"runtimes": ', "systemctl show": "ActiveState=failed\nUnitFileState=enabled\n"}
    )
    assert list(changes) == [SETTINGS, SERVICE, RESTART]
    assert changes[SETTINGS].have == "not valid JSON"
    assert "reset-failed" in script(changes[SERVICE]), "Start request repeated too quickly"


def test_docker_that_was_started_before_daemon_json_changed_is_restarted() -> None:
    changes = plan({"busctl": "/etc/docker/daemon.json\n"})
    assert list(changes) == [RESTART]
    assert "daemon.json" in changes[RESTART].have


def test_docker_that_runs_is_not_restarted_unseen() -> None:
    changes = plan({"busctl": "/etc/docker/daemon.json\n", "cat -- /etc/docker": "{}"})
    assert {what: change.disturbs for what, change in changes.items()} == {
        SETTINGS: "",
        RESTART: "restarts Docker, which ends its containers",
    }


def test_a_docker_that_does_not_run_disturbs_nobody() -> None:
    changes = plan(
        {"cat -- /etc/docker": "{}", "systemctl show": "LoadState=loaded\nActiveState=failed\nUnitFileState=enabled\n"}
    )
    assert list(changes) == [SETTINGS, SERVICE, RESTART]
    assert not any(change.disturbs for change in changes.values())


def test_packages_of_a_docker_that_runs_restart_it() -> None:
    wanted = with_values(STACK, container={"docker": "docker-ce"})
    some = "docker-ce\t5:24.0\tii \n" + DPKG.partition("\n")[2]
    changes = changes_of(container.resources(Container(), RoleContext(wanted)), {**GREEN, "dpkg-query": some})
    engine = next(change for change in changes if change.what.startswith("packages docker-ce"))
    assert engine.disturbs == "changes Docker's packages, which ends its containers"


def test_a_lost_hook_is_put_back() -> None:
    changes = plan(
        {"/var/lib/dpkg/info/$name": "nvidia-container-toolkit.list:/usr/bin/nvidia-container-runtime-hook\n"}
    )
    what = "files of nvidia-container-toolkit"
    assert list(changes) == [what, RESTART]
    assert "--reinstall" in script(changes[what])
    assert f"nvidia-container-toolkit={TOOLKIT.version}" in script(changes[what])


def test_a_lost_library_of_a_package_for_several_architectures_is_put_back() -> None:
    changes = plan({"/var/lib/dpkg/info/$name": "libnvidia-container1:amd64.list:/usr/lib/libnvidia-container.so.1\n"})
    assert "files of libnvidia-container1" in changes


def test_links_in_dev_char_are_made_and_docker_is_left_alone() -> None:
    devices = "device nvidia0\ndevice nvidiactl\ndevice nvidia-caps/nvidia-cap1\nlink ../nvidia0\n"
    (change,) = plan({"/dev/nvidia*": devices}).values()
    assert change.have == "none to nvidiactl, nvidia-caps/nvidia-cap1"
    assert script(change) == "nvidia-ctk system create-dev-char-symlinks --create-all"


def test_the_links_are_made_at_boot_before_docker_starts() -> None:
    assert "Before=docker.service" in UNIT_TEXT
    assert "create-dev-char-symlinks --create-all" in UNIT_TEXT


def test_systemd_is_not_reloaded_on_a_host_whose_containers_have_gpus() -> None:
    changes = plan(
        {"cat -- /etc/systemd": "old\n", "readlink -- /etc/systemd": "x\n", "/dev/nvidia*": "device nvidia0\n"}
    )
    text = "\n".join(script(change) for change in changes.values())
    assert len(changes) == 3
    assert not re.search(r"^\s*systemctl", text, re.MULTILINE), "enable reloads as well as daemon-reload does"


def test_the_snap_of_docker_refuses_the_host() -> None:
    refused = plan({"/snap/docker": "2915\n"})["Docker"]
    assert isinstance(refused, Refusal)
    assert "snap remove docker" in refused.sentence


def test_another_docker_refuses_the_host_and_nothing_is_removed() -> None:
    refused = plan({"dpkg-query": DPKG.replace("docker.io", "docker-ce")})["Docker"]
    assert isinstance(refused, Refusal)
    assert "docker-ce" in refused.sentence


def test_podmans_docker_refuses_the_host_and_podman_alone_does_not() -> None:
    """datalab-to/marker#1085, fedora-silverblue/issue-tracker#149"""
    none = {"/snap/docker": Answer(1, "")}
    (refused,) = changes_of(DockerEngine(("docker.io",)), {"dpkg-query": "podman-docker\t4.3.1\tii \n", **none})
    assert isinstance(refused, Refusal)
    assert refused.sentence.startswith("the package podman-docker provides the command `docker`, and docker.io would")
    (change,) = changes_of(DockerEngine(("docker.io",)), {"dpkg-query": "podman\t4.3.1\tii \n", **none})
    assert isinstance(change, Change)
    beside = "docker.io\t20.10\tii \npodman-docker\t4.3.1\trc \n"
    assert changes_of(DockerEngine(("docker.io",)), {"dpkg-query": beside, **none}) == ()


@pytest.mark.parametrize("wanted", ENGINES)
def test_each_engine_refuses_the_other(wanted: str) -> None:
    other = next(name for name in ENGINES if name != wanted)
    replies = {"dpkg-query": f"{other}\t1\tii \n", "/snap/docker": Answer(1, "")}
    assert isinstance(changes_of(DockerEngine((wanted,)), replies)[0], Refusal)


def test_a_removed_docker_refuses_nothing() -> None:
    replies = {"dpkg-query": "docker-ce\t1\trc \n", "/snap/docker": Answer(1, "")}
    assert not isinstance(changes_of(DockerEngine(("docker.io",)), replies)[0], Refusal)


def test_docker_ce_comes_from_its_own_repository() -> None:
    stack = with_values(STACK, container={"docker": "docker-ce"})
    replies = {**GREEN, "dpkg-query": "bash\t5\tii \n", "dearmor": Answer(1, "")}
    changes = changes_of(container.resources(Container(), RoleContext(stack)), replies)
    text = "\n".join(script(change) for change in changes)
    assert "https://download.docker.com/linux/debian bullseye stable" in text
    assert "docker-ce docker-ce-cli containerd.io" in text
    assert (
        STACK.section(ContainerSection).docker_ce
        and STACK.section(ContainerSection).docker_ce.repository.fingerprint in text
    )


def test_default_runtime_and_cgroup_driver_are_set_where_they_are_wanted() -> None:
    change = plan(variables=Container(default_runtime=True, cgroup_driver="cgroupfs"))[SETTINGS]
    assert written(change) == {
        **RUNTIMES,
        "default-runtime": "nvidia",
        "exec-opts": ["native.cgroupdriver=cgroupfs"],
    }


def test_docker_is_known_to_be_installed_by_what_all_its_packages_have() -> None:
    """Debian's docker.io has dockerd in /usr/sbin, Ubuntu's and docker-ce in /usr/bin; their unit has the same path."""
    for docker in ("docker.io", "docker-ce"):
        section = with_values(STACK, container={"docker": docker}).section(ContainerSection)
        assert {share.unless for share in section.shares(STACK)} == {"/lib/systemd/system/docker.service"}


@pytest.mark.parametrize(
    ("release", "due"),
    [
        ('ID=debian\nVERSION_ID="13"\n', True),
        ('ID=debian\nVERSION_ID="12"\n', False),
        ('ID=ubuntu\nVERSION_ID="24.04"\n', False),
        ("ID=debian\n", False),
    ],
)
def test_the_command_docker_comes_where_it_is_a_package_of_its_own(release: str, due: bool) -> None:
    """Debian 13's docker.io only recommends it, and recommended packages are not installed."""
    changes = plan({"os-release": release})
    assert ("packages docker-cli" in changes) == due, list(changes)
