"""Tests of stacks drafted from hosts: the nearest stack, the differences, and the file. No host is contacted."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, date, datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import yaml

from hostwright.audit import adopting
from hostwright.audit.found.adopting import HostFound, StackDraft, draft, nearest, stack_text
from hostwright.common.errors import InputError
from hostwright.fleet import Fleet
from hostwright.plan.host.hostfacts import HOST_PROBES, OS_RELEASE, read_host
from hostwright.plan.host.release import RELEASE
from hostwright.plan.model import Answer, Facts
from hostwright.plan.roles.found import Adopted, OnHost
from hostwright.plan.stacks.fits import fits
from hostwright.stack.stack import Stack
from hostwright.standard.roles.container.cdi import TOOLKIT_CONFIG
from hostwright.standard.roles.container.section import ContainerSection
from hostwright.standard.roles.cuda.section import CudaRelease, CudaSection
from hostwright.standard.roles.driver.section import DriverSection
from hostwright.standard.roles.tensorrt.section import TensorrtSection
from tests.places import PROJECT
from tests.unit.support import stackfleet
from tests.unit.support.found import FINDERS, HAND_MADE, PACKAGES, facts_of
from tests.unit.support.shell import run
from tests.unit.support.stackfleet import ADVISORIES, ROLES, TODAY
from tests.unit.support.stacks import KINDS, for_all_roles

A100 = replace(stackfleet.facts_of("8 × A100"), distribution="ubuntu", version="22.04")
UBUNTU = 'ID=ubuntu\nVERSION_ID="22.04"\n'
TOOLKIT = (
    "nvidia-container-toolkit", "nvidia-container-toolkit-base", "libnvidia-container-tools", "libnvidia-container1",
)  # fmt: skip
DRIVER = "driver\tinstaller\t/usr/bin/nvidia-installer\ndriver\tlibrary\t{0}\ndriver\tloaded\t{0}\n"


def made(text: str = HAND_MADE, packages: Mapping[str, str] = PACKAGES) -> StackDraft:
    host = HostFound("gpu01", A100, FINDERS.on_host(facts_of(text, packages)))
    stacks = stackfleet.stacks()
    like = nearest(host, stacks, FINDERS, fits(A100, stacks, ROLES, ADVISORIES, TODAY))
    assert like
    return draft(host, like, ROLES)


def stack_of(found: StackDraft) -> Stack:
    return next(stack for stack in stackfleet.stacks() if stack.name == found.extends)


def test_the_nearest_stack_has_the_same_layers_and_what_differs_is_written():
    found = made()
    assert found.extends.startswith("pytorch-")
    assert found.data["roles"] == ["base", "driver", "container"]
    assert found.data["driver"]["version"] == "550.54.15"
    assert found.data["driver"]["module"] == "open"
    toolkit = {"version": "1.15.0-1", "packages": ["nvidia-container-toolkit"]}
    assert found.data["container"] == {"docker": "docker-ce", "toolkit": toolkit}
    assert found.data["artifacts"]["driver"]["file"] == "NVIDIA-Linux-x86_64-550.54.15.run"
    assert "/opt/torch" in found.left_out["pytorch"]


@pytest.mark.parametrize("version", ["470.182.03", "470.256.02", "580.159.04"])
def test_the_drivers_version_leads_to_a_stack_that_has_it(version: str):
    found = made(DRIVER.format(version), {})
    assert stack_of(found).versions()["driver"] == version
    assert found.data == {"roles": ["base", "driver"]}


def test_a_driver_of_packages_is_written_with_its_exact_set():
    packages = {
        "nvidia-driver-535-server": "535.183.01-0ubuntu0.22.04.1",
        "libnvidia-compute-535-server": "535.183.01-0ubuntu0.22.04.1",
        "libnvidia-container1": "1.15.0-1",
    }
    driver = made("driver\tloaded\t535.183.01\n", packages).data["driver"]
    del packages["libnvidia-container1"]
    assert driver["packages"] == packages
    assert (driver["version"], driver["artifact"]) == ("535.183.01", None)
    assert "driver" not in made("driver\tloaded\t535.183.01\n", packages).data.get("artifacts", {})


def test_a_precompiled_module_is_named_without_its_kernel():
    packages = {
        "nvidia-driver-535-server-open": "535.183.01-0ubuntu0.22.04.1",
        "linux-modules-nvidia-535-server-open-5.15.0-91-generic": "5.15.0-91.101",
        "linux-objects-nvidia-535-server-open-5.15.0-91-generic": "5.15.0-91.101",
    }
    driver = made("driver\tloaded\t535.183.01\n", packages).data["driver"]
    assert driver["precompiled"] == "linux-modules-nvidia-535-server-open"
    assert set(driver["packages"]) == {"nvidia-driver-535-server-open"}


RUNS = DRIVER.format("580.159.04")
DOCKER = {"docker.io": "26.1.5+dfsg1-9", **dict.fromkeys(TOOLKIT, "1.20.0-1")}


@pytest.mark.parametrize(
    ("mode", "written", "noted"),
    [("", None, False), ("auto", None, False), ("legacy", {"mode": "legacy"}, False), ("own", {"mode": None}, True)],
)
def test_the_mode_of_the_runtime_is_the_hosts(mode: str, written: Mapping[str, Any] | None, noted: bool):
    found = made(f"{RUNS}container\tmode\t{mode}\n", DOCKER)
    assert found.data.get("container") == (written and {"toolkit": written})
    assert bool(found.notes) == noted


def test_the_mode_is_read_from_the_file_of_the_toolkit(tmp_path: Path):
    config = tmp_path / "config.toml"
    config.write_text('[nvidia-container-runtime]\nmode = "legacy"\n')
    script = FINDERS.probe.script.replace(TOOLKIT_CONFIG, str(config))
    end = script.index("\n)\n", script.index("row mode"))
    assert b"container\tmode\tlegacy\n" in run(script[: end + 3]).stdout


def test_held_versions_of_docker_and_its_packages_are_the_hosts():
    section = for_all_roles().section(ContainerSection)
    pins = {"docker-ce": "5:29.2.0-1", "containerd.io": "2.2-1"}
    held = section.model_copy(update={"docker": "docker-ce", "docker_versions": pins})
    adopted = FINDERS.by_layer["container"].adopted
    assert adopted
    there = {"docker-ce": "5:28.1.1-1", "containerd.io": "2.2-1", **dict.fromkeys(TOOLKIT, held.toolkit.version)}
    row = (("mode", held.toolkit.mode or "auto"),)
    assert adopted(OnHost(row, there), held).section == {
        "docker_ce": {"packages": ["docker-ce", "containerd.io"]},
        "docker_versions": {"docker-ce": "5:28.1.1-1"},
    }


def test_what_belongs_to_a_driver_of_packages_stays_with_it():
    packages = {
        "nvidia-driver-570-server-open": "570.158.01-0ubuntu0.22.04.1",
        "nvidia-fabricmanager-570": "570.158.01-0ubuntu0.22.04.1",
        "nvlsm": "2025.06.5-1",
        "nvidia-imex-570": "570.86.15-1",
    }
    found = made("driver\tloaded\t570.158.01\n", packages)
    subnet = {"package": "nvlsm", "version": "2025.06.5-1", "artifact": None}
    manager = {"package": "nvidia-fabricmanager-570", "version": "570.158.01-0ubuntu0.22.04.1", "artifact": None}
    assert found.data["driver"]["fabric_manager"] == {**manager, "subnet_manager": subnet}
    assert found.data["driver"].get("imex") is None, "it is of another version"
    assert not found.notes


def test_the_whole_set_of_debians_own_archive_is_a_stack_that_there_is():
    stack = next(one for one in stackfleet.stacks() if one.name == "debian-13-r550")
    packages = dict(stack.section(DriverSection).packages)
    text = "driver\tlibrary\t550.163.01\ndriver\tkernel\tNVIDIA UNIX Open Kernel Module for x86_64  550.163.01\n"
    host = HostFound(
        "gpu01", replace(A100, distribution="debian", version="13"), FINDERS.on_host(facts_of(text, packages))
    )
    like = nearest(host, stackfleet.stacks(), FINDERS, ())
    assert like
    assert (like.stack.name, draft(host, like, ROLES).data) == ("debian-13-r550", {})


def test_the_parts_of_a_toolkit_of_the_same_release_are_the_hosts():
    stack = next(one for one in stackfleet.stacks() if one.name == "tensorflow-2.9")
    section = stack.section(CudaSection)
    adopted = FINDERS.by_layer["cuda"].adopted
    assert adopted
    first, *rest = section.components
    debs = {
        section.package: section.package_version,
        first: "1.0-1",
        **{name: section.components[name] for name in rest},
    }
    row = (("toolkit", section.prefix, section.version),)
    assert adopted(OnHost(row, debs), section).section == {"components": {first: "1.0-1"}}
    del debs[first]
    assert adopted(OnHost(row, debs), section).section == {"components": {first: None}}


def test_each_toolkit_of_a_stack_is_compared_and_one_that_the_host_lacks_is_null():
    stack = next(one for one in stackfleet.stacks() if one.name == "tensorflow-2.9")
    first = stack.section(CudaSection)
    second = {"version": "13.0.2", "package": "cuda-toolkit-13-0", "package_version": "13.0.2-1"}
    components = {"cuda-nvcc-13-0": "13.0.88-1"}
    section = first.model_copy(
        update={"beside": {"extensions": CudaRelease.model_construct(**second, components=components)}}
    )
    adopted = FINDERS.by_layer["cuda"].adopted
    assert adopted
    row = (("toolkit", first.prefix, first.version),)
    assert adopted(OnHost(row, first.packages), section).section == {"beside": {"extensions": None}}
    both = {**first.packages, second["package"]: second["package_version"], **components}
    assert adopted(OnHost(row, both), section) == Adopted()
    other = adopted(OnHost(row, {**both, "cuda-nvcc-13-0": "13.0.48-1"}), section)
    assert other.section == {"beside": {"extensions": {"components": {"cuda-nvcc-13-0": "13.0.48-1"}}}}
    assert other.unlike == 1


@pytest.mark.parametrize(
    ("place", "version", "left_out"),
    [("/usr/local/TensorRT-7.2.3.4/lib", "7.2.3", False), ("/usr/lib/x86_64-linux-gnu", "8.6.1", True), ("", "", True)],
)
def test_a_tensorrt_is_kept_only_as_the_stack_has_it(place: str, version: str, left_out: bool):
    section = for_all_roles().section(TensorrtSection)
    adopted = FINDERS.by_layer["tensorrt"].adopted
    assert adopted
    rows = (("library", place, version),) if place else ()
    assert bool(adopted(OnHost(rows), section).left_out) == left_out


@pytest.mark.parametrize("role", [role for role, section in KINDS.items() if section])
def test_the_page_says_of_each_field_whether_it_is_read(role: str):
    page = (PROJECT / "docs/operators/adopting.md").read_text("utf-8")
    (row,) = (line for line in page.splitlines() if re.match(rf"\| (`\w+`, )*`{role}`(, `\w+`)* \|", line))
    section = KINDS[role]
    assert section
    assert not [name for name in section.model_fields if f"`{name}`" not in row]


def test_a_role_that_needs_one_that_is_left_out_is_left_out_as_well():
    found = made(DRIVER.format("470.182.03") + "cuda\ttoolkit\t/usr/local/cuda-11.2\t11.2.2\n", {})
    assert "environment" in stack_of(found).roles
    assert found.left_out["environment"] == "needs cuda, which is left out"
    assert found.left_out["container"].startswith("the host has no Docker from a package")


def test_a_release_that_the_stack_is_not_for_is_named():
    host = HostFound("gpu01", replace(A100, version="18.10"), FINDERS.on_host(facts_of()))
    like = nearest(host, stackfleet.stacks(), FINDERS, ())
    assert like
    assert draft(host, like, ROLES).data["distributions"] == {A100.distribution: ["18.10"]}


def test_the_file_says_what_is_left_out_and_why():
    text = stack_text(made(), ("gpu01", "gpu02"), date(2026, 11, 29))
    assert text.startswith("# State of gpu[01-02] on 2026-11-29")
    assert "# Left out, pytorch: " in text
    assert all(len(line) <= 120 for line in text.splitlines())
    assert yaml.safe_load(text)["extends"] == made().extends


def test_what_a_host_says_cannot_leave_the_comments_of_the_file():
    hostile = "/opt/a\x1b[2J\nextends: other\n# /lib/python3.11/site-packages/torch-2.3.0.dist-info\n"
    text = stack_text(made(HAND_MADE + hostile), ("gpu01",), date(2026, 11, 29))
    assert yaml.safe_load(text)["extends"] == made().extends
    assert "\x1b" not in text


class Site:
    """A site whose hosts return the given facts."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch, answers: Mapping[str, Facts]):
        self.inventory = folder / "inventory"
        self.inventory.mkdir()
        hosts = {name: {"ansible_host": "192.0.2.1", "ansible_port": 22 + at} for at, name in enumerate(answers)}
        (self.inventory / "hosts.yml").write_text(yaml.safe_dump({"all": {"hosts": hosts}}))
        self.answers = answers
        monkeypatch.setattr(adopting, "ask", lambda shell, probes: answers[shell.name])
        monkeypatch.setattr(adopting, "now", lambda: datetime(2026, 11, 29, tzinfo=UTC))
        self.connections: Any = SimpleNamespace(connect=_Shell, close=lambda: None)

    def adopt(self, **how: Any) -> adopting.Adoption:
        fleet = Fleet.load(self.inventory)
        return adopting.adopt(fleet, fleet.targets("all"), self.connections, **how)


