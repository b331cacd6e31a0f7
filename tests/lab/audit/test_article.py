"""A host installed by hand exactly as in an article: all faults are named, and ``provision`` repairs them.

The host has the driver from the ``.run`` without DKMS, ``cuda-11-2`` with its driver packages over it, cuDNN copied
without its links, variables in one user's ``~/.bashrc``, and ``tensorflow==2.9.0`` as installed by today's pip.
"""

from __future__ import annotations

import subprocess
from collections.abc import Iterable
from typing import Any

import pytest

from hostwright.audit.fleetaudit import HostAudit
from hostwright.audit.reports.document import read_json
from hostwright.common.errors import Finding
from hostwright.fleet import Fleet
from hostwright.standard.roles.cuda.section import CudaSection
from lab.config import Lab, Machine
from lab.machine import start, wait_for_ssh
from lab.snapshots import shut_down
from tests.lab.audit.bench import SETTLE
from tests.lab.audit.by_hand import ARTICLE, Typed, download, type_all
from tests.lab.audit.planting import NO_LINKS
from tests.lab.conftest import SMALL, FrontDoor, Guest, on

pytestmark = pytest.mark.long
HOST = "article01"

#: layer → prefixes of the states that differ
STATES = {
    "base": {
        "file /etc/apt/apt.conf.d/52hostwright",
        "packages build-essential dkms",
        "kernel packages",
    },
    "driver": {
        "file /etc/apt/preferences.d/hostwright-no-other-driver",
        "packages nvidia-driver",  # the driver that cuda-11-2 installed
        "file /etc/modprobe.d/hostwright-nouveau.conf",
        "NVIDIA driver",
        "file /etc/modules-load.d/hostwright-nvidia.conf",
        "user nvidia-persistenced",
        "file /etc/systemd/system/nvidia-persistenced.service",
        "service nvidia-persistenced.service",
        "restart of nvidia-persistenced.service",
    },
    "cuda": {
        "file /etc/apt/preferences.d/cuda-repository-pin-600",
        "key /usr/share/keyrings/cuda-repo-ubuntu2004-11-2-local-keyring.gpg",
        "file /etc/apt/sources.list.d/cuda-ubuntu2004-11-2-local.list",
        "packages cuda-toolkit-11-2",
    },
    "cudnn": {"files of cudnn"},
    "environment": {
        "file /etc/ld.so.conf.d/cuda-11-2.conf",
        "loader cache",
        "file /etc/profile.d/cuda.sh",
        "file /usr/local/lib/hostwright/cuda-command",
        "link /usr/bin/nvcc",
        "link /usr/bin/ptxas",
        "link /usr/bin/fatbinary",
        "link /usr/bin/nvlink",
        "link /usr/bin/cuobjdump",
        "link /usr/bin/nvdisasm",
    },
    "tensorflow": {"venv /opt/tensorflow-2.9", "packages python3.9-venv"},  # apt marked the latter automatic
    "container": {
        "apt sources nvidia.github.io",
        "key /usr/share/keyrings/nvidia-container-toolkit-keyring.gpg",
        "file /etc/apt/sources.list.d/nvidia-container-toolkit.list",
        "packages nvidia-container-toolkit",
        "links in /dev/char",
        "file /etc/systemd/system/hostwright-nvidia-dev-char.service",
        "link /etc/systemd/system/multi-user.target.wants/hostwright-nvidia-dev-char.service",
        "file /etc/docker/daemon.json",
        "mode of the nvidia runtime",
        "service nvidia-cdi-refresh.path",
        "CDI specification",
        "restart of docker.service",
    },
}

#: failures that ``provision`` repairs: rule → layer
MENDED = {
    "other-installer": "driver",
    "cuda-metapackage": "cuda",
    "cuda-not-held": "cuda",
    "library-not-a-link": "cudnn",
    "library-not-found": "environment",
    "ptxas-not-found": "environment",
    "no-gpu-in-docker": "container",
    "runtime-unknown": "container",
    **({NO_LINKS: "container"} if NO_LINKS else {}),
    "toolkit-former-names": "container",
}

#: failures of a user's files, which the user must fix: rule → layer
LEFT = {"tensorflow-outside": "tensorflow", "path-in-start-file": "environment", "cuda-key-for-all": "cuda"}

#: the commands of those fixes
CURES = (
    Typed("python3 -m pip uninstall --yes tensorflow", "Successfully uninstalled tensorflow-2.9.0"),
    Typed(r"sed -i '/cuda-11\.2/d' ~/.bashrc"),
)


@pytest.fixture(scope="module")
def host(guest: Guest, lab: Lab, invoke: FrontDoor) -> Machine:
    """A bare host on which a user ran all commands of the articles."""
    machine = guest(HOST, SMALL)
    download(machine, Fleet.load(lab.inventory.parent).targets(HOST)[0].stack)
    type_all(machine, ARTICLE)
    return machine


@pytest.fixture(scope="module")
def seen(host: Machine, invoke: FrontDoor) -> HostAudit:
    """The audit of that host."""
    return audit(invoke, status=3)


@pytest.fixture(scope="module")
def told(seen: HostAudit, invoke: FrontDoor) -> subprocess.CompletedProcess[str]:
    """The doctor's report on it; the doctor probes the host itself, after the audit."""
    return invoke("doctor", "--hosts", HOST)


@pytest.fixture(scope="module")
def mended(told: subprocess.CompletedProcess[str], invoke: FrontDoor) -> dict[str, Any]:
    """The result of an unattended ``provision``."""
    (outcome,) = invoke.json("provision", "--hosts", HOST, status=0)["hosts"]
    assert isinstance(outcome, dict)
    return outcome


