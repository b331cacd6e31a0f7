"""Containers that a change of Docker ends are named before, with a GPU or without one.

Public reports: a restart of Docker that ended what ran (kinvolk/lokomotive#1220), ``live-restore``, which spares a
restart (awslabs/amazon-eks-ami#157), and packages that end containers all the same (docker/compose#5865).
"""

from __future__ import annotations

import pytest

from hostwright.plan.host.atwork import AtWork
from hostwright.plan.model import Change, Step
from hostwright.resources.system.services import Disturbing
from hostwright.standard.roles.container.running import DockerRuns
from tests.unit.support.facts import facts_for

WEB = "812 " + "3f2a1b2c3d4e" + "0" * 52 + " /web\n"
NAMED = "container 3f2a1b2c3d4e (pid 812) web"


class Restart:
    """A change of Docker."""

    def probes(self):
        return ()

    def plan(self, facts):
        return Change("restart of docker.service", "old", "new", (Step("true"),))

    def removal(self):
        return ()


def looked(restarts: bool, answer: str, state: str = "active") -> tuple[str, tuple[str, ...]]:
    """What the change disturbs, and whom."""
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