class _Shell:
    def __init__(self, target: Any):
        self.name = target.name

    def __enter__(self) -> _Shell:
        return self

    def __exit__(self, *_: object) -> None:
        pass


def answered(text: str = HAND_MADE, packages: Mapping[str, str] = PACKAGES, record: str = "") -> Facts:
    plain = dict.fromkeys(HOST_PROBES, Answer(1, "")) | {OS_RELEASE: Answer(0, UBUNTU)}
    found = facts_of(text, packages)
    return Facts(
        {**plain, RELEASE: Answer(0 if record else 1, record), **{probe: found[probe] for probe in FINDERS.probes}}
    )


def test_hosts_that_are_alike_get_one_file_which_is_read_as_a_stack(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    site = Site(tmp_path, monkeypatch, {"gpu01": answered(), "gpu02": answered()})
    (one,) = site.adopt().stacks
    assert (one.hosts, one.file) == (("gpu01", "gpu02"), site.inventory / "stacks" / f"{one.stack}.yml")
    assert one.file
    assert one.file.stat().st_mode & 0o777 == 0o644
    stack = Fleet.load(site.inventory).stack(one.stack)
    assert (stack.roles, stack.versions()["driver"]) == (("base", "driver", "container"), "550.54.15")
    assert read_host(answered()).distribution == "ubuntu"


def test_hosts_that_differ_get_a_file_each_and_one_name_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    other = answered(HAND_MADE.replace("550.54.15", "535.183.01"))
    site = Site(tmp_path, monkeypatch, {"gpu01": answered(), "gpu02": other, "gpu03": answered()})
    with pytest.raises(InputError, match="these hosts differ and need 2 stacks"):
        site.adopt(name="by-hand")
    assert not (site.inventory / "stacks").exists()
    assert [one.hosts for one in site.adopt().stacks] == [("gpu01", "gpu03"), ("gpu02",)]


def test_no_file_is_overwritten_unasked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    site = Site(tmp_path, monkeypatch, {"gpu01": answered()})
    (one,) = site.adopt(name="by-hand").stacks
    assert one.file
    one.file.write_text("extends: tensorflow-2.9\n")
    with pytest.raises(InputError, match=r"already exists: .*by-hand\.yml; pass --replace"):
        site.adopt(name="by-hand")
    assert one.file.read_text() == "extends: tensorflow-2.9\n"
    site.adopt(name="by-hand", replace_file=True)
    assert "550.54.15" in one.file.read_text()


def test_a_host_that_is_what_its_stack_is_needs_no_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    site = Site(tmp_path, monkeypatch, {"gpu01": answered()})
    (first,) = site.adopt().stacks
    (again,) = site.adopt().stacks
    assert (again.stack, again.file, again.text) == (first.stack, None, "")


def test_a_host_with_a_release_record_is_left_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    site = Site(
        tmp_path, monkeypatch, {"gpu01": answered(record='{"schema": 2, "stack": "tensorflow-2.9", "roles": {}}')}
    )
    adoption = site.adopt()
    assert (adoption.stacks, adoption.provisioned) == ((), (("gpu01", "tensorflow-2.9"),))


@pytest.mark.parametrize("name", ["../x", "a/b", ".hidden", "x y"])
def test_a_name_that_leads_elsewhere_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str):
    site = Site(tmp_path, monkeypatch, {"gpu01": answered()})
    with pytest.raises(InputError, match="is not a valid stack name"):
        site.adopt(name=name)


def test_what_is_no_stack_is_an_error_of_its_hosts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """A half-upgraded driver: its packages have two versions."""
    mixed = {"nvidia-driver-535": "535.183.01-0ubuntu1", "libnvidia-compute-535": "535.161.08-0ubuntu1"}
    site = Site(tmp_path, monkeypatch, {"gpu01": answered("driver\tloaded\t535.183.01\n", mixed)})
    adoption = site.adopt()
    assert adoption.stacks == ()
    assert "use the same version for all packages" in adoption.errors[0].sentence
