"""Files beside jobs: a role waits for its own files and for no others, and who stops the run waits for none."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from hostwright.apply import events
from hostwright.apply.delivery.delivery import in_order
from hostwright.apply.delivery.sources.settings import ARTIFACTS
from hostwright.apply.host import applying
from hostwright.apply.host.applying import HostApply, HostJob
from hostwright.apply.host.scheduling.durations import Durations, Urgency
from hostwright.common.errors import ArtifactError, SeveralFailed, Stopped
from hostwright.common.quoting import sh
from hostwright.plan.desired import Desired, DesiredRole
from hostwright.plan.model import Change, Deferred, Facts, Plan, Planned, Probe, Resource, RolePlan, Step
from hostwright.stack.stack import Artifact, Stack
from tests.unit.apply.delivery.hosts import LoopFleet, LoopHost, fleet_of
from tests.unit.apply.host import test_applying
from tests.unit.support.runs import run_of, target_of

BIG = 2_000_000
place = test_applying.place


@dataclass(frozen=True)
class Copied(Resource):
    """A file of the stack is at a place."""

    path: str
    artifact: str
    source: str

    def probes(self) -> tuple[Probe, ...]:
        return (Probe(sh("test -e %s", self.path)),)

    def plan(self, facts: Facts) -> Planned | None:
        if facts[self.probes()[0]].ok:
            return None
        copy = Step(sh("cp %s %s", self.source, self.path))
        return Change(self.path, "absent", "there", (copy,), artifacts=(self.artifact,))

    def removal(self) -> tuple[Resource, ...]:
        return ()


@pytest.fixture
def fleet(place: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[LoopFleet]:
    with fleet_of(2, monkeypatch) as several:
        read = applying.read_file_settings
        monkeypatch.setattr(
            applying, "read_file_settings", lambda host: replace(read(host), cache=several.hosts[0].cache)
        )
        yield several


def apply(
    fleet: LoopFleet,
    host: LoopHost,
    place: Path,
    roles: dict[str, tuple[str, ...]],
    way: str = "push",
    **more: Any,
) -> HostApply:
    """A host whose roles each need the file of their name, after others."""
    states = {name: Copied(str(place / name), name, str(host.file(fleet.files[name][0]))) for name in roles}
    wanted = tuple(DesiredRole(name, needs, (states[name],)) for name, needs in roles.items())
    given = {"locate": fleet.locate, **more}
    desired = Desired(host.name, fleet.stack(), wanted, apart=True)
    target = target_of(desired, {ARTIFACTS: way})
    return HostApply(run_of(host.connect, host.emit, **given), HostJob(target, desired))


def test_roles_get_their_files_and_run(fleet: LoopFleet, place: Path) -> None:
    for name in ("driver", "cuda"):
        fleet.add(os.urandom(BIG), name)
    host = fleet.hosts[0]
    with fleet.handout() as handout:
        one = apply(fleet, host, place, {"driver": (), "cuda": ("driver",)}, "pull", handout=handout)
        outcome = one.apply()
        one.close()
    assert outcome.word == "changed"
    assert (place / "cuda").read_bytes() == fleet.files["cuda"][1]
    assert host.came == [{events.FROM_HERE: BIG}] * 2


def test_a_role_does_not_wait_for_the_files_of_others(fleet: LoopFleet, place: Path) -> None:
    """The file of the second is held up until the first has ended."""
    for name in ("driver", "cuda"):
        fleet.add(os.urandom(BIG), name)
    host, ended = fleet.hosts[0], threading.Event()

    def hold(event: events.Event) -> None:
        if isinstance(event, events.RoleFinished) and event.role == "driver":
            ended.set()
        if isinstance(event, events.Delivering) and event.role == "cuda":
            assert ended.wait(60)

    host.heard = hold
    one = apply(fleet, host, place, {"driver": (), "cuda": ()})
    assert one.apply().word == "changed"
    one.close()
    kinds = [(type(event).__name__, getattr(event, "role", "")) for event in host.said]
    assert kinds.index(("RoleFinished", "driver")) < kinds.index(("RoleStarted", "cuda"))


def test_files_of_later_roles_come_while_the_first_one_runs(fleet: LoopFleet, place: Path) -> None:
    for name in ("driver", "cuda"):
        fleet.add(os.urandom(BIG), name)
    host, arrived = fleet.hosts[0], threading.Event()

    def hold(event: events.Event) -> None:
        if isinstance(event, events.Delivering) and event.role == "cuda" and event.sent:
            arrived.set()
        if isinstance(event, events.RoleStarted) and event.role == "driver":
            assert arrived.wait(60)

    host.heard = hold
    one = apply(fleet, host, place, {"driver": (), "cuda": ("driver",)})
    assert one.apply().word == "changed"
    one.close()


def test_a_missing_file_is_said_before_anything_is_touched(fleet: LoopFleet, place: Path) -> None:
    fleet.locate(fleet.add()).unlink()
    host = fleet.hosts[0]

    def locate(artifact: Artifact) -> Path:
        raise ArtifactError(f"{artifact.file} is not on this machine: run invoke mirror")

    one = apply(fleet, host, place, {"cuda": ()}, locate=locate)
    with pytest.raises(ArtifactError, match="run invoke mirror"):
        one.apply()
    one.close()
    assert not any(isinstance(event, events.RoleStarted) for event in host.said)


def test_who_stops_the_run_waits_for_no_file(fleet: LoopFleet, place: Path) -> None:
    fleet.add(os.urandom(BIG))
    host, begun, held = fleet.hosts[0], threading.Event(), threading.Event()

    def hold(event: events.Event) -> None:
        if isinstance(event, events.Delivering):
            begun.set()
            held.wait(60)

    host.heard = hold
    errors: list[BaseException] = []
    with fleet.handout() as handout:
        one = apply(fleet, host, place, {"cuda": ()}, "pull", handout=handout)

        def run() -> None:
            try:
                one.apply()
            except BaseException as error:  # noqa: BLE001
                errors.append(error)

        thread = threading.Thread(target=run)
        thread.start()
        assert begun.wait(60)
        stopper = threading.Thread(target=handout.stop)
        stopper.start()
        thread.join(60)
        held.set()
        stopper.join(60)
        one.close()
    (error,) = errors
    assert isinstance(error, Stopped)
    assert "stopped before all of its files had arrived" in str(error)
    assert not (place / "cuda").exists()


def test_roles_that_wait_for_the_same_file_fail_once(fleet: LoopFleet, place: Path) -> None:
    """One error, told once: not ``SeveralFailed`` with the same sentence twice."""
    artifact = fleet.add(os.urandom(BIG))
    fleet.locate(artifact).write_bytes(b"x" * BIG)
    fleet.files["driver"] = (artifact.model_copy(update={"name": "driver"}), b"")
    one = apply(fleet, fleet.hosts[0], place, {"cuda": (), "driver": ()})
    with pytest.raises(ArtifactError, match="damaged on this machine") as caught:
        one.apply()
    one.close()
    assert not isinstance(caught.value, SeveralFailed)


def role(name: str, *needs: str, artifacts: tuple[str, ...] = (), steps: bool = True) -> RolePlan:
    planned: Planned = (
        Change(name, "absent", "there", (Step("true"),), artifacts=artifacts)
        if steps
        else Deferred(name, "absent", "there", "later", artifacts=artifacts)
    )
    return RolePlan(name, needs, (planned,))


def test_files_are_ordered_by_when_they_are_needed() -> None:
    """The files of the longest chain first: what follows `tensorflow` takes less than what follows `cuda`."""
    sizes = {"key": 1000, "driver.run": 10**8, "cuda.deb": 10**9, "cudnn.tgz": 10**9, "wheels": 10**8, "pin": 50}
    artifacts = {name: {"file": name, "sha256": "0" * 64, "size": size} for name, size in sizes.items()}
    stack = Stack.model_validate({"name": "s", "distributions": {"debian": ["12"]}, "artifacts": artifacts})
    plan = Plan(
        "gpu01",
        "s",
        (
            role("tensorflow", "base", artifacts=("wheels",)),
            role("base"),
            role("driver", "base", artifacts=("driver.run",), steps=False),
            role("container", "base", artifacts=("key",)),
            role("cuda", "base", artifacts=("cuda.deb", "pin")),
            role("cudnn", "cuda", "base", artifacts=("cudnn.tgz", "cuda.deb")),
        ),
    )
    urgency = Urgency.of(plan, lambda: Durations(sizes=sizes))
    wanted = in_order(plan, stack, urgency.roles)
    assert [one.artifact.name for one in wanted] == ["pin", "key", "cuda.deb", "cudnn.tgz", "wheels", "driver.run"]
    assert [one.role for one in wanted] == ["cuda", "container", "cuda", "cudnn", "tensorflow", "driver"]
    slow = Durations({("tensorflow", "tensorflow", 0): 900.0}, sizes)
    slowest = in_order(plan, stack, Urgency.of(plan, lambda: slow).roles)
    assert [one.artifact.name for one in slowest] == ["pin", "key", "wheels", "cuda.deb", "cudnn.tgz", "driver.run"]
