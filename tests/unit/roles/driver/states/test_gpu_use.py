"""Who uses a GPU: what two probes tell of it, and what a reload of systemd takes away."""

from __future__ import annotations

import os

import pytest

from hostwright.plan.model import Answer, Facts
from hostwright.standard.roles.driver.states.gpu_use import BUSY_PROBES, ReloadTakesGpus, users
from tests.unit.support.facts import reply_to
from tests.unit.support.shell import ask

HOLDERS, CONTAINERS = BUSY_PROBES


def used(holders: str = "", containers: str = "") -> tuple[str, ...]:
    return users(Facts({HOLDERS: Answer(0, holders), CONTAINERS: Answer(0, containers)}))


def test_gpu_users_are_named_once_without_our_services() -> None:
    assert used() == ()
    assert used("1 nvidia-persiste\n2 nv-hostengine\n3 nv-fabricmanage\n4711 python3\n") == ("python3 (4711)",)
    inside = "812 3f2a1b2c3d4e 812,840 python3\n900 - 900 my job\n"
    assert used("4711 python3\n812 python3\n840 python3\n", inside) == (
        "python3 (4711)",
        "container 3f2a1b2c3d4e (pid 812)",
        "container of my job (pid 900)",
    )


@pytest.mark.parametrize("line", ["812", "x 3f2a1b2c3d4e 812 a", "812 3F2A 812 a", "812 - ; a", "\x1b[2J"])
def test_a_line_that_is_no_container_is_none(line: str) -> None:
    assert used(containers=line + "\n") == ()


def test_this_machines_own_processes_are_no_containers() -> None:
    status, text = ask(CONTAINERS.script)
    assert status == 0
    own = {str(os.getpid()), str(os.getppid())}
    assert not [line for line in text.splitlines() if own & set(line.split(" ")[2].split(","))]


CONTAINER = "812 3f2a1b2c3d4e 812 python3\n"


@pytest.mark.parametrize(
    ("containers", "links", "taken"),
    [
        (CONTAINER, "device nvidia0\n", True),
        ("", "device nvidia0\n", False),
        (CONTAINER, "device nvidia0\nlink ../nvidia0\n", False),
    ],
    ids=["a container without links", "no container", "a container with links"],
)
def test_systemd_reload_takes_unlinked_devices_from_containers(containers: str, links: str, taken: bool) -> None:
    condition = ReloadTakesGpus()
    answers = {"find -H /proc": containers, "/dev/char": links}
    facts = Facts({probe: reply_to(probe, answers) for probe in condition.probes()})
    assert condition.holds(facts) == taken
