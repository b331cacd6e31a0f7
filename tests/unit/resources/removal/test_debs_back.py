"""Packages that a role took away come back with its removal, from the host's own sources (with the real apt)."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from hostwright.plan.desired import Desired, DesiredRole
from hostwright.plan.model import Answer, Facts, Step
from hostwright.plan.planning import removal_of
from hostwright.resources.originals import FILES, ORIGIN
from hostwright.resources.packages.packages import DebsAbsent
from hostwright.resources.system.services import Disturbing, Running
from tests.unit.support.aptroot import AptRoot, deb, installed, repository, states, work_for_real
from tests.unit.support.shell import ask, program, run
from tests.unit.support.stacks import load_stack

pytestmark = pytest.mark.skipif(os.getuid() != 0, reason="dpkg --root needs root")
(BACK,) = DebsAbsent(("odd-*", "libodd"), "two break each other", keep=("odd-kit*",)).removal()
RECORD = "odd\t1\tii \nodd-utils\t1\thi \nlibodd\t1\tii \nodd-kit\t1\tii \nodd-old\t1\trc \nbash\t1\tii \n"


class Host:
    """A host with a record of what it had, and a repository of its own."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch):
        self.apt = AptRoot(folder)
        work_for_real(self.apt, folder, monkeypatch)
        program(folder / "bin", "ldconfig", "")
        self.folder = folder
        self.origin = folder / "origin"
        self.origin.mkdir()
        (self.origin / "packages").write_text(RECORD)
        (self.origin / "manual").write_text("odd-utils\n")
        self.ours(self.apt.etc / "preferences.d/ours", "Package: *odd*\nPin: version *\nPin-Priority: -1\n")

    def ours(self, path: Path, text: str) -> None:
        path.write_text(text)
        mark = Path(str(self.origin / FILES.removeprefix(f"{ORIGIN}/")) + f"{path}.written")
        mark.parent.mkdir(parents=True, exist_ok=True)
        mark.touch()

    def has(self, name: str, *packages: Path, ours: bool = False) -> None:
        """A source with these packages."""
        repository(self.folder / name, *packages)
        text = f"deb [trusted=yes] file:{self.folder}/{name} stable main\n"
        path = self.apt.etc / f"sources.list.d/{name}.list"
        self.ours(path, text) if ours else path.write_text(text)
        assert run("apt-get -q update").returncode == 0

    def extended(self) -> str:
        return (self.apt.root / "var/lib/apt/extended_states").read_text()

    def facts(self) -> Facts:
        asked = {probe: probe.script.replace("/var/lib/dpkg", str(self.apt.dpkg)) for probe in BACK.probes()}
        return Facts({probe: Answer(*ask(script, origin=self.origin)) for probe, script in asked.items()})

    def do(self, step: Step) -> str:
        done = run(step.script, origin=self.origin)
        assert done.returncode == 0, done.stdout
        return done.stdout.decode()


@pytest.fixture
def host(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Host:
    host = Host(tmp_path, monkeypatch)
    host.apt.status(installed("bash"), installed("odd-kit"))
    return host


def made(host: Host, *versions: str, name: str = "odd-utils") -> tuple[Path, ...]:
    return tuple(deb(host.folder, name, version) for version in versions)


def test_they_come_back_at_their_versions_with_their_marks_and_holds(host: Host) -> None:
    needs = deb(host.folder, "odd-utils", "1", Depends="libodd (= 1)")
    host.has("theirs", needs, *made(host, "2"), *made(host, "1", "2", name="libodd"), *made(host, "1", name="odd"))
    change = BACK.plan(host.facts())
    assert change is not None
    assert (change.have, change.want) == ("absent", "as before: odd-utils 1, libodd 1")
    host.do(change.steps[0])
    assert states(host.apt) == {"bash": "ii", "odd-kit": "ii", "odd-utils": "hi", "libodd": "ii"}
    assert "Package: libodd\nArchitecture: amd64\nAuto-Installed: 1" in host.extended()
    assert BACK.plan(host.facts()) is None


def test_another_version_comes_where_theirs_is_gone_and_never_from_a_source_of_ours(host: Host) -> None:
    host.has("theirs", *made(host, "2"), *made(host, "2", name="libodd"))
    host.has("ours", *made(host, "1", "9"), ours=True)
    change = BACK.plan(host.facts())
    assert change is not None
    assert change.want == "as before: odd-utils 2 (it was 1), libodd 2 (it was 1)"
    host.do(change.steps[0])
    assert states(host.apt)["odd-utils"] == "hi"


def test_what_no_source_has_is_named_and_nothing_waits_for_it(host: Host) -> None:
    host.has("theirs", *made(host, "1"))
    facts = host.facts()
    change = BACK.plan(facts)
    assert change is not None and change.want == "as before: odd-utils 1"
    assert BACK.notes(facts) == ("former packages that no source of the host has any more: libodd 1",)
    host.do(change.steps[0])
    assert BACK.plan(host.facts()) is None


def test_where_apt_cannot_install_them_the_reason_is_told(host: Host) -> None:
    host.has("theirs", deb(host.folder, "odd-utils", "1", Depends="libodd (= 1)"))
    facts = host.facts()
    assert BACK.plan(facts) is None
    assert BACK.notes(facts)[1] == (
        "apt cannot reinstall the former packages: odd-utils : Depends: libodd (= 1) but it is not installable"
    )


def test_a_host_without_a_record_or_without_such_packages_is_asked_nothing_of_apt(host: Host) -> None:
    program(host.folder / "bin", "apt-get", f"echo asked >>{host.apt.calls}")
    (host.origin / "packages").write_text("bash\t1\tii \nodd-old\t1\trc \n")
    assert BACK.plan(host.facts()) is None
    (host.origin / "packages").unlink()
    assert BACK.plan(host.facts()) is None
    assert "asked" not in host.apt.calls.read_text()


def test_they_disturb_nobody_and_a_host_that_is_provisioned_anew_does_without_them() -> None:
    absent = DebsAbsent(("odd-*",), "two break each other")
    careful = Disturbing(absent, "takes the odd ones away", Running("odd.service"))
    host = Desired("gpu01", load_stack("tensorflow-2.9"), (DesiredRole("odd", (), (careful,)),))
    assert [role.resources for role in removal_of(host).roles] == [absent.removal()]
    assert [role.resources for role in removal_of(host, returned=False).roles] == [()]
