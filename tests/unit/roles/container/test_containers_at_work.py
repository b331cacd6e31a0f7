"""Containers that a change of Docker ends are named before the change, with or without a GPU.

Public reports: a restart of Docker that ended containers (kinvolk/lokomotive#1220), ``live-restore``, which spares
them (awslabs/amazon-eks-ami#157), and packages that end containers nevertheless (docker/compose#5865). Restarted
after a reboot: running containers with ``always`` and ``unless-stopped`` (docker/docs#6933, docker/docs#21071),
while ``on-failure`` depends on how the host went down (moby/moby#47846, #35166, docker/docs#18228).
"""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from hostwright.plan.desired import Desired, DesiredRole
from hostwright.plan.host.occupancy import AtWork
from hostwright.plan.model import Answer, Change, Facts, Reboot, Resource, Step
from hostwright.plan.planning import HostPlan, plan_host
from hostwright.resources.system.services import Disturbing
from hostwright.standard.roles.container.running import CONTAINERS, UNLISTED, DockerRuns
from tests.unit.support.facts import facts_for
from tests.unit.support.shell import program
from tests.unit.support.stacks import load_stack

WEB = "812 " + "3f2a1b2c3d4e" + "0" * 52 + " /web\n"
NAMED = "container 3f2a1b2c3d4e (pid 812) web"


class Restart(Resource):
    """A change of Docker."""

    def probes(self):
        return ()

    def plan(self, facts):
        return Change("restart of docker.service", "old", "new", (Step("true"),))

    def removal(self):
        return ()


def looked(restarts: bool, answer: str, state: str = "active") -> tuple[str, tuple[str, ...]]:
    """Return what the change disturbs, and its users."""
    resource = Disturbing(Restart(), "ends containers", DockerRuns(restarts))
    facts = facts_for(resource, {"docker ps": answer, "systemctl show": f"ActiveState={state}\n"})
    planned = resource.plan(facts)
    assert isinstance(planned, Change)
    return planned.disturbs, resource.users(facts)


@pytest.mark.parametrize("restarts", [True, False])
def test_a_container_without_a_gpu_is_named(restarts: bool) -> None:
    assert looked(restarts, f"spared false\n{WEB}") == ("ends containers", (NAMED,))


def test_live_restore_spares_a_restart_and_not_a_change_of_packages() -> None:
    assert looked(True, f"spared true\n{WEB}") == ("", ())
    assert looked(False, f"spared true\n{WEB}") == ("ends containers", (NAMED,))


def test_a_docker_that_stands_still_has_no_containers() -> None:
    assert looked(True, "", "inactive") == ("", ())


def test_a_container_that_both_know_is_named_once_with_its_name() -> None:
    on_gpu = NAMED.removesuffix(" web")
    assert AtWork((on_gpu, "python3 (7)"), (NAMED,)).everyone == ("python3 (7)", NAMED)


@pytest.mark.parametrize("line", ["812 short /web", "x\n", "812 " + "g" * 64 + " /web"])
def test_what_is_no_container_is_nobody(line: str) -> None:
    assert looked(True, f"spared false\n{line}\n")[1] == ()


class AnotherKernel(Resource):
    """A state that needs a reboot."""

    def probes(self):
        return ()

    def plan(self, facts):
        return Reboot("kernel", "old", "new", "a newer one is installed")

    def removal(self):
        return ()


def before_a_reboot(answer: str) -> HostPlan:
    """Return the plan of a host that needs a reboot, with this answer of Docker."""
    state = DesiredRole("kernel", (), (AnotherKernel(),))
    desired = Desired("gpu01", load_stack("tensorflow-2.9"), (state,), removes=True)
    answers = {probe: Answer(1, "") for probe in desired.probes()}
    return plan_host(desired, Facts({**answers, CONTAINERS: Answer(0, answer)}))


@pytest.mark.parametrize("spared", ["true", "false"])  # live-restore covers restarts of Docker, not reboots
@pytest.mark.parametrize("policy", ["", " ", " no", " on-failure"])
def test_a_reboot_waits_for_containers_that_it_ends_for_good(spared: str, policy: str) -> None:
    planned = before_a_reboot(f"spared {spared}\nboots\n{WEB.rstrip()}{policy}\n")
    assert planned.busy == (NAMED,)
    assert not [note for note in planned.notes if "container" in note]


@pytest.mark.parametrize("policy", ["always", "unless-stopped"])
def test_containers_that_come_back_after_a_reboot_are_named_with_the_reason(policy: str) -> None:
    planned = before_a_reboot(f"spared false\nboots\n{WEB.rstrip()} {policy}\n")
    assert planned.busy == ()
    assert planned.notes == (f"the reboot ends {NAMED}; Docker starts it again (restart policy {policy})",)


def test_a_docker_that_does_not_start_at_boot_brings_no_container_back() -> None:
    assert before_a_reboot(f"spared false\n{WEB.rstrip()} always\n").busy == (NAMED,)


def test_a_docker_that_does_not_name_its_containers_in_time_is_no_idle_host() -> None:
    assert before_a_reboot("spared false\nboots\nunlisted\n").busy == (UNLISTED,)
    assert looked(True, "spared false\nunlisted\n") == ("ends containers", (UNLISTED,))


@pytest.mark.parametrize(
    ("answers", "lines"),
    [
        (("exit 9", "exit 1", "exit 9"), []),
        (("exit 9", "exit 124", "exit 9"), ["unlisted"]),
        (("exit 9", "true", "exit 9"), []),
        (("exit 124", "echo one", "echo 1 one /web no"), ["unlisted", "1 one /web no"]),
        (("echo spared false", "echo one", "echo 1 one /web no"), ["spared false", "1 one /web no"]),
        (("echo spared false", "echo one", "exit 124"), ["spared false", "unlisted"]),
        (("echo spared false", "echo one two", "echo 1 one /web no; exit 1"), ["spared false", "1 one /web no"]),
    ],
)
def test_the_probe_tells_what_was_not_listed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, answers: tuple[str, str, str], lines: list[str]
) -> None:
    info, ps, inspect = answers
    docker = f"case $1 in info) {info} ;; ps) {ps} ;; inspect) {inspect} ;; esac"
    assert told(tmp_path, monkeypatch, docker=docker, curl="exit 7", systemctl="exit 1") == lines


@pytest.mark.parametrize("curl", ["echo []; exit 28", "exit 22", 'echo \'[{"Id":"one"}]\'', "echo Not found", "true"])
def test_docker_itself_is_asked_unless_curl_says_that_nothing_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, curl: str
) -> None:
    docker = "case $1 in info) echo spared false ;; ps) echo one ;; inspect) echo 1 one /web no ;; esac"
    listed = ["spared false", "1 one /web no"]
    assert told(tmp_path, monkeypatch, docker=docker, curl=curl, systemctl="exit 1") == listed
    assert told(tmp_path, monkeypatch, docker=docker, curl="echo []", systemctl="exit 1") == []


def told(folder: Path, monkeypatch: pytest.MonkeyPatch, **programs: str) -> list[str]:
    """Return the probe's output with these programs instead of the host's."""
    for name, script in programs.items():
        program(folder, name, script)
    monkeypatch.setenv("PATH", f"{folder}:/usr/bin:/bin")
    done = subprocess.run(["/bin/sh", "-c", CONTAINERS.script], capture_output=True, text=True, check=True)
    return done.stdout.splitlines()


def test_a_host_without_docker_has_nobody_to_end() -> None:
    planned = before_a_reboot("")
    assert (planned.busy, planned.notes) == ((), ())
