"""Who uses a GPU: what two probes tell of it, and what a reload of systemd takes away."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from hostwright.plan.model import Answer, Facts
from hostwright.standard.roles.driver.states.gpu_use import BUSY_PROBES, DISPLAY, ReloadTakesGpus, users
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


def displays(tmp_path: Path) -> str:
    return ask("systemctl() { return 3; }\n" + DISPLAY.script.replace("/tmp/", f"{tmp_path}/"))[1]  # noqa: S108


@pytest.mark.parametrize(
    "content", ["1", "self", "a[$(touch ran)]", "1; touch ran", "", "-1", "9" * 40, "1\n1", "\x1b[2J"]
)
def test_a_lock_in_tmp_that_names_no_x_server_is_none(tmp_path: Path, content: str) -> None:
    (tmp_path / ".X9-lock").write_text(content.replace("self", str(os.getpid())))
    assert displays(tmp_path) == ""
    assert not Path("ran").exists()


@pytest.mark.parametrize("kind", ["pipe", "link to a pipe", "link to a file", "directory", "a terabyte", "many"])
def test_nothing_that_users_put_into_tmp_stops_a_probe(tmp_path: Path, kind: str) -> None:
    lock, other = tmp_path / ".X9-lock", tmp_path / "other"
    if kind == "pipe":
        os.mkfifo(lock)
    elif kind == "directory":
        lock.mkdir()
    elif kind == "a terabyte":
        with lock.open("wb") as file:
            file.truncate(2**40)
    elif kind == "many":
        for number in range(5000):
            os.mkfifo(tmp_path / f".X{number}-lock")
    else:
        os.mkfifo(other) if kind == "link to a pipe" else other.write_text(f"{os.getpid()}\n")
        lock.symlink_to(other)
    assert displays(tmp_path) == ""


def test_a_running_x_server_is_named(tmp_path: Path) -> None:
    server = Path(shutil.copy("/bin/sleep", tmp_path / "Xorg"))
    with subprocess.Popen([server, "60"]) as process:
        (tmp_path / ".X0-lock").write_text(f"{process.pid:>10}\n")
        found = displays(tmp_path)
        process.kill()
    assert found == f"X server {process.pid}\n"


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
