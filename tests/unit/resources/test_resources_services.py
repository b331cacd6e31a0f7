"""Services: running, and with what their files say now."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from hostwright.plan.model import Change, Deferred, Facts, Probe, Resource
from hostwright.resources.files.files import Absent
from hostwright.resources.system.services import Disturbing, RestartedAfter, Running, Service
from tests.unit.support.facts import changes_of, facts_for
from tests.unit.support.shell import program, run

SECOND = 1_000_000  #: in µs
NOW = 1_795_000_000 * SECOND


def shown(active: str, enabled: str, load: str = "loaded") -> str:
    return f"LoadState={load}\nActiveState={active}\nUnitFileState={enabled}\n"


def service(answer: str, *, running: bool = True) -> Change | None:
    resource = Service("a.service", running=running)
    return resource.plan(facts_for(resource, {"systemctl show": answer}))


@pytest.mark.parametrize("enabled", ["enabled", "static", "alias", "generated"])
def test_a_running_service_plans_nothing(enabled: str) -> None:
    assert service(shown("active", enabled)) is None


@pytest.mark.parametrize(
    "answer", [shown("failed", "enabled"), shown("active", "disabled"), shown("inactive", "", "not-found"), ""]
)
def test_a_service_that_does_not_run_or_is_not_enabled_is_started(answer: str) -> None:
    change = service(answer)
    assert change is not None
    assert "systemctl enable --now -- a.service" in change.steps[0].script
    assert "reset-failed" in change.steps[0].script


def test_a_service_that_shall_not_run() -> None:
    assert service(shown("inactive", "", "not-found"), running=False) is None
    change = service(shown("active", "enabled"), running=False)
    assert change is not None
    assert change.steps[0].script == "systemctl disable --now -- a.service"


def test_a_fresh_service_plans_nothing() -> None:
    assert changes_of(RestartedAfter("a.service", ("/etc/a",), (Absent("/etc/b"),)), {"busctl": ""}) == ()


def test_a_service_older_than_its_file_is_restarted() -> None:
    (change,) = changes_of(RestartedAfter("a.service", ("/etc/a",)), {"busctl": "/etc/a\n"})
    assert change.have == "started before a changed"
    assert "systemctl restart -- a.service" in change.steps[0].script


def test_a_restart_is_planned_with_the_change_that_makes_it_necessary() -> None:
    (change,) = changes_of(RestartedAfter("a.service", ("/etc/b",), (Absent("/etc/b"),)), {"busctl": "", "test -e": ""})
    assert change.have == "running with what is about to change"


def asked_of_systemd(
    tmp_path: Path, pid: int, began_us: int, unit: str = "docker.service"
) -> tuple[Path, RestartedAfter]:
    """A stand-in of the bus that answers as systemd does, and the resource whose script asks it."""
    programs = tmp_path / "bin"
    program(programs, "busctl", f'echo "$@" >> {tmp_path}/asked\nprintf "u {pid}\\nt {began_us}\\n"')
    program(programs, "date", f"echo {NOW}")
    program(programs, "systemctl", f'echo "$@" >> {tmp_path}/done')
    return programs, RestartedAfter(unit, (str(tmp_path / "a file"), str(tmp_path / "none")))


@pytest.mark.parametrize(
    ("changed_us", "newer"),
    [(NOW - 2 * SECOND + 1, True), (NOW - 2 * SECOND - 1, False), (NOW + SECOND, False)],
    ids=["a microsecond after the start", "a microsecond before it", "from the future"],
)
def test_the_times_are_compared_to_the_microsecond(tmp_path: Path, changed_us: int, newer: bool) -> None:
    programs, fresh = asked_of_systemd(tmp_path, 87, NOW - 2 * SECOND)
    file = tmp_path / "a file"
    file.touch()
    os.utime(file, ns=(changed_us * 1000, changed_us * 1000))
    answer = run(fresh.probes()[0].script, path=programs)
    assert answer.stdout.decode() == (f"{file}\n" if newer else "")


def test_the_unit_is_asked_for_by_its_escaped_name(tmp_path: Path) -> None:
    programs, fresh = asked_of_systemd(tmp_path, 87, NOW, "nvidia-dev@1.service")
    run(fresh.probes()[0].script, path=programs)
    assert "/org/freedesktop/systemd1/unit/nvidia_2ddev_401_2eservice" in (tmp_path / "asked").read_text()


@pytest.mark.parametrize(("pid", "restarted"), [(87, True), (0, False)], ids=["running", "not running"])
def test_the_step_looks_again_and_leaves_alone_what_does_not_run(tmp_path: Path, pid: int, restarted: bool) -> None:
    programs, fresh = asked_of_systemd(tmp_path, pid, NOW - 2 * SECOND)
    (tmp_path / "a file").touch()
    os.utime(tmp_path / "a file", ns=((NOW - SECOND) * 1000,) * 2)
    (change,) = changes_of(fresh, {"busctl": "x\n"})
    assert run(change.steps[0].script, path=programs).returncode == 0
    assert (tmp_path / "done").exists() == restarted


def test_the_step_does_not_restart_what_was_restarted_meanwhile(tmp_path: Path) -> None:
    programs, fresh = asked_of_systemd(tmp_path, 87, NOW)
    (tmp_path / "a file").touch()
    os.utime(tmp_path / "a file", ns=((NOW - SECOND) * 1000,) * 2)
    (change,) = changes_of(fresh, {"busctl": "x\n"})
    assert run(change.steps[0].script, path=programs).returncode == 0
    assert not (tmp_path / "done").exists()


@pytest.mark.parametrize(
    ("active", "disturbs"),
    [
        ("active", "ends jobs"),
        ("reloading", "ends jobs"),
        ("deactivating", "ends jobs"),
        ("inactive", ""),
        ("failed", ""),
    ],
)
def test_a_change_disturbs_only_what_runs(active: str, disturbs: str) -> None:
    gone = Disturbing(Absent("/etc/b"), "ends jobs", Running("a.service"))
    (change,) = changes_of(gone, {"systemctl show": shown(active, "enabled"), "test -e": ""})
    assert change.disturbs == disturbs
    assert len(change.steps) == 1
    assert changes_of(gone, {"systemctl show": shown(active, "enabled")}) == ()


def test_what_systemd_does_not_know_does_not_run() -> None:
    assert not Running("a.service").holds(facts_for(Service("a.service")))


class Later(Resource):
    """What is known only after a reboot."""

    def probes(self) -> tuple[Probe, ...]:
        return ()

    def plan(self, facts: Facts) -> Deferred:
        return Deferred("x", "a", "b", "reboot")

    def removal(self) -> tuple[Resource, ...]:
        return ()


def test_a_change_without_steps_disturbs_nobody_yet() -> None:
    (change,) = changes_of(
        Disturbing(Later(), "x", Running("a.service")), {"systemctl show": shown("active", "enabled")}
    )
    assert change == Deferred("x", "a", "b", "reboot")