@pytest.fixture(scope="module")
def left(mended: dict[str, Any], invoke: FrontDoor) -> HostAudit:
    """The audit after that."""
    return audit(invoke, status=0)


@pytest.fixture(scope="module")
def cured(left: HostAudit, host: Machine, lab: Lab, invoke: FrontDoor) -> HostAudit:
    """The audit after the user's own fixes."""
    fingerprint = (
        Fleet.load(lab.inventory.parent).targets(HOST)[0].stack.section(CudaSection).repository.fingerprint or ""
    )
    type_all(host, (*CURES, Typed(f"sudo apt-key del {fingerprint[-8:]}", "OK")))
    return audit(invoke, status=0)


def audit(invoke: FrontDoor, status: int) -> HostAudit:
    """Run ``invoke audit`` for the host, with this exit status."""
    done = invoke("audit", "--hosts", HOST, "--json")
    assert done.returncode == status, f"status {done.returncode}\n{done.stdout[-3000:]}\n{done.stderr[-3000:]}"
    (found,) = read_json(done.stdout).hosts
    return found


def rules(findings: Iterable[Finding]) -> dict[str, str]:
    """Return (rule, layer) of the findings."""
    return {finding.rule: finding.layer for finding in findings}


def test_every_state_is_named_and_none_is_invented(seen: HostAudit) -> None:
    beginnings = {(layer, begin) for layer, begins in STATES.items() for begin in begins}
    named = {
        deviation: {(layer, begin) for layer, begin in beginnings
                    if layer == deviation.layer and deviation.what.startswith(begin)}
        for deviation in seen.deviations
    }  # fmt: skip
    assert [(deviation.layer, deviation.what) for deviation, by in named.items() if not by] == []
    assert beginnings - {one for by in named.values() for one in by} == set()
    assert len(seen.deviations) == len(beginnings)


def test_nothing_was_ever_as_desired_so_all_is_new(seen: HostAudit) -> None:
    assert seen.record is None
    assert {deviation.why for deviation in seen.deviations} == {"new"}
    assert seen.status == "new"


def test_every_failure_is_recognised_and_none_is_invented(seen: HostAudit) -> None:
    assert rules(seen.findings) == MENDED | LEFT
    assert all(all(finding.evidence) for finding in seen.findings)


def test_every_layer_could_be_read(seen: HostAudit) -> None:
    statuses = {layer.name: layer.status for layer in seen.layers}
    assert {name for name, status in statuses.items() if status == "new"} == set(STATES)
    assert "unread" not in statuses.values()


def test_the_values_tell_the_articles_own_traps(seen: HostAudit) -> None:
    """Facts that an article's own checks do not show: the update behind ``release 11.2``, and wrong values."""
    have = {(reading.layer, reading.name): reading.have for reading in seen.readings}
    assert have["driver", "loaded"] == "470.182.03"
    assert have["driver", "dkms"] == ""
    assert have["cuda", "nvcc"] == "V11.2.152"
    assert have["environment", "libcudart.so.11.0"] == ""
    assert have["tensorflow", "tensorflow"] == ""


def test_the_doctor_says_cause_and_cure_of_each(seen: HostAudit, told: subprocess.CompletedProcess[str]) -> None:
    assert told.returncode == 3
    said = "".join(told.stdout.split())  # lines wrap at the width of the terminal
    for finding in seen.findings:
        for text in (finding.rule, f"{finding.cause}.", f"{finding.cure}.", finding.link):
            assert "".join(text.split()) in said, f"{finding.rule}: {text}"
    assert told.stdout.count("does not fix it") == len([one for one in seen.findings if not one.provision])


def test_provision_brings_it_to_the_stack(mended: dict[str, Any], left: HostAudit) -> None:
    assert mended["changed"]
    assert {role["role"] for role in mended["roles"]} == set(STATES)
    assert left.deviations == ()
    assert left.status == "desired"


def test_what_provision_leaves_is_the_users_own(left: HostAudit) -> None:
    assert rules(left.findings) == LEFT
    assert not any(finding.provision for finding in left.findings)


def test_the_meta_package_and_its_driver_are_gone_and_the_toolkit_stays(mended: dict[str, Any], host: Machine) -> None:
    shown = on(host, "dpkg-query -W -f '${db:Status-Abbrev} ${Package}\\n' | grep ^.i").splitlines()
    packages = dict(line.split()[::-1] for line in shown)
    assert [name for name in packages if "-460" in name or name.startswith(("cuda-drivers", "cuda-runtime"))] == []
    assert packages["cuda-toolkit-11-2"] == "hi"


def test_after_the_users_part_nothing_is_found(cured: HostAudit) -> None:
    assert (cured.deviations, cured.findings) == ((), ())
    assert {layer.status for layer in cured.layers} == {"desired"}


def test_it_is_as_desired_after_a_reboot_too(cured: HostAudit, host: Machine, invoke: FrontDoor) -> None:
    shut_down(host)
    start(host)
    wait_for_ssh(host)
    on(host, SETTLE)
    found = audit(invoke, status=0)
    assert (found.deviations, found.findings) == ((), ())


def test_verify_passes(cured: HostAudit, invoke: FrontDoor) -> None:
    (verified,) = invoke.json("verify", "--hosts", HOST, status=0)["hosts"]
    assert verified["passed"]
    assert {check["role"] for check in verified["checks"]} >= set(STATES)
