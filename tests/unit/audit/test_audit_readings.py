"""Tests of the readings of a host: from the answers of its programs, from its cards, and without answers."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from datetime import UTC, datetime

from hypothesis import given
from hypothesis import strategies as st

from hostwright.audit.fleetaudit import Reading
from hostwright.audit.hardware.gpu import Gpu
from hostwright.audit.judging.context import AuditContext
from hostwright.audit.readings.answers import meant, value_probes
from hostwright.audit.readings.host import readings
from hostwright.plan.model import Answer, Facts
from hostwright.plan.roles.auditvalue import DISTRIBUTION, KERNEL, PRODUCT, FileLine, PackageOf, VenvPython, VenvVersion
from hostwright.plan.roles.wants import desire
from hostwright.stack.stack import Stack
from hostwright.standard.roles.base.audit import MACHINE
from hostwright.standard.roles.driver.gpus import smi
from hostwright.standard.roles.driver.nvsmi.report import GpuReport
from tests.unit.support.auditvalues import role_context, values
from tests.unit.support.known import CARDS
from tests.unit.support.madeup import DISTS, VENV
from tests.unit.support.stacks import load_stack, with_values

STACK = load_stack("tensorflow-2.9")
ALL = values(STACK)
NOW = datetime(2026, 11, 21, 10, tzinfo=UTC)
LOADED = FileLine("/sys/module/nvidia/version").line
DOCKER = PackageOf(("docker.io", "docker-ce")).line
OURS = {
    KERNEL.line: "5.10.0-28-amd64", DISTRIBUTION.line: "Debian GNU/Linux 11", PRODUCT.line: "R7525",
    MACHINE.line("cpu").line: "EPYC", MACHINE.line("microcode").line: "0xa",
    FileLine("/sys/class/dmi/id/bios_version").line: "2.1", VenvPython(VENV).line: "3.9", "complete": "yes",
}  # fmt: skip
GREEN = {
    **{one.where.line: one.want for one in ALL if one.want is not None},
    **{VenvVersion(VENV, name).line: version for name, version in DISTS.items()},
    **OURS,
}
RULES = "docker firewall rules"
ROOT = {
    "docker default runtime": "runc", "docker cgroup driver": "systemd", RULES: "there",
    "complete": "yes",
}  # fmt: skip
VALUES = role_context(STACK).audit_values
T4 = Gpu(0, "0000:3b:00.0", model="Tesla T4", vbios="90.04", memory_bytes=15360 << 20, ecc=True, power_limit=70.0)


def said(answers: dict[str, str]) -> Answer:
    return Answer(0, "".join(f"{name}={value}\n" for name, value in answers.items()))


def audit_context(
    user: Answer | None, root: Answer | None = None, *, stack: Stack = STACK, roles: Iterable[str] = (),
    gpus: tuple[Gpu, ...] | None = None,
) -> AuditContext:  # fmt: skip
    chosen = role_context(stack, *roles).roles
    desired = desire("gpu01", role_context(stack), chosen)
    answers = zip(value_probes(values(stack)), (user, root), strict=True)
    facts = Facts({probe: answer for probe, answer in answers if answer})
    found = AuditContext(desired, {}, facts, {role.name: () for role, _ in chosen}, NOW, CARDS)
    if gpus is not None:
        found.judged(smi, lambda _: GpuReport(gpus=gpus))
    return found


def read(*args: Answer | None, stack: Stack = STACK, **more) -> dict[str, Reading]:
    found = readings(audit_context(*args, stack=stack, **more), role_context(stack).audit_values)
    return {f"{one.layer} {one.name}": one for one in found}


def test_a_provisioned_host_differs_in_nothing():
    found = readings(audit_context(said(GREEN), said(ROOT)), VALUES)
    assert [one for one in found if one.differs] == []
    assert len(found) == len(meant(ALL, GREEN))


def test_what_differs_is_what_the_host_has():
    found = read(said({**GREEN, LOADED: "470.161.03", "mark cuda-toolkit-11-2": "not held"}))
    differing = {name: (one.have, one.want) for name, one in found.items() if one.differs}
    assert differing == {"driver loaded": ("470.161.03", "470.182.03"), "cuda toolkit hold": ("not held", "held")}


def test_a_missing_value_is_read_as_empty():
    found = read(said(OURS))
    assert found["cuda nvcc"] == Reading("cuda", "nvcc", "", "V11.2.152")
    assert found["tensorflow tensorflow"].differs


def test_what_could_not_be_asked_gives_no_reading():
    assert readings(audit_context(None), VALUES) == ()
    names = {one.name for one in readings(audit_context(None, said(ROOT)), VALUES)}
    assert names == {"default runtime", "cgroup driver", "firewall rules"}
    assert "firewall rules" not in {
        one.name for one in readings(audit_context(None, said({**ROOT, RULES: ""})), VALUES)
    }
    assert "container default runtime" not in read(said(GREEN))


def test_a_program_that_was_cut_gives_what_it_came_to():
    found = read(Answer(0, f"{KERNEL.line}=5.10.0-28-amd64\n{LOADED}=470.1", truncated=True))
    assert list(found) == ["base kernel", "driver kernel fits"]


def test_hosts_are_compared_among_their_like():
    found = read(said({**GREEN, DOCKER: "docker.io 20.10"}), said(ROOT))
    among = {
        name: found[name].among for name in ("base kernel", "base bios version", "base microcode", "driver loaded")
    }
    assert among == {
        "base kernel": "Debian GNU/Linux 11",
        "base bios version": "R7525",
        "base microcode": "EPYC",
        "driver loaded": "",
    }
    assert found["container docker"] == Reading("container", "docker", "docker.io 20.10", None, "Debian GNU/Linux 11")
    assert found["container cgroup driver"].among == "Debian GNU/Linux 11"


def test_unsupported_kernel_is_read_without_blaming_the_host():
    assert read(said(GREEN))["driver kernel fits"] == Reading("driver", "kernel fits", "yes")
    assert read(said({**GREEN, KERNEL.line: "6.8.0-40-generic"}))["driver kernel fits"] == Reading(
        "driver", "kernel fits", "no"
    )
    assert "driver kernel fits" not in read(said({**GREEN, KERNEL.line: "mine"}))


def test_a_stack_may_name_the_kernels_itself():
    own = with_values(STACK, driver={"kernels": ">=6.8"})
    assert read(said({**GREEN, KERNEL.line: "6.8.0-40-generic"}), stack=own)["driver kernel fits"].have == "yes"


def test_only_the_layers_that_are_looked_at_are_read():
    found = readings(audit_context(said(GREEN), said(ROOT), roles=("cuda",), gpus=(T4,)), VALUES)
    assert {one.layer for one in found} == {"cuda", "release", "gpu"}


def test_the_record_is_read():
    found = read(said({**GREEN, "record stack": "other", "record at": "2026-11-20"}))
    assert found["release stack"] == Reading("release", "stack", "other", STACK.name)
    assert found["release at"].have == "2026-11-20"


def test_cards_of_one_kind_are_one_reading_of_each_value():
    found = read(said(GREEN), gpus=(T4, replace(T4, index=1, bus="0000:af:00.0")))
    gpu = {name: one for name, one in found.items() if one.layer == "gpu"}
    assert {name: one.have for name, one in gpu.items()} == {
        "gpu models": "Tesla T4", "gpu count": "2", "gpu vbios": "90.04", "gpu memory": "15360 MiB", "gpu ecc": "on",
        "gpu mig": "", "gpu power limit": "70 W",
    }  # fmt: skip
    assert gpu["gpu vbios"] == Reading("gpu", "vbios", "90.04", None, "Tesla T4")
    assert gpu["gpu count"].among == "R7525"


def test_a_card_with_another_vbios_is_named():
    cards = tuple(replace(T4, index=index, vbios="90.05" if index == 3 else "90.04") for index in range(4))
    assert read(None, gpus=cards)["gpu vbios"].have == "90.04, card 3: 90.05"
    assert read(None, gpus=(T4, replace(T4, index=1, vbios="")))["gpu vbios"].have == "90.04, card 1: none"


def test_two_models_in_one_host_are_kept_apart():
    found = read(None, gpus=(T4, replace(T4, index=1, model="A30", vbios="92.00")))
    assert found["gpu models"].have == "Tesla T4, A30"
    assert found["gpu vbios of A30"] == Reading("gpu", "vbios of A30", "92.00", None, "A30")
    assert found["gpu vbios of Tesla T4"].have == "90.04"


def test_cards_that_cannot_be_read_are_no_cards():
    assert "gpu count" not in read(said(GREEN))
    assert read(None, gpus=())["gpu count"].have == "0"


@given(st.text(), st.text())
def test_no_answer_is_an_error_and_each_name_is_read_once(user: str, root: str):
    found = readings(audit_context(Answer(0, f"complete=yes\n{user}"), Answer(1, root)), VALUES)
    names = [(one.layer, one.name) for one in found]
    assert len(set(names)) == len(names)
